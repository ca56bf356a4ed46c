"""labkit: how an AMD MI300X runs a kernel, shown by running one, with or without the chip.

Importing labkit is cheap: torch, triton and pandas load on the first call that needs them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public name -> the module that defines it, imported on first use.
_PUBLIC = {
    "start": "labkit.runtime",
    "last_launch": "labkit.emulator.launch",
    "record": "labkit.emulator.launch",
    "record_lines": "labkit.emulator.lines",
    "trace": "labkit.emulator.trace",
    "compile": "labkit.compiler",
}
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'labkit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
