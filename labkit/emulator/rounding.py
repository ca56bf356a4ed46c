"""Arithmetic that NumPy has no single operation for: fused multiply-add, FP8 casts, flushed denormals.

Each function takes arrays that broadcast and returns new ones. Results are correctly rounded; where the
chip is only accurate to about one unit in the last place (v_rcp, v_rsq, v_exp, v_log), so is the reader
told in the functions of vector_float.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import ml_dtypes
import numpy as np
import torch

_SMALLEST_NORMAL = {4: np.float32(2.0**-126), 2: np.float16(2.0**-14)}
# A float64 whose bits below float32's last bit are exactly one half of it.
_TIE_BITS, _TIE = np.uint64((1 << 29) - 1), np.uint64(1 << 28)


def fused_multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c with one rounding, for float32 or float16 operands of one type.

    The product is exact in float64 (24 + 24 bits), the sum is rounded to odd there, and the last
    rounding is then the only one that shows (53 >= 2 * 24 + 2 bits: Boldo and Melquiond, 2008).
    """
    dtype = np.result_type(a, b, c)
    product = np.multiply(a, b, dtype=np.float64)
    total = product + c
    if dtype == np.float16:
        return to_odd(product, c, total).astype(dtype)
    # Rounding twice differs from once only near a tie of the second rounding, or in denormals. A sum of 0 is
    # exact.
    bits = total.view(np.uint64) & _TIE_BITS
    doubtful = bits == _TIE
    small = np.abs(total) < 2.0**-125
    if small.any():
        doubtful |= small & (total != 0)
    result = total.astype(np.float32)
    if doubtful.any():
        at = np.nonzero(doubtful)
        c = np.broadcast_to(c, total.shape)
        result[at] = to_odd(product[at], c[at], total[at])
    return result


def to_odd(x: np.ndarray, y: np.ndarray, total: np.ndarray) -> np.ndarray:
    """x + y rounded to odd: where `total` = fl(x + y) is not exact, the neighbour whose last bit is 1."""
    error = _two_sum_error(x, y, total)
    even = (total.view(np.uint64) & np.uint64(1)) == 0
    nudged = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where((error != 0) & even & np.isfinite(total), nudged, total)


def _two_sum_error(x: np.ndarray, y: np.ndarray, total: np.ndarray) -> np.ndarray:
    """What fl(x + y) lost (Knuth's TwoSum)."""
    part = total - x
    return (x - (total - part)) + (y - part)


def fused_multiply_add64(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c with one rounding for float64 (Boldo and Melquiond's algorithm).

    Where its parts could underflow or overflow, the numbers go through Python's fractions, one by one.
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    high, low = _two_product(a, b)
    t_high = c + low
    t_low = _two_sum_error(c, low, t_high)
    v_high = high + t_high
    v_low = _two_sum_error(high, t_high, v_high)
    result = v_high + to_odd(t_low, v_low, t_low + v_low)
    plain = (a == 0) | (b == 0) | ~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c))
    result = np.where(plain, high + c, result)
    size, largest = np.abs(high), np.maximum(np.maximum(np.abs(a), np.abs(b)), np.abs(c))
    doubtful = ~plain & ~((size > 2.0**-900) & (size < 2.0**900) & (largest < 2.0**900))
    if doubtful.any():
        result[doubtful] = exact_multiply_add(a[doubtful], b[doubtful], c[doubtful])
    return result


def exact_multiply_add(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, power: np.ndarray | int = 0
) -> np.ndarray:
    """(a * b + c) * 2**power of finite float64 values with one rounding; one by one, so for few of them."""
    rows = zip(*(x.tolist() for x in np.broadcast_arrays(a, b, c, power)), strict=True)
    return np.array(
        [_nearest((Fraction(x) * Fraction(y) + Fraction(z)) * Fraction(2) ** n) for x, y, z, n in rows]
    )


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    product = a * b
    a_high, b_high = (x * 134217729.0 - (x * 134217729.0 - x) for x in (a, b))  # Dekker: 2^27 + 1
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def flush(x: np.ndarray) -> np.ndarray:
    """Denormals as zeros of their sign, as the transcendental units read and write float32."""
    small = np.abs(x) < _SMALLEST_NORMAL[x.dtype.itemsize]
    return np.where(small, np.copysign(x.dtype.type(0), x), x)


def to_float(x: np.ndarray) -> np.ndarray:
    """float16 -> float32, exact. PyTorch converts by the processor's own instruction, NumPy does not."""
    return torch.from_numpy(np.ascontiguousarray(x)).to(torch.float32).numpy().reshape(np.shape(x))


def to_half(x: np.ndarray, saturate: np.ndarray | bool = False) -> np.ndarray:
    """float32 -> float16, round to nearest even.

    saturate: MODE.FP16_OVFL, under which a finite value that overflows gives the largest half.
    """
    if np.any(saturate) and (large := np.abs(x) > 65504).any():
        large = large & np.isfinite(x) & saturate
        x = np.where(large, np.copysign(np.float32(65504), x), x)
    return torch.from_numpy(np.ascontiguousarray(x)).to(torch.float16).numpy().reshape(np.shape(x))


def fused_multiply_add_half(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, saturate: np.ndarray | bool = False
) -> np.ndarray:
    """a * b + c of float16 with one rounding; `saturate` as in to_half."""
    result = fused_multiply_add(a, b, c)
    if not np.any(saturate):
        return result
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    return np.where(np.isinf(result) & finite & saturate, np.copysign(np.float16(65504), result), result)


FP8_FORMATS = {
    # (target is gfx942: FNUZ, else OCP) -> the types that fp8 and bf8 instructions mean there.
    True: {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz},
    False: {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2},
}

# The values of the 16 codes of FP4 (E2M1).
FP4_VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def to_fp8(x: np.ndarray, dtype: type, saturate: np.ndarray | bool) -> np.ndarray:
    """float32 -> the bytes of an FP8 type, round to nearest even.

    saturate: values beyond the largest, infinities too, give the largest (MODE.FP16_OVFL); else NaN or
    infinity, as the type has them (CDNA 3 ISA guide, "FP16_OVFL rule").

    A table over the upper 16 bits, with all lower bits folded into the last of them ("sticky"), decides the
    same rounding as the whole value: FP8 keeps at most 3 of the 7 fraction bits that are left.
    """
    bits = x.view(np.uint32)
    key = bits >> np.uint32(16)
    key |= (bits & np.uint32(0xFFFF)) != 0
    if np.ndim(saturate) == 0:
        return fp8_bytes(dtype, bool(saturate))[key]
    return np.where(saturate, fp8_bytes(dtype, True)[key], fp8_bytes(dtype, False)[key])


@cache
def fp8_bytes(dtype: type, saturate: bool) -> np.ndarray:
    """to_fp8's table, uint8 [65536]."""
    values = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        # Odd keys stand for "this or a little more": any value inside the gap rounds alike.
        values = np.where(np.arange(1 << 16) & 1, np.nextafter(values, values * np.float32(2)), values)
        if saturate:
            top = np.float32(ml_dtypes.finfo(dtype).max)
            values = np.clip(values, -top, top)  # keeps NaN
        return values.astype(dtype).view(np.uint8)


@cache
def fp8_values(dtype: type) -> np.ndarray:
    """The float32 value of each of the 256 bytes of an FP8 type."""
    return np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
