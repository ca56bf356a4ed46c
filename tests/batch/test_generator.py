"""tools/notebooks.py: a lesson becomes two notebooks in one canonical form, and a check sees each change."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import nbformat
import pytest

HERE = Path(__file__).parent
NAME = "01_tiny.ipynb"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location(
        "notebooks_tool", HERE.parents[1] / "tools" / "notebooks.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(tool, tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    shutil.copytree(HERE / "lessons", root / "lessons")
    assert tool.main(["--root", str(root)]) == 0
    return root


@pytest.fixture
def root(made, tmp_path):
    return shutil.copytree(made, tmp_path / "root")


def _notebook(root: Path, folder: str = "") -> nbformat.NotebookNode:
    return nbformat.read(root / "notebooks" / folder / NAME, as_version=nbformat.NO_CONVERT)


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_learner_gets_a_stub_that_runs(made):
    notebook = _notebook(made)
    nbformat.validate(notebook)
    assert notebook.cells[2].source == "def square(x):\n    # Your code here\n    pass"
    assert all(cell.outputs == [] and cell.execution_count is None for cell in notebook.cells[1:])
    names = {}
    for cell in notebook.cells[1:]:
        exec(cell.source, names)
    assert names["squares"] == [None] * 3


def test_the_solved_twin_is_executed_and_keeps_its_outputs(made):
    notebook = _notebook(made, "solutions")
    nbformat.validate(notebook)
    assert [cell.execution_count for cell in notebook.cells[1:]] == [1, 2, 3, 4]
    assert notebook.cells[3].outputs[0].text == "[0, 1, 4]\n"


def test_twins_differ_in_the_marked_cell_only(made):
    learner, solved = _notebook(made), _notebook(made, "solutions")
    assert [cell.id for cell in learner.cells] == [cell.id for cell in solved.cells]
    pairs = zip(learner.cells, solved.cells, strict=True)
    assert [number for number, (a, b) in enumerate(pairs) if a.source != b.source] == [2]


def test_canonical_form(made):
    for notebook in (_notebook(made), _notebook(made, "solutions")):
        assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
        assert set(notebook.metadata) == {"kernelspec", "labkit", "language_info"}
        assert notebook.metadata.kernelspec.display_name == "Python 3 (ipykernel)"
        assert notebook.metadata.language_info == {"name": "python"}
        assert notebook.cells[0].source.startswith("<!-- Made from lessons/01_tiny.py")
        assert notebook.cells[1].metadata == {"tags": ["parameters"]}
        assert notebook.cells[2].metadata.nbgrader.grade_id == "01_tiny-answer-1"


def test_a_second_run_changes_nothing_and_executes_nothing(tool, root, capsys):
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*.ipynb")}
    assert tool.main(["--root", str(root)]) == 0
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*.ipynb")} == before
    assert capsys.readouterr().out == ""
    assert tool.main(["--root", str(root), "--check"]) == 0


def test_check_names_what_is_old_and_the_repair(tool, root, capsys):
    _edit(root / "lessons/01_tiny.py", "# # A lesson", "# # The lesson")
    before = (root / "notebooks" / NAME).read_bytes()
    assert tool.main(["--root", str(root), "--check"]) == 1
    output = capsys.readouterr().out
    assert "notebooks/01_tiny.ipynb is out of date. Repair it: make notebooks" in output
    assert "notebooks/solutions/01_tiny.ipynb is out of date" in output
    assert (root / "notebooks" / NAME).read_bytes() == before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (NAME, "# Your code here", "# My code here"),
        (NAME, '"outputs": []', '"outputs": [{"name": "stdout", "output_type": "stream", "text": ["4"]}]'),
        (f"solutions/{NAME}", "return x * x", "return x ** 2"),
        (f"solutions/{NAME}", '"sha256": "', '"sha256": "0'),
        (f"solutions/{NAME}", '"execution_count": 4', '"execution_count": null'),
        (f"solutions/{NAME}", '"name": "python3"', '"name": "other"'),
    ],
)
def test_check_sees_a_notebook_changed_by_hand(tool, root, capsys, file, old, new):
    _edit(root / "notebooks" / file, old, new)
    assert tool.main(["--root", str(root), "--check"]) == 1
    output = capsys.readouterr().out
    assert f"notebooks/{file} is out of date" in output
    assert "1 notebooks out of date" in output


def test_outputs_that_differ_are_not_out_of_date(tool, root):
    _edit(root / "notebooks/solutions" / NAME, r"[0, 1, 4]\n", r"[0, 1, 4] in 3 ms\n")
    assert tool.main(["--root", str(root), "--check"]) == 0


def test_a_lesson_whose_cell_fails_is_not_written(tool, root, capsys):
    _edit(root / "lessons/01_tiny.py", "print(squares)", "print(1 / 0)")
    before = (root / "notebooks/solutions" / NAME).read_bytes()
    assert tool.main(["--root", str(root)]) == 1
    assert "01_tiny.py: code cell 3 raised ZeroDivisionError" in capsys.readouterr().err
    assert (root / "notebooks/solutions" / NAME).read_bytes() == before


def test_an_open_solution_region_is_named(tool, root, capsys):
    _edit(root / "lessons/01_tiny.py", "    ### END SOLUTION\n", "")
    assert tool.main(["--root", str(root), "--check"]) == 1
    assert "01_tiny.py" in capsys.readouterr().err


def test_a_solved_notebook_over_its_size_is_named(tool, root, capsys, monkeypatch):
    monkeypatch.setattr(tool, "SIZE_LIMIT_BYTES", 500)
    assert tool.main(["--root", str(root), "--check"]) == 1
    assert "over the limit of 500: make its pictures smaller" in capsys.readouterr().err


def test_a_check_is_what_nbgrader_grades(tool, root):
    _edit(root / "lessons/01_tiny.py", "# %%\nsquares\n", "# %%\nchecks.tiny.square.check(square)\n")
    cells = tool.read_lesson(root / "lessons/01_tiny.py").cells
    assert [cell.metadata.get("nbgrader", {}).get("grade") for cell in cells] == [
        None,
        None,
        False,
        None,
        True,
    ]
    grades = cells[-1].metadata.nbgrader
    assert (grades.grade_id, grades.points, grades.locked, grades.solution) == (
        "01_tiny-check-1",
        1,
        True,
        False,
    )


def test_ids_survive_a_new_cell_and_repeat_for_no_two(tool, root):
    before = [cell.id for cell in tool.read_lesson(root / "lessons/01_tiny.py").cells]
    _edit(root / "lessons/01_tiny.py", "# %%\nsquares\n", "# %%\nn\n\n# %%\nsquares\n\n# %%\nsquares\n")
    after = [cell.id for cell in tool.read_lesson(root / "lessons/01_tiny.py").cells]
    assert [*after[:4], after[5]] == before
    assert len(set(after)) == 7
