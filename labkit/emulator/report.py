"""What several launches executed, as one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from labkit.emulator.launch import Launch

_INSTRUCTION = ["assembly_line", "source_line", "mnemonic", "class", "executions", "active_lanes"]
_MEMORY = ["assembly_line", "kind", "bytes_per_lane", "bytes_requested", "lines_touched", "minimum_lines"]


def counters_table(launches: list[Launch]) -> pd.DataFrame:
    """A row for each launch and instruction that ran; the memory columns are empty for other instructions.

    Columns: launch (from 0), kernel, then those of Counters.instructions and, from Counters.memory, kind,
    bytes_per_lane, bytes_requested, lines_touched and minimum_lines. All are counted, none is timed.
    """
    import pandas as pd

    tables = []
    for number, launch in enumerate(launches):
        memory = launch.counters.memory[_MEMORY].astype(
            {name: "Int64" for name in _MEMORY if name not in ("assembly_line", "kind")}
        )
        table = launch.counters.instructions.merge(memory, how="left", on="assembly_line")
        table.insert(0, "launch", number)
        table.insert(1, "kernel", launch.name)
        tables.append(table)
    # Without a launch the table still has its columns, so that what reads it need not ask.
    columns = ["launch", "kernel", *_INSTRUCTION, *_MEMORY[1:]]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def write_counters(launches: list[Launch], path: Path) -> None:
    """Write counters_table to `path` as CSV."""
    counters_table(launches).to_csv(path, index=False)
