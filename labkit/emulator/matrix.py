"""Matrix instructions: v_mfma_ multiplies small matrices that a whole wave holds in its registers.

Which lane holds what is in `matrix_forms` (AMD's matrix instruction calculator; CDNA 3 ISA guide, "Matrix
arithmetic instructions"). EXEC is ignored. The order in which the unit adds is not published: here each
instruction's products are summed by NumPy's matmul, in float64 for f64 and else in float32, then added to C.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labkit.emulator.access import DTYPES
from labkit.emulator.matrix_forms import (
    FP8_PAIRS,
    Form,
    accumulator,
    elements,
    left_matrix,
    parse_form,
    result_writer,
    right_matrix,
    spread,
)
from labkit.emulator.program import Instruction
from labkit.emulator.state import State

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


# Types of C and D, then shapes with the types of A and B. Those without the second `_` are the names that
# older assemblers know (LLVM, VOP3PInstructions.td, the aliases of gfx940).
_DENSE = {
    "f32": [
        *(f"16x16x32_{kinds}" for kinds in FP8_PAIRS),
        *(f"32x32x16_{kinds}" for kinds in FP8_PAIRS),
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
MATRIX: dict[str, Callable[[State, Instruction], Step]] = {
    **{f"v_mfma_{out}_{shape}": bind_mfma for out, shapes in _DENSE.items() for shape in shapes},
}
