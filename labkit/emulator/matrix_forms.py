"""The registers of matrix instructions: which lane holds which element of A, B, C and D.

Every form multiplies `blocks` pairs of matrices at once. Lane (g*blocks + b)*size + r holds row r of block
b of A, and column r of block b of B, for the g-th run of k values. Result register i of that lane holds
column r of block b, row 4*groups*(i//4) + 4*g + i%4 for 32-bit results, and row groups*i + g for 64-bit
ones (AMD's matrix instruction calculator, matrix_calculator.py, get_input_reg_lanes and
get_output_reg_lanes; Composable Kernel's xdlops_gemm.hpp has the same).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import ml_dtypes
import numpy as np

from labkit.emulator.access import DTYPES, reader
from labkit.emulator.operands import Constant, Operand, Register
from labkit.emulator.program import Instruction
from labkit.emulator.rounding import FP8_FORMATS, fp8_values
from labkit.emulator.state import LANES, State

Values = Callable[[], np.ndarray]
_NAME = re.compile(
    r"v_(?:mfma|smfmac)_(f32|i32|f64)_(\d+)x\2x(\d+)_?(?:(\d+)b_)?"
    r"(f16|bf16|f32|f64|xf32|i8|f8f6f4|fp8_fp8|fp8_bf8|bf8_fp8|bf8_bf8)(?:_1k)?"
)
FP8_PAIRS = ("fp8_fp8", "fp8_bf8", "bf8_fp8", "bf8_bf8")  # types of A and B
_SIZES = {"f64": 8, "f32": 4, "xf32": 4, "f16": 2, "bf16": 2}  # bytes; the others have 1


@dataclass(frozen=True, slots=True)
class Form:
    """What an operation's name says: D and C are `out`, A is size x depth, B depth x size, per block."""

    out: str
    size: int
    depth: int
    blocks: int
    kinds: str

    @property
    def groups(self) -> int:
        """How many groups of lanes share out the k values."""
        return LANES // (self.size * self.blocks)

    @property
    def registers(self) -> int:
        """Results that a lane holds; a 64-bit one takes two registers."""
        return self.size * self.size * self.blocks // LANES


@cache
def result_rows(form: Form) -> np.ndarray:
    """The row that result i of lane group g holds: [registers, groups]. Every step of the form reads it."""
    i, g = np.meshgrid(np.arange(form.registers), np.arange(form.groups), indexing="ij")
    if form.out == "f64":
        return form.groups * i + g
    return 4 * form.groups * (i // 4) + 4 * g + i % 4


def parse_form(operation: str) -> Form:
    """The form that a name of MATRIX stands for. Older names leave the number of blocks out."""
    out, size, depth, blocks, kinds = _NAME.fullmatch(operation).groups()  # type: ignore[union-attr]
    usual = 1 if size != "4" else 4 if out == "f64" else 16
    return Form(out, int(size), int(depth), int(blocks or usual), kinds)


def elements(state: State, operand: Register, kind: str, per_lane: int) -> Values:
    """A function that gives a lane's `per_lane` values of an input, [W, 64, per_lane].

    They come as float64 for f64, else as float32, which holds every value of the other types.
    """
    file = getattr(state, operand.file)
    count = per_lane * _SIZES.get(kind, 1) // 4

    def read() -> np.ndarray:
        words = np.ascontiguousarray(np.moveaxis(file[operand.index : operand.index + count], 0, -1))
        if kind in ("f32", "f64"):
            return words.view(DTYPES[kind])
        if kind == "xf32":
            return _to_xf32(words)
        if kind in _NARROW:
            return words.view(_NARROW[kind]).astype(np.float32)
        return fp8_values(FP8_FORMATS[state.fnuz][kind])[words.view(np.uint8)]

    return read


_NARROW = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8}


def _to_xf32(words: np.ndarray) -> np.ndarray:
    """float32 bits rounded to the 10 fraction bits of xf32, to nearest even: a choice, AMD names none."""
    rounded = words + np.uint32(0xFFF) + ((words >> np.uint32(13)) & np.uint32(1))
    finite = (words & np.uint32(0x7F800000)) != np.uint32(0x7F800000)
    return np.where(finite, rounded & np.uint32(0xFFFFE000), words).view(np.float32)


def left_matrix(values: np.ndarray, form: Form) -> np.ndarray:
    """Values as the lanes hold them, [W, 64, n], to A: [W, blocks, size, groups*n]."""
    waves, _, per_lane = values.shape
    split = values.reshape(waves, form.groups, form.blocks, form.size, per_lane)
    return split.transpose(0, 2, 3, 1, 4).reshape(waves, form.blocks, form.size, -1)


def right_matrix(values: np.ndarray, form: Form) -> np.ndarray:
    """Values as the lanes hold them, [W, 64, n], to B: [W, blocks, groups*n, size]."""
    return left_matrix(values, form).swapaxes(2, 3)


def spread(product: np.ndarray, form: Form) -> np.ndarray:
    """Products [W, blocks, size, size] as the lanes hold them: [registers, W, 64]."""
    lanes = product.take(result_rows(form), axis=2)  # [W, block, register, group, column]
    return lanes.transpose(2, 0, 3, 1, 4).reshape(form.registers, -1, LANES)


def accumulator(state: State, instruction: Instruction, operand: Operand, form: Form) -> Values:
    """A function that gives C as the lanes hold it: [registers, W, 64], or a constant."""
    dtype = DTYPES[form.out]
    if isinstance(operand, Constant):
        return reader(state, instruction, operand, form.out)
    words = dtype.itemsize // 4
    file = getattr(state, operand.file)[operand.index : operand.index + form.registers * words]
    if words == 1:
        view = file.view(dtype)
        return lambda: view
    pairs = file.reshape(form.registers, 2, *file.shape[1:])
    return lambda: np.ascontiguousarray(np.moveaxis(pairs, 1, -1)).view(dtype)[..., 0]


def result_writer(state: State, target: Register, form: Form) -> Callable[[np.ndarray], None]:
    """A function that stores D, [registers, W, 64], in the waves that execute. EXEC is ignored."""
    words = DTYPES[form.out].itemsize // 4
    destination = getattr(state, target.file)[target.index : target.index + form.registers * words]

    def write(result: np.ndarray) -> None:
        bits = result.view(np.uint32)
        if words == 2:
            bits = np.moveaxis(bits.reshape(*result.shape, 2), -1, 1).reshape(destination.shape)
        if state.group is None:
            destination[...] = bits
        else:
            np.copyto(destination, bits, where=state.group)

    return write
