"""Progress: kept in a file, across kernels, by two at once, and where the file is damaged or read-only."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from labkit.checks import EXERCISES, hierarchy, progress, progress_table
from labkit.checks.progress import FILE, Entry
from labkit.cli import app

NOTE = """
import sys; from labkit.checks.progress import note
for k in range(int(sys.argv[3])): note(sys.argv[1], f"{sys.argv[2]} {k}", solved=True)
"""


def note_elsewhere(*arguments):
    """`note` in a process of its own, as another kernel does."""
    environment = {"PYTHONPATH": str(Path(progress.__file__).parents[2])}
    return subprocess.Popen([sys.executable, "-c", NOTE, *map(str, arguments)], env=environment)


def test_what_is_noted_is_there_for_the_next_kernel(folder):
    assert note_elsewhere("01", "a", 1).wait() == 0
    assert progress.read()[0] == {"01": {"a 0": Entry(True, 0)}}


def test_solved_stays_solved_and_failures_add_up():
    for solved in (False, False, True, False):
        entry, trouble = progress.note("01", "a", solved)
        assert trouble == ""
    assert entry == Entry(True, 3)
    assert json.loads(Path(FILE).read_text()) == {"01": {"a": {"solved": True, "failed": 3}}}


def test_two_kernels_at_once_lose_nothing(folder):
    kernels = [note_elsewhere(notebook, "a", 40) for notebook in ("01", "02")]
    assert [kernel.wait() for kernel in kernels] == [0, 0]
    known, trouble = progress.read()
    assert trouble == "" and {name: len(entries) for name, entries in known.items()} == {"01": 40, "02": 40}
    assert [path.name for path in folder.iterdir()] == [FILE]


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '{"01": 3}', '{"01": {"a": {"solved": "yes", "failed": 0}}}', b"\xff\xfe{}"]
)
def test_a_damaged_file_is_kept_aside_and_said(text):
    damaged = text if isinstance(text, bytes) else text.encode()
    Path(FILE).write_bytes(damaged)
    assert "is damaged" in progress.read()[1]
    entry, trouble = progress.note("01", "a", solved=True)
    assert entry.solved and "is damaged" in trouble and f"{FILE}.damaged" in trouble
    assert Path(f"{FILE}.damaged").read_bytes() == damaged
    assert progress.read() == ({"01": {"a": Entry(True, 0)}}, "")


def test_a_read_only_file_is_left_alone_and_said():
    progress.note("01", "a", solved=False)
    before = Path(FILE).read_bytes()
    Path(FILE).chmod(0o444)
    entry, trouble = progress.note("01", "a", solved=True)
    assert entry.solved and "cannot be written" in trouble and "read-only" in trouble
    assert Path(FILE).read_bytes() == before
    assert progress.read()[0]["01"]["a"].solved  # this kernel still knows


def test_a_folder_in_its_place_is_said():
    Path(FILE).mkdir()
    assert "cannot be written" in progress.note("01", "a", solved=True)[1]
    assert "cannot be read" in progress.read()[1]


def test_a_working_folder_that_is_gone_is_said(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    entry, trouble = progress.note("01", "gone", solved=True)
    assert entry.solved and "cannot be written" in trouble


def test_a_check_says_where_progress_was_not_kept():
    Path(FILE).mkdir()
    feedback = hierarchy.masked_tail.check(3)
    assert "progress is lost when this kernel ends" in dict(feedback.lines)["progress"]


def test_hints_go_on_after_a_restart(folder):
    progress._save({"01_gpu_hierarchy": {hierarchy.masked_tail.title: Entry(False, 1)}}, folder / FILE)
    assert hierarchy.masked_tail.check(3).hint_number == 2


def test_the_table_of_a_notebook(capsys):
    progress.note("01_gpu_hierarchy", "Mask the tail", solved=False)
    progress.note("01_gpu_hierarchy", "Mask the tail", solved=True)
    table = progress_table("01_gpu_hierarchy")
    assert table.to_numpy().tolist() == [["Mask the tail", "solved", 1]]
    Path(FILE).write_text("{")
    progress_table("02_triton_pipeline")
    assert "is damaged" in capsys.readouterr().out


def test_the_command_shows_every_exercise(folder):
    notebooks = folder / "notebooks"
    notebooks.mkdir()
    progress.note("01_gpu_hierarchy", "Mask the tail", solved=True, folder=notebooks)
    result = CliRunner().invoke(app, ["progress"])
    assert result.exit_code == 0
    rows = result.output.splitlines()[1:]
    assert len(rows) == len(EXERCISES)
    assert ["not solved yet" in row for row in rows] == ["Mask the tail" not in row for row in rows]
    assert "not solved yet" in CliRunner().invoke(app, ["progress", str(folder)]).output.splitlines()[1]
