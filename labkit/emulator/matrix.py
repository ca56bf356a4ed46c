"""Matrix instructions: v_mfma_ multiplies small matrices that a whole wave holds in its registers.

Registers of lane 16*g + r (16x16) or 32*g + r (32x32): A holds row r, B column r, for the g-th run of
k values; result register i holds row 4*g + i (16x16), or 8*(i//4) + 4*g + i%4 (32x32), column r
(AMD's matrix instruction calculator; CDNA 3 ISA guide, "Matrix arithmetic instructions"). EXEC is ignored.
The order in which the unit adds is not published: here each instruction's products are summed in float32
by NumPy's matmul, then added to C.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import ml_dtypes
import numpy as np

from labkit.emulator.access import reader
from labkit.emulator.operands import Constant, Operand, Register
from labkit.emulator.program import Instruction
from labkit.emulator.rounding import FP8_FORMATS, fp8_values
from labkit.emulator.state import LANES, State

Step = Callable[[], None]
_FORM = re.compile(
    r"v_mfma_f32_(\d+)x(\d+)x(\d+)_?(f16|bf16|f32|xf32|f8f6f4|fp8_fp8|fp8_bf8|bf8_fp8|bf8_bf8)(?:_1k)?"
)


def _elements(state: State, operand: Register, kind: str, per_lane: int) -> Callable[[], np.ndarray]:
    """A function that gives a lane's `per_lane` values of an input as float32 [W, 64, per_lane]."""
    file = getattr(state, operand.file)
    size = {"f32": 4, "xf32": 4, "f16": 2, "bf16": 2}.get(kind, 1)
    count = per_lane * size // 4

    def read() -> np.ndarray:
        words = np.ascontiguousarray(np.moveaxis(file[operand.index : operand.index + count], 0, -1))
        if kind == "f32":
            return words.view(np.float32)
        if kind == "xf32":
            return _to_xf32(words)
        if kind == "f16":
            return words.view(np.float16).astype(np.float32)
        if kind == "bf16":
            return words.view(ml_dtypes.bfloat16).astype(np.float32)
        return fp8_values(FP8_FORMATS[state.fnuz][kind])[words.view(np.uint8)]

    return read


def _to_xf32(words: np.ndarray) -> np.ndarray:
    """float32 bits rounded to the 10 fraction bits of xf32, to nearest even: a choice, AMD names none."""
    rounded = words + np.uint32(0xFFF) + ((words >> np.uint32(13)) & np.uint32(1))
    finite = (words & np.uint32(0x7F800000)) != np.uint32(0x7F800000)
    return np.where(finite, rounded & np.uint32(0xFFFFE000), words).view(np.float32)


def result_rows(size: int) -> np.ndarray:
    """The row that result register i of a lane group g holds: [registers, groups]."""
    groups = LANES // size
    i, g = np.meshgrid(np.arange(size * size // LANES), np.arange(groups), indexing="ij")
    return 4 * g + i if size == 16 else 8 * (i // 4) + 4 * g + i % 4


def bind_mfma(state: State, instruction: Instruction) -> Step:
    """v_mfma_f32_16x16xK and 32x32xK with one block: D = A @ B + C."""
    m, n, k, kinds = _FORM.fullmatch(instruction.operation).groups()  # type: ignore[union-attr]
    kinds = _chosen_formats(instruction) if kinds == "f8f6f4" else kinds
    size, depth = int(m), int(k)
    kind_a, kind_b = kinds.split("_") if "_" in kinds else (kinds, kinds)
    groups = LANES // size
    per_lane = depth // groups
    instruction.allow(*(("cbsz", "blgp") if "f8f6f4" in instruction.operation else ()))
    if m != n or size not in (16, 32) or per_lane * groups != depth:
        raise instruction.refuse("this shape is not implemented")
    target, a, b, c = instruction.operands
    read_a, read_b = _elements(state, a, kind_a, per_lane), _elements(state, b, kind_b, per_lane)
    registers = size * size // LANES
    read_c = _accumulator(state, instruction, c, registers)
    rows, file = result_rows(size), getattr(state, target.file)
    waves = state.waves

    def step() -> None:
        # [W, group, row, k of the group] -> [W, row, k]
        left = (
            read_a().reshape(waves, groups, size, per_lane).transpose(0, 2, 1, 3).reshape(waves, size, depth)
        )
        right = (
            read_b().reshape(waves, groups, size, per_lane).transpose(0, 1, 3, 2).reshape(waves, depth, size)
        )
        product = left @ right
        # result register i of lane (g, column) is product[row(i, g), column]
        spread = product[:, rows].transpose(1, 0, 2, 3).reshape(registers, waves, LANES)
        result = (spread + read_c()).view(np.uint32)
        destination = file[target.index : target.index + registers]
        if state.group is None:
            destination[...] = result
        else:
            np.copyto(destination, result, where=state.group)

    return step


def _chosen_formats(instruction: Instruction) -> str:
    """cbsz and blgp name the formats of A and B of an f8f6f4 form: 0 is fp8, 1 is bf8 (CDNA 4 ISA guide)."""
    chosen = [int(instruction.modifiers.get(name, "0"), 0) for name in ("cbsz", "blgp")]
    if any(number > 1 for number in chosen):
        raise instruction.refuse("FP6 and FP4 operands are not implemented")
    return "_".join(("fp8", "bf8")[number] for number in chosen)


def _accumulator(
    state: State, instruction: Instruction, operand: Operand, registers: int
) -> Callable[[], np.ndarray]:
    if isinstance(operand, Constant):
        return reader(state, instruction, operand, "f32")
    view = getattr(state, operand.file)[operand.index : operand.index + registers].view(np.float32)
    return lambda: view


_SHAPES = [
    "16x16x32_fp8_fp8",
    "16x16x32_fp8_bf8",
    "16x16x32_bf8_fp8",
    "16x16x32_bf8_bf8",
    "32x32x16_fp8_fp8",
    "32x32x16_fp8_bf8",
    "32x32x16_bf8_fp8",
    "32x32x16_bf8_bf8",
    "16x16x16_f16",
    "32x32x8_f16",
    "16x16x16f16",
    "32x32x8f16",
    "16x16x16_bf16",
    "32x32x8_bf16",
    "16x16x16bf16_1k",
    "32x32x8bf16_1k",
    "16x16x4_f32",
    "16x16x128_f8f6f4",
    "32x32x64_f8f6f4",
    "16x16x8_xf32",
    "32x32x4_xf32",
    "32x32x2_f32",
    "16x16x4f32",
    "32x32x2f32",
    "16x16x32_f16",
    "32x32x16_f16",
    "16x16x32_bf16",
    "32x32x16_bf16",
]
MATRIX: dict[str, Callable[[State, Instruction], Step]] = {
    f"v_mfma_f32_{shape}": bind_mfma for shape in _SHAPES
}
