"""Executes notebooks by papermill, each with a kernel and a working folder of its own."""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.batch.verdict import Verdict, judge
from labkit.errors import LabkitError

# A folder without this file was not made by a run, so a run doesn't clear it.
MARKER = ".labkit-run"


@dataclass(frozen=True)
class Outcome:
    """One notebook of a run: `seconds` is wall time; `reason` is empty where it passed."""

    notebook: str
    cells: int
    seconds: float
    result: str
    reason: str


def find_notebooks(paths: Iterable[Path]) -> dict[str, Path]:
    """Return name -> file for the notebooks among `paths`, where a folder stands for all it holds.

    Names are relative to their folder, so that a learner's notebook and its solved twin differ.
    Raises LabkitError where a path is missing, no notebook is found, or two share a name.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if not path.exists():
            raise LabkitError(f"{path} does not exist. Run in the project's folder, or name your notebooks.")
        for file in _notebooks_in(path):
            name = file.relative_to(path if path.is_dir() else path.parent).as_posix()
            if found.setdefault(name, file) != file:
                raise LabkitError(
                    f"{found[name]} and {file} would both be written to {name}. Run one at a time."
                )
    if not found:
        raise LabkitError("There is no notebook to run. Make them from the lessons first: make notebooks")
    return found


def _notebooks_in(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(file for file in path.rglob("*.ipynb") if ".ipynb_checkpoints" not in file.parts)


def prepare_folder(output: Path) -> None:
    """Empty `output` for a new run. Raises LabkitError where it holds something that no run made."""
    if output.exists() and any(output.iterdir()) and not (output / MARKER).exists():
        raise LabkitError(f"{output} holds files that no run made. Name an empty folder: --output FOLDER")
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    (output / MARKER).touch()


def run_notebooks(notebooks: dict[str, Path], output: Path, cell_seconds: int) -> Iterator[Outcome]:
    """Execute each notebook into `output` and yield its outcome; the sources are only read.

    A cell that runs longer than `cell_seconds` fails its notebook, and the run goes on with the next.
    """
    for name, source in notebooks.items():
        started = time.monotonic()
        verdict = execute(source.resolve(), output.resolve() / name, cell_seconds, label=name)
        result = "passed" if verdict.passed else "failed"
        yield Outcome(name, verdict.cells, time.monotonic() - started, result, verdict.reason)


def execute(source: Path, target: Path, cell_seconds: int, label: str) -> Verdict:
    """Execute one notebook with papermill and return the verdict on what it wrote to `target`.

    Both paths are absolute, since papermill changes the working folder. The result appears at
    `target` whole, at the end; files that the notebook writes go to a scratch folder. The progress
    bar shows `label`.
    """
    import nbformat

    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="labkit-run-", ignore_cleanup_errors=True) as scratch:
        partial = target.with_name(f".{target.name}")
        trouble = _papermill(source, partial, cell_seconds, Path(scratch), label)
        if not partial.exists():
            return Verdict(0, 0, trouble or "papermill wrote no notebook")
        notebook = nbformat.read(partial, as_version=4)
        partial.replace(target)
    verdict = judge(notebook)
    if trouble and (begun := _begun_cells(notebook)):
        trouble = f"code cell {begun}: {trouble}"
    return Verdict(verdict.cells, verdict.executed, trouble or verdict.reason)


def _begun_cells(notebook: Mapping[str, Any]) -> int:
    # A kernel that dies may not have sent its execution count yet, so ask papermill's own note.
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return sum(bool(cell["metadata"].get("papermill", {}).get("start_time")) for cell in code)


def _papermill(source: Path, partial: Path, cell_seconds: int, folder: Path, label: str) -> str:
    """Run papermill; return what stopped it, in a sentence, or nothing where judge() can tell."""
    import papermill
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    logging.getLogger("papermill").setLevel(logging.ERROR)
    try:
        papermill.execute_notebook(
            source,
            partial,
            kernel_name="python3",
            cwd=folder,
            execution_timeout=cell_seconds,
            progress_bar={"desc": label},
            extra_arguments=["--IPKernelApp.log_level=50"],  # its notes on transport hide the progress bar
        )
    except papermill.PapermillExecutionError:
        return ""
    except DeadKernelError:
        return "the kernel died, most often for lack of memory"
    except CellTimeoutError:
        return f"it ran longer than {cell_seconds} s"
    except Exception as problem:  # whatever else stops one notebook must not stop the run
        return f"{type(problem).__name__}: {problem}".splitlines()[0]
    return ""
