"""Decides from an executed notebook alone whether its run was complete and without an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Verdict:
    """What one executed notebook shows: `reason` is empty where it passed."""

    cells: int
    executed: int
    reason: str

    @property
    def passed(self) -> bool:
        """True where every code cell ran and none left an error."""
        return not self.reason


def judge(notebook: Mapping[str, Any]) -> Verdict:
    """Return the verdict on an executed notebook (nbformat 4).

    An exit status can't tell: a cell that calls sys.exit(0) ends a run with status 0 and the cells
    after it pending. So each code cell must have an execution count, and no output may be an error.
    """
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and _source(cell).strip()]
    executed = sum(cell.get("execution_count") is not None for cell in code)
    reason = "" if code else "it has no code cell"
    for number, cell in enumerate(code, start=1):
        error = next((out for out in cell["outputs"] if out["output_type"] == "error"), None)
        if error:
            reason = f"code cell {number} raised {error['ename']}: {error['evalue']}".strip(": ")
        elif cell.get("execution_count") is None:
            reason = f"code cell {number} of {len(code)} never ran"
        if reason:
            break
    return Verdict(cells=len(code), executed=executed, reason=reason)


def _source(cell: Mapping[str, Any]) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)
