"""Bind operands to a State: readers and writers of typed values.

A type names how the bits of a register are read: u32, i32, f32, u16, i16, f16, u64, i64, f64, and

- b32, b64: raw bits (a sign modifier acts on them as on a float);
- mask: a lane mask in a scalar pair, as bools [W, 64];
- h16: as a result, a 16-bit value that keeps the register's upper half (other 16-bit results zero it).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labkit.emulator.operands import Constant, Operand, Register
from labkit.emulator.program import Instruction
from labkit.emulator.state import LaneMask, State, from_lanes, join, split, to_lanes

DTYPES = {name: np.dtype(code) for name, code in {
    "u32": "u4", "i32": "i4", "f32": "f4", "b32": "u4",
    "u16": "u2", "i16": "i2", "f16": "f2", "h16": "f2",
    "u64": "u8", "i64": "i8", "f64": "f8", "b64": "u8",
}.items()}  # fmt: skip

Reader = Callable[[], np.ndarray]
Writer = Callable[[np.ndarray, LaneMask], None]


def constant(instruction: Instruction, operand: Constant, kind: str) -> np.ndarray:
    """A constant of the text as the type `kind` reads it.

    An integer is a bit pattern: 2 in a float operand is a denormal. A 32-bit literal of a 64-bit float
    operand is its upper half (LLVM's AMDGPU operand syntax; ISA guide, "literal constants").
    """
    dtype, value = DTYPES[kind], operand.value
    if isinstance(value, float):
        floats = {2: np.float16, 4: np.float32, 8: np.float64}[dtype.itemsize]
        bits = np.array(value, floats).view(f"u{dtype.itemsize}")
    elif kind == "f64" and not -16 <= value <= 64:
        bits = np.array((value & 0xFFFFFFFF) << 32, np.uint64)
    elif kind == "i64" and value >= 1 << 31:
        bits = np.array((value - (1 << 32)) & 0xFFFFFFFFFFFFFFFF, np.uint64)
    else:
        bits = np.array(value & ((1 << 8 * dtype.itemsize) - 1), f"u{dtype.itemsize}")
    result = bits.view(dtype)
    return with_sign(instruction, operand, result, kind) if _has_sign(operand) else result


def reader(state: State, instruction: Instruction, operand: Operand, kind: str) -> Reader:
    """A function that returns the operand's present value, [W, 64] or [W, 1], or a 0-d constant."""
    if isinstance(operand, Constant):
        fixed = constant(instruction, operand, kind)
        return lambda: fixed
    if not isinstance(operand, Register):
        raise instruction.refuse(f"operand `{operand.text}` is not a register or a number")
    plain = _register_reader(state, instruction, operand, kind)
    if not _has_sign(operand):
        return plain
    return lambda: with_sign(instruction, operand, plain(), kind)


def _register_reader(state: State, instruction: Instruction, operand: Register, kind: str) -> Reader:
    file, index = getattr(state, operand.file), operand.index
    if operand.sign_extended:
        raise instruction.refuse("sext() outside SDWA")
    if kind == "mask":
        return lambda: to_lanes(file[index], file[index + 1])
    dtype = DTYPES[kind]
    if dtype.itemsize == 8:
        if operand.count != 2:
            raise instruction.refuse("a 64-bit operand needs a register pair")
        return lambda: join(file[index], file[index + 1]).view(dtype)
    view = file[index].view(dtype)
    if dtype.itemsize == 2:
        view = view[:, 0::2]
    return lambda: view


def register(state: State, operand: Register, part: int = 0) -> np.ndarray:
    """Register number `part` of an operand, uint32 [W, 64]: a vector or an accumulation register."""
    return getattr(state, operand.file)[operand.index + part]


def _has_sign(operand: Register | Constant) -> bool:
    return operand.negated or operand.absolute


def with_sign(
    instruction: Instruction, operand: Register | Constant, value: np.ndarray, kind: str
) -> np.ndarray:
    """`value` with the operand's |x| and -x applied. Refuses them on integers."""
    if kind[0] not in "fbh":
        raise instruction.refuse("a sign modifier on an integer operand")
    floats = value.view(f"f{value.dtype.itemsize}")
    if operand.absolute:
        floats = np.abs(floats)
    if operand.negated:
        floats = np.negative(floats)
    return floats.view(value.dtype)


def writer(state: State, instruction: Instruction, operand: Operand, kind: str) -> Writer:
    """A function (value, mask) that stores a result for the active lanes."""
    if not isinstance(operand, Register) or _has_sign(operand):
        raise instruction.refuse("its destination is not a register")
    if kind == "mask":
        return _mask_writer(state, operand.index)
    if operand.file == "s":
        return _scalar_writer(state, operand.index, kind)
    file, index = getattr(state, operand.file), operand.index
    size = DTYPES[kind].itemsize
    if size == 8:
        return lambda value, mask: _store_pair(file, index, value, mask)
    if kind == "h16":
        return lambda value, mask: store_half(file[index], 0, value, mask)
    if size == 2:
        return lambda value, mask: store(file[index], value.view(np.uint16).astype(np.uint32), mask)
    return lambda value, mask: store(file[index], value, mask)


def store(register: np.ndarray, value: np.ndarray, mask: LaneMask) -> None:
    """Write 32-bit values into a register [W, 64], active lanes only."""
    bits = value.view(np.uint32)
    if mask.full:
        register[...] = bits
    else:
        # Blending by bits is many times quicker than np.copyto(where=...).
        register ^= (register ^ bits) & mask.bits


def store_half(register: np.ndarray, half: int, value: np.ndarray, mask: LaneMask) -> None:
    """Write 16-bit values into one half of a register and keep the other half."""
    shift, keep = np.uint32(16 * half), np.uint32(0xFFFF0000 >> 16 * half)
    store(register, (register & keep) | (value.view(np.uint16).astype(np.uint32) << shift), mask)


def _store_pair(file: np.ndarray, index: int, value: np.ndarray, mask: LaneMask) -> None:
    low, high = split(value)
    store(file[index], np.ascontiguousarray(low), mask)
    store(file[index + 1], np.ascontiguousarray(high), mask)


def _mask_writer(state: State, index: int) -> Writer:
    def write(value: np.ndarray, mask: LaneMask) -> None:
        # A compare writes 0 for lanes that are off (ISA guide, "vector compare").
        low, high = from_lanes(np.broadcast_to(value, mask.lanes.shape) & mask.lanes)
        state.write_scalar(index, low)
        state.write_scalar(index + 1, high)

    return write


def _scalar_writer(state: State, index: int, kind: str) -> Writer:
    def write(value: np.ndarray, mask: LaneMask) -> None:
        if DTYPES[kind].itemsize == 8:
            low, high = split(np.broadcast_to(value, (state.waves, 1)))
            state.write_scalar(index, low)
            state.write_scalar(index + 1, high)
        else:
            state.write_scalar(index, value.view(np.uint32))

    return write
