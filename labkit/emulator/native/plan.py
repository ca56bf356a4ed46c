"""A program as rows, and the Python steps of those rows that the fast path leaves to NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from labkit.emulator.native.encode import encode
from labkit.emulator.native.operations import Op, When
from labkit.emulator.native.rows import Encoder, Row, Unknown, tables
from labkit.emulator.program import Program, branch_target

Step = Callable[[], None]
_CONDITIONS = {f"s_cbranch_{when.name.lower()}": when for when in When} | {"s_branch": When.ALWAYS}
CONTROL = {*_CONDITIONS, "s_endpgm", "s_barrier"}


@dataclass
class Plan:
    """The rows of a program, each block's after the one before, and an end.

    steps: what a row's NumPy step is, for those that may need it. numbers: the instruction of each row.
    """

    program: Program
    rows: list[Row] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    steps: dict[int, Step] = field(default_factory=dict)
    block_at: list[int] = field(default_factory=list)

    def begin_block(self, number: int) -> None:
        """The rows that follow are block `number`'s."""
        self.block_at.append(len(self.rows))
        self._add(self.program.blocks[number].first, Row(Op.BLOCK, parameters=(number,)))

    def add_python(self, number: int, step: Step) -> None:
        """A row that only `step` executes."""
        self.steps[len(self.rows)] = step
        self._add(number, Row(Op.NUMPY))

    def add(self, number: int, encoder: Encoder, step: Step) -> None:
        """The rows of instruction `number`, or its NumPy step."""
        try:
            rows = encode(encoder, self.program.instructions[number])
        except Unknown:
            self.add_python(number, step)
            return
        for row in rows:
            self.steps[len(self.rows)] = step
            self._add(number, row)

    def add_control(self, number: int) -> None:
        """A branch, a barrier or the end."""
        instruction = self.program.instructions[number]
        if instruction.operation in _CONDITIONS:
            # The block for now; `tables` puts its row there, which may not be known yet.
            target = self.program.block_of_label[branch_target(instruction)]
            self._add(number, Row(Op.BRANCH, parameters=(_CONDITIONS[instruction.operation], target)))
        else:
            self._add(number, Row(Op.BARRIER if instruction.operation == "s_barrier" else Op.END))

    def _add(self, number: int, row: Row) -> None:
        self.rows.append(row)
        self.numbers.append(number)

    @functools.cached_property
    def tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """See rows.tables; after the last row there is an end."""
        self._add(len(self.program.instructions) - 1, Row(Op.END))
        table, sources, lanes = tables(self.rows, self.numbers)
        branches = table["op"] == Op.BRANCH
        table["p1"][branches] = np.array(self.block_at)[table["p1"][branches]]
        return table, sources, lanes
