"""Facts about this machine, as plain values: which packages, which GPU, how much room."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class Gpu:
    """A GPU that torch sees: `arch` is "gfx942" or "sm_90", `vendor` "AMD" or "NVIDIA"."""

    vendor: str
    name: str
    arch: str


def gpu_arch(gcn_arch_name: str) -> str:
    """Return an AMD architecture without its feature flags: "gfx942:sramecc+:xnack-" is "gfx942"."""
    return gcn_arch_name.split(":")[0]


def find_gpu() -> Gpu | None:
    """Return the first GPU that torch sees. The arch decides, since the name can read "MI300X VF"."""
    import torch

    if not torch.cuda.is_available():
        return None
    properties = torch.cuda.get_device_properties(0)
    if torch.version.hip:
        return Gpu("AMD", properties.name, gpu_arch(properties.gcnArchName))
    return Gpu("NVIDIA", properties.name, f"sm_{properties.major}{properties.minor}")


def driver_version() -> str | None:
    """Return the kernel driver's version, "amdgpu 6.16.6" or "nvidia 580.95.05", or None."""
    for name in ("amdgpu", "nvidia"):
        folder = Path("/sys/module", name)
        if folder.is_dir():
            version = folder / "version"
            return (
                f"{name} {version.read_text().strip()}" if version.exists() else f"{name} of the Linux kernel"
            )
    return None


def owners_of(folder: str) -> dict[str, str]:
    """Return distribution -> version for every installed distribution with files in `folder`/.

    pip lets several own one folder: triton, pytorch-triton-rocm and triton-rocm all own triton/.
    """
    owners = {}
    for distribution in metadata.distributions():
        # An egg-info of a distribution's own image can lack the list of files.
        if any(file.parts[0] == folder for file in distribution.files or ()):
            owners[distribution.metadata["Name"]] = distribution.version
    return owners


def wanted_triton() -> str | None:
    """Return what the installed torch asks for, such as "triton==3.7.1", or None if nothing."""
    try:
        requirements = metadata.requires("torch") or []
    except metadata.PackageNotFoundError:
        return None
    asked = (line.split(";")[0].strip() for line in requirements)
    return next((line for line in asked if re.match(r"(pytorch-)?triton\b", line)), None)


def memory_bytes() -> int:
    """Return the memory that a process may use: the machine's, or a container's smaller limit."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in map(Path, _CGROUP_LIMITS):
        if path.exists() and (limit := path.read_text().strip()).isdigit():
            total = min(total, int(limit))
    return total


def free_bytes(folder: Path) -> int:
    """Return the free space of the file system that holds `folder`, which need not exist yet."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def triton_cache() -> Path:
    """Return Triton's cache folder, by the variables that Triton itself reads."""
    home = Path(os.environ.get("TRITON_HOME") or Path.home())
    return Path(os.environ.get("TRITON_CACHE_DIR") or home / ".triton" / "cache")


def is_writable(folder: Path) -> bool:
    """Return whether a file can be made in `folder`, or in the nearest folder above it that exists."""
    while not folder.exists():
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def is_usable(device: Path) -> bool:
    """Return whether this user may read and write a device file."""
    return os.access(device, os.R_OK | os.W_OK)


def kernel_interpreter() -> str | None:
    """Return the interpreter that the Jupyter kernel "python3" starts, or None without that kernel."""
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        start = KernelSpecManager().get_kernel_spec("python3").argv[0]
    except NoSuchKernel:
        return None
    # jupyter_client starts its own interpreter where a kernel names no path.
    return sys.executable if start in ("python", "python3") else start
