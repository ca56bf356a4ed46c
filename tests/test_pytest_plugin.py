"""The pytest plugin and the table that `exec --counters` writes, each as its user runs it."""

import io
import subprocess
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[1]
FAULTY = """
import torch, triton
import triton.language as tl

@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, x, mask=at < n)

def test_too_short():
    copy[(1,)](torch.rand(100), torch.zeros(100), 100, BLOCK=128)

def test_long_enough():
    x, out = torch.rand(128), torch.zeros(128)
    copy[(1,)](x, out, 128, BLOCK=128)
    assert torch.equal(x, out)
"""
DRIVER = """
import pytest
from labkit.emulator.driver import EmulatorDriver
from triton.runtime import driver

@pytest.fixture(autouse=True, scope="module")
def another():
    earlier = EmulatorDriver("MI355X", "raise")
    driver.set_active(earlier)
    yield earlier
    assert driver.active is earlier

def test_one(another, mi300x):
    assert driver.active.chip_name == "MI300X"

def test_two(another):
    assert driver.active.chip_name == "MI300X"
"""
ENDLESS = """
import torch, triton
import triton.language as tl

@triton.jit
def wait_kernel(flag_ptr, out_ptr):
    while tl.load(flag_ptr, volatile=True) == 0:
        pass
    tl.store(out_ptr, 1)

def test_endless():
    flag, out = torch.zeros(2, 1, dtype=torch.int32)
    wait_kernel[(1,)](flag, out)

def test_next():
    out = torch.zeros(1, dtype=torch.int32)
    wait_kernel[(1,)](torch.ones(1, dtype=torch.int32), out)
    assert out.item() == 1
"""


def run(*command, **options):
    arguments = [sys.executable, "-m", *map(str, command)]
    return subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT, **options)


def test_the_example_passes():
    result = run("pytest", "-q", "-p", "labkit.pytest_plugin", "examples/test_with_plugin.py")
    assert result.returncode == 0 and "3 passed" in result.stdout, result.stdout


def test_triton_has_its_earlier_driver_after_each_test(tmp_path):
    path = tmp_path / "test_driver.py"
    path.write_text(DRIVER)
    result = run("pytest", "-q", "-p", "labkit.pytest_plugin", "--rootdir", tmp_path, path)
    assert result.returncode == 0 and "2 passed" in result.stdout, result.stdout


def test_a_fault_fails_its_own_test_in_one_sentence(tmp_path):
    path = tmp_path / "test_copy.py"
    path.write_text(FAULTY)
    result = run("pytest", "-q", "-p", "labkit.pytest_plugin", "--rootdir", tmp_path, path)
    assert "1 failed, 1 passed" in result.stdout, result.stdout
    # The test's line, then the kernel's.
    assert "test_copy.py:12: MemoryFault: test_copy.py:8:" in result.stdout
    assert "labkit/emulator" not in result.stdout


def test_an_endless_kernel_fails_its_own_test(tmp_path):
    path = tmp_path / "test_wait.py"
    path.write_text(ENDLESS)
    result = run("pytest", "-q", "-p", "labkit.pytest_plugin", "--rootdir", tmp_path, path)
    assert "1 failed, 1 passed" in result.stdout, result.stdout
    assert "test_wait.py:13: EndlessKernel: " in result.stdout
    assert "in the loop at test_wait.py:" in result.stdout


def test_exec_writes_the_counters_of_each_launch():
    result = run("labkit", "exec", "examples/vector_add.py", "--counters", "/dev/stdout")
    assert result.returncode == 0, result.stderr
    table = pd.read_csv(io.StringIO(result.stdout[result.stdout.index("launch,kernel") :]))
    assert set(table["launch"]) == {0} and set(table["kernel"]) == {"add_kernel"}
    assert table.loc[table["kind"] == "load", "bytes_requested"].sum() == 2 * 4 * 98_432
    assert table.loc[table["kind"] == "store", "bytes_requested"].sum() == 4 * 98_432


def test_exec_writes_the_counters_of_a_script_that_fails(tmp_path):
    script, table = tmp_path / "script.py", tmp_path / "out.csv"
    script.write_text(FAULTY.replace("copy", "failing_copy") + "\ntest_long_enough()\nraise SystemExit(3)\n")
    result = run("labkit", "exec", "--counters", table, script)
    assert result.returncode == 3
    assert set(pd.read_csv(table)["kernel"]) == {"failing_copy"}


def test_exec_says_that_no_kernel_ran(tmp_path):
    script, table = tmp_path / "script.py", tmp_path / "out.csv"
    script.write_text("import sys; print(sys.argv[1:])")
    result = run("labkit", "exec", script, "--counters", table, "--n", "5")
    assert result.returncode == 0 and "['--n', '5']" in result.stdout
    assert result.stderr == "labkit: the script ran no kernel on the emulated chip.\n"
    assert pd.read_csv(table).empty


def test_exec_reports_faults_and_goes_on(tmp_path):
    path = tmp_path / "script.py"
    # Triton caches by the text of a kernel, so this one must not be that of another file.
    path.write_text(FAULTY.replace("copy", "script_copy") + "\ntest_too_short()\nprint('went on')\n")
    result = run("labkit", "exec", path, "--faults", "report")
    assert result.returncode == 0 and "went on" in result.stdout
    assert "labkit: fault: script.py:8:" in result.stderr


def test_exec_says_what_is_wrong_before_the_script_runs(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("print('ran')")
    for option in (["--counters", tmp_path / "none" / "out.csv"], ["--faults", "loud"]):
        result = run("labkit", "exec", script, *option)
        assert result.returncode == 2 and "ran" not in result.stdout and result.stderr.startswith("labkit: ")
