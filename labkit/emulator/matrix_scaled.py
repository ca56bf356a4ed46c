"""The f8f6f4 forms of v_mfma (gfx950), whose A and B have each their own small type, and may have scales.

cbsz names A's type and blgp B's: 0 is fp8, 1 bf8, 4 fp4 (CDNA 4 ISA guide). Lane g*size + r holds 32 values
of row r of A: for fp4 those of k = 32*g and on, for the 8-bit types 16 from k = 16*g and 16 from k =
16*(groups + g). Its scale is for k = 32*g to 32*g + 31 whichever the type, a power of two without a sign
(E8M0). B is alike by columns ("Introduction to Matrix Core Programming on AMD CDNA 3 and CDNA 4", AMD 2025).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labkit.emulator.access import reader
from labkit.emulator.matrix_forms import (
    Form,
    Values,
    accumulator,
    elements,
    parse_form,
    result_writer,
    spread,
)
from labkit.emulator.operands import Operand, Register
from labkit.emulator.packed import selector
from labkit.emulator.program import Instruction
from labkit.emulator.rounding import FP4_VALUES
from labkit.emulator.state import LANES, State

Step = Callable[[], None]
_TYPES = {0: "fp8", 1: "bf8", 4: "fp4"}
_PER_SCALE = 32  # values of k that one scale serves


def fp4_values(words: np.ndarray) -> np.ndarray:
    """The float32 values of E2M1 numbers, 8 in each word, the lowest bits first: [..., n] -> [..., 8n]."""
    nibbles = words[..., None] >> np.arange(0, 32, 4, dtype=np.uint32) & np.uint32(15)
    return FP4_VALUES[nibbles].reshape(*words.shape[:-1], -1)


def bind_f8f6f4(state: State, instruction: Instruction) -> Step:
    """v_mfma_f32_<shape>_f8f6f4: D = A @ B + C, as bind_mfma sums it."""
    instruction.allow("cbsz", "blgp")
    form = parse_form(instruction.operation)
    read_a, read_b, read_c, write = _operands(state, instruction, form)

    def step() -> None:
        write(spread((read_a() @ read_b().swapaxes(1, 2))[:, None], form) + read_c())

    return step


def bind_scaled(state: State, instruction: Instruction) -> Step:
    """v_mfma_scale_f32_<shape>_f8f6f4: each 32 values of k of A and of B are multiplied by their scales.

    The products of 32 k are added in float32, then scaled; these sums and C are added in float64.
    """
    instruction.allow("cbsz", "blgp", "op_sel", "op_sel_hi")
    form = parse_form(instruction.operation.replace("_scale", ""))
    read_a, read_b, read_c, write = _operands(state, instruction, form)
    exponents = [_exponents(state, instruction, number, form) for number in (0, 1)]

    def step() -> None:
        a, b = (_by_scale(read()) for read in (read_a, read_b))  # [W, group, row or column, k]
        of_rows, of_columns = (read() for read in exponents)
        sums = (a @ b.swapaxes(2, 3)).astype(np.float64)
        scales = np.exp2(of_rows)[..., :, None] * np.exp2(of_columns)[..., None, :]
        product = (sums * scales).sum(axis=1)
        write((spread(product[:, None], form) + read_c()).astype(np.float32))

    return step


def _by_scale(matrix: np.ndarray) -> np.ndarray:
    waves, size, depth = matrix.shape
    return matrix.reshape(waves, size, depth // _PER_SCALE, _PER_SCALE).swapaxes(1, 2)


def _operands(state: State, instruction: Instruction, form: Form) -> tuple[Values, Values, Values, Callable]:
    target, a, b, c = instruction.operands[:4]
    kinds = [int(instruction.modifiers.get(name, "0"), 0) for name in ("cbsz", "blgp")]
    if any(kind not in _TYPES for kind in kinds):
        raise instruction.refuse("FP6 operands are not implemented")
    read_a, read_b = (_matrix(state, x, _TYPES[kind], form) for x, kind in zip((a, b), kinds, strict=True))
    return read_a, read_b, accumulator(state, instruction, c, form), result_writer(state, target, form)


def _matrix(state: State, operand: Register, kind: str, form: Form) -> Values:
    """A function that gives A, or B by columns: float32 [W, size, depth]."""
    runs = 1 if kind == "fp4" else 2  # of k values that follow one another in a lane
    if kind == "fp4":
        registers = getattr(state, operand.file)[operand.index : operand.index + 4]
        read = lambda: fp4_values(np.moveaxis(registers, 0, -1))  # noqa: E731
    else:
        read = elements(state, operand, kind, _PER_SCALE)

    def matrix() -> np.ndarray:
        values = read().reshape(-1, form.groups, form.size, runs, _PER_SCALE // runs)
        return values.transpose(0, 2, 3, 1, 4).reshape(-1, form.size, form.depth)

    return matrix


def _exponents(state: State, instruction: Instruction, number: int, form: Form) -> Values:
    """A function that gives the powers of two of A's scales (number 0) or B's: float64 [W, groups, size].

    op_sel and op_sel_hi are the low and the high bit of which byte of the register holds the scale.
    """
    operand: Operand = instruction.operands[4 + number]
    read = reader(state, instruction, operand, "u32")
    byte = selector(instruction, "op_sel", 0)[number] + 2 * selector(instruction, "op_sel_hi", 1)[number]
    shift = np.uint32(8 * byte)

    def exponents() -> np.ndarray:
        bits = np.broadcast_to(read(), (state.waves, LANES)) >> shift & np.uint32(0xFF)
        power = np.where(bits == 255, np.nan, bits.astype(np.float64) - 127)
        return power.reshape(state.waves, form.groups, form.size)

    return exponents


_SHAPES = ("16x16x128", "32x32x64")
SCALED: dict[str, Callable[[State, Instruction], Step]] = {
    **{f"v_mfma_f32_{shape}_f8f6f4": bind_f8f6f4 for shape in _SHAPES},
    **{f"v_mfma_scale_f32_{shape}_f8f6f4": bind_scaled for shape in _SHAPES},
}
