"""Makes notebooks/ from lessons/: for each lesson a learner's notebook and its solved, executed twin.

    python tools/notebooks.py            write what is out of date; execute where the code changed
    python tools/notebooks.py --check    write nothing; exit 1 and say which are out of date
    python tools/notebooks.py --force    execute every solved notebook again

`make notebooks` calls it.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import re
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode

from labkit.batch.verdict import judge

ROOT = Path(__file__).resolve().parent.parent
STUB = "# Your code here\npass"
CHECK = re.compile(r"\bchecks\.\w+\.\w+\.check\(")
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
# A code host shows pictures only in a file of moderate size, and a clone carries each version.
SIZE_LIMIT_BYTES = 800_000
CELL_SECONDS = 600


class LessonProblem(Exception):
    """A lesson that can't be turned into notebooks; the message says what to change."""


def read_lesson(lesson: Path) -> NotebookNode:
    """Return a lesson as a canonical notebook: solved, no outputs, ids that depend on content only."""
    notebook = jupytext.read(lesson, fmt="py:percent")
    _mark_as_generated(notebook, lesson.name)
    seen: dict[str, int] = {}
    answers = checked = 0
    for cell in notebook.cells:
        key = f"{lesson.stem}\n{cell.cell_type}\n{cell.source}"
        seen[key] = seen.get(key, 0) + 1
        cell.id = hashlib.sha256(f"{key}\n{seen[key]}".encode()).hexdigest()[:12]
        answers += "### BEGIN SOLUTION" in cell.source
        checked += bool(CHECK.search(cell.source))
        cell.metadata = _cell_metadata(cell, lesson.stem, answers, checked)
    notebook.metadata = NotebookNode(
        kernelspec=KERNEL, language_info={"name": "python"}, labkit={"lesson": lesson.name}
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return nbformat.from_dict(notebook)


def _mark_as_generated(notebook: NotebookNode, name: str) -> None:
    note = f"<!-- Made from lessons/{name} by `make notebooks`: change that file, not this one. -->"
    if notebook.cells and notebook.cells[0].cell_type == "markdown":
        notebook.cells[0].source = f"{note}\n\n{notebook.cells[0].source}"
    else:
        notebook.cells.insert(0, nbformat.v4.new_markdown_cell(note))


def _cell_metadata(cell: NotebookNode, stem: str, answers: int, checked: int) -> NotebookNode:
    """A cell's metadata, with what nbgrader wants to know of an answer and of the check that grades it."""
    # jupytext notes blank lines between cells in the metadata; nothing reads that.
    metadata = {key: value for key, value in cell.metadata.items() if not key.startswith("lines_to_")}
    common = {"schema_version": 3, "task": False}
    if "### BEGIN SOLUTION" in cell.source:
        answer = {"grade": False, "grade_id": f"{stem}-answer-{answers}", "locked": False, "solution": True}
        metadata.setdefault("nbgrader", common | answer)
    elif cell.cell_type == "code" and CHECK.search(cell.source):
        check = {"grade": True, "grade_id": f"{stem}-check-{checked}", "locked": True, "solution": False}
        metadata.setdefault("nbgrader", common | check | {"points": 1})
    return NotebookNode(metadata)


def learner_notebook(solved: NotebookNode) -> NotebookNode:
    """Return a copy whose solution regions hold a stub that runs and does nothing.

    Raises LessonProblem where a region isn't closed.
    """
    from nbgrader.preprocessors import ClearSolutions
    from traitlets.config import Config

    config = Config({"ClearSolutions": {"code_stub": {"python": STUB}}})
    try:
        notebook, _ = ClearSolutions(config=config).preprocess(copy.deepcopy(solved), {})
    except RuntimeError as problem:
        raise LessonProblem(f"lessons/{solved.metadata.labkit.lesson}: {problem}") from None
    return notebook


def source_hash(notebook: NotebookNode) -> str:
    """Return the hash of the cells' sources, which ties stored outputs to the code that made them."""
    sources = [[cell.cell_type, cell.source] for cell in notebook.cells]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()


def without_outputs(notebook: NotebookNode) -> NotebookNode:
    """Return a copy with no outputs and no execution counts."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def execute(notebook: NotebookNode) -> NotebookNode:
    """Return an executed copy of a notebook that stores the hash of its sources.

    It runs in a scratch folder. Raises LessonProblem where a cell fails or never runs.
    """
    from nbclient import NotebookClient

    executed = copy.deepcopy(notebook)
    with tempfile.TemporaryDirectory(prefix="labkit-lesson-", ignore_cleanup_errors=True) as folder:
        NotebookClient(
            executed,
            timeout=CELL_SECONDS,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
            allow_errors=True,  # judge() reports the error, with the number of its cell
            record_timing=False,
            coalesce_streams=True,
            store_widget_state=False,
            extra_arguments=["--IPKernelApp.log_level=50"],  # its notes on transport are not for us
        ).execute()
    verdict = judge(executed)
    if not verdict.passed:
        raise LessonProblem(f"lessons/{notebook.metadata.labkit.lesson}: {_plain(verdict.reason)}")
    executed.metadata = copy.deepcopy(notebook.metadata)
    executed.metadata.labkit["sha256"] = source_hash(notebook)
    return executed


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def adopt_outputs(notebook: NotebookNode, stored: NotebookNode | None) -> NotebookNode | None:
    """Return `notebook` with the outputs of its stored twin, or None where they are not its own."""
    sha256 = source_hash(notebook)
    if stored is None or stored.metadata.get("labkit", {}).get("sha256") != sha256:
        return None
    if source_hash(stored) != sha256 or not judge(stored).passed:
        return None
    adopted = copy.deepcopy(notebook)
    for cell, old in zip(adopted.cells, stored.cells, strict=True):
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = old.outputs, old.execution_count
    adopted.metadata.labkit["sha256"] = sha256
    return adopted


def to_text(notebook: NotebookNode) -> str:
    """Return a notebook in its one canonical form; sorted keys, one-space indent, a final newline."""
    return nbformat.writes(notebook, version=nbformat.NO_CONVERT).rstrip("\n") + "\n"


def _read(path: Path) -> NotebookNode | None:
    return nbformat.read(path, as_version=4) if path.exists() else None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
    print(f"wrote {path.relative_to(path.parent.parent)}", flush=True)


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def update(lesson: Path, folder: Path, force: bool) -> None:
    """Bring both notebooks of a lesson up to date; execute only where sources changed or `force`."""
    solved = read_lesson(lesson)
    learner_path, solved_path = _paths(lesson, folder)
    texts = {learner_path: to_text(learner_notebook(solved))}
    adopted = None if force else adopt_outputs(solved, _read(solved_path))
    if adopted is None:
        print(f"executing {lesson.name} (solved)", flush=True)
    texts[solved_path] = to_text(adopted or execute(solved))
    _check_size(lesson, texts[solved_path])
    for path, text in texts.items():
        if not _is(path, text):
            _write(path, text)


def _check_size(lesson: Path, text: str) -> None:
    size = len(text.encode())
    if size > SIZE_LIMIT_BYTES:
        limit = f"{size:,} bytes, over the limit of {SIZE_LIMIT_BYTES:,}: make its pictures smaller"
        raise LessonProblem(f"solved, {lesson.name} takes {limit}")


def stale(lesson: Path, folder: Path) -> list[Path]:
    """Return which notebooks of a lesson are out of date. Outputs count by their stored hash alone.

    Raises LessonProblem where the solved one is too large.
    """
    solved = read_lesson(lesson)
    learner_path, solved_path = _paths(lesson, folder)
    found = [] if _is(learner_path, to_text(learner_notebook(solved))) else [learner_path]
    adopted = adopt_outputs(solved, _read(solved_path))
    _check_size(lesson, to_text(adopted or solved))
    if adopted is None or not _is(solved_path, to_text(adopted)):
        found.append(solved_path)
    return found


def _paths(lesson: Path, folder: Path) -> tuple[Path, Path]:
    name = f"{lesson.stem}.ipynb"
    return folder / name, folder / "solutions" / name


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare, exit 1 if out of date")
    parser.add_argument("--force", action="store_true", help="execute every solved notebook again")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder that holds lessons/ and notebooks/")
    options = parser.parse_args(arguments)
    lessons, folder = sorted((options.root / "lessons").glob("[0-9]*.py")), options.root / "notebooks"
    try:
        if not options.check:
            for lesson in lessons:
                update(lesson, folder, options.force)
            return 0
        old = [path for lesson in lessons for path in stale(lesson, folder)]
    except LessonProblem as problem:
        print(problem, file=sys.stderr)
        return 1
    for path in old:
        print(f"{path.relative_to(options.root)} is out of date. Repair it: make notebooks")
    print(f"{len(lessons)} lessons, {len(old)} notebooks out of date")
    return int(bool(old))


if __name__ == "__main__":
    sys.exit(main())
