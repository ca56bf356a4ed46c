"""What one lane computes: functions from register bits to register bits, uint32 each.

The definitions, with their sources, are in vector_float, vector_division, vector_convert and rounding.
"""

from __future__ import annotations

import math

import numpy as np

from labkit.emulator.native.bits import as_bits, as_float, fused, lane

U = np.uint32
_SIGN, _MAGNITUDE, _INFINITY = U(0x80000000), U(0x7FFFFFFF), U(0x7F800000)
_LARGEST_HALF = U(0x477FE000)  # 65504 as float32 bits
_HALF_OVERFLOW = U(0x47800000)  # 65536
_SMALLEST_NORMAL_HALF = U(0x38800000)  # 2^-14
_DENORMAL_MAGIC = U(0x3F000000)  # 0.5: adding it leaves a half's denormal in the lowest bits


@lane
def is_nan(a):
    return (a & _MAGNITUDE) > _INFINITY


@lane
def maximum(a, b):
    """The number where one is NaN; +0 above -0."""
    x, y = as_float(a), as_float(b)
    larger = a if x > y else b
    larger = a & b if x == y else larger
    larger = b if is_nan(a) else larger
    return a if is_nan(b) else larger


@lane
def minimum(a, b):
    """The number where one is NaN; -0 below +0."""
    x, y = as_float(a), as_float(b)
    smaller = a if x < y else b
    smaller = a | b if x == y else smaller
    smaller = b if is_nan(a) else smaller
    return a if is_nan(b) else smaller


@lane
def median(a, b, c):
    low, high = minimum(a, b), maximum(a, b)
    middle = maximum(low, minimum(high, c))
    return minimum(low, c) if is_nan(a) or is_nan(b) or is_nan(c) else middle


@lane
def flush(a):
    """A denormal as the zero of its sign."""
    return a if (a & _INFINITY) != 0 else a & _SIGN


@lane
def reciprocal(a):
    return flush(as_bits(np.float32(1.0 / np.float64(as_float(flush(a))))))


@lane
def square_root(a):
    return flush(as_bits(np.float32(math.sqrt(np.float64(as_float(flush(a)))))))


@lane
def reciprocal_root(a):
    return flush(as_bits(np.float32(1.0 / math.sqrt(np.float64(as_float(flush(a)))))))


@lane
def power_of_two(a):
    return flush(as_bits(np.float32(np.exp2(np.float64(as_float(flush(a)))))))


@lane
def from_half(h):
    """float16 bits, in the low half, as float32 bits."""
    magnitude = (h & U(0x7FFF)) << U(13)
    exponent = magnitude & U(0x0F800000)
    value = magnitude + U(112 << 23)
    value = value + U(112 << 23) if exponent == U(0x0F800000) else value
    denormal = as_bits(as_float(value + U(1 << 23)) - as_float(U(113 << 23)))
    value = denormal if exponent == 0 else value
    return value | ((h & U(0x8000)) << U(16))


@lane
def to_half(a, saturate):
    """float32 bits as float16 bits, to nearest even. saturate: finite values stop at 65504."""
    x = a & _MAGNITUDE
    x = _LARGEST_HALF if saturate and x > _LARGEST_HALF and x < _INFINITY else x
    normal = U(x + U(0xC8000FFF) + ((x >> U(13)) & U(1))) >> U(13)
    denormal = as_bits(as_float(x) + as_float(_DENORMAL_MAGIC)) - _DENORMAL_MAGIC
    half = denormal if x < _SMALLEST_NORMAL_HALF else normal
    half = U(0x7C00) if x >= _HALF_OVERFLOW else half
    half = U(0x7E00) if x > _INFINITY else half
    return half | ((a >> U(16)) & U(0x8000))


@lane
def exponent(a):
    return np.int32((a >> U(23)) & U(0xFF))


