"""Vector floating-point instructions (CDNA 3 ISA guide, chapters VOP1, VOP2, VOP3).

v_rcp, v_rsq, v_sqrt, v_exp, v_log, v_sin and v_cos are about one unit in the last place off on the chip,
with an error that AMD does not publish. Here they are float64 results rounded to float32, so they differ
from the chip's by one unit in the last place at most. Their float32 forms read and write denormals as zero
whatever MODE says, which is why Triton guards them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labkit.emulator.rounding import (
    flush,
    fused_multiply_add,
    fused_multiply_add64,
    fused_multiply_add_half,
    to_float,
    to_half,
)
from labkit.emulator.vector import vector

F32, F64 = np.float32, np.float64


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The number where one operand is NaN; -0 below +0."""
    result = np.fmin(a, b)
    return _signed_zero(result, a, b, np.logical_or) if (result == 0).any() else result


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The number where one operand is NaN; +0 above -0."""
    result = np.fmax(a, b)
    return _signed_zero(result, a, b, np.logical_and) if (result == 0).any() else result


def _signed_zero(result: np.ndarray, a: np.ndarray, b: np.ndarray, either: Callable) -> np.ndarray:
    both = (a == 0) & (b == 0)
    zero = np.where(either(np.signbit(a), np.signbit(b)), -0.0, 0.0).astype(result.dtype)
    return np.where(both, zero, result)


ARITHMETIC: dict[str, Callable] = {
    "add": np.add,
    "sub": np.subtract,
    "subrev": lambda a, b: b - a,
    "mul": np.multiply,
}


def half(function: Callable) -> Callable:
    """A float16 sum or product by way of float32, which rounds the same: 24 >= 2 * 11 + 2 bits.

    It heeds MODE.FP16_OVFL.
    """
    return lambda *sources, saturate: to_half(function(*[to_float(source) for source in sources]), saturate)


for _name, _function in ARITHMETIC.items():
    vector(f"v_{_name}_f32", "f32 f32 -> f32")(_function)
    vector(f"v_{_name}_f16", "f16 f16 -> f16", mode=True)(half(_function))

vector("v_add_f64", "f64 f64 -> f64")(np.add)
vector("v_mul_f64", "f64 f64 -> f64")(np.multiply)

for _t in ("f32", "f64", "f16"):
    vector(f"v_min_{_t}", f"{_t} {_t} -> {_t}")(minimum)
    vector(f"v_max_{_t}", f"{_t} {_t} -> {_t}")(maximum)
    vector(f"v_trunc_{_t}", f"{_t} -> {_t}")(np.trunc)
    vector(f"v_floor_{_t}", f"{_t} -> {_t}")(np.floor)
    vector(f"v_ceil_{_t}", f"{_t} -> {_t}")(np.ceil)
    vector(f"v_rndne_{_t}", f"{_t} -> {_t}")(np.rint)
    vector(f"v_frexp_mant_{_t}", f"{_t} -> {_t}")(lambda a: np.frexp(a)[0])
    vector(f"v_fract_{_t}", f"{_t} -> {_t}")(
        lambda a: np.minimum(a - np.floor(a), np.nextafter(a.dtype.type(1), a.dtype.type(0)))
    )

vector("v_fma_f32", "f32 f32 f32 -> f32")(fused_multiply_add)
vector("v_fmac_f32", "f32 f32 old -> f32")(fused_multiply_add)
vector("v_fmaak_f32 v_fmamk_f32", "f32 f32 f32 -> f32")(fused_multiply_add)
vector("v_fma_f16", "f16 f16 f16 -> h16", mode=True)(fused_multiply_add_half)
vector("v_fma_f64", "f64 f64 f64 -> f64")(fused_multiply_add64)
vector("v_fmac_f64", "f64 f64 old -> f64")(fused_multiply_add64)
for _t, _result in (("f32", "f32"), ("f16", "h16")):
    vector(f"v_max3_{_t}", f"{_t} {_t} {_t} -> {_result}")(lambda a, b, c: maximum(maximum(a, b), c))
    vector(f"v_min3_{_t}", f"{_t} {_t} {_t} -> {_result}")(lambda a, b, c: minimum(minimum(a, b), c))


@vector("v_med3_f32", "f32 f32 f32 -> f32")
@vector("v_med3_f16", "f16 f16 f16 -> h16")
def _median(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The middle one; with a NaN among them, the smallest (ISA guide)."""
    # NumPy's plain minimum and maximum pass NaN on and are several times quicker than fmin and fmax.
    middle = np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))
    unordered = np.isnan(a) | np.isnan(b) | np.isnan(c)
    zeros = (a == 0).astype(np.int8) + (b == 0) + (c == 0)
    if not unordered.any() and not (zeros > 1).any():
        return middle
    middle = maximum(minimum(a, b), minimum(maximum(a, b), c))
    return np.where(unordered, minimum(minimum(a, b), c), middle)


