"""v_trig_preop_f64: 2/pi, 53 bits at a time, with which sin and cos of large float64 numbers are reduced.

CDNA 3 ISA guide, V_TRIG_PREOP_F64. Its text keeps 1201 bits of 2/pi, shifts them left and takes "the whole
part": read here as the 53 bits that follow the first `shift` ones, which alone makes its scale right.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from labkit.emulator.vector import vector

_BITS = 1201  # of 2/pi that the chip holds


@cache
def _two_over_pi() -> int:
    """The first _BITS bits of the fraction of 2/pi, by Machin's formula for pi."""
    one = 1 << (2 * _BITS + 64)
    pi = 4 * (4 * _arctangent_of_inverse(5, one) - _arctangent_of_inverse(239, one))
    return (2 * one << _BITS) // pi


def _arctangent_of_inverse(x: int, one: int) -> int:
    total, power, divisor = 0, one // x, 1
    while power:
        total += power // divisor if divisor % 4 == 1 else -(power // divisor)
        power, divisor = power // x**2, divisor + 2
    return total


def _segment(shift: int, large: bool) -> float:
    """53 bits of 2/pi after the first `shift`, in their place; 2**128 times that for a large argument."""
    bits = (_two_over_pi() << shift) >> (_BITS - 53) & (1 << 53) - 1
    scale = -53 - shift + 128 * large
    lost = max(-1074 - scale, 0)  # below the smallest denormal; the guide rounds toward zero
    return math.ldexp(bits >> lost, scale + lost)


@vector("v_trig_preop_f64", "f64 u32 -> f64")
def _segment_of_two_over_pi(a: np.ndarray, number: np.ndarray) -> np.ndarray:
    exponent = (a.view(np.uint64) >> np.uint64(52) & np.uint64(0x7FF)).astype(np.int64)
    shift = 53 * (number & np.uint32(31)).astype(np.int64) + np.maximum(exponent - 1077, 0)
    # Few different ones: an exponent and a number each.
    keys, which = np.unique(2 * shift + (exponent >= 1968), return_inverse=True)
    values = np.array([_segment(int(key) >> 1, bool(key & 1)) for key in keys])
    return values[which].reshape(shift.shape)
