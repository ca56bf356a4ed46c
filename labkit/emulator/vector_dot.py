"""Dot products of two registers' small values, added to a 32-bit sum: v_dot2, v_dot4, v_dot8.

Integers are CDNA 3's pseudo-code: all products and the sum wrap around at 32 bits. For the float forms AMD
publishes neither order nor roundings: here products and sums are float64, rounded to float32 once. They read
and write float32 denormals as zero whatever MODE says (LLVM, SIISelLowering.cpp, performFMACombine).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labkit.emulator.access import Reader, reader, store
from labkit.emulator.operands import Constant, Operand
from labkit.emulator.packed import SELECTORS, element, selector
from labkit.emulator.program import Instruction
from labkit.emulator.rounding import flush
from labkit.emulator.state import State
from labkit.emulator.vector import vector

Step = Callable[[], None]


def _integer_dot(bits: int, signed: bool) -> Callable:
    """A function (a, b, c) that adds the products of all fields of `bits` bits to c."""
    sign = np.int64(1 << (bits - 1) if signed else 0)

    def fields(word: np.ndarray) -> list[np.ndarray]:
        numbers = [word >> np.uint32(at) & np.uint32((1 << bits) - 1) for at in range(0, 32, bits)]
        return [(number.astype(np.int64) ^ sign) - sign for number in numbers]

    def dot(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        products = [x * y for x, y in zip(fields(a), fields(b), strict=True)]
        return (sum(products) + c.astype(np.int64)).astype(np.uint32)

    return dot


for _bits in (4, 8, 16):
    _count = 32 // _bits
    vector(f"v_dot{_count}c_i32_i{_bits}", "u32 u32 old -> u32")(_integer_dot(_bits, signed=True))
    if _bits < 16:
        vector(f"v_dot{_count}_i32_i{_bits}", "u32 u32 u32 -> u32")(_integer_dot(_bits, signed=True))
        vector(f"v_dot{_count}_u32_u{_bits}", "u32 u32 u32 -> u32")(_integer_dot(_bits, signed=False))


def _from_float16(bits: np.ndarray) -> np.ndarray:
    return bits.view(np.float16).astype(np.float64)


def _from_bfloat16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


def _add_products(a: list[np.ndarray], b: list[np.ndarray], c: np.ndarray) -> np.ndarray:
    total = a[0] * b[0] + a[1] * b[1] + flush(c)
    return flush(total.astype(np.float32))


def _split(word: np.ndarray) -> list[np.ndarray]:
    return [(word >> np.uint32(shift)).astype(np.uint16) for shift in (0, 16)]


def _accumulate(convert: Callable) -> Callable:
    """v_dot2c: both halves of each source, added to what the destination held."""
    return lambda a, b, c: _add_products(*([convert(half) for half in _split(x)] for x in (a, b)), c)


vector("v_dot2c_f32_f16", "u32 u32 old -> f32")(_accumulate(_from_float16))
vector("v_dot2c_f32_bf16", "u32 u32 old -> f32")(_accumulate(_from_bfloat16))

# Operation -> how a half of a source is read; the sum is of the result's type.
_HALVES: dict[str, Callable] = {
    "v_dot2_f32_f16": _from_float16,
    "v_dot2_f32_bf16": _from_bfloat16,
    "v_dot2_i32_i16": lambda bits: bits.view(np.int16).astype(np.int64),
    "v_dot2_u32_u16": lambda bits: bits.astype(np.int64),
}


def bind_dot2(state: State, instruction: Instruction) -> Step:
    """v_dot2_: op_sel and op_sel_hi choose the halves of each product, neg_lo and neg_hi their signs."""
    instruction.allow(*SELECTORS)
    target, *sources, addend = instruction.operands
    floats = instruction.operation.startswith("v_dot2_f32")
    if selector(instruction, "op_sel", 0)[2] or selector(instruction, "neg_hi", 0)[2]:
        raise instruction.refuse("a selected half of the sum")
    first, second = (_halves(state, instruction, number, floats) for number in range(len(sources)))
    add = _addend(state, instruction, addend, floats)

    def step() -> None:
        values = [[read() for read in halves] for halves in (first, second)]
        if floats:
            result = _add_products(*values, add())
        else:
            (a, b), (c, d) = values
            result = (a * c + b * d + add().astype(np.int64)).astype(np.uint32)
        store(state.v[target.index], result, state.lane_mask())

    return step


def _halves(state: State, instruction: Instruction, number: int, floats: bool) -> list[Reader]:
    """Readers of the two values that source `number` gives to the two products."""
    operand, convert = instruction.operands[1 + number], _HALVES[instruction.operation]
    if isinstance(operand, Constant) and isinstance(operand.value, float) and "bf16" in instruction.operation:
        raise instruction.refuse("a constant of bfloat16")
    readers = []
    for choice, default, negate in (("op_sel", 0, "neg_lo"), ("op_sel_hi", 1, "neg_hi")):
        read = element(state, instruction, operand, "u16", selector(instruction, choice, default)[number])
        negative = selector(instruction, negate, 0)[number]
        if negative and not floats:
            raise instruction.refuse(f"`{negate}` of an integer")
        readers.append(_converted(read, convert, -1.0 if negative else 1))
    return readers


def _converted(read: Reader, convert: Callable, sign: float) -> Reader:
    return lambda: convert(read()) * sign


def _addend(state: State, instruction: Instruction, operand: Operand, floats: bool) -> Reader:
    read = reader(state, instruction, operand, "f32" if floats else "u32")
    if not selector(instruction, "neg_lo", 0)[2]:
        return read
    if not floats:
        raise instruction.refuse("`neg_lo` of an integer")
    return lambda: np.negative(read())


DOT: dict[str, Callable[[State, Instruction], Step]] = dict.fromkeys(_HALVES, bind_dot2)
