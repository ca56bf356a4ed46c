"""labkit doctor: every check is fed healthy and sick machines; each problem carries its repair."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from labkit import doctor, machine
from labkit.cli import app
from labkit.machine import Gpu

GIB = 2**30


@pytest.mark.parametrize(
    ("found", "state"), [((3, 9), "fail"), ((3, 10), "ok"), ((3, 13), "ok"), ((3, 14), "fail")]
)
def test_python_range(found, state):
    assert doctor.check_python(found).state == state


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (None, "fail"),
        ("3.5.1", "fail"),
        ("3.6.0", "ok"),
        ("3.6.0+rocm7.2.0.gitab12cd34", "ok"),
        ("3.9.0", "ok"),
        ("3.10.0", "fail"),
        ("2.3.1", "fail"),
        ("unknown", "fail"),
    ],
)
def test_triton_range_reads_numbers_not_text(found, state):
    finding = doctor.check_triton(found, None)
    assert finding.state == state
    assert bool(finding.repair) == (state == "fail")


def test_a_missing_triton_is_the_one_that_torch_asks_for():
    assert doctor.check_triton(None, "triton-rocm==3.6.0").repair == "pip install 'triton-rocm==3.6.0'"


@pytest.mark.parametrize(
    ("owners", "wanted", "state"),
    [
        ({"triton": "3.7.1"}, "triton==3.7.1", "ok"),
        ({"triton": "3.7.1"}, None, "ok"),
        ({"triton-rocm": "3.6.0+rocm7.2"}, "triton-rocm==3.6.0", "ok"),
        ({"pytorch-triton-rocm": "3.6.0"}, "pytorch-triton-rocm==3.6.0", "ok"),
        ({"triton": "3.8.1"}, "triton~=3.8.0", "ok"),
        ({}, None, "ok"),
        ({"triton": "3.7.1"}, "triton-rocm==3.6.0", "warn"),
        ({"triton": "3.9.0"}, "triton==3.7.1", "warn"),
        ({"triton": "3.7.1", "pytorch-triton-rocm": "3.6.0"}, "pytorch-triton-rocm==3.6.0", "fail"),
    ],
)
def test_who_owns_triton(owners, wanted, state):
    assert doctor.check_triton_owner(owners, wanted).state == state


def test_repair_of_two_owners_removes_both_and_puts_back_the_one_that_torch_asks_for():
    finding = doctor.check_triton_owner({"triton": "3.7.1", "triton-rocm": "3.6.0"}, "triton-rocm==3.6.0")
    assert (
        finding.repair == "pip uninstall -y triton triton-rocm && pip install --no-deps 'triton-rocm==3.6.0'"
    )


def test_device_lines():
    amd = doctor.check_device(Gpu("AMD", "AMD Instinct MI300X VF", "gfx942"), True)
    assert (amd.state, amd.found) == ("ok", "AMD Instinct MI300X VF (gfx942)")
    assert doctor.check_device(Gpu("NVIDIA", "NVIDIA H200", "sm_90"), False).found == "NVIDIA H200 (sm_90)"
    assert doctor.check_device(None, False).state == "ok"
    unseen = doctor.check_device(None, True)
    assert unseen.state == "warn"
    assert "ROCm" in unseen.repair


def test_arch_loses_its_feature_flags():
    assert machine.gpu_arch("gfx942:sramecc+:xnack-") == "gfx942"
    assert machine.gpu_arch("gfx950") == "gfx950"


@pytest.mark.parametrize(
    ("finding", "state", "repair"),
    [
        (doctor.check_kfd(True, False), "warn", "render"),
        (doctor.check_kfd(True, True), "ok", ""),
        (doctor.check_kfd(False, False), "ok", ""),
        (doctor.check_rocm(True, None), "warn", "PATH"),
        (doctor.check_rocm(True, "/opt/rocm/bin/rocminfo"), "ok", ""),
        (doctor.check_rocm(False, None), "ok", ""),
        (doctor.check_room("Disk", GIB, 2, "make clean"), "warn", "make clean"),
        (doctor.check_room("Disk", 2 * GIB, 2, "make clean"), "ok", ""),
        (doctor.check_cache(Path("/x"), False), "fail", "TRITON_CACHE_DIR"),
        (doctor.check_cache(Path("/x"), True), "ok", ""),
        (doctor.check_packages(["papermill"]), "fail", "pip install papermill"),
        (doctor.check_packages([]), "ok", ""),
        (doctor.check_kernel(None, "/v/bin/python"), "fail", "ipykernel install"),
        (doctor.check_kernel("/usr/bin/python3", "/v/bin/python"), "fail", "ipykernel install"),
        (doctor.check_kernel("/v/bin/python3", "/v/bin/python"), "ok", ""),
        (doctor.check_platform("Linux", "x86_64"), "ok", ""),
        (doctor.check_platform("Linux", "aarch64"), "warn", "x86-64"),
        (doctor.check_platform("Darwin", "arm64"), "fail", "Linux"),
        (doctor.check_torch(None), "fail", "torch==2.13.0"),
    ],
)
def test_states_and_repairs(finding, state, repair):
    assert finding.state == state
    assert repair in finding.repair
    assert bool(finding.repair) == (state != "ok")
    assert "\n" not in finding.repair


def _distribution(folder, name, version, files, requires=()):
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    (info / "METADATA").write_text("\n".join([*lines, *(f"Requires-Dist: {r}" for r in requires)]) + "\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def test_owners_are_read_from_what_is_installed(tmp_path, monkeypatch):
    _distribution(tmp_path, "triton", "9.1.0", ["triton/__init__.py", "triton/a.py"])
    _distribution(tmp_path, "pytorch-triton-rocm", "9.0.0", ["triton/__init__.py"])
    _distribution(tmp_path, "triton-tools", "1.0", ["triton_tools.py"])
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert machine.owners_of("triton") == {"triton": "9.1.0", "pytorch-triton-rocm": "9.0.0"}


@pytest.mark.parametrize(
    ("requires", "wanted"),
    [
        (["sympy", 'triton==3.7.1; platform_system == "Linux"'], "triton==3.7.1"),
        (["pytorch-triton-rocm==3.5.1"], "pytorch-triton-rocm==3.5.1"),
        (["triton-rocm==3.6.0"], "triton-rocm==3.6.0"),
        (["sympy"], None),
    ],
)
def test_what_torch_asks_for(tmp_path, monkeypatch, requires, wanted):
    _distribution(tmp_path, "torch", "9.9", ["torch/__init__.py"], requires)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert machine.wanted_triton() == wanted


def test_no_torch_asks_for_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert machine.wanted_triton() is None


def test_rights_and_room_of_a_folder_that_is_not_there_yet(tmp_path):
    assert machine.is_writable(tmp_path / "a" / "b")
    assert machine.free_bytes(tmp_path / "a" / "b") > 0
    (tmp_path / "file").touch()
    assert not machine.is_writable(tmp_path / "file")


def test_cache_folder_follows_tritons_variables(monkeypatch, tmp_path):
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    monkeypatch.setenv("TRITON_HOME", str(tmp_path))
    assert machine.triton_cache() == tmp_path / ".triton" / "cache"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "c"))
    assert machine.triton_cache() == tmp_path / "c"


def test_a_check_that_breaks_is_a_finding():
    def broken():
        raise OSError("libtorch.so is missing\nmore")

    finding = doctor.run_check("torch", broken)
    assert (finding.state, finding.found) == ("fail", "OSError: libtorch.so is missing")


@pytest.mark.parametrize(("state", "status"), [("ok", 0), ("warn", 0), ("fail", 1)])
def test_exit_status_tells_whether_notebooks_can_run(monkeypatch, state, status):
    finding = doctor.Finding("Disk", state, "0.1 GiB", "make [clean]" if state != "ok" else "")
    monkeypatch.setattr(doctor, "examine", lambda: [finding])
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == status
    assert ("repair: make [clean]" in result.output) == (state != "ok")


def test_this_machine_can_run_the_notebooks():
    assert {finding.name: finding.found for finding in doctor.examine() if finding.state == "fail"} == {}
