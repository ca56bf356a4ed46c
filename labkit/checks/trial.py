"""One launch of an answer: what goes in, what must come out, and what came."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from labkit.emulator.launch import Launch

# Elements behind the result that an answer must not touch.
GUARD = 64


@dataclass(frozen=True)
class Trial:
    """A launch to try.

    label: what is special about it, as "n = 1003". grid, arguments, options: those of the launch.
    output: the argument that the kernel fills. It was filled with `poison` before, and is longer than
    `expected`, float64, by some elements that must keep it. `expected` holds `poison` where nothing may
    be written. rtol, atol: how far a value may be off.
    needed_bytes: what the loads have to fetch, 0 where the counters' goals do not apply.
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
    needed_bytes: int = 0


@dataclass(frozen=True)
class Outcome:
    """What one trial gave. `error` is the exception that ended it, or None; `wrong` marks wrong elements."""

    trial: Trial
    error: Exception | None
    got: np.ndarray
    expected: np.ndarray
    wrong: np.ndarray
    launch: Launch | None = None

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


# A check should answer within seconds, also to a kernel that never ends; the exercises need far fewer.
_INSTRUCTIONS = 30_000


def blank(count: int, dtype: torch.dtype, device: torch.device, poison: float) -> torch.Tensor:
    """A result of `count` elements and its guard, all filled with `poison`, which fits `dtype`."""
    return torch.full((count + GUARD,), poison, dtype=torch.float32).to(dtype).to(device)


def run_trial(kernel: Any, trial: Trial) -> Outcome:
    """Launch `kernel` as `trial` says and compare. Catches whatever the launch raises."""
    import labkit
    from labkit.emulator.machine import limit_instructions

    try:
        with labkit.record() as launches, limit_instructions(_INSTRUCTIONS):
            kernel[trial.grid](*trial.arguments, **trial.options)
        got = trial.output.cpu().to(torch.float64).numpy()
    except Exception as raised:  # an exception of the learner's kernel is an answer to explain
        error = _about_parameters(kernel, trial) if "dynamic_func" in str(raised) else raised
        nothing = np.zeros(0)
        return Outcome(trial, error, nothing, nothing, nothing.astype(bool))
    flat = trial.expected.ravel()
    expected = np.concatenate([flat, np.full(got.size - flat.size, trial.poison)])
    wrong = ~np.isclose(got, expected, rtol=trial.rtol, atol=trial.atol, equal_nan=True)
    return Outcome(trial, None, got, expected, wrong, launches[-1] if launches else None)


def _about_parameters(kernel: Any, trial: Trial) -> TypeError:
    """In place of what Triton says of its own binding function when the arguments don't fit."""
    taken = ", ".join(getattr(kernel, "arg_names", ()))
    given = f"{len(trial.arguments)} arguments and " + ", ".join(trial.options)
    return TypeError(f"the kernel takes ({taken}), but it is launched with {given}")


def name_index(outcome: Outcome, index: int) -> str:
    """The element `index` in words: its place in the result, or how far behind the end it lies."""
    shape = outcome.trial.expected.shape
    size = int(np.prod(shape))
    if index >= size:
        return f"{index - size + 1} past the end of the result"
    place = np.unravel_index(index, shape)
    return f"index {int(place[0])}" if len(place) == 1 else f"index {tuple(int(i) for i in place)}"


def explain_error(error: Exception) -> tuple[tuple[str, str], ...]:
    """An exception as lines of a panel: what happened, and the learner's line where it is known."""
    located = _innermost(error, lambda e: getattr(getattr(e, "node", None), "lineno", None) is not None)
    if located is None:
        message = str(error).strip().splitlines()
        return (("what came", f"{type(error).__name__}: {message[0] if message else 'no message'}"),)
    reason = getattr(located, "error_message", None) or str(located.__cause__ or "")
    line = located.node.lineno
    source = (located.src or "").split("\n")
    code = source[line - 1].strip() if line <= len(source) else ""
    reason = reason.strip().splitlines()[0] if reason.strip() else "Triton cannot compile this line"
    return (
        ("what came", f"the kernel does not compile: {reason}"),
        ("your line", f"line {line} of the kernel: {code}"),
    )


def _innermost(error: BaseException, fits: Callable[[BaseException], bool]) -> Any:
    """The deepest exception in the chain of causes that `fits`, or None."""
    found, seen = None, error
    while seen is not None:
        found = seen if fits(seen) else found
        seen = seen.__cause__
    return found
