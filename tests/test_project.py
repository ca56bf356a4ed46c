"""The frame: names that must agree across files, and what `import labkit` may cost."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from labkit import doctor
from labkit.runtime import TRITON_NEWEST, TRITON_OLDEST

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it where Python has none

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _name(requirement: str) -> str:
    return re.split(r"[=<>~!; ]", requirement)[0].lower().replace("_", "-")


def test_torch_and_triton_are_an_extra_only():
    names = {_name(requirement) for requirement in PROJECT["dependencies"]}
    assert not names & {"torch", "triton"}
    assert {_name(r) for r in PROJECT["optional-dependencies"]["torch"]} == {"torch", "triton"}


def test_each_direct_dependency_has_a_tested_version():
    pinned = {_name(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    wanted = [*PROJECT["dependencies"], *sum(PROJECT["optional-dependencies"].values(), [])]
    assert {_name(requirement) for requirement in wanted} - pinned == set()


def test_code_and_pyproject_state_the_same_ranges():
    low, high = doctor.PYTHON_RANGE
    assert PROJECT["requires-python"] == f">={low[0]}.{low[1]},<{high[0]}.{high[1] + 1}"
    low, high = TRITON_OLDEST, TRITON_NEWEST
    expected = f"triton>={low[0]}.{low[1]},<{high[0]}.{high[1] + 1}"
    assert expected in PROJECT["optional-dependencies"]["torch"]


def test_both_ends_of_the_range_of_triton_are_tested():
    tested = re.search(r"^TRITON \?= (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    assert [tuple(map(int, release.split(".")[:2])) for release in tested] == [TRITON_OLDEST, TRITON_NEWEST]


def test_import_is_cheap_and_pulls_in_nothing_heavy():
    code = "import sys, time; t = time.perf_counter(); import labkit; t = time.perf_counter() - t; "
    code += "print(t, *({'torch', 'triton', 'pandas', 'matplotlib', 'numpy'} & set(sys.modules)))"
    seconds, *heavy = min(_python(code).split() for _ in range(3))
    assert heavy == []
    assert float(seconds) < 0.5  # the bound of the design


def _python(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def test_make_help_names_each_target():
    text = (ROOT / "Makefile").read_text()
    declared = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split()
    shown = subprocess.run(["make", "help"], check=True, capture_output=True, text=True, cwd=ROOT).stdout
    assert [name for name in declared if f"make {name} " not in shown] == []


@pytest.mark.parametrize(
    "script", ["tools/setup.sh", "tools/setup_browser.sh", "tools/test_triton.sh", ".ci/run"]
)
def test_scripts_parse_and_are_executable(script):
    path = ROOT / script
    shell = path.read_text().splitlines()[0].split("/")[-1].split()[-1]
    assert subprocess.run([shell, "-n", str(path)]).returncode == 0
    assert path.stat().st_mode & 0o111


def test_environment_file_names_what_a_notebook_needs():
    text = (ROOT / "environment.yml").read_text()
    listed = {_name(entry) for entry in re.findall(r"^\s*- ([\w.=-]+)", text, re.MULTILINE)}
    assert {"jupyterlab", "triton", "torch", "matplotlib", "pandas", "papermill"} <= listed
    assert (ROOT / "binder" / "environment.yml").resolve() == ROOT / "environment.yml"


def test_setup_refuses_an_old_python_in_one_sentence(tmp_path):
    old = tmp_path / "python-old"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.8.1 && exit\nexit 1\n')
    old.chmod(0o755)
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": str(old)}
    command = [str(ROOT / "tools" / "setup.sh"), str(tmp_path / "venv")]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 1
    assert "no Python from 3.10 to 3.13" in result.stderr
    assert "3.8.1" in result.stderr
    assert not (tmp_path / "venv").exists()


def test_browser_setup_without_a_browser_says_what_to_install(tmp_path):
    for name, line in (("id", "echo 1000"), ("dirname", 'echo "${1%/*}"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    command = [str(ROOT / "tools" / "setup_browser.sh"), str(tmp_path / "venv")]
    result = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1 and "apt-get install chromium" in result.stderr
