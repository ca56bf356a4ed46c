"""Exercises on a wave and what it loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from labkit.checks.exercise import Exercise
from labkit.checks.goals import bytes_at_floor, load_width
from labkit.checks.task import Mistake
from labkit.checks.trial import Outcome, Trial, blank

if TYPE_CHECKING:
    import pandas as pd

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
        judged=n % 16 == 0,
        floor_bytes=12 * n,
    )


def _add_trials(device: torch.device, random: np.random.Generator) -> list[Trial]:
    # At least three blocks, so that a block can be missing in the middle.
    ragged = 2 * int(random.integers(1100, 2500)) + 1
    # A multiple of 16, never of 1024.
    aligned = 1024 * int(random.integers(2, 5)) + 16 * int(random.integers(1, 63))
    return [_add_trial(n, device, random) for n in (5, _BLOCK, ragged, aligned)]


def _loads(outcome: Outcome) -> pd.DataFrame:
    memory = outcome.launch.counters.memory
    return memory[memory["kind"] == "load"]


def _fault_of(outcome: Outcome, instruction: str) -> bool:
    return outcome.fault is not None and instruction in outcome.fault.instruction


def _one_behind(outcome: Outcome) -> bool:
    """Whether the store reaches exactly one element behind the result."""
    output = outcome.trial.output
    end = output.data_ptr() + output.numel() * output.element_size()
    return _fault_of(outcome, "_store") and outcome.fault.address == end and outcome.fault.lanes == 1


def _only_first_block(outcome: Outcome) -> bool:
    return outcome.first == _BLOCK and bool(outcome.untouched[_BLOCK:].all())


def _gaps(outcome: Outcome) -> bool:
    """Whether elements are missing with later ones written."""
    missing = outcome.untouched
    return bool(missing.any()) and not missing[np.argmax(missing) :].all()


masked_tail = Exercise(
    notebook="01_gpu_hierarchy",
    title="Mask the tail",
    asked="out = x + y for any n: kernel(x_ptr, y_ptr, out_ptr, n, BLOCK), one block of BLOCK elements a "
    "program, and no lane may touch memory behind element n - 1.",
    trials=_add_trials,
    goals=(load_width(16), bytes_at_floor()),
    mistakes=(
        Mistake(
            "a load reads behind the end of its vector: give both loads mask=offsets < n.",
            lambda o: _fault_of(o, "_load"),
        ),
        Mistake(
            "the mask lets one lane too many through: the last offset is n - 1, so write <, not <=.",
            _one_behind,
        ),
        Mistake(
            "the store writes behind the end of the result: it needs the mask as well.",
            lambda o: _fault_of(o, "_store"),
        ),
        Mistake(
            "only the first block was written: every program must start at tl.program_id(0) * BLOCK.",
            _only_first_block,
        ),
        Mistake(
            "some elements in the middle were never written: neighbouring programs are BLOCK elements apart.",
            _gaps,
        ),
        Mistake(
            "the mask leaves out elements at the end that belong to the vector.",
            lambda o: bool(o.untouched[-1]),
        ),
        Mistake(
            "every element was written, but with other values: look at what you add.",
            lambda o: bool(o.wrong.any()),
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
            "some elements are stored more than once: write each result with one tl.store.",
            lambda o: _loads(o)["bytes_requested"].sum() <= 8 * o.expected.size,
        ),
        Mistake(
            "some elements are loaded more than once: keep the first value in a variable, and let no two "
            "programs work on the same elements.",
            lambda o: True,
        ),
    ),
    hints=(
        "The last program owns BLOCK offsets, but the vector may end before them.",
        "Compare the offsets with n; tl.load and tl.store take the comparison as mask=.",
        "offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), mask = offsets < n, and mask=mask in both "
        "loads and in the store.",
    ),
)
