"""labkit.start: which device becomes current, and what it says when the machine is not ready."""

import os

import pytest
import torch
import triton

import labkit
from labkit.errors import EnvironmentProblem


def test_start_prints_one_line_and_names_what_it_made_current(capsys):
    device = labkit.start("MI300X")
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert "emulated MI300X (gfx942)" in said and triton.__version__ in said
    assert (device.name, device.arch, device.emulated) == ("MI300X", "gfx942", True)
    assert device.torch_device == torch.device("cpu")
    assert triton.runtime.driver.active.get_current_target().arch == "gfx942"


def test_the_environment_can_choose_the_chip(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "MI355X")
    assert labkit.start(quiet=True).arch == "gfx950"
    assert labkit.start("MI300X", quiet=True).arch == "gfx942"  # an argument wins


def test_a_chip_that_cannot_be_emulated():
    with pytest.raises(EnvironmentProblem, match="cannot emulate 'H100'.*MI300X, MI355X"):
        labkit.start("H100")


@pytest.mark.parametrize("version", ["3.5.1", "3.10.0", "4.0.0"])
def test_triton_outside_the_range(monkeypatch, version):
    monkeypatch.setattr(triton, "__version__", version)
    with pytest.raises(EnvironmentProblem, match=rf"triton {version} is outside the range 3\.6 to 3\.9"):
        labkit.start("MI300X")


@pytest.mark.parametrize("version", ["3.6.0", "3.9.0+rocm7.2.0.gitabc", "3.8.1"])
def test_triton_inside_the_range(monkeypatch, version):
    monkeypatch.setattr(triton, "__version__", version)
    assert labkit.start("MI300X", quiet=True).emulated


def test_cache_folder_that_cannot_be_written(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")  # a file where the folder should be: not even root can write inside
    monkeypatch.setenv("TRITON_CACHE_DIR", str(blocked / "cache"))
    with pytest.raises(EnvironmentProblem, match="cannot write its cache folder.*Set TRITON_CACHE_DIR"):
        labkit.start("MI300X")


def test_interpreter_mode_is_refused(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(EnvironmentProblem, match="unset it"):
        labkit.start("MI300X")


def test_an_error_shows_no_traceback_of_ours_in_a_notebook():
    error = EnvironmentProblem("do this")
    assert error._render_traceback_() == ["EnvironmentProblem: do this"]


def test_fp_fusion_is_set_and_a_choice_of_yours_is_kept(monkeypatch):
    monkeypatch.delenv("TRITON_DEFAULT_FP_FUSION", raising=False)
    labkit.start("MI300X", quiet=True)
    assert os.environ["TRITON_DEFAULT_FP_FUSION"] == "1"
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "0")
    labkit.start("MI300X", quiet=True)
    assert os.environ["TRITON_DEFAULT_FP_FUSION"] == "0"
