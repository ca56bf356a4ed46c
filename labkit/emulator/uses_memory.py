"""What a memory instruction reads and writes: its data, and the registers that its address is made of.

Data that is only moved is "raw": the instruction doesn't know its type.
"""

from __future__ import annotations

import re

from labkit.emulator.atomics import ATOMICS
from labkit.emulator.operands import M0, Register
from labkit.emulator.program import Instruction
from labkit.emulator.typed import RAW, Typed, every, one

Uses = tuple[list[Typed], list[Typed]]  # what is read, what is written

_PARTS = {"ubyte": 1, "byte": 1, "ushort": 2, "short": 2}  # bytes of the register that mean something
_LDS_WIDTH = re.compile(r"_([uibf])(8|16|32|64|96|128)(?:_|$)")


def scalar_load_uses(instruction: Instruction) -> Uses:
    """s_load_dword and wider: an address and perhaps an offset."""
    target, base, *offset = instruction.operands
    return [*one(base, "u64"), *every(offset, "u32")], one(target, RAW)


def global_uses(instruction: Instruction) -> Uses:
    """global_, flat_, buffer_ and scratch_ instructions."""
    family, kind, width = instruction.operation.split("_", 2)
    operands = list(instruction.operands)
    to_lds = "lds" in instruction.modifiers
    if family == "buffer":
        data = None if to_lds else operands.pop(0)
        result = data if instruction.has_result else None
        address = _buffer_address(instruction, operands)
    else:
        result = operands.pop(0) if instruction.has_result else None
        data = None if kind == "load" else operands.pop(1)
        scalar_base = len(operands) > 1 and isinstance(operands[1], Register)
        address = [*one(operands[0], "u32" if scalar_base else "u64"), *every(operands[1:], "u64")]
    if to_lds:
        address.append(Typed(Register("s", M0), "u32"))
    element, count = _atomic_data(width) if kind == "atomic" else (RAW, _PARTS.get(width, 0))
    if width in ("sbyte", "sshort"):
        element = "i32"
    reads = [] if kind == "load" else one(data, element, 0, count)
    return [*address, *reads], one(result, element, 0, count)


def _buffer_address(instruction: Instruction, operands: list) -> list[Typed]:
    index, resource, scalar_offset = operands
    base, rest = (Register("s", resource.index + k, 2) for k in (0, 2))
    offset = one(index, "u32") if "offen" in instruction.modifiers else []
    return [*offset, *one(base, "u64"), *one(rest, "u32"), *one(scalar_offset, "u32")]


def _atomic_data(name: str) -> tuple[str, int]:
    """(type, count) of an atomic's data and of the old value that it returns."""
    if name.startswith("pk_add_"):
        return name.removeprefix("pk_add_"), 2
    return (RAW if "swap" in name else f"{ATOMICS[name].dtype.kind}{8 * ATOMICS[name].size}"), 0


def lds_uses(instruction: Instruction) -> Uses:
    """ds_ instructions: reads, writes, atomics, and the permutations, which touch no memory."""
    operation, operands = instruction.operation, list(instruction.operands)
    result = operands.pop(0) if instruction.has_result else None
    if operation.startswith("ds_swizzle"):
        return one(operands[0], RAW), one(result, RAW)
    element, count = _lds_data(operation)
    data = [typed for operand in operands[1:] for typed in one(operand, element, 0, count)]
    return [*one(operands[0], "u32"), *data], one(result, element, 0, count)


def _lds_data(operation: str) -> tuple[str, int]:
    letter, bits = _LDS_WIDTH.search(operation).groups()  # type: ignore[union-attr]
    if not operation.startswith(("ds_read", "ds_write", "ds_bpermute", "ds_permute")) and letter != "b":
        return f"{letter}{bits}", 0
    if letter == "i":
        return "i32", 0
    # A d16 form moves one half of a register: show the whole.
    return RAW, int(bits) // 8 if int(bits) < 32 and "d16" not in operation else 0
