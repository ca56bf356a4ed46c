"""Exercises on FP8 numbers."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import torch

from labkit.checks.exercise import Exercise
from labkit.checks.task import Mistake
from labkit.checks.trial import Outcome, Trial, blank
from labkit.kernels.fp8 import E4M3FN, E4M3FNUZ, Fp8Format, fp8_format

_BLOCK = 1024
# Both formats hold it exactly, and few results come near it.
_POISON = -0.01171875
_NUMPY = {"e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "e4m3fn": ml_dtypes.float8_e4m3fn}
_SPECIAL = np.array([np.nan, np.inf, -np.inf, 1e4, -1e4, 0.0, 1e-30, 2.0**-9], np.float32)


def _cast_trial(
    n: int, exponent: int, fp8: Fp8Format, device: torch.device, random: np.random.Generator
) -> Trial:
    # A power of two divides exactly, so that a right answer is equal to the last bit.
    scale = 2.0**exponent
    x = (fp8.largest * scale * random.standard_normal(n)).astype(np.float32)
    x[: min(n, _SPECIAL.size)] = _SPECIAL[: min(n, _SPECIAL.size)]
    exact = np.clip(x.astype(np.float64) / scale, -fp8.largest, fp8.largest)
    out = blank(n, fp8.torch_dtype, device, _POISON)
    return Trial(
        label=f"n = {n}, {fp8.name} with its largest value {fp8.largest:g}, scale {scale:g}",
        grid=(-(-n // _BLOCK),),
        arguments=(torch.from_numpy(x).to(device), torch.tensor([scale], device=device), out, n),
        options={"LARGEST": fp8.largest, "BLOCK": _BLOCK},
        output=out,
        expected=exact.astype(_NUMPY[fp8.name]).astype(np.float64),
        poison=_POISON,
    )


def _cast_trials(device: torch.device, random: np.random.Generator) -> list[Trial]:
    # An AMD chip casts to the OCP format too, in software, so both limits are tried where they differ.
    formats = list(dict.fromkeys([fp8_format(), E4M3FN]))
    sizes = (3, _BLOCK, 2 * int(random.integers(600, 1500)) + 1)
    # A scale below 1 hides a clamp in the wrong place and one above 1 shows it, so each format meets both.
    exponents = random.permuted([random.integers(-4, -1), random.integers(2, 4)])
    cases = list(zip(sizes, (*exponents[:1], *exponents), strict=True))
    return [_cast_trial(n, int(power), fp8, device, random) for fp8 in formats for n, power in cases]


def _looks_like(outcome: Outcome, wrong_way: Callable[[np.ndarray, float, float], np.ndarray]) -> bool:
    """Whether every finite result is that of `wrong_way`(x, scale, largest), to within one FP8 rounding."""
    x, scale = (outcome.trial.arguments[i].cpu().numpy().astype(np.float64) for i in (0, 1))
    told = wrong_way(x, float(scale[0]), float(outcome.trial.options["LARGEST"]))
    got = outcome.got
    both = np.isfinite(got) & np.isfinite(told)
    return bool(np.isclose(got, told, rtol=2.0**-4, atol=2.0**-9)[both].all())


def _nan_lost(outcome: Outcome) -> bool:
    lost = np.isnan(outcome.expected) & ~np.isnan(outcome.got)
    return bool(lost.any()) and bool((outcome.wrong == lost).all())


def _nan_made(outcome: Outcome) -> bool:
    return bool((np.isnan(outcome.got) & ~np.isnan(outcome.expected)).any())


def _multiplied(x: np.ndarray, scale: float, largest: float) -> np.ndarray:
    return np.clip(x * scale, -largest, largest)


def _clamped_first(x: np.ndarray, scale: float, largest: float) -> np.ndarray:
    return np.clip(np.clip(x, -largest, largest) / scale, -largest, largest)


def _smaller_limit(x: np.ndarray, scale: float, largest: float) -> np.ndarray:
    return np.clip(x / scale, -E4M3FNUZ.largest, E4M3FNUZ.largest)


saturate = Exercise(
    notebook="03_fused_kernels",
    title="Saturate rightly",
    asked="out = fp8(x / scale): kernel(x_ptr, scale_ptr, out_ptr, n, LARGEST, BLOCK). LARGEST is the "
    "largest value of the result's format; what lies beyond it, infinity included, becomes LARGEST with the "
    "same sign. NaN stays NaN.",
    trials=_cast_trials,
    mistakes=(
        Mistake(
            "a lane behind the end read or wrote: pass mask=offsets < n to the load and to the store.",
            lambda o: o.fault is not None,
        ),
        Mistake(
            "a value beyond the format's range became NaN: clamp to -LARGEST and LARGEST before the cast, "
            "and without a division, since infinity / infinity is NaN.",
            _nan_made,
        ),
        Mistake(
            "the clamp swallowed NaN: tl.clamp, tl.minimum and tl.maximum drop it unless you pass "
            "propagate_nan=tl.PropagateNan.ALL.",
            _nan_lost,
        ),
        Mistake(
            "some elements were never written: the mask or the offsets leave them out.",
            # All that is wrong, since a wrong value can be the poison by chance in a format of 256 values.
            lambda o: bool(o.untouched.any()) and bool((o.untouched == o.wrong).all()),
        ),
        Mistake(
            "the value is multiplied by scale; FP8 kernels divide by it.",
            lambda o: _looks_like(o, _multiplied),
        ),
        Mistake(
            "x is clamped before the division; clamp x / scale, which must fit.",
            lambda o: _looks_like(o, _clamped_first),
        ),
        Mistake(
            "240 is the limit of MI300X's e4m3fnuz; this result's format reaches 448. Use LARGEST.",
            lambda o: _looks_like(o, _smaller_limit),
        ),
    ),
    hints=(
        "Three steps in this order: divide, limit, cast.",
        "tl.clamp(y, -LARGEST, LARGEST) limits; what does it do with NaN?",
        "tl.clamp(y, -LARGEST, LARGEST, propagate_nan=tl.PropagateNan.ALL).to(out_ptr.dtype.element_ty)",
    ),
)
