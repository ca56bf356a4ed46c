"""One launch of an answer: what goes in, what must come out, and what came."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from triton import JITFunction

    from labkit.emulator.faults import Finding
    from labkit.emulator.launch import Launch

# A check should answer within seconds, also to a kernel that never ends; the exercises need far fewer.
_INSTRUCTIONS = 200_000


@dataclass(frozen=True)
class Trial:
    """A launch to try.

    label: what is special about it, as "n = 1003". grid, arguments, options: those of the launch.
    output: the one argument that the kernel writes. It was filled with `poison` before. `expected`, float64,
    has as many elements, and holds `poison` where nothing may be written. rtol, atol: how far off a value may
    be. judged: whether the goals apply to this launch. floor_bytes: what its loads and stores must move at
    least, for a goal that counts bytes.
    """

    label: str
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    output: torch.Tensor
    expected: np.ndarray
    poison: float
    options: dict[str, Any] = field(default_factory=dict)
    rtol: float = 0.0
    atol: float = 0.0
    judged: bool = True
    floor_bytes: int = 0


@dataclass(frozen=True)
class Outcome:
    """What one trial gave. `error` is the exception that ended it, or None; `wrong` marks wrong elements.

    `launch` is None where the kernel did not compile.
    """

    trial: Trial
    error: Exception | None
    got: np.ndarray
    wrong: np.ndarray
    launch: Launch | None = None

    @property
    def expected(self) -> np.ndarray:
        """What had to come, flat as `got`."""
        return self.trial.expected.ravel()

    @property
    def fault(self) -> Finding | None:
        """The first finding that fails an answer."""
        found = self.launch.faults if self.launch is not None else []
        return next((finding for finding in found if not finding.soft), None)

    @property
    def remarks(self) -> list[Finding]:
        """Findings that may be meant: told, and no reason to fail."""
        return [finding for finding in self.launch.faults if finding.soft] if self.launch is not None else []

    @property
    def first(self) -> int:
        """The flat index of the first wrong element."""
        return int(np.argmax(self.wrong))

    @property
    def untouched(self) -> np.ndarray:
        """Elements that were to be written and still hold the poison."""
        return self.wrong & (self.got == self.trial.poison)

    @property
    def overwritten(self) -> np.ndarray:
        """Elements that were to keep the poison and don't."""
        return self.wrong & (self.expected == self.trial.poison)

    def borrowed(self) -> bool:
        """Whether a part of the kernel comes from labkit's own kernels."""
        import labkit.kernels

        assert self.launch is not None
        # The IR says of each operation in which file it was written.
        return labkit.kernels.__path__[0] in self.launch.compiled.stages["ttir"]

    def written(self) -> dict[str, int]:
        """Parameter -> how many different bytes of its tensor the machine code wrote."""
        assert self.launch is not None
        table = self.launch.counters.tensors
        return dict(zip(table["tensor"], table["bytes_written"].astype(int), strict=True))


def blank(count: int, dtype: torch.dtype, device: torch.device, poison: float) -> torch.Tensor:
    """A result of `count` elements, all filled with `poison`, which fits `dtype`."""
    return torch.full((count,), poison, dtype=torch.float32).to(dtype).to(device)


@contextmanager
def emulated_chip() -> Iterator[None]:
    """Inside the block launches run on an emulated MI300X that counts and reports, whatever was started.

    Hooks that others set for launches are left out, since a hook in Python could write the result.
    """
    from triton import knobs

    import labkit
    from labkit.compiler.triton_api import active_driver

    with active_driver(None), knobs.runtime.scope():
        labkit.start("MI300X", faults="report", quiet=True)
        for name in ("launch_enter_hook", "launch_exit_hook"):
            setattr(knobs.runtime, name, type(getattr(knobs.runtime, name))())  # an empty chain
        yield


def made_anew(answer: JITFunction) -> JITFunction:
    """The kernel made of the same source once more: without hooks, and with Triton's own launch."""
    from triton import JITFunction

    return JITFunction(
        answer.fn,
        do_not_specialize=answer.do_not_specialize,
        do_not_specialize_on_alignment=answer.do_not_specialize_on_alignment,
        noinline=answer.noinline,
    )


def run_trial(kernel: JITFunction, trial: Trial) -> Outcome:
    """Launch `kernel` as `trial` says and compare. Catches whatever the launch raises."""
    import labkit
    from labkit.emulator.machine import limit_instructions

    error = None
    with labkit.record() as launches, limit_instructions(_INSTRUCTIONS):
        try:
            kernel[trial.grid](*trial.arguments, **trial.options)
        except Exception as raised:  # an exception of the learner's kernel is an answer to explain
            error = _about_parameters(kernel, trial) or raised
    got = trial.output.cpu().to(torch.float64).numpy().ravel()
    wrong = ~np.isclose(got, trial.expected.ravel(), rtol=trial.rtol, atol=trial.atol, equal_nan=True)
    return Outcome(trial, error, got, wrong, launches[-1] if launches else None)


def _about_parameters(kernel: JITFunction, trial: Trial) -> TypeError | None:
    """In place of what Triton says of its own binding function, where the arguments don't fit."""
    try:
        inspect.signature(kernel.fn).bind(*trial.arguments, **trial.options)
    except TypeError:
        taken = ", ".join(kernel.arg_names)
        given = f"{len(trial.arguments)} arguments and " + ", ".join(trial.options)
        return TypeError(f"the kernel takes ({taken}), but it is launched with {given}")
    return None