@vector("v_ldexp_f32", "f32 i32 -> f32")
@vector("v_ldexp_f64", "f64 i32 -> f64")
def _scale_by_power(a: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    return np.ldexp(a, exponent)


@vector("v_frexp_exp_i32_f32", "f32 -> i32")
@vector("v_frexp_exp_i32_f64", "f64 -> i32")
def _exponent(a: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(a), np.frexp(a)[1], 0).astype(np.int32)


def _unit(function: Callable) -> Callable:
    """A float32 transcendental unit: float64 inside, denormals flushed on both sides."""
    return lambda a: flush(function(flush(a).astype(F64)).astype(F32))


vector("v_rcp_f32 v_rcp_iflag_f32", "f32 -> f32")(_unit(np.reciprocal))
vector("v_rsq_f32", "f32 -> f32")(_unit(lambda a: 1 / np.sqrt(a)))
vector("v_sqrt_f32", "f32 -> f32")(_unit(np.sqrt))
vector("v_exp_f32", "f32 -> f32")(_unit(np.exp2))
vector("v_log_f32", "f32 -> f32")(_unit(np.log2))


def _turns(ahead: int) -> Callable:
    """sin (ahead 0) or cos (1 quarter ahead) of a number of turns, reduced exactly to an eighth of one.

    Beyond 256 turns the unit's input range ends, and the value at 0 comes out.
    """

    def call(turns: np.ndarray) -> np.ndarray:
        turns = np.where(np.abs(turns) <= 256, turns, turns * 0)
        quarters = np.rint(turns * 4)
        rest = (turns - quarters / 4) * (2 * np.pi)
        phase = (quarters + ahead) % 4
        value = np.where(phase % 2 == 1, np.cos(rest), np.sin(rest))
        return np.where(phase >= 2, np.negative(value), value)

    return call


vector("v_sin_f32", "f32 -> f32")(_unit(_turns(0)))
vector("v_cos_f32", "f32 -> f32")(_unit(_turns(1)))
vector("v_rcp_f64", "f64 -> f64")(np.reciprocal)
vector("v_rsq_f64", "f64 -> f64")(lambda a: 1 / np.sqrt(a))
vector("v_sqrt_f64", "f64 -> f64")(np.sqrt)
vector("v_rcp_f16", "f16 -> f16")(lambda a: np.reciprocal(a.astype(F32)).astype(np.float16))
vector("v_rsq_f16", "f16 -> f16")(lambda a: (1 / np.sqrt(a.astype(F32))).astype(np.float16))
vector("v_sqrt_f16", "f16 -> f16")(np.sqrt)
vector("v_exp_f16", "f16 -> f16")(lambda a: np.exp2(a.astype(F32)).astype(np.float16))
vector("v_log_f16", "f16 -> f16")(lambda a: np.log2(a.astype(F32)).astype(np.float16))
