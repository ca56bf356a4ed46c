"""Which cache lines a launch touches, in order: `with labkit.record_lines() as launches: ...`.

A model of caches needs addresses, not totals. Each vector access to global memory adds a record for each
different 128-byte line, in the order of its lanes; scalar loads are left out, as in Counters.memory. Lines
are numbered as if every tensor began on a 2 MiB boundary, one after the other by name (PyTorch's allocator
rounds large blocks so on a GPU, kRoundLarge), thus alike in every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from labkit.emulator.memory import Memory
from labkit.emulator.traffic import LINE_BYTES
from labkit.errors import LabkitError

if TYPE_CHECKING:
    import pandas as pd

MOST_RECORDS = 20_000_000  # 320 MB
KINDS = ("load", "store", "atomic")
_ALIGNMENT = (2 << 20) // LINE_BYTES
_FIRST_ROOM = 1 << 16


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines that a launch touched, one element a record.

    Records stand in the order of execution; those of one wave are in the wave's order. recorded_workgroups:
    that many of the grid, the first in dispatch order, are here whole; the others are not here at all.
    workgroup: number in dispatch order; wave: number in its workgroup; instruction: number in the program;
    line: number of the 128-byte line; kind: index into KINDS. tensors: (name, first line, lines).
    """

    name: str
    grid: tuple[int, int, int]
    recorded_workgroups: int
    workgroup: np.ndarray  # int32
    wave: np.ndarray  # int8
    instruction: np.ndarray  # int32
    line: np.ndarray  # int64
    kind: np.ndarray  # int8
    tensors: list[tuple[str, int, int]]

    def __len__(self) -> int:
        return len(self.line)

    @property
    def workgroups(self) -> int:
        """How many workgroups the grid has."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def complete(self) -> bool:
        """Whether every workgroup is here."""
        return self.recorded_workgroups == self.workgroups

    def by_tensor(self) -> pd.DataFrame:
        """A row for each tensor touched: accesses to its lines, and how many different ones."""
        import pandas as pd

        rows = []
        for name, first, count in self.tensors:
            here = self.line[(self.line >= first) & (self.line < first + count)]
            if here.size:
                rows.append((name, here.size, np.unique(here).size))
        return pd.DataFrame(rows, columns=["tensor", "line accesses", "different lines"])

    def __str__(self) -> str:
        part = "all" if self.complete else f"the first {self.recorded_workgroups:,} of"
        return f"{self.name}: {len(self):,} line accesses of {part} {self.workgroups:,} workgroups"

    __repr__ = __str__


@dataclass(slots=True)
class LineRecorder:
    """Takes the records of one launch; `native.recording` writes into the same buffer.

    used: int64, how many records there are and for how many there is room.
    """

    most: int
    buffer: np.ndarray = field(default_factory=lambda: np.empty((_FIRST_ROOM, 2), np.int64))
    used: np.ndarray = field(default_factory=lambda: np.array([0, _FIRST_ROOM]))
    tensors: list[tuple[str, int, int]] = field(default_factory=list)
    workgroups: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # of the present batch
    recorded_workgroups: int = 0
    _first: dict[int, int] = field(default_factory=dict)  # address of an allocation -> its first line
    _next: int = 0

    def begin_batch(self, workgroups: np.ndarray) -> bool:
        """Whether these workgroups, numbers in dispatch order, are recorded too."""
        if self.used[0] >= self.most:
            return False
        self.workgroups = workgroups.astype(np.int64)
        self.recorded_workgroups += len(workgroups)
        return True

    def first_lines(self, memory: Memory) -> np.ndarray:
        """The number of the first line of each of memory.allocations: int64."""
        new = [a for a in memory.allocations if a.base not in self._first]
        for a in sorted(new, key=lambda a: a.name):
            count = -(-a.bytes.size // LINE_BYTES)
            self._first[a.base] = self._next
            self.tensors.append((a.name, self._next, count))
            self._next += -(-count // _ALIGNMENT) * _ALIGNMENT
        return np.array([self._first[a.base] for a in memory.allocations], np.int64)

    def add(
        self,
        instruction: int,
        kind: int,
        memory: Memory,
        addresses: np.ndarray,
        size: int,
        lanes: np.ndarray,
    ) -> None:
        """Record an access of all waves of the batch: addresses and lanes [W, 64], `size` bytes a lane."""
        bases = np.array([a.base for a in memory.allocations], np.int64)
        at = addresses.astype(np.int64)
        which = np.maximum(np.searchsorted(bases, at, "right") - 1, 0)
        start, offset = self.first_lines(memory)[which], at - bases[which]
        ends = [start + ((offset + more) // LINE_BYTES) for more in (0, size - 1)]
        both, on = np.stack(ends, axis=-1), np.stack([lanes, lanes], axis=-1)
        waves = len(lanes) // len(self.workgroups)
        for wave in np.flatnonzero(lanes.any(axis=1)).tolist():
            touched = both[wave][on[wave]]
            lines = touched[np.sort(np.unique(touched, return_index=True)[1])]
            group = int(self.workgroups[wave // waves])
            self._append(instruction | wave % waves << 24 | group << 32, lines << 2 | kind)

    def _append(self, head: int, tails: np.ndarray) -> None:
        start, end = int(self.used[0]), int(self.used[0]) + len(tails)
        # The fast path leaves an access here where fewer than 128 records are free.
        if end + 128 > self.used[1]:
            larger = np.empty((2 * len(self.buffer), 2), np.int64)
            larger[:start] = self.buffer[:start]
            self.buffer, self.used[1] = larger, len(larger)
        self.buffer[start:end, 0], self.buffer[start:end, 1] = head, tails
        self.used[0] = end

    def finish(self, name: str, grid: tuple[int, int, int]) -> Lines:
        """What was recorded."""
        head, tail = self.buffer[: self.used[0]].T
        return Lines(
            name,
            grid,
            self.recorded_workgroups,
            (head >> 32).astype(np.int32),
            (head >> 24 & 0xFF).astype(np.int8),
            (head & 0xFFFFFF).astype(np.int32),
            tail >> 2,
            (tail & 3).astype(np.int8),
            self.tensors,
        )


# Where the launches of this context hand their lines, and how many each may record.
_open: ContextVar[tuple[list[Lines], int] | None] = ContextVar("open", default=None)


@contextmanager
def record_lines(most: int = MOST_RECORDS) -> Iterator[list[Lines]]:
    """Collect the cache lines of every launch made inside the block, one Lines a launch.

    A launch on a real GPU leaves none. Where blocks are nested, the inner one has the launches.
    most: once a launch has so many records, its further workgroups are not recorded, which the Lines says.
    Raises LabkitError where `most` is not a positive number.
    """
    if not isinstance(most, int) or most < 1:
        raise LabkitError(f"most={most!r}: pass how many line accesses of a launch to keep, 1 or more")
    launches: list[Lines] = []
    token = _open.set((launches, most))
    try:
        yield launches
    finally:
        _open.reset(token)


def line_recorder() -> LineRecorder | None:
    """A recorder for a launch that begins now; None where nobody asked for one."""
    asked = _open.get()
    return LineRecorder(asked[1]) if asked else None


def hand_over(recorder: LineRecorder | None, name: str, grid: tuple[int, int, int]) -> None:
    """The launch has ended: give its lines to the block that asked for them."""
    asked = _open.get()
    if recorder is not None and asked is not None:
        asked[0].append(recorder.finish(name, grid))
