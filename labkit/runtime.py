"""Which device is here, and making one current: `labkit.start()`."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labkit.errors import EnvironmentProblem
from labkit.hardware import chip
from labkit.machine import find_gpu, triton_cache

if TYPE_CHECKING:
    import torch

# Releases whose driver protocol and pass names labkit reads; both ends are tested.
TRITON_OLDEST, TRITON_NEWEST = (3, 6), (3, 9)
EMULATED_CHIPS = ("MI300X", "MI355X")


@dataclass(frozen=True, slots=True)
class Device:
    """The device that launches run on.

    name: "MI300X", or a GPU's own name; arch: "gfx942", "sm_90"; emulated: it is not real, so its
    launches are counted and not timed.
    """

    name: str
    arch: str
    emulated: bool

    @property
    def torch_device(self) -> torch.device:
        """Where a launch's tensors must be: torch.device("cpu") on the emulated chip, else ("cuda")."""
        import torch

        return torch.device("cpu" if self.emulated else "cuda")

    def __str__(self) -> str:
        what = f"emulated {self.name}" if self.emulated else self.name
        return f"{what} ({self.arch})"


def start(
    device: str | None = None, *, faults: str = "raise", counters: bool = True, quiet: bool = False
) -> Device:
    """Make a device current for Triton launches and print one line about it.

    device: None takes the GPU that is here, else an emulated MI300X; "MI300X" or "MI355X" takes the
    emulated chip of that name. The environment variable LABKIT_DEVICE stands in for None.
    faults: what the emulated chip does where a kernel touches memory outside its tensors or misaligned, reads
    LDS that nothing wrote, lets waves race in LDS, or misses a wait: "raise" an error at the first, "report"
    them in labkit.last_launch().faults and go on, or "off", look for none. An access outside a view, but in
    its storage, is only listed there.
    counters: whether the emulated chip counts memory accesses, which costs some time; it always counts
    instructions.
    Raises EnvironmentProblem where Triton is missing, too old or too new, or cannot write its cache.
    """
    _check_triton()
    _check_cache()
    # 3.10 flips the default; the listings in the notebooks are those of a fused multiply-add.
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    wanted = device or os.environ.get("LABKIT_DEVICE") or None
    found = _real_device() if wanted is None else None
    current = found or _emulate(wanted or EMULATED_CHIPS[0], faults, counters)
    if not quiet:
        print(_line(current))
    return current


def _line(device: Device) -> str:
    import torch
    import triton

    versions = f"torch {torch.__version__}, triton {triton.__version__}"
    if device.emulated:
        return f"labkit: {device}: runs the machine code on this CPU, counts, does not time; {versions}"
    return f"labkit: {device}: a real GPU; {versions}"


def _real_device() -> Device | None:
    gpu = find_gpu()
    if gpu is None:
        return None
    from triton.runtime import driver

    driver.reset_active()
    return Device(gpu.name, gpu.arch, emulated=False)


def _emulate(name: str, faults: str, counters: bool) -> Device:
    if name not in EMULATED_CHIPS:
        raise EnvironmentProblem(
            f"labkit cannot emulate {name!r}: choose one of {', '.join(EMULATED_CHIPS)}, "
            "or none for the GPU that is here"
        )
    from labkit.emulator.driver import activate

    activate(name, faults, counters)
    return Device(name, chip(name).architecture, emulated=True)


def _check_triton() -> None:
    if os.environ.get("TRITON_INTERPRET") == "1":
        raise EnvironmentProblem(
            "TRITON_INTERPRET=1 is set, so Triton interprets kernels and compiles none: unset it and restart "
            "the kernel"
        )
    try:
        import torch  # noqa: F401
        import triton
    except ImportError as error:
        raise EnvironmentProblem(
            f"{error.name} is not installed. On a GPU image use the one that came with it; elsewhere run "
            "`make setup`, or pip install torch==2.13.0 triton==3.7.1"
        ) from None
    version = tuple(int(part) for part in triton.__version__.split(".")[:2])
    if not TRITON_OLDEST <= version <= TRITON_NEWEST:
        oldest, newest = (".".join(map(str, end)) for end in (TRITON_OLDEST, TRITON_NEWEST))
        raise EnvironmentProblem(
            f"triton {triton.__version__} is outside the range {oldest} to {newest} that labkit reads. "
            "Install triton 3.7.1 with torch 2.13.0, or a newer labkit."
        )


def _check_cache() -> None:
    """Triton needs a folder it can write; say so before a kernel fails in the middle of a lesson."""
    folder = triton_cache()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise EnvironmentProblem(
            f"Triton cannot write its cache folder {folder} ({error.strerror}). "
            "Set TRITON_CACHE_DIR to a folder that you can write, then restart the kernel."
        ) from None
