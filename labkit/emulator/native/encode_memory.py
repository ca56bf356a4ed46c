"""Rows of global memory and LDS instructions; the columns are told in `memory` and `lds`."""

from __future__ import annotations

from labkit.emulator.global_memory import CACHE_HINTS, FORM, SIZES
from labkit.emulator.lds import PAIRED, PLAIN
from labkit.emulator.native.memory import Address, Widen
from labkit.emulator.native.operations import Op, Source
from labkit.emulator.native.rows import Encoder, From, Row, Unknown
from labkit.emulator.operands import Constant, Name, Register
from labkit.emulator.program import Instruction


def encode_global(encoder: Encoder, instruction: Instruction) -> list[Row]:
    """A load or store between global memory and registers."""
    match = FORM.fullmatch(instruction.operation)
    if match is None or match[2] == "atomic":
        raise Unknown
    family, kind, width = match.groups()
    name, marker, rest = width.partition("_d16")
    half = marker + rest
    allowed = {"offset", *CACHE_HINTS, *(["offen"] if family == "buffer" else [])}
    if name not in SIZES or half not in ("", "_d16", "_d16_hi") or set(instruction.modifiers) - allowed:
        raise Unknown
    operands = list(instruction.operands)
    data = operands.pop(1 if kind == "store" and family != "buffer" else 0)
    offset = int(instruction.modifiers.get("offset", "0"), 0)
    if family == "buffer":
        mode, base, sources = _buffer(encoder, instruction, operands)
    elif family == "global" and isinstance(operands[1], Register):
        mode, base = Address.SCALAR_BASE, operands[1].index
        sources = [encoder.source(instruction, operands[0], "u32")]
    else:
        mode, base = Address.VECTOR, 0
        sources = [encoder.source(instruction, operands[0], "u64", part) for part in (0, 1)]
    widen = {"": Widen.SIGN if name in ("sbyte", "sshort") else Widen.ZERO, "_d16": Widen.LOW_HALF,
             "_d16_hi": Widen.HIGH_HALF}[half]  # fmt: skip
    shift = 16 if kind == "store" and half == "_d16_hi" else 0
    parameters = (mode, SIZES[name], encoder.row_of(data), offset, base, widen, shift)
    op = Op.GLOBAL_LOAD if kind == "load" else Op.GLOBAL_STORE
    if name in ("sbyte", "sshort") and half:
        raise Unknown
    return [Row(op, sources, parameters=parameters)]


def _buffer(encoder: Encoder, instruction: Instruction, operands: list) -> tuple[Address, int, list[From]]:
    index, resource, scalar_offset = operands
    if not isinstance(resource, Register) or resource.count != 4:
        raise Unknown
    nothing = From(Source.CONSTANT, 0)
    offset = encoder.source(instruction, index, "u32") if "offen" in instruction.modifiers else nothing
    if isinstance(scalar_offset, Name):
        raise Unknown
    return Address.BUFFER, resource.index, [offset, encoder.source(instruction, scalar_offset, "u32")]


def encode_lds(encoder: Encoder, instruction: Instruction) -> list[Row]:
    """A ds_ read or write; atomics and permutes stay with NumPy."""
    if match := PLAIN.fullmatch(instruction.operation):
        return _plain(encoder, instruction, *match.groups())
    if match := PAIRED.fullmatch(instruction.operation):
        return _paired(encoder, instruction, *match.groups())
    if instruction.operation == "ds_bpermute_b32" and not set(instruction.modifiers) - {"offset"}:
        target, *operands = instruction.operands
        sources = [encoder.source(instruction, operand, "u32") for operand in operands]
        offset = int(instruction.modifiers.get("offset", "0"), 0)
        row = Row(Op.DS_BPERMUTE_B32, sources, target=encoder.row_of(target), parameters=(offset,))
        return [row]
    raise Unknown


def _plain(encoder: Encoder, instruction: Instruction, kind: str, width: str, half: str | None) -> list[Row]:
    if set(instruction.modifiers) - {"offset"} or half and width == "i8":
        raise Unknown
    reads = kind == "read"
    address, data = instruction.operands[int(reads)], instruction.operands[int(not reads)]
    offset = int(instruction.modifiers.get("offset", "0"), 0)
    widen = {"d16": Widen.LOW_HALF, "d16_hi": Widen.HIGH_HALF}.get(half, Widen.ZERO)
    if width in ("i8", "i16"):
        widen = Widen.SIGN
    last = widen if reads else (16 if half == "d16_hi" else 0)
    parameters = (int(width[1:]) // 8, 1, offset, 0, encoder.row_of(data), 0, last)
    return [_row(encoder, instruction, reads, address, parameters)]


def _paired(encoder: Encoder, instruction: Instruction, kind: str, strided: str, bits: str) -> list[Row]:
    if set(instruction.modifiers) - {"offset0", "offset1"}:
        raise Unknown
    size = int(bits) // 8
    unit = size * (64 if strided else 1)
    offsets = [int(instruction.modifiers.get(f"offset{k}", "0"), 0) * unit for k in (0, 1)]
    reads, operands = kind == "read", instruction.operands
    data = [operands[0], operands[0]] if reads else operands[1:3]
    registers = [encoder.row_of(register) for register in data]
    parameters = (size, 2, *offsets, *registers, Widen.ZERO if reads else 0)
    return [_row(encoder, instruction, reads, operands[int(reads)], parameters)]


def _row(encoder: Encoder, instruction: Instruction, reads: bool, address: object, parameters: tuple) -> Row:
    if isinstance(address, Constant):
        raise Unknown
    source = encoder.source(instruction, address, "u32")
    return Row(Op.LDS_READ if reads else Op.LDS_WRITE, [source], parameters=parameters)
