"""The division sequence: v_div_scale, v_div_fmas, v_div_fixup around v_rcp (ISA guide, VOP3).

LLVM divides by scaling both operands into a safe range, refining v_rcp with fused multiply-adds, undoing
the scale and patching the special cases. The scaled range and its undoing must agree: where v_div_scale
raises its mask, v_div_fmas multiplies by 2^+s or 2^-s, by whether the scaled quotient is above 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labkit.emulator.rounding import (
    exact_multiply_add,
    fused_multiply_add,
    fused_multiply_add64,
    to_odd,
)
from labkit.emulator.vector import vector


@dataclass(frozen=True, slots=True)
class _Format:
    """Numbers of a floating-point type and of its division; exponents are biased."""

    signed: type
    fraction_bits: int
    exponent_mask: int
    scale: int  # the power of two that operands are moved by
    far_apart: int  # numerator's exponent above the denominator's by this: the quotient nears overflow
    tiny: int  # numerators up to this exponent lose bits in the refinement

    def exponent(self, x: np.ndarray) -> np.ndarray:
        field = x.view(self.signed) >> self.signed(self.fraction_bits)
        field &= self.signed(self.exponent_mask)
        return field


_F32 = _Format(np.int32, 23, 0xFF, 64, 96, 23)
_F64 = _Format(np.int64, 52, 0x7FF, 128, 768, 53)


def _scale(form: _Format) -> Callable:
    def div_scale(value: np.ndarray, denominator: np.ndarray, numerator: np.ndarray) -> tuple:
        value, denominator, numerator = np.broadcast_arrays(value, denominator, numerator)
        below, above = form.exponent(denominator), form.exponent(numerator)
        gap = above - below
        top = form.exponent_mask - 2
        plain = (below >= 1) & (below < top) & (above > form.tiny)
        plain &= (gap < form.far_apart) & (gap > 2 - form.exponent_mask // 2)
        if plain.all():
            return value, np.zeros(value.shape, bool)
        zero = (numerator == 0) | (denominator == 0)
        if (plain | zero).all():  # zeros are common, and v_div_fixup settles them
            return np.where(zero, value.dtype.type(np.nan), value), np.zeros(value.shape, bool)
        return _scale_slowly(form, value, denominator, numerator, gap)

    return div_scale


def _scale_slowly(
    form: _Format, value: np.ndarray, denominator: np.ndarray, numerator: np.ndarray, gap: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The ISA guide's cases, the first that holds decides."""
    below, above = form.exponent(denominator), form.exponent(numerator)
    zero = (denominator == 0) | (numerator == 0)
    far = gap >= form.far_apart
    denormal = below == 0
    small_reciprocal = below >= form.exponent_mask - 2
    small_quotient = gap < 2 - form.exponent_mask // 2
    is_denominator, is_numerator = value == denominator, value == numerator
    cases = [
        (zero, 0, False),
        (far, np.where(is_denominator, form.scale, 0), True),
        (denormal, form.scale, False),
        (small_reciprocal & small_quotient, np.where(is_denominator, -form.scale, 0), True),
        (small_reciprocal, -form.scale, False),
        (small_quotient, np.where(is_numerator, form.scale, 0), True),
        (above <= form.tiny, form.scale, False),
    ]
    conditions = [case[0] for case in cases]
    power = np.select(conditions, [np.broadcast_to(case[1], value.shape) for case in cases], 0)
    scaled = np.ldexp(value, power.astype(np.int32))
    raised = np.select(conditions, [np.full(value.shape, case[2]) for case in cases], False)
    return np.where(zero, value.dtype.type(np.nan), scaled), raised


vector("v_div_scale_f32", "f32 f32 f32 -> f32 mask")(_scale(_F32))
vector("v_div_scale_f64", "f64 f64 f64 -> f64 mask")(_scale(_F64))


@vector("v_div_fmas_f32", "f32 f32 f32 vcc -> f32")
def _fused_and_unscaled(a: np.ndarray, b: np.ndarray, c: np.ndarray, raised: np.ndarray) -> np.ndarray:
    result = fused_multiply_add(a, b, c)
    if not raised.any():
        return result
    # One rounding for the scaled result too: it can be a denormal. Rounding to odd in float64 keeps what
    # decides the last one, also for a quotient a hair beside a tie.
    product = np.multiply(a, b, dtype=np.float64)
    odd = to_odd(product, c, product + c)
    power = np.where(_F32.exponent(c) > 127, _F32.scale, -_F32.scale)
    return np.where(raised, np.ldexp(odd, power).astype(np.float32), result)


@vector("v_div_fmas_f64", "f64 f64 f64 vcc -> f64")
def _fused_and_unscaled64(a: np.ndarray, b: np.ndarray, c: np.ndarray, raised: np.ndarray) -> np.ndarray:
    result = fused_multiply_add64(a, b, c)
    raised = raised & np.isfinite(result)
    if raised.any():
        power = np.where(_F64.exponent(c) > 1023, _F64.scale, -_F64.scale)
        a, b, c, power = (np.broadcast_to(x, raised.shape)[raised] for x in (a, b, c, power))
        result[raised] = exact_multiply_add(a, b, c, power)
    return result


@vector("v_div_fixup_f32", "f32 f32 f32 -> f32")
@vector("v_div_fixup_f64", "f64 f64 f64 -> f64")
@vector("v_div_fixup_f16", "f16 f16 f16 -> h16")
def _fix_special_cases(quotient: np.ndarray, denominator: np.ndarray, numerator: np.ndarray) -> np.ndarray:
    negative = np.signbit(denominator) ^ np.signbit(numerator)
    result = np.abs(quotient)
    # A quotient beyond the largest number turns to NaN on the way (inf - inf) and is infinite.
    overflown = np.isnan(result)
    if overflown.any():
        result = np.where(overflown, quotient.dtype.type(np.inf), result)
    result = np.where(negative, np.negative(result), result)
    ordinary = np.isfinite(denominator) & np.isfinite(numerator) & (denominator != 0) & (numerator != 0)
    if ordinary.all():
        return result
    # Where an operand is 0, infinite or NaN, IEEE 754 gives the quotient without any arithmetic.
    return np.where(ordinary, result, numerator / denominator)
