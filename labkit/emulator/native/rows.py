"""A row for the interpreter while it is made, and the sources that it names."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from labkit.emulator.access import DTYPES, constant
from labkit.emulator.native.operations import MOST_SOURCES, ROW, SOURCE, Op, Result, Source
from labkit.emulator.operands import Constant, Operand, Register
from labkit.emulator.program import Instruction
from labkit.emulator.state import LANES

ALL_BITS = 0xFFFFFFFF


class Unknown(Exception):
    """The fast path does not know this instruction, so its NumPy step executes it."""


@dataclass(frozen=True, slots=True)
class From:
    """One source: see operations.SOURCE."""

    kind: Source
    at: int
    shift: int = 0
    keep: int = ALL_BITS
    flip: int = 0


@dataclass(slots=True)
class Row:
    """One row: see operations.ROW. `target` is a row of the register file for vector results."""

    op: Op
    sources: list[From] = field(default_factory=list)
    result: Result = Result.NONE
    target: int = 0
    second: int = 0
    shift: int = 0
    keep: int = ALL_BITS
    parameters: tuple[int, ...] = ()
    dpp: tuple[int, ...] = ()  # the lane that each lane's first source comes from, -1 for none
    bound: bool = False
    may_write: int = -1

    def overwrites(self, other: Row) -> bool:
        """Whether this row changes bits that `other` reads."""
        return any(
            source.kind == Source.VECTOR
            and source.at == self.target
            and (source.keep << source.shift) & self.keep & ALL_BITS
            for source in other.sources
        )


def tables(rows: list[Row], numbers: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, each of an instruction's number, as the tables ROW, SOURCE and the DPP lanes that rows name."""
    table, sources = np.zeros(len(rows), ROW), np.zeros((len(rows), MOST_SOURCES), SOURCE)
    lanes: dict[tuple[int, ...], int] = {}
    for k, (index, row) in enumerate(zip(numbers, rows, strict=True)):
        parameters = (*row.parameters, *[0] * (8 - len(row.parameters)))
        dpp = 1 + lanes.setdefault(row.dpp, len(lanes)) if row.dpp else 0
        table[k] = (row.op, index, len(row.sources), row.result, row.target, row.second, row.shift, row.keep,
                    *parameters, dpp, row.bound, row.may_write)  # fmt: skip
        for n, source in enumerate(row.sources):
            sources[k, n] = (source.kind, source.at, source.shift, source.keep, source.flip, 0)
    return table, sources, np.array(list(lanes), np.int64).reshape(-1, LANES)


@dataclass(frozen=True, slots=True)
class Encoder:
    """What every instruction of a program has in common. vgprs: where accumulation registers begin."""

    vgprs: int

    def row_of(self, register: Operand) -> int:
        """The row of a vector or accumulation register."""
        if not isinstance(register, Register) or register.file == "s":
            raise Unknown
        return register.index + (self.vgprs if register.file == "a" else 0)

    def source(self, instruction: Instruction, operand: Operand, kind: str, part: int = 0) -> From:
        """One 32-bit source of type `kind`; `part` 1 is the upper register of a pair."""
        if isinstance(operand, Constant):
            bits = constant(instruction, operand, kind)
            return From(Source.CONSTANT, int(bits.view(f"u{bits.itemsize}")) >> (32 * part) & ALL_BITS)
        if not isinstance(operand, Register) or operand.sign_extended:
            raise Unknown
        if kind == "mask":
            return From(Source.MASK, operand.index)
        bits = 8 * DTYPES[kind].itemsize
        keep, flip = ALL_BITS if bits >= 32 else (1 << bits) - 1, 0
        if operand.negated or operand.absolute:
            if kind[0] not in "fbh" or bits == 64:
                raise Unknown  # the NumPy step refuses it, or does it
            if operand.absolute:
                keep &= keep >> 1
            flip = 1 << (bits - 1) if operand.negated else 0
        if operand.file == "s":
            return From(Source.SCALAR, operand.index + part, 0, keep, flip)
        return From(Source.VECTOR, self.row_of(operand) + part, 0, keep, flip)
