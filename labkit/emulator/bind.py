"""Find what executes an instruction, by its mnemonic, and bind it to the registers of a State.

Mnemonics of irregular shape have a binder of their own; the regular ones share one for vector results, one
for scalar results and one for each kind of memory.
"""

from __future__ import annotations

from collections.abc import Callable

from labkit.emulator import (  # noqa: F401  (each vector_ module fills the table of vector)
    cdna4,
    matrix,
    packed,
    scalar_forms,
    vector_compare,
    vector_convert,
    vector_division,
    vector_float,
    vector_integer,
    vector_trig,
)
from labkit.emulator.crosslane import CROSSLANE
from labkit.emulator.global_memory import Context, Recorder, bind_global, bind_scalar_load
from labkit.emulator.lds import bind_lds
from labkit.emulator.matrix_scaled import SCALED
from labkit.emulator.matrix_sparse import SPARSE
from labkit.emulator.operands import Register
from labkit.emulator.permute import PERMUTE
from labkit.emulator.program import Instruction, Program
from labkit.emulator.scalar import SCALAR, bind_scalar
from labkit.emulator.scratch import bind_scratch
from labkit.emulator.state import State
from labkit.emulator.vector import VECTOR, bind_vector
from labkit.emulator.vector_dot import DOT

Step = Callable[[], None]

_SPECIAL: dict[str, Callable[[State, Instruction], Step]] = {
    **CROSSLANE,
    **packed.PACKED,
    **scalar_forms.SCALAR_FORMS,
    **matrix.MATRIX,
    **SCALED,
    **SPARSE,
    **cdna4.CDNA4,
    **PERMUTE,
    **DOT,
}


def bind(state: State, instruction: Instruction, context: Context, record: Recorder) -> Step:
    """The step that executes one instruction on `state`. Raises UnsupportedInstruction for an unknown one."""
    operation = instruction.operation
    if operation in _SPECIAL:
        return _SPECIAL[operation](state, instruction)
    if operation in VECTOR:
        return bind_vector(state, instruction)
    if operation in SCALAR:
        return bind_scalar(state, instruction)
    if operation.startswith("s_load_dword"):
        return bind_scalar_load(state, instruction, context)
    if operation.startswith(("global_", "flat_", "buffer_")):
        return bind_global(state, instruction, context, record)
    if operation.startswith("ds_"):
        return bind_lds(state, instruction)
    if operation.startswith("scratch_"):
        return bind_scratch(state, instruction)
    raise instruction.refuse("this instruction is not implemented")


def registers_named(program: Program) -> tuple[int, int]:
    """How many vector and accumulation registers the program's operands reach."""
    highest = {"v": 1, "a": 0, "s": 0}
    for instruction in program.instructions:
        for operand in instruction.operands:
            if isinstance(operand, Register):
                highest[operand.file] = max(highest[operand.file], operand.index + operand.count)
    return highest["v"], highest["a"]
