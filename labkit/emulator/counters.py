"""What a launch executed: instructions and memory traffic, counted while it ran.

Everything here is counted by the emulator; nothing is a time, measured or predicted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from labkit.emulator.program import Program

if TYPE_CHECKING:
    import pandas as pd

LINE_BYTES = 128  # a cache line of the vector L1 and of L2 (CDNA 3 white paper)
_MEMORY_KINDS = {"VMEM load": "load", "VMEM store": "store", "VMEM atomic": "atomic"}
_USES_EXEC = ("VALU", "VMEM load", "VMEM store", "VMEM atomic", "LDS")


@dataclass(slots=True)
class Traffic:
    """Totals of one global memory instruction."""

    bytes_per_lane: int = 0
    lanes: int = 0
    lines: int = 0
    minimum_lines: int = 0

    def add(self, addresses: np.ndarray, size: int, lanes: np.ndarray) -> None:
        """Count one execution: addresses uint64 and lanes bool, both [W, 64]."""
        self.bytes_per_lane = size
        each_wave = np.count_nonzero(lanes, axis=1)
        self.lanes += int(each_wave.sum())
        lines = count_lines(addresses, size, lanes)
        self.lines += lines
        # Lanes that share an address need fewer lines than their bytes add up to.
        self.minimum_lines += min(lines, int((-(-each_wave * size // LINE_BYTES)).sum()))


def count_lines(addresses: np.ndarray, size: int, lanes: np.ndarray) -> int:
    """Cache lines that the active lanes touch, each wave's counted apart and summed."""
    shift = np.uint64(7)
    first = addresses >> shift
    crossing = ((addresses + np.uint64(size - 1)) >> shift) != first
    if lanes.all() and not crossing.any() and (first[:, 1:] >= first[:, :-1]).all():
        return int(np.count_nonzero(first[:, 1:] != first[:, :-1])) + len(first)
    nowhere = np.uint64(0xFFFFFFFFFFFFFFFF)
    touched = np.where(lanes, first, nowhere)
    if crossing.any():
        touched = np.concatenate((touched, np.where(lanes & crossing, first + np.uint64(1), nowhere)), axis=1)
    touched = np.sort(touched, axis=1)
    new = touched[:, 1:] != touched[:, :-1]
    return int(np.count_nonzero(new & (touched[:, 1:] != nowhere))) + int((touched[:, 0] != nowhere).sum())


@dataclass(slots=True)
class Counters:
    """Counts of one launch. `executions` and `lanes` are by block of the program."""

    program: Program
    executions: np.ndarray  # waves that ran each block
    lanes: np.ndarray  # active lanes, summed over those
    traffic: dict[int, Traffic] = field(default_factory=dict)  # by instruction index

    @classmethod
    def of(cls, program: Program) -> Counters:
        """Zero counts for a program."""
        blocks = len(program.blocks)
        return cls(program, np.zeros(blocks, np.int64), np.zeros(blocks, np.int64))

    @property
    def wave_instructions(self) -> int:
        """Instructions executed, counted once for each wave that executed them."""
        sizes = np.array([len(block.instructions) for block in self.program.blocks])
        return int(self.executions @ sizes)

    @property
    def instructions(self) -> pd.DataFrame:
        """A row for each instruction that ran: where it stands, its class, and how often it ran.

        executions counts waves; active_lanes sums the lanes that were on (0 for instructions that EXEC
        does not touch).
        """
        import pandas as pd

        rows = []
        for number, block in enumerate(self.program.blocks):
            if not self.executions[number]:
                continue
            for instruction in block.instructions:
                lanes = self.lanes[number] if instruction.kind in _USES_EXEC else 0
                rows.append(
                    (
                        instruction.line.number,
                        instruction.line.source_line,
                        instruction.mnemonic,
                        instruction.kind,
                        int(self.executions[number]),
                        int(lanes),
                    )
                )
        columns = ["assembly_line", "source_line", "mnemonic", "class", "executions", "active_lanes"]
        return pd.DataFrame(rows, columns=columns)

    @property
    def memory(self) -> pd.DataFrame:
        """A row for each global memory instruction that ran: lanes, bytes asked for, cache lines touched.

        lines_touched counts 128-byte lines for each wave instruction; minimum_lines is what the same
        bytes would touch if they lay side by side.
        """
        import pandas as pd

        executions = dict(zip(range(len(self.program.blocks)), self.executions, strict=True))
        block_of = {
            block.first + offset: number
            for number, block in enumerate(self.program.blocks)
            for offset in range(len(block.instructions))
        }
        rows = []
        for index, traffic in sorted(self.traffic.items()):
            instruction = self.program.instructions[index]
            rows.append(
                (
                    instruction.line.number,
                    instruction.line.source_line,
                    instruction.mnemonic,
                    _MEMORY_KINDS[instruction.kind],
                    traffic.bytes_per_lane,
                    int(executions[block_of[index]]),
                    traffic.lanes,
                    traffic.lanes * traffic.bytes_per_lane,
                    traffic.lines,
                    traffic.minimum_lines,
                )
            )
        columns = [
            "assembly_line",
            "source_line",
            "mnemonic",
            "kind",
            "bytes_per_lane",
            "executions",
            "active_lanes",
            "bytes_requested",
            "lines_touched",
            "minimum_lines",
        ]
        return pd.DataFrame(rows, columns=columns)

    def summary(self) -> pd.DataFrame:
        """The launch in a few counted quantities, with units."""
        import pandas as pd

        instructions, memory = self.instructions, self.memory
        vector = instructions[instructions["class"].isin(_USES_EXEC)]
        slots = 64 * int(vector["executions"].sum())
        by_kind = memory.groupby("kind")["bytes_requested"].sum()
        rows = [("instructions", self.wave_instructions, "wave instructions")]
        by_class = instructions.groupby("class")["executions"].sum()
        rows += [
            (f"instructions, {name}", int(value), "wave instructions") for name, value in by_class.items()
        ]
        if slots:
            rows.append(("active lanes", round(100 * int(vector["active_lanes"].sum()) / slots, 1), "%"))
        rows += [(f"global {kind} bytes", int(value), "bytes") for kind, value in by_kind.items()]
        rows.append(("cache lines touched", int(memory["lines_touched"].sum()), "128-byte lines"))
        rows.append(("cache lines, least possible", int(memory["minimum_lines"].sum()), "128-byte lines"))
        return pd.DataFrame(rows, columns=["quantity", "value", "unit"])
