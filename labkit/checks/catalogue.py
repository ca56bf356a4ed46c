"""Every exercise there is, and which of them are solved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from labkit.checks import fused, hierarchy, pipeline, progress
from labkit.checks.feedback import NOT_SOLVED, SOLVED
from labkit.checks.task import Task

if TYPE_CHECKING:
    import pandas as pd

EXERCISES: tuple[Task, ...] = hierarchy.EXERCISES + pipeline.EXERCISES + fused.EXERCISES


def progress_table(notebook: str | None = None, folder: Path = Path()) -> pd.DataFrame:
    """A row for each exercise, of one notebook or of all: its state, and how many checks failed.

    By the file in `folder`; prints a sentence where that file is of no use.
    """
    import pandas as pd

    known, trouble = progress.read(folder)
    if trouble:
        print(f"labkit: {trouble}")
    rows = []
    for exercise in EXERCISES:
        if notebook in (None, exercise.notebook):
            entry = known.get(exercise.notebook, {}).get(exercise.title, progress.Entry())
            state = SOLVED if entry.solved else NOT_SOLVED
            rows.append((exercise.notebook, exercise.title, state, entry.failed))
    table = pd.DataFrame(rows, columns=["notebook", "exercise", "state", "failed checks"])
    return table if notebook is None else table.drop(columns="notebook")
