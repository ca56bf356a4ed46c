"""What several launches executed, as one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from labkit.emulator.launch import Launch

_INSTRUCTION = ["assembly_line", "source_line", "mnemonic", "class", "executions", "active_lanes"]
_MEMORY = ["kind", "bytes_per_lane", "bytes_requested", "lines_touched", "minimum_lines",
           "segments_touched", "l1_bytes"]  # fmt: skip
_LDS = ["lds_bytes", "lds_cycles", "lds_conflict_cycles"]


def counters_table(launches: list[Launch]) -> pd.DataFrame:
    """A row for each launch and instruction that ran; memory columns are empty for other instructions.

    Columns: launch (from 0), kernel, those of Counters.instructions, those of Counters.memory from kind on,
    and lds_bytes, lds_cycles and lds_conflict_cycles of Counters.lds. All are counted, none is timed.
    """
    import pandas as pd

    # Without a launch the table still has its columns, so that what reads it need not ask.
    tables = [pd.DataFrame(columns=["launch", "kernel", *_INSTRUCTION, *_MEMORY, *_LDS])] * (not launches)
    for number, launch in enumerate(launches):
        memory = launch.counters.memory[["assembly_line", *_MEMORY]]
        lds = launch.counters.lds.rename(columns={name.removeprefix("lds_"): name for name in _LDS})
        table = launch.counters.instructions
        for part in (memory, lds[["assembly_line", *_LDS]]):
            whole = {name: "Int64" for name in part if name not in ("assembly_line", "kind")}
            table = table.merge(part.astype(whole), how="left", on="assembly_line")
        table.insert(0, "launch", number)
        table.insert(1, "kernel", launch.name)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def write_counters(launches: list[Launch], path: Path) -> None:
    """Write counters_table to `path` as CSV."""
    counters_table(launches).to_csv(path, index=False)
