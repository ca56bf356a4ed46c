"""labkit doctor: looks at this machine, one finding a line, and says how to repair each problem."""

from __future__ import annotations

import contextlib
import io
import platform
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from labkit import machine
from labkit.runtime import TRITON_NEWEST, TRITON_OLDEST

GIB = 2**30
PYTHON_RANGE = ((3, 10), (3, 13))
NOTEBOOK_PACKAGES = ("ipykernel", "jupyterlab", "matplotlib", "nbconvert", "pandas", "papermill")


@dataclass(frozen=True)
class Finding:
    """What one check saw. `state` is "ok", "warn" (notebooks run, something is off) or "fail"."""

    name: str
    state: str
    found: str
    repair: str = ""


def check_python(found: tuple[int, int]) -> Finding:
    """Python within the supported range."""
    text = "{}.{}".format(*found)
    if PYTHON_RANGE[0] <= found <= PYTHON_RANGE[1]:
        return Finding("Python", "ok", text)
    return Finding("Python", "fail", text, "rm -r .venv; make setup PYTHON=python3.11")


def check_platform(system: str, processor: str) -> Finding:
    """Triton has wheels for Linux; labkit is tested on x86-64."""
    found = f"{system} {processor}"
    if system != "Linux":
        return Finding(
            "System", "fail", found, "Triton needs Linux: use WSL 2, a container or a cloud machine"
        )
    if processor not in ("x86_64", "AMD64"):
        return Finding(
            "System", "warn", found, "labkit is tested on x86-64 only; use such a machine if a test fails"
        )
    return Finding("System", "ok", found)


def check_torch(found: str | None) -> Finding:
    """PyTorch is installed; `found` is its version."""
    if found is None:
        return Finding("torch", "fail", "not installed", "make setup, or: pip install torch==2.13.0")
    return Finding("torch", "ok", found)


def check_triton(found: str | None, wanted: str | None) -> Finding:
    """Triton is installed and within the supported range; `wanted` is what torch asks for."""
    low, high = ("{}.{}".format(*end) for end in (TRITON_OLDEST, TRITON_NEWEST))
    repair = f"pip install '{wanted or 'triton==3.7.1'}'"
    if found is None:
        return Finding("Triton", "fail", "not installed", repair)
    numbers = re.match(r"(\d+)\.(\d+)", found)
    if numbers and TRITON_OLDEST <= (int(numbers[1]), int(numbers[2])) <= TRITON_NEWEST:
        return Finding("Triton", "ok", found)
    repair = f"take a torch whose Triton is {low} to {high}, such as torch 2.10 to 2.13"
    return Finding("Triton", "fail", f"{found}, outside {low} to {high}", repair)


def check_triton_owner(owners: dict[str, str], wanted: str | None) -> Finding:
    """One distribution owns the folder triton/, and it is the one that torch asks for.

    `owners` maps distribution -> version; `wanted` is torch's requirement, such as "triton==3.7.1".
    """
    found = " and ".join(f"{name} {number}" for name, number in sorted(owners.items()))
    asked = re.split(r"[=<>~! ]", wanted)[0] if wanted else next(iter(sorted(owners)), "triton")
    again = f"pip uninstall -y {' '.join(sorted(owners))} && pip install --no-deps '{wanted or asked}'"
    if len(owners) > 1:
        return Finding("Triton's owner", "fail", f"{found} all own triton/: their files are mixed", again)
    if owners and asked not in owners:
        return Finding("Triton's owner", "warn", f"{found}, but torch asks for {wanted}", again)
    pin = re.fullmatch(r"[\w-]+==([\w.]+?)(\+.*)?", wanted or "")
    if owners and pin and owners[asked].split("+")[0] != pin[1]:
        return Finding("Triton's owner", "warn", f"{found}, but torch asks for {wanted}", again)
    return Finding("Triton's owner", "ok", found or "no distribution (built from source)")


def check_device(gpu: machine.Gpu | None, has_kfd: bool) -> Finding:
    """The GPU that torch sees, or the emulated chip; `has_kfd` says that an AMD GPU's driver is here."""
    if gpu is not None:
        name = gpu.name if gpu.vendor in gpu.name else f"{gpu.vendor} {gpu.name}"
        return Finding("Device", "ok", f"{name} ({gpu.arch})")
    if has_kfd:
        repair = "install PyTorch for ROCm, or use the rocm/pytorch image of the Dockerfile"
        return Finding(
            "Device", "warn", "emulated MI300X, though /dev/kfd is here: torch sees no GPU", repair
        )
    return Finding("Device", "ok", "emulated MI300X (gfx942); torch sees no GPU")


def check_kfd(exists: bool, usable: bool) -> Finding:
    """The rights on AMD's compute device /dev/kfd."""
    if exists and not usable:
        repair = "sudo usermod -aG render,video $USER, then log in again (docker: --group-add render)"
        return Finding("/dev/kfd", "warn", "no right to use it", repair)
    return Finding("/dev/kfd", "ok", "usable" if exists else "absent: no AMD compute driver here")


def check_rocm(folder_exists: bool, rocminfo: str | None) -> Finding:
    """ROCm's programs, where ROCm is installed, are on PATH; `rocminfo` is its path or None."""
    if folder_exists and rocminfo is None:
        return Finding("ROCm", "warn", "/opt/rocm is off PATH", 'export PATH="/opt/rocm/bin:$PATH"')
    return Finding("ROCm", "ok", rocminfo or "absent: not needed for the emulated chip")


