"""Test Triton kernels on an emulated MI300X: `pytest -p labkit.pytest_plugin`.

Each test starts on an emulated chip, whatever the test before it made current. A fault fails the test whose
kernel made it, with one sentence in place of a traceback through Triton. After each test Triton has the
driver that it had before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import labkit
from labkit.errors import LabkitError

if TYPE_CHECKING:
    import torch

    from labkit.emulator.launch import Launch
    from labkit.runtime import Device


@dataclass(frozen=True, slots=True)
class EmulatedChip:
    """What the fixture mi300x gives: the device, and the launches that the test has made so far."""

    device: Device
    launches: list[Launch]

    @property
    def torch_device(self) -> torch.device:
        """Where a kernel's tensors must be."""
        return self.device.torch_device


@pytest.fixture(autouse=True)
def mi300x() -> Iterator[EmulatedChip]:
    """An emulated MI300X that is current for one test."""
    # Imported late, since it loads Triton; it puts back the driver of before, and none where there was none.
    from labkit.compiler.triton_api import active_driver

    with active_driver(None):
        device = labkit.start("MI300X", quiet=True)
        with labkit.record() as launches:
            yield EmulatedChip(device, launches)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    """Show labkit's message and the test's own line, not the frames between."""
    report = yield
    if call.excinfo is not None and call.excinfo.errisinstance(LabkitError):
        error = call.excinfo.value
        own = next((entry for entry in reversed(call.excinfo.traceback) if entry.path == item.path), None)
        where = f"{item.path.name}:{own.lineno + 1}: " if own is not None else ""
        report.longrepr = f"{where}{type(error).__name__}: {error}"
    return report
