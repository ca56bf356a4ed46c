"""Exercises on layouts: who owns which element, and how wide its loads are."""

from __future__ import annotations

import numpy as np
import torch

from labkit.checks.exercise import Exercise
from labkit.checks.goals import Goal
from labkit.checks.task import Mistake
from labkit.checks.trial import Outcome, Trial, blank

_BLOCK = 1024
_POISON = -777.0
_UNIT = 16


def _rows_trial(rows: int, device: torch.device, random: np.random.Generator) -> Trial:
    """`rows` rows of unlike length in one pool, each starting at a multiple of 16 elements."""
    lengths = _UNIT * random.integers(1, _BLOCK // _UNIT, rows, dtype=np.int32)
    lengths[random.integers(rows)] = _UNIT
    gaps = _UNIT * (2 * random.integers(0, 3, rows, dtype=np.int32) + 1)
    starts = np.concatenate([[0], np.cumsum(lengths + gaps)[:-1]]).astype(np.int32)
    pool = random.standard_normal(int(starts[-1] + lengths[-1]), dtype=np.float32)
    expected = np.full((rows, _BLOCK), _POISON)
    for row, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        expected[row, :length] = 2.0 * pool[start : start + length]
    out = blank(rows * _BLOCK, torch.float32, device, _POISON)
    inputs = [torch.from_numpy(values).to(device) for values in (pool, starts, lengths)]
    return Trial(
        label=f"rows of {', '.join(map(str, lengths))} elements",
        grid=(rows,),
        arguments=(*inputs, out),
        options={"BLOCK": _BLOCK},
        output=out,
        expected=expected,
        poison=_POISON,
    )


def _rows_trials(device: torch.device, random: np.random.Generator) -> list[Trial]:
    return [_rows_trial(rows, device, random) for rows in (1, 3, int(random.integers(5, 12)))]


def _instructions(outcome: Outcome, kind: str) -> list[str]:
    """The mnemonics of class `kind` in the machine code, in order."""
    table = outcome.launch.compiled.listing()
    return list(table.loc[table["class"] == kind, "mnemonic"])


def _wide_loads(outcome: Outcome) -> tuple[str, bool]:
    loads = _instructions(outcome, "VMEM load")
    counts = ", ".join(f"{loads.count(name)} {name}" for name in dict.fromkeys(loads)) or "no vector load"
    return counts, len(loads) == 1 and loads[0].endswith("_dwordx4")


def _stores_are_wide(outcome: Outcome) -> bool:
    """Whether a lane stores 16 bytes at once, which shows that the mask's step is known."""
    return all(name.endswith("_dwordx4") for name in _instructions(outcome, "VMEM store"))


wide_loads = Exercise(
    notebook="02_triton_pipeline",
    title="128-bit loads by a hint",
    asked="out[row, i] = 2 * pool[start + i] for i < length: kernel(pool_ptr, starts_ptr, lengths_ptr, "
    "out_ptr, BLOCK), one row a program. Every start and every length is a multiple of 16, which "
    "the compiler cannot know: tell it, until a lane fetches its four elements with one load.",
    trials=_rows_trials,
    goals=(Goal("vector loads in the gfx942 code", "1 load, a _dwordx4", _wide_loads),),
    mistakes=(
        Mistake(
            "a program reads outside the pool: is start + i masked with i < length, and start left unscaled?",
            lambda o: o.fault is not None,
        ),
        Mistake(
            "elements behind the end of a row were written. A hint about length may not replace the mask.",
            lambda o: bool(o.overwritten.any()),
        ),
        Mistake(
            "elements of a row were left out: the mask ends before length.",
            lambda o: bool(o.untouched.any()),
        ),
        Mistake(
            "a row was read from the wrong place. A hint must be true, and rounding may not move start: "
            "starts are multiples of 16, not of more.",
            lambda o: bool(o.wrong.any()),
        ),
    ),
    goal_mistakes=(
        Mistake(
            "the stores are wide and the loads are not: the compiler knows the step of length, but not that "
            "start is a multiple of 16.",
            _stores_are_wide,
        ),
        Mistake(
            "as far as the compiler knows, the mask i < length may end between two elements of one lane, so "
            "each element gets a load of its own: tell it that length is a multiple of 16, and start too.",
            lambda o: True,
        ),
    ),
    hints=(
        "Look at two values that come from memory: where the row starts, and where it ends.",
        "tl.multiple_of(value, 16) returns the value with a promise attached; use what it returns.",
        "start = tl.multiple_of(tl.load(starts_ptr + row), 16), and the same for length.",
    ),
)
