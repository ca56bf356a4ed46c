"""Verdicts on notebooks that papermill really executed, and on ones written by hand."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from labkit.batch.runner import execute, find_notebooks, prepare_folder, run_notebooks
from labkit.batch.verdict import judge
from labkit.errors import LabkitError


def _write(path: Path, *sources: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=[new_code_cell(source) for source in sources]), path)
    return path


def _executed(*counts: int | None) -> dict:
    return new_notebook(cells=[new_code_cell("x", execution_count=count) for count in counts])


def test_every_cell_needs_an_execution_count():
    assert judge(_executed(1, 2)).passed
    verdict = judge(_executed(1, None, 3))
    assert (verdict.cells, verdict.executed, verdict.reason) == (3, 2, "code cell 2 of 3 never ran")


def test_empty_cells_and_text_do_not_count():
    notebook = _executed(1)
    notebook.cells += [new_code_cell(" \n"), new_markdown_cell("text")]
    assert judge(notebook).cells == 1
    assert judge(notebook).passed


def test_a_notebook_without_code_did_not_pass():
    assert judge(new_notebook(cells=[new_markdown_cell("text")])).reason == "it has no code cell"


def test_an_error_counts_even_where_the_cell_may_raise():
    notebook = _executed(1, 2)
    notebook.cells[0].metadata["tags"] = ["raises-exception"]
    notebook.cells[0].outputs = [new_output("error", ename="ValueError", evalue="no", traceback=[])]
    assert judge(notebook).reason == "code cell 1 raised ValueError: no"


def test_source_as_a_list_of_lines():
    notebook = _executed(None)
    notebook.cells[0].source = ["a\n", "b"]
    assert judge(notebook).cells == 1


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("import sys; sys.exit(0)", "code cell 2 raised SystemExit: 0"),
        ("import os; os._exit(0)", "code cell 2: the kernel died, most often for lack of memory"),
        ("1 / 0", "code cell 2 raised ZeroDivisionError: division by zero"),
        ("import time; time.sleep(60)", "code cell 2: it ran longer than 2 s"),
    ],
)
def test_what_stops_a_notebook_is_named(tmp_path, cell, reason):
    source = _write(tmp_path / "a.ipynb", "x = 1", cell, "y = 2")
    verdict = execute(source, tmp_path / "out" / "a.ipynb", cell_seconds=2, label="a")
    assert verdict.reason == reason
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["a.ipynb"]


def test_a_run_leaves_the_sources_and_their_folder_alone(tmp_path):
    source = _write(tmp_path / "notebooks" / "a.ipynb", "open('made.txt', 'w').close()", "2 + 2")
    before = source.read_bytes()
    outcomes = list(run_notebooks(find_notebooks([source.parent]), tmp_path / "out", 60))
    assert [(o.notebook, o.cells, o.result, o.reason) for o in outcomes] == [("a.ipynb", 2, "passed", "")]
    assert source.read_bytes() == before
    assert list(source.parent.iterdir()) == [source]
    assert nbformat.read(tmp_path / "out" / "a.ipynb", 4).cells[1].outputs[0].data["text/plain"] == "4"


def test_notebooks_are_found_below_a_folder_but_not_checkpoints(tmp_path):
    for name in ("b.ipynb", "solutions/b.ipynb", ".ipynb_checkpoints/b-checkpoint.ipynb"):
        _write(tmp_path / name, "1")
    assert list(find_notebooks([tmp_path])) == ["b.ipynb", "solutions/b.ipynb"]


def test_no_notebooks_missing_path_and_clashing_names(tmp_path):
    with pytest.raises(LabkitError, match="make notebooks"):
        find_notebooks([tmp_path])
    with pytest.raises(LabkitError, match="does not exist"):
        find_notebooks([tmp_path / "absent"])
    one, two = (_write(tmp_path / folder / "a.ipynb", "1") for folder in "xy")
    with pytest.raises(LabkitError, match=r"written to a\.ipynb"):
        find_notebooks([one, two])


def test_a_run_clears_only_what_a_run_made(tmp_path):
    prepare_folder(tmp_path / "out")
    (tmp_path / "out" / "old.ipynb").touch()
    prepare_folder(tmp_path / "out")
    assert not (tmp_path / "out" / "old.ipynb").exists()
    (tmp_path / "mine.txt").touch()
    with pytest.raises(LabkitError, match="--output"):
        prepare_folder(tmp_path)
    assert (tmp_path / "mine.txt").exists()
