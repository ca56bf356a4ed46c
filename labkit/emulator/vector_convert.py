"""Conversions between number types, packing, and the packed and mixed-precision instructions' helpers."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from labkit.emulator.rounding import to_float, to_half
from labkit.emulator.vector import vector

F16, F32, F64 = np.float16, np.float32, np.float64


def _to_integer(low: float, high: float, dtype: type, rounding: Callable = np.trunc) -> Callable:
    """Round, then saturate to [low, high]; NaN gives 0 (ISA guide, V_CVT_I32_F32 and its kin)."""

    def convert(a: np.ndarray) -> np.ndarray:
        value = np.clip(rounding(a.astype(F64)), low, high)
        return np.where(np.isnan(value), 0, value).astype(np.int64).astype(dtype)

    return convert


_I32, _U32 = (-(2.0**31), 2.0**31 - 1, np.int32), (0.0, 2.0**32 - 1, np.uint32)
vector("v_cvt_i32_f32", "f32 -> i32")(_to_integer(*_I32))
vector("v_cvt_u32_f32", "f32 -> u32")(_to_integer(*_U32))
vector("v_cvt_i32_f64", "f64 -> i32")(_to_integer(*_I32))
vector("v_cvt_u32_f64", "f64 -> u32")(_to_integer(*_U32))
vector("v_cvt_rpi_i32_f32", "f32 -> i32")(_to_integer(*_I32, lambda a: np.floor(a + 0.5)))
vector("v_cvt_flr_i32_f32", "f32 -> i32")(_to_integer(*_I32, np.floor))
vector("v_cvt_i16_f16", "f16 -> i16")(_to_integer(-32768, 32767, np.int16))
vector("v_cvt_u16_f16", "f16 -> u16")(_to_integer(0, 65535, np.uint16))
vector("v_cvt_f32_i32", "i32 -> f32")(lambda a: a.astype(F32))
vector("v_cvt_f32_u32", "u32 -> f32")(lambda a: a.astype(F32))
vector("v_cvt_f64_i32", "i32 -> f64")(lambda a: a.astype(F64))
vector("v_cvt_f64_u32", "u32 -> f64")(lambda a: a.astype(F64))
vector("v_cvt_f64_f32", "f32 -> f64")(lambda a: a.astype(F64))
vector("v_cvt_f32_f64", "f64 -> f32")(lambda a: a.astype(F32))
vector("v_cvt_f32_f16", "f16 -> f32")(to_float)
vector("v_cvt_f16_i16", "i16 -> f16")(lambda a: a.astype(F16))
vector("v_cvt_f16_u16", "u16 -> f16")(lambda a: a.astype(F16))

for _byte in range(4):
    vector(f"v_cvt_f32_ubyte{_byte}", "u32 -> f32")(
        lambda a, shift=np.uint32(8 * _byte): ((a >> shift) & np.uint32(0xFF)).astype(F32)
    )


vector("v_cvt_f16_f32", "f32 -> f16", mode=True)(to_half)


def pack(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Two 16-bit values as one 32-bit register."""
    low, high = (x.view(np.uint16).astype(np.uint32) for x in (low, high))
    return low | (high << np.uint32(16))


def _toward_zero(a: np.ndarray) -> np.ndarray:
    """float32 -> float16, rounded toward zero: step back where rounding to nearest went out."""
    half = a.astype(F16)
    outward = np.abs(half.astype(F32)) > np.abs(a)
    return np.where(outward, np.nextafter(half, F16(0)), half)


def _normalized(scale: int, dtype: type) -> Callable:
    convert = _to_integer(-scale if dtype is np.int16 else 0, scale, dtype, np.rint)
    return lambda a: convert(a.astype(F64) * scale).view(np.uint16)


vector("v_cvt_pkrtz_f16_f32", "f32 f32 -> b32")(lambda a, b: pack(_toward_zero(a), _toward_zero(b)))
vector("v_cvt_pknorm_i16_f32", "f32 f32 -> b32")(
    lambda a, b: pack(_normalized(32767, np.int16)(a), _normalized(32767, np.int16)(b))
)
vector("v_cvt_pk_u16_u32", "u32 u32 -> b32")(
    lambda a, b: pack(*(np.minimum(x, 65535).astype(np.uint16) for x in (a, b)))
)
vector("v_cvt_pk_i16_i32", "i32 i32 -> b32")(
    lambda a, b: pack(*(np.clip(x, -32768, 32767).astype(np.int16) for x in (a, b)))
)


def to_bfloat16(a: np.ndarray) -> np.ndarray:
    """float32 -> bfloat16 bits, round to nearest even."""
    return np.asarray(a).astype(ml_dtypes.bfloat16).view(np.uint16)


vector("v_cvt_pk_bf16_f32", "f32 f32 -> b32")(lambda a, b: pack(to_bfloat16(a), to_bfloat16(b)))
vector("v_pack_b32_f16", "f16 f16 -> b32")(pack)
