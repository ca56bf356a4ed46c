"""Tables of constants beside a kernel's code, such as those of the math library's Bessel functions.

Code finds a table by its distance: s_getpc_b64 gives where the code stands, then s_add_u32 and s_addc_u32 add
`name@rel32@lo+4` and `name@rel32@hi+12`, where 4 and 12 are how far the two literals lie from there. Here
the code stands at address 0, so that the distance to a table is its address.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

import numpy as np

from labkit.compiler.assembly import AsmLine
from labkit.emulator.operands import Constant, Name, Operand

if TYPE_CHECKING:
    from labkit.emulator.program import Instruction

_REFERENCE = re.compile(r"(\w+)@rel32@(lo|hi)\+(\d+)")
_LITERAL_AT = {"lo": 4, "hi": 12}  # bytes from what s_getpc_b64 gives
_DATA = re.compile(r"\.(long|quad)\s+(.+)")
_BYTES = {"long": 4, "quad": 8}


def read_tables(lines: list[AsmLine], instructions: list[Instruction]) -> dict[str, np.ndarray]:
    """The bytes, uint8, of each table that an instruction names. Raises UnsupportedInstruction for others."""
    tables = {}
    for instruction in instructions:
        for operand in instruction.operands:
            match = _reference(operand)
            if match is not None and match[1] not in tables:
                table = _read(lines, match[1])
                if not table:
                    raise instruction.refuse(f"`{match[1]}` is not a table of numbers in this file")
                tables[match[1]] = np.frombuffer(table, np.uint8).copy()
    return tables


def _reference(operand: Operand) -> re.Match[str] | None:
    return _REFERENCE.fullmatch(operand.text) if isinstance(operand, Name) else None


def _read(lines: list[AsmLine], name: str) -> bytes:
    """The numbers that follow a label, up to the first line that holds none."""
    after = iter(lines)
    table = b""
    for line in after:
        if line.kind == "label" and line.text == name:
            break
    for line in after:
        match = _DATA.fullmatch(line.text)
        if match is None:
            break
        size = _BYTES[match[1]]
        for number in match[2].split(","):
            table += (int(number, 0) % (1 << 8 * size)).to_bytes(size, "little")
    return table


def place_tables(instruction: Instruction, tables: dict[str, np.ndarray]) -> Instruction:
    """The instruction with the distance to a table, where its operands name one, as a number."""
    operands = tuple(_distance(operand, tables) for operand in instruction.operands)
    return dataclasses.replace(instruction, operands=operands)


def _distance(operand: Operand, tables: dict[str, np.ndarray]) -> Operand:
    match = _reference(operand)
    if match is None:
        return operand
    distance = tables[match[1]].ctypes.data + int(match[3]) - _LITERAL_AT[match[2]]
    return Constant(distance & 0xFFFFFFFF if match[2] == "lo" else distance >> 32)
