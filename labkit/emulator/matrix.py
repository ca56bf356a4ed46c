"""Matrix instructions: v_mfma_ multiplies small matrices that a whole wave holds in its registers.

Which lane holds what is in `matrix_forms` (AMD's matrix instruction calculator; CDNA 3 ISA guide, "Matrix
arithmetic instructions"). EXEC is ignored. The order in which the unit adds is not published: here each
instruction's products are summed by NumPy's matmul, in float64 for f64 and else in float32, then added to C.
"""

from __future__ import annotations

from collections.abc import Callable

from labkit.emulator.access import DTYPES
from labkit.emulator.matrix_forms import (
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
    instruction.allow(*(("cbsz", "blgp") if form.kinds == "f8f6f4" else ()))
    kind_a, kind_b = _input_kinds(instruction, form.kinds)
    target, a, b, c = instruction.operands
    per_lane = form.depth // form.groups
    read_a, read_b = elements(state, a, kind_a, per_lane), elements(state, b, kind_b, per_lane)
    read_c = accumulator(state, instruction, c, form)
    write = result_writer(state, target, form)
    dtype = DTYPES[form.out]

    def step() -> None:
        # For i8 the sums stay below 2**24, so that float32 holds them exactly. Adding C wraps around.
        product = left_matrix(read_a(), form) @ right_matrix(read_b(), form)
        write(spread(product, form).astype(dtype, copy=False) + read_c())

    return step


def _input_kinds(instruction: Instruction, kinds: str) -> tuple[str, str]:
    """The types of A and B.

    cbsz and blgp name them for an f8f6f4 form: 0 is fp8, 1 is bf8 (CDNA 4 ISA guide).
    """
    if kinds != "f8f6f4":
        first, _, second = kinds.partition("_")
        return first, second or first
    chosen = [int(instruction.modifiers.get(name, "0"), 0) for name in ("cbsz", "blgp")]
    if any(number > 1 for number in chosen):
        raise instruction.refuse("FP6 and FP4 operands are not implemented")
    return ("fp8", "bf8")[chosen[0]], ("fp8", "bf8")[chosen[1]]


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
        "16x16x128_f8f6f4",
        "32x32x64_f8f6f4",
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
    ],
    "f64": ["16x16x4_f64", "16x16x4f64", "4x4x4_4b_f64", "4x4x4f64"],
}
MATRIX: dict[str, Callable[[State, Instruction], Step]] = {
    f"v_mfma_{out}_{shape}": bind_mfma for out, shapes in _DENSE.items() for shape in shapes
}
