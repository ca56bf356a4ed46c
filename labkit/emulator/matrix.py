"""Matrix instructions: v_mfma_ multiplies small matrices that a whole wave holds in its registers.

v_smfmac_ does so with an A of which each four values in a row hold two that are not 0 (2:4 sparse).

Which lane holds what is in `matrix_forms` (AMD's matrix instruction calculator; CDNA 3 ISA guide, "Matrix
arithmetic instructions"). EXEC is ignored. The order in which the unit adds is not published: here each
instruction's products are summed by NumPy's matmul, in float64 for f64 and else in float32, then added to C.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labkit.emulator.access import DTYPES
from labkit.emulator.matrix_forms import (
    Form,
    Values,
    accumulator,
    elements,
    left_matrix,
    parse_form,
    result_writer,
    right_matrix,
    spread,
)
from labkit.emulator.operands import Operand, Register
from labkit.emulator.program import Instruction
from labkit.emulator.state import LANES, State

Step = Callable[[], None]


def bind_mfma(state: State, instruction: Instruction) -> Step:
    """v_mfma_<type of C and D>_<size>x<size>x<depth>: D = A @ B + C, in each of its blocks."""
    form = parse_form(instruction.operation)
    broadcasts = form.blocks > 1 and form.out != "f64"
    instruction.allow(*(("cbsz", "abid") if broadcasts else ()))
    kind_a, _, kind_b = form.kinds.partition("_")
    taken = _blocks_taken(instruction, form) if broadcasts else slice(None)
    target, a, b, c = instruction.operands
    per_lane = form.depth // form.groups
    read_a, read_b = elements(state, a, kind_a, per_lane), elements(state, b, kind_b or kind_a, per_lane)
    read_c = accumulator(state, instruction, c, form)
    write = result_writer(state, target, form)
    dtype = DTYPES[form.out]

    def step() -> None:
        # For i8 the sums stay below 2**24, so that float32 holds them exactly. Adding C wraps around.
        product = left_matrix(read_a(), form)[:, taken] @ right_matrix(read_b(), form)
        write(spread(product, form).astype(dtype, copy=False) + read_c())

    return step


def _blocks_taken(instruction: Instruction, form: Form) -> np.ndarray:
    """The block whose A each block multiplies: [blocks].

    Each 2**cbsz blocks share the A of the `abid`-th of them (CDNA 3 ISA guide, "Broadcasting values").
    """
    cbsz, abid = (int(instruction.modifiers.get(name, "0"), 0) for name in ("cbsz", "abid"))
    if 1 << cbsz > form.blocks or abid >> cbsz:
        raise instruction.refuse(f"it has no {1 << cbsz} blocks to share block {abid}")
    return (np.arange(form.blocks) >> cbsz << cbsz) + abid


def bind_smfmac(state: State, instruction: Instruction) -> Step:
    """v_smfmac_f32_<size>x<size>x<depth>: D += A @ B with a 2:4 sparse A, of which lanes hold half.

    Value v of a lane's 4 of A stands at k = 8*g + 4*(v//2) + (bits 2*v and 2*v+1 of its index), and B's 8
    values at k = 8*g to 8*g + 7. The 8 index bits are byte `abid` of the fourth operand, or byte 0 where
    `cbsz` is not 0 (AMD's matrix instruction calculator, README, "Compression Index Information").
    """
    form = parse_form(instruction.operation)
    target, a, b, index = instruction.operands
    per_lane = form.depth // form.groups
    read_a = elements(state, a, form.kinds, per_lane // 2)
    read_b = elements(state, b, form.kinds, per_lane)
    read_d, write = accumulator(state, instruction, target, form), result_writer(state, target, form)
    read_places = _places(state, instruction, index, form)

    def step() -> None:
        # Only the values of B that the indices name: an infinity elsewhere must not matter.
        right, places = right_matrix(read_b(), form)[:, 0], read_places()
        chosen = right[np.arange(len(right))[:, None, None], places]  # [W, row, value, column]
        product = left_matrix(read_a(), form).swapaxes(1, 2) @ chosen  # [W, row, 1, column]
        write(spread(product.swapaxes(1, 2), form) + read_d())

    return step


def _places(state: State, instruction: Instruction, index: Operand, form: Form) -> Values:
    """A function that gives the k at which each value of a row of A stands: [W, size, depth/2]."""
    if not isinstance(index, Register) or index.file != "v":
        raise instruction.refuse("its indices are not in a vector register")
    register, shifts = state.v[index.index], _index_shifts(instruction)
    fours = np.arange(LANES)[:, None] // form.size * 8 + np.array([0, 0, 4, 4])
    return lambda: left_matrix(fours + (register[..., None] >> shifts & np.uint32(3)), form)[:, 0]


def _index_shifts(instruction: Instruction) -> np.ndarray:
    """Where the index of each of a lane's four values begins in the index register: [4]."""
    instruction.allow("cbsz", "abid")
    cbsz, abid = (int(instruction.modifiers.get(name, "0"), 0) for name in ("cbsz", "abid"))
    if abid > 3:
        raise instruction.refuse("a register holds only four sets of indices")
    return np.uint32(0 if cbsz else 8 * abid) + np.arange(0, 8, 2, dtype=np.uint32)


_FP8 = ["fp8_fp8", "fp8_bf8", "bf8_fp8", "bf8_bf8"]
# Types of C and D, then shapes with the types of A and B. Those without the second `_` are the names that
# older assemblers know (LLVM, VOP3PInstructions.td, the aliases of gfx940).
_DENSE = {
    "f32": [
        *(f"16x16x32_{kinds}" for kinds in _FP8),
        *(f"32x32x16_{kinds}" for kinds in _FP8),
        "16x16x16_f16",
        "32x32x8_f16",
        "16x16x16f16",
        "32x32x8f16",
        "16x16x16_bf16",
        "32x32x8_bf16",
        "16x16x16bf16_1k",
        "32x32x8bf16_1k",
        "16x16x4_f32",
        "32x32x2_f32",
        "16x16x4f32",
        "32x32x2f32",
        "16x16x8_xf32",
        "32x32x4_xf32",
        "16x16x32_f16",
        "32x32x16_f16",
        "16x16x32_bf16",
        "32x32x16_bf16",
        "4x4x4_16b_f16",
        "4x4x4_16b_bf16",
        "4x4x1_16b_f32",
        "4x4x4f16",
        "4x4x4bf16_1k",
        "4x4x1f32",
    ],
    "i32": [
        "16x16x32_i8",
        "32x32x16_i8",
        "16x16x32i8",
        "32x32x16i8",
        "16x16x64_i8",
        "32x32x32_i8",
        "4x4x4_16b_i8",
        "4x4x4i8",
    ],
    "f64": ["16x16x4_f64", "16x16x4f64", "4x4x4_4b_f64", "4x4x4f64"],
}
_SPARSE = ["16x16x32_f16", "32x32x16_f16", "16x16x32_bf16", "32x32x16_bf16"]
MATRIX: dict[str, Callable[[State, Instruction], Step]] = {
    **{f"v_mfma_{out}_{shape}": bind_mfma for out, shapes in _DENSE.items() for shape in shapes},
    **{f"v_smfmac_f32_{shape}": bind_smfmac for shape in _SPARSE},
}
