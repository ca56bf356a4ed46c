"""The generated notebooks: what solving may change, an unsolved run to its end, and nbgrader's own tools."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import nbformat
import pytest

from labkit.batch.runner import execute
from labkit.checks import EXERCISES

ROOT = Path(__file__).parents[2]
NAMES = sorted({exercise.notebook for exercise in EXERCISES})
KINDS = {"solution": "answer", "grade": "check"}


def read(name, folder=""):
    return nbformat.read(ROOT / "notebooks" / folder / f"{name}.ipynb", as_version=nbformat.NO_CONVERT)


def stub():
    path = ROOT / "tools" / "notebooks.py"
    spec = importlib.util.spec_from_file_location("notebooks_tool_for_the_stub", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.STUB


def cells_of(notebook, kind):
    return [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get(kind)]


def text_of(cell):
    return "".join(output.get("text") or output["data"]["text/plain"] for output in cell.outputs)


@pytest.mark.parametrize("name", NAMES)
def test_solving_changes_the_marked_holes_only(name):
    pairs = list(zip(read(name).cells, read(name, "solutions").cells, strict=True))
    differ = [solved for learner, solved in pairs if learner.source != solved.source]
    assert differ == cells_of(read(name, "solutions"), "solution") != []
    assert all(learner.metadata == solved.metadata for learner, solved in pairs)


@pytest.mark.parametrize("name", NAMES)
def test_nbgrader_finds_an_answer_and_a_check_for_each_exercise(name):
    exercises = [exercise for exercise in EXERCISES if exercise.notebook == name]
    for kind, word in KINDS.items():
        marks = [cell.metadata.nbgrader for cell in cells_of(read(name), kind)]
        assert [mark.grade_id for mark in marks] == [
            f"{name}-{word}-{number}" for number, _ in enumerate(exercises, 1)
        ]
        assert {mark.locked for mark in marks} == {kind == "grade"}


@pytest.mark.parametrize("name", NAMES)
def test_the_unsolved_notebook_runs_to_its_end_with_nothing_solved(name, tmp_path):
    source = ROOT / "notebooks" / f"{name}.ipynb"
    verdict = execute(source, tmp_path / "run.ipynb", cell_seconds=600, label=name)
    assert verdict.passed, verdict.reason
    ran = nbformat.read(tmp_path / "run.ipynb", as_version=4)
    checks, closing = cells_of(ran, "grade"), ran.cells[-1]
    assert all("not solved yet" in text_of(cell) for cell in checks)
    assert text_of(closing).count("not solved yet") == len(checks)
    assert not list(source.parent.glob("labkit-progress*"))


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course whose one assignment is notebook 01, handed in unsolved by one and solved by the other."""
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config

    root, name = tmp_path_factory.mktemp("course"), NAMES[0]
    source = root / "source" / "lab"
    source.mkdir(parents=True)
    shutil.copy(ROOT / "notebooks" / "solutions" / f"{name}.ipynb", source)
    config = Config()
    config.CourseDirectory.root = str(root)
    config.ClearSolutions.code_stub = {"python": stub()}
    api = NbGraderAPI(config=config)
    # nbgrader starts alembic by its bare name, as in an activated environment.
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    generated = api.generate_assignment("lab")
    assert generated["success"], generated["log"]
    for student in ("unsolved", "solved"):
        shutil.copytree(root / "release" / "lab", root / "submitted" / student / "lab")
    path = root / "submitted" / "solved" / "lab" / f"{name}.ipynb"
    handed_in = nbformat.read(path, as_version=4)
    answers = zip(cells_of(handed_in, "solution"), cells_of(read(name, "solutions"), "solution"), strict=True)
    for cell, answer in answers:
        cell.source = answer.source
    nbformat.write(handed_in, path)
    yield api, root, name
    monkeypatch.undo()


def test_nbgrader_releases_what_the_learner_gets(course):
    _, root, name = course
    released = nbformat.read(root / "release" / "lab" / f"{name}.ipynb", as_version=4)
    assert [cell.source for cell in released.cells] == [cell.source for cell in read(name).cells]


@pytest.mark.parametrize(("student", "points"), [("unsolved", 0), ("solved", 1)])
def test_nbgrader_grades_by_the_check(course, student, points):
    api, _, name = course
    graded = api.autograde("lab", student)
    assert graded["success"], graded["log"]
    with api.gradebook as book:
        submission = book.find_submission_notebook(name, "lab", student)
        assert (submission.score, submission.max_score) == (points, 1)


ANSWER = """
import triton, triton.language as tl

@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    {line}
""".strip()
LINES = [
    "tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))",  # a fault
    "tl.store(out_ptr + offsets, nowhere)",  # no compile
]


@pytest.mark.parametrize("line", LINES)
def test_a_panel_names_the_cell_and_the_line_in_it(line, tmp_path):
    sources = ["from labkit import checks", ANSWER.format(line=line)]
    sources.append("checks.hierarchy.masked_tail.check(kernel)")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbformat.write(notebook, tmp_path / "in.ipynb")
    assert execute(tmp_path / "in.ipynb", tmp_path / "out.ipynb", cell_seconds=60, label="cells").passed
    panel = text_of(nbformat.read(tmp_path / "out.ipynb", as_version=4).cells[-1])
    assert f"your line: line 6: {line}\n" in panel
    assert 'go back to: the cell below "Exercise: mask the tail", In[2]\n' in panel
