"""What a launch executed: instructions and memory traffic, counted while it ran.

Everything here is counted by the emulator; nothing is a time, measured or predicted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from labkit.emulator.program import Program
from labkit.emulator.traffic import LINE_BYTES, Count, LdsCount

if TYPE_CHECKING:
    import pandas as pd

    from labkit.emulator.memory import Allocation

_MEMORY_KINDS = {"VMEM load": "load", "VMEM store": "store", "VMEM atomic": "atomic"}
_PLACE = ["assembly_line", "source_line", "mnemonic"]
_USES_EXEC = ("VALU", "VMEM load", "VMEM store", "VMEM atomic", "LDS")


@dataclass(slots=True)
class Counters:
    """Counts of one launch. `executions` and `lanes` are by block of the program."""

    program: Program
    executions: np.ndarray  # waves that ran each block
    lanes: np.ndarray  # active lanes, summed over those
    traffic: np.ndarray  # int64 [instructions, traffic.Count]
    lds_traffic: np.ndarray  # int64 [instructions, traffic.LdsCount]
    touched: list[tuple[str, int, int, int]] = field(default_factory=list)  # rows of `tensors`
    enabled: bool = True  # else memory accesses are not counted

    @classmethod
    def of(cls, program: Program, enabled: bool = True) -> Counters:
        """Zero counts for a program."""
        blocks, instructions = len(program.blocks), len(program.instructions)
        return cls(
            program,
            np.zeros(blocks, np.int64),
            np.zeros(blocks, np.int64),
            np.zeros((instructions, len(Count)), np.int64),
            np.zeros((instructions, len(LdsCount)), np.int64),
            enabled=enabled,
        )

    def add_tensors(self, tensors: list[Allocation]) -> None:
        """Note which bytes of a launch's tensors were touched, where accesses are counted."""
        if self.enabled:
            self.touched = sorted((a.name, a.bytes.size, *a.count_touched()) for a in tensors)

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
        """A row for each global memory instruction that ran: lanes, bytes asked for, what they touched.

        lines_touched counts 128-byte lines and segments_touched 64-byte ones, for each wave instruction;
        l1_bytes is what those lines hold, so what passes through L1; minimum_lines is what the same bytes
        would touch if they lay side by side.
        """
        import pandas as pd

        rows = []
        for index, executions in self._ran(self.traffic[:, Count.BYTES_PER_LANE] > 0):
            total = self.traffic[index].tolist()
            lanes, lines = total[Count.LANES], total[Count.LINES]
            size = total[Count.BYTES_PER_LANE]
            kind = _MEMORY_KINDS[self.program.instructions[index].kind]
            rows.append((*self._place(index), kind, size, executions, lanes, lanes * size, lines,
                         total[Count.LEAST_LINES], total[Count.SEGMENTS], lines * LINE_BYTES))  # fmt: skip
        columns = [*_PLACE, "kind", "bytes_per_lane", "executions", "active_lanes", "bytes_requested",
                   "lines_touched", "minimum_lines", "segments_touched", "l1_bytes"]  # fmt: skip
        return pd.DataFrame(rows, columns=columns)

    @property
    def lds(self) -> pd.DataFrame:
        """A row for each LDS read, write or atomic that ran: bytes, and cycles by the rule of `traffic`.

        conflict_cycles are those beyond minimum_cycles: lanes waited for others at the same bank.
        """
        import pandas as pd

        rows = []
        for index, executions in self._ran(self.lds_traffic[:, LdsCount.CYCLES] > 0):
            size, cycles, least = self.lds_traffic[index].tolist()
            rows.append((*self._place(index), executions, size, cycles, least, cycles - least))
        columns = [*_PLACE, "executions", "bytes", "cycles", "minimum_cycles", "conflict_cycles"]
        return pd.DataFrame(rows, columns=columns)

    @property
    def tensors(self) -> pd.DataFrame:
        """A row for each tensor: its bytes, and how many different ones were read and written."""
        import pandas as pd

        return pd.DataFrame(self.touched, columns=["tensor", "bytes", "bytes_read", "bytes_written"])

    def matrix(self, useful_rows: int | None = None) -> pd.DataFrame:
        """A row for each matrix instruction that ran: its shape and its FLOPs, 2 * M * N * K each time.

        useful_rows: of the rows of A in the whole product, how many hold data; the others fill the last
        tile. useful_flops counts theirs only.
        """
        import pandas as pd

        from labkit.emulator.matrix_forms import parse_form

        rows = []
        is_matrix = [i.operation.startswith(("v_mfma", "v_smfmac")) for i in self.program.instructions]
        for index, executions in self._ran(np.array(is_matrix)):
            form = parse_form(self.program.instructions[index].operation)
            flops = 2 * form.size * form.size * form.depth * form.blocks * executions
            share = 1.0 if useful_rows is None else useful_rows / (-(-useful_rows // form.size) * form.size)
            shape = f"{form.size}x{form.size}x{form.depth}"
            rows.append((*self._place(index), shape, executions, flops, flops * share))
        return pd.DataFrame(rows, columns=[*_PLACE, "shape", "executions", "flops", "useful_flops"])

    def by(self, column: str) -> pd.DataFrame:
        """Instructions summed by "class", "mnemonic" or "source_line", the most frequent first."""
        table = self.instructions.groupby(column)[["executions", "active_lanes"]].sum()
        return table.sort_values("executions", ascending=False, kind="stable").reset_index()

    def _ran(self, wanted: np.ndarray) -> Iterator[tuple[int, int]]:
        """(number, executions) of the instructions that `wanted`, bool [instructions], picks and that ran."""
        sizes = [len(block.instructions) for block in self.program.blocks]
        executions = np.repeat(self.executions, sizes)
        for index in np.flatnonzero(wanted & (executions > 0)).tolist():
            yield index, int(executions[index])

    def _place(self, index: int) -> tuple[int, int, str]:
        instruction = self.program.instructions[index]
        return instruction.line.number, instruction.line.source_line, instruction.mnemonic

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
        lds, matrix = self.lds, self.matrix()
        if len(lds):
            rows.append(("LDS bytes", int(lds["bytes"].sum()), "bytes"))
            rows.append(("LDS bank conflicts", int(lds["conflict_cycles"].sum()), "cycles"))
        if len(matrix):
            rows.append(("matrix FLOPs", int(matrix["flops"].sum()), "FLOP"))
        return pd.DataFrame(rows, columns=["quantity", "value", "unit"])