@lane
def division_scale(value, denominator, numerator):
    """v_div_scale_f32: the scaled value and whether v_div_fmas must undo it, as 0 or 1."""
    below, above = exponent(denominator), exponent(numerator)
    gap = above - below
    is_denominator, is_numerator = value == denominator, value == numerator
    one, up, down = as_float(U(127 << 23)), as_float(U(191 << 23)), as_float(U(63 << 23))
    factor, raised = one, U(0)
    # The later a case stands here, the earlier in the ISA guide, where the first that holds decides.
    factor = up if above <= 23 else factor
    small_quotient = gap < -125
    factor = (up if is_numerator else one) if small_quotient else factor
    raised = U(1) if small_quotient else raised
    small_reciprocal = below >= 253
    factor = down if small_reciprocal else factor
    both = small_reciprocal and small_quotient
    factor = (down if is_denominator else one) if both else factor
    raised = U(0) if small_reciprocal and not both else raised
    factor = up if below == 0 else factor
    raised = U(0) if below == 0 else raised
    far = gap >= 96
    factor = (up if is_denominator else one) if far else factor
    raised = U(1) if far else raised
    zero = (denominator & _MAGNITUDE) == 0 or (numerator & _MAGNITUDE) == 0
    scaled = as_bits(as_float(value) * factor)
    return (U(0x7FC00000) if zero else scaled), (U(0) if zero else raised)


@lane
def unscaled_fma(a, b, c):
    """v_div_fmas_f32 of a lane whose operands were scaled: one rounding, of the unscaled sum."""
    x, y, z = np.float64(as_float(a)), np.float64(as_float(b)), np.float64(as_float(c))
    product = x * y
    total = product + z
    part = total - product
    error = (product - (total - part)) + (z - part)
    if error != 0.0 and math.isfinite(total) and _is_even(total):
        total = np.nextafter(total, np.inf if error > 0.0 else -np.inf)
    return as_bits(np.float32(math.ldexp(total, 64 if exponent(c) > 127 else -64)))


@lane
def _is_even(x):
    mantissa, _ = math.frexp(x)
    return (np.int64(mantissa * 9007199254740992.0) & 1) == 0  # 2^53: the fraction as an integer


@lane
def division_fixup(quotient, denominator, numerator):
    sign = (denominator ^ numerator) & _SIGN
    size = quotient & _MAGNITUDE
    size = _INFINITY if size > _INFINITY else size
    d, n = denominator & _MAGNITUDE, numerator & _MAGNITUDE
    ordinary = d != 0 and n != 0 and d < _INFINITY and n < _INFINITY
    special = as_bits(as_float(numerator) / as_float(denominator))
    return size | sign if ordinary else special


@lane
def scale_by_power(a, power):
    """v_ldexp_f32, by way of float64, whose exponents reach far enough for one rounding."""
    n = np.int32(power)
    n = np.int32(300) if n > 300 else n
    n = np.int32(-300) if n < -300 else n
    return as_bits(np.float32(np.float64(as_float(a)) * np.exp2(np.float64(n))))


@lane
def fp8_key(a):
    """The index of rounding's FP8 tables: the upper half, any lower bit folded into its last."""
    return (a >> U(16)) | (U(1) if (a & U(0xFFFF)) != 0 else U(0))


@lane
def fma(a, b, c):
    return as_bits(fused(as_float(a), as_float(b), as_float(c)))


@lane
def to_int(a, low, high):
    """float32 bits toward zero into [low, high] (float64), NaN to 0, as int64."""
    x = np.float64(as_float(a))
    x = low if x < low else x
    x = high if x > high else x
    x = 0.0 if x != x else x
    return np.int64(x)


@lane
def to_bfloat16(a):
    """The upper half of float32 bits, to nearest even; a NaN stays one."""
    rounded = (a + U(0x7FFF) + ((a >> U(16)) & U(1))) >> U(16)
    return (a >> U(16)) | U(0x40) if is_nan(a) else rounded
