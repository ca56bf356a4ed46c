"""What the kernels must give: float64 arithmetic in NumPy, cast by ml_dtypes; neither labkit nor torch."""

import ml_dtypes
import numpy as np
import torch

NUMPY = {torch.float16: np.float16, torch.bfloat16: ml_dtypes.bfloat16, torch.float32: np.float32}
FP8 = {"e4m3fnuz": (ml_dtypes.float8_e4m3fnuz, 240.0), "e4m3fn": (ml_dtypes.float8_e4m3fn, 448.0)}


def to_numpy(tensor):
    """The tensor's values as the NumPy type of the same format, bit for bit."""
    if tensor.dtype in (torch.bfloat16, torch.float8_e4m3fnuz, torch.float8_e4m3fn):
        bits = tensor.contiguous().view(torch.uint8 if tensor.element_size() == 1 else torch.int16).numpy()
        name = {torch.bfloat16: ml_dtypes.bfloat16, torch.float8_e4m3fnuz: ml_dtypes.float8_e4m3fnuz}
        return bits.view(name.get(tensor.dtype, ml_dtypes.float8_e4m3fn))
    return tensor.numpy()


def cast_fp8(exact, name):
    """Clamp float64 `exact` to the format's range, then round to nearest even; NaN stays NaN."""
    dtype, largest = FP8[name]
    return np.clip(exact, -largest, largest).astype(dtype)


def same(got, wanted):
    """Where two arrays of one float format are bit-equal, or both NaN."""
    bits = f"u{got.dtype.itemsize}"
    both_nan = np.isnan(got.astype(np.float32)) & np.isnan(wanted.astype(np.float32))
    return (got.view(bits) == wanted.view(bits)) | both_nan


def assert_fp8(got, exact, name, relative):
    """`got` is the cast of `exact`, or its neighbour where a midpoint lies within `relative` of `exact`."""
    wanted = cast_fp8(exact, name)
    fine = same(got, wanted)
    for factor in (1 - relative, 1 + relative):
        fine |= same(got, cast_fp8(exact * factor, name))
    if not fine.all():
        where = tuple(int(i) for i in np.argwhere(~fine)[0])
        raise AssertionError(
            f"{(~fine).sum()} of {fine.size} wrong; first at {where}: exact {exact[where]!r}, "
            f"expected {wanted[where]!r}, got {got[where]!r}"
        )


def assert_rounded(got, exact, relative):
    """`got`, a 16- or 32-bit float array, is `exact` rounded to its format, with `relative` to spare."""
    with np.errstate(over="ignore"):
        low, high = sorted_pair(exact * (1 - relative), exact * (1 + relative))
        fine = (got.astype(np.float64) >= low.astype(got.dtype).astype(np.float64)) & (
            got.astype(np.float64) <= high.astype(got.dtype).astype(np.float64)
        )
    fine |= np.isnan(got.astype(np.float64)) & np.isnan(exact)
    where = tuple(int(i) for i in np.argwhere(~fine)[0]) if not fine.all() else ()
    assert fine.all(), f"{(~fine).sum()} wrong; first at {where}: exact {exact[where]!r}, got {got[where]!r}"


def sorted_pair(one, other):
    """The smaller and the larger of two arrays, element by element."""
    return np.minimum(one, other), np.maximum(one, other)


def residual_sum(x, r, fp16_saturates):
    """x + r rounded once to their format. AMD's FP16_OVFL mode keeps finite fp16 sums finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = (x.astype(np.float64) + r.astype(np.float64)).astype(x.dtype)
        if fp16_saturates and x.dtype == np.float16:
            overflowed = np.isinf(total) & np.isfinite(x) & np.isfinite(r)
            total = np.where(overflowed, np.copysign(np.float16(65504), total), total)
    return total


def rms_norm(total, weight, eps):
    """RMSNorm of the rows of `total` in float64."""
    values = total.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        variance = np.mean(values**2, axis=-1, keepdims=True)
        return values / np.sqrt(variance + eps) * weight.astype(np.float64)


def swiglu(x):
    """silu(gate) * up in float64; the gate is the first half of the columns."""
    gate, up = np.split(x.astype(np.float64), 2, axis=-1)
    with np.errstate(invalid="ignore", over="ignore"):
        return gate / (1 + np.exp(-gate)) * up
