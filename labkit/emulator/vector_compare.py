"""Vector compares: v_cmp_<relation>_<type> writes one bit a lane, 0 for a lane that is off."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labkit.emulator.vector import vector

_RELATIONS: dict[str, Callable] = {
    "lt": np.less,
    "eq": np.equal,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_FLOAT_RELATIONS: dict[str, Callable] = {
    **_RELATIONS,
    "lg": lambda a, b: (a < b) | (a > b),
    "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "u": lambda a, b: np.isnan(a) | np.isnan(b),
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b),
    "neq": np.not_equal,
    "nlt": lambda a, b: ~(a < b),
}

for _type in ("i16", "u16", "i32", "u32", "i64", "u64"):
    for _name, _function in (*_RELATIONS.items(), ("ne", np.not_equal)):
        vector(f"v_cmp_{_name}_{_type}", f"{_type} {_type} -> mask")(_function)
for _type in ("f16", "f32", "f64"):
    for _name, _function in _FLOAT_RELATIONS.items():
        vector(f"v_cmp_{_name}_{_type}", f"{_type} {_type} -> mask")(_function)


def _class(a: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Whether `a` is of one of the ten classes whose bits are set in `wanted` (ISA guide, V_CMP_CLASS)."""
    quiet_bit = {4: 1 << 22, 8: 1 << 51, 2: 1 << 9}[a.dtype.itemsize]
    bits = a.view(f"u{a.dtype.itemsize}")
    quiet = (bits & quiet_bit) != 0
    negative, nan, infinite, zero = np.signbit(a), np.isnan(a), np.isinf(a), a == 0
    denormal = (np.abs(a) < np.finfo(a.dtype).tiny) & ~zero
    normal = np.isfinite(a) & ~zero & ~denormal
    classes = [
        nan & ~quiet,
        nan & quiet,
        *(negative & kind for kind in (infinite, normal, denormal, zero)),
        *(~negative & kind for kind in (zero, denormal, normal, infinite)),
    ]
    result = np.zeros(np.broadcast(a, wanted).shape, bool)
    for bit, member in enumerate(classes):
        result |= member & ((wanted >> np.uint32(bit)) & np.uint32(1)).astype(bool)
    return result


vector("v_cmp_class_f32", "f32 u32 -> mask")(_class)
vector("v_cmp_class_f64", "f64 u32 -> mask")(_class)
