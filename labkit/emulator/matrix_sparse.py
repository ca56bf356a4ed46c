"""v_smfmac_: a matrix product with a 2:4 sparse A, of which each four values in a row keep two.

A lane holds n consecutive values of k of B and n/2 of A, which stand for the same k. Value v of A is one of
the four from k = 4*(v//2): the one that bits 2*v and 2*v+1 of the lane's index name. An index takes n bits,
so that a register holds several sets of them: `abid` says which, or the first counts where `cbsz` is not 0
(AMD's matrix instruction calculator, README, "Compression Index Information"; CDNA 3 ISA guide, "Sparse
matrix"). The wider forms of gfx950 are read in the same way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labkit.emulator.access import DTYPES
from labkit.emulator.matrix_forms import (
    FP8_PAIRS,
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


def bind_smfmac(state: State, instruction: Instruction) -> Step:
    """v_smfmac_<type of D>_<size>x<size>x<depth>: D += A @ B."""
    form = parse_form(instruction.operation)
    target, a, b, index = instruction.operands
    kind_a, _, kind_b = form.kinds.partition("_")
    per_lane = form.depth // form.groups
    read_a = elements(state, a, kind_a, per_lane // 2)
    read_b = elements(state, b, kind_b or kind_a, per_lane)
    read_d, write = accumulator(state, instruction, target, form), result_writer(state, target, form)
    read_places = _places(state, instruction, index, form, per_lane)
    dtype = DTYPES[form.out]

    def step() -> None:
        # Only the values of B that the indices name: an infinity elsewhere must not matter.
        right, places = right_matrix(read_b(), form)[:, 0], read_places()
        chosen = right[np.arange(len(right))[:, None, None], places]  # [W, row, value, column]
        product = left_matrix(read_a(), form).swapaxes(1, 2) @ chosen  # [W, row, 1, column]
        write(spread(product.swapaxes(1, 2), form).astype(dtype, copy=False) + read_d())

    return step


def _places(state: State, instruction: Instruction, index: Operand, form: Form, per_lane: int) -> Values:
    """A function that gives the k at which each value of a row of A stands: [W, size, depth/2]."""
    if not isinstance(index, Register) or index.file != "v":
        raise instruction.refuse("its indices are not in a vector register")
    register, values = state.v[index.index], np.arange(per_lane // 2)
    shifts = _first_bit(instruction, per_lane) + 2 * values.astype(np.uint32)
    fours = np.arange(LANES)[:, None] // form.size * per_lane + 4 * (values // 2)
    return lambda: left_matrix(fours + (register[..., None] >> shifts & np.uint32(3)), form)[:, 0]


def _first_bit(instruction: Instruction, bits: int) -> np.uint32:
    """Where in its register the index of `bits` bits begins that the instruction uses."""
    instruction.allow("cbsz", "abid")
    cbsz, abid = (int(instruction.modifiers.get(name, "0"), 0) for name in ("cbsz", "abid"))
    if abid >= 32 // bits:
        raise instruction.refuse(f"a register holds only {32 // bits} sets of its indices")
    return np.uint32(0 if cbsz else bits * abid)


_SHAPES = {
    "f32": [
        *(f"{shape}_{kind}" for shape in ("16x16x32", "32x32x16") for kind in ("f16", "bf16")),
        *(f"{shape}_{kinds}" for shape in ("16x16x64", "32x32x32") for kinds in FP8_PAIRS),
        # gfx950 alone:
        *(f"{shape}_{kind}" for shape in ("16x16x64", "32x32x32") for kind in ("f16", "bf16")),
        *(f"{shape}_{kinds}" for shape in ("16x16x128", "32x32x64") for kinds in FP8_PAIRS),
    ],
    "i32": ["16x16x64_i8", "32x32x32_i8", "16x16x128_i8", "32x32x64_i8"],
}
SPARSE: dict[str, Callable[[State, Instruction], Step]] = {
    f"v_smfmac_{out}_{shape}": bind_smfmac for out, shapes in _SHAPES.items() for shape in shapes
}
