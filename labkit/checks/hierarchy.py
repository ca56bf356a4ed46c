"""Exercises of notebook 01: from one thread to the whole GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from labkit.checks.exercise import Exercise, Goal, Mistake
from labkit.checks.trial import Outcome, Trial, blank
from labkit.errors import MemoryFault

_BLOCK = 1024
_POISON = -777.0


def _add_trial(n: int, device: torch.device, random: np.random.Generator) -> Trial:
    x, y = (random.standard_normal(n, dtype=np.float32) for _ in range(2))
    out = blank(n, torch.float32, device, _POISON)
    inputs = [torch.from_numpy(values).to(device) for values in (x, y)]
    return Trial(
        label=f"n = {n}",
        grid=(-(-n // _BLOCK),),
        arguments=(*inputs, out, n),
        options={"BLOCK": _BLOCK},
        output=out,
        expected=x.astype(np.float64) + y.astype(np.float64),
        poison=_POISON,
        # One fp32 addition rounds once: half a unit of 2^-23, and near zero as much of the inputs.
        rtol=2.0**-23,
        atol=2.0**-22,
        # Where n is no multiple of 4, lanes at the end have unlike masks, and Triton splits every load.
        needed_bytes=8 * n if n % 16 == 0 else 0,
    )


def _add_trials(device: torch.device, random: np.random.Generator) -> list[Trial]:
    ragged = 2 * int(random.integers(700, 2500)) + 1
    # A multiple of 16, never of 1024.
    aligned = 1024 * int(random.integers(2, 5)) + 16 * int(random.integers(1, 63))
    return [_add_trial(n, device, random) for n in (5, _BLOCK, ragged, aligned)]


def _loads(outcome: Outcome) -> Any:
    """The counted loads of a launch to which the goal applies, or None."""
    counters = outcome.launch.counters if outcome.launch is not None else None
    if counters is None or outcome.trial.needed_bytes == 0:
        return None
    return counters.memory[counters.memory["kind"] == "load"]


def _width(_: Any, outcome: Outcome) -> tuple[str, bool] | None:
    loads = _loads(outcome)
    if loads is None:
        return None
    widths = sorted(set(loads["bytes_per_lane"].astype(int)))
    return ", ".join(map(str, widths)) + " bytes a lane", widths == [16]


def _bytes_loaded(_: Any, outcome: Outcome) -> tuple[str, bool] | None:
    loads = _loads(outcome)
    if loads is None:
        return None
    loaded = int(loads["bytes_requested"].sum())
    return f"{loaded:,} of {outcome.trial.needed_bytes:,} bytes", loaded <= outcome.trial.needed_bytes


def _is_fault(outcome: Outcome, instruction: str) -> bool:
    return isinstance(outcome.error, MemoryFault) and instruction in str(outcome.error)


def _past_the_end(outcome: Outcome) -> int:
    """How many elements behind the result were written."""
    return int(outcome.overwritten.sum())


def _only_first_block(outcome: Outcome) -> bool:
    return outcome.error is None and outcome.first >= _BLOCK and bool(outcome.untouched[outcome.first])


masked_tail = Exercise(
    title="Mask the tail",
    asked="out = x + y for any n: kernel(x_ptr, y_ptr, out_ptr, n, BLOCK), one block of BLOCK elements a "
    "program, and no lane may touch memory behind element n - 1.",
    trials=_add_trials,
    goals=(
        Goal("width of the loads (counted)", "16 bytes a lane", _width),
        Goal("bytes loaded (counted)", "each element once", _bytes_loaded),
    ),
    mistakes=(
        Mistake(
            "a load reads behind the end of its vector: give both loads mask=offsets < n.",
            lambda o: _is_fault(o, "_load"),
        ),
        Mistake(
            "the mask lets one lane too many through: the last offset is n - 1, so write <, not <=.",
            lambda o: o.error is None and _past_the_end(o) == 1 and o.wrong.sum() == 1,
        ),
        Mistake(
            "the store writes behind the end of the result: it needs the mask as well.",
            lambda o: _is_fault(o, "_store") or (o.error is None and _past_the_end(o) > 0),
        ),
        Mistake(
            "only the first block was written: every program must start at tl.program_id(0) * BLOCK.",
            _only_first_block,
        ),
        Mistake(
            "the mask leaves out elements at the end that belong to the vector.",
            lambda o: o.error is None and o.untouched.any() and bool(o.untouched[o.trial.expected.size - 1]),
        ),
        Mistake(
            "every element was written, but with other values: look at what you add.",
            lambda o: o.error is None and not o.untouched.any(),
        ),
    ),
    goal_mistakes=(
        Mistake(
            "the elements come one by one. Triton joins four into a load of 16 bytes if they are neighbours "
            "and share one mask. It must see so: offsets = program_id * BLOCK + arange, "
            "mask = offsets < n. A modulo, a stride or n - 1 in their place hides it.",
            lambda o: (_loads(o)["bytes_per_lane"] < 16).any(),
        ),
        Mistake(
            "some elements are loaded more than once: keep the first value in a variable.",
            lambda o: _loads(o)["bytes_requested"].sum() > o.trial.needed_bytes,
        ),
    ),
    hints=(
        "The last program owns BLOCK offsets, but the vector may end before them.",
        "Compare the offsets with n; tl.load and tl.store take the comparison as mask=.",
        "offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), mask = offsets < n, and mask=mask in both "
        "loads and in the store.",
    ),
)