def check_room(name: str, amount_bytes: int, enough_gib: float, repair: str) -> Finding:
    """At least `enough_gib` GiB of memory or disk."""
    state = "ok" if amount_bytes >= enough_gib * GIB else "warn"
    return Finding(name, state, f"{amount_bytes / GIB:.1f} GiB", "" if state == "ok" else repair)


def check_cache(folder: Path, writable: bool) -> Finding:
    """Triton can write its cache."""
    if writable:
        return Finding("Triton's cache", "ok", str(folder))
    return Finding(
        "Triton's cache", "fail", f"{folder} can't be written", 'export TRITON_CACHE_DIR="$(mktemp -d)"'
    )


def check_packages(missing: list[str]) -> Finding:
    """What executes and draws the notebooks is installed."""
    if missing:
        return Finding(
            "Notebook tools", "fail", f"missing: {', '.join(missing)}", f"pip install {' '.join(missing)}"
        )
    return Finding(
        "Notebook tools", "ok", ", ".join(f"{n} {version(n)}" for n in ("jupyterlab", "papermill"))
    )


def check_kernel(interpreter: str | None, here: str) -> Finding:
    """Jupyter's kernel "python3" starts this interpreter; otherwise a notebook sees other packages."""
    repair = f"{here} -m ipykernel install --sys-prefix"
    if interpreter is None:
        return Finding("Jupyter kernel", "fail", "no kernel named python3", repair)
    if Path(interpreter).parent != Path(here).parent:  # python and python3 of one folder are one
        return Finding("Jupyter kernel", "fail", f"python3 starts {interpreter}, not {here}", repair)
    return Finding("Jupyter kernel", "ok", f"python3 starts {here}")


def check_launch() -> Finding:
    """A small kernel runs and is right: on the GPU, or on the emulated chip."""
    from labkit.trial import trial_launch

    with contextlib.redirect_stdout(io.StringIO()):
        return Finding("Trial launch", "ok", trial_launch())


def _module_version(name: str) -> str | None:
    if find_spec(name) is None:
        return None
    return __import__(name).__version__


def _checks() -> list[tuple[str, Callable[[], Finding]]]:
    kfd, shm = Path("/dev/kfd"), Path("/dev/shm")
    cache = machine.triton_cache()
    wanted = machine.wanted_triton()
    return [
        ("System", lambda: check_platform(platform.system(), platform.machine())),
        ("Python", lambda: check_python(sys.version_info[:2])),
        ("torch", lambda: check_torch(_module_version("torch"))),
        ("Triton", lambda: check_triton(_module_version("triton"), wanted)),
        ("Triton's owner", lambda: check_triton_owner(machine.owners_of("triton"), wanted)),
        ("Device", lambda: check_device(machine.find_gpu(), kfd.exists())),
        ("Driver", lambda: Finding("Driver", "ok", machine.driver_version() or "absent: no GPU driver here")),
        ("/dev/kfd", lambda: check_kfd(kfd.exists(), machine.is_usable(kfd))),
        ("ROCm", lambda: check_rocm(Path("/opt/rocm").exists(), shutil.which("rocminfo"))),
        (
            "Memory",
            lambda: check_room(
                "Memory", machine.memory_bytes(), 4, "close programs, or raise the container's limit"
            ),
        ),
        ("Disk", lambda: check_room("Disk", machine.free_bytes(cache), 2, "make clean, or remove old files")),
        (
            "/dev/shm",
            lambda: check_room("/dev/shm", machine.free_bytes(shm), 0.1, "docker run --shm-size 8G"),
        ),
        ("Triton's cache", lambda: check_cache(cache, machine.is_writable(cache))),
        ("Notebook tools", lambda: check_packages([n for n in NOTEBOOK_PACKAGES if find_spec(n) is None])),
        ("Jupyter kernel", lambda: check_kernel(machine.kernel_interpreter(), sys.executable)),
        ("Trial launch", check_launch),
    ]


def run_check(name: str, check: Callable[[], Finding]) -> Finding:
    """Run one check; a check that breaks is a finding, too, and the others still run."""
    try:
        return check()
    except Exception as problem:  # a broken torch can raise anything, OSError and ImportError among them
        lines = f"{type(problem).__name__}: {problem}".splitlines()
        return Finding(name, "fail", lines[0], "repair what stands above; if nothing does: make setup")


def examine() -> list[Finding]:
    """Look at this machine; the last finding is a kernel that was really launched."""
    return [run_check(name, check) for name, check in _checks()]


def print_findings(findings: list[Finding]) -> None:
    """Print one line a finding, with its repair below, and the sum."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    styles = {"ok": "green", "warn": "yellow", "fail": "bold red"}
    for finding in findings:
        console.print(Text(f"{finding.state:5}", styles[finding.state]) + f"{finding.name:16}{finding.found}")
        if finding.repair:
            console.print(f"{'':5}{'':16}repair: {finding.repair}", markup=False)
    failed = sum(finding.state == "fail" for finding in findings)
    console.print(f"{failed} problems to repair first." if failed else "The notebooks can run here.")
