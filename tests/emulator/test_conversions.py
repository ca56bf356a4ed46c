"""Every conversion that Triton has between number types, on every code or on the edges, against ml_dtypes.

Left out are floats beyond the range of an integer type, whose result is open.
"""

import itertools

import ml_dtypes
import numpy as np
import pytest
import torch

from tests.emulator import kernels

NUMPY = {
    torch.bool: np.bool_, torch.int8: np.int8, torch.uint8: np.uint8, torch.int16: np.int16,
    torch.int32: np.int32, torch.int64: np.int64, torch.float16: np.float16,
    torch.bfloat16: ml_dtypes.bfloat16, torch.float32: np.float32, torch.float64: np.float64,
    torch.float8_e4m3fnuz: ml_dtypes.float8_e4m3fnuz, torch.float8_e5m2fnuz: ml_dtypes.float8_e5m2fnuz,
    torch.float8_e4m3fn: ml_dtypes.float8_e4m3fn, torch.float8_e5m2: ml_dtypes.float8_e5m2,
}  # fmt: skip
FP8 = [t for t in NUMPY if t.itemsize == 1 and t.is_floating_point]
# Triton 3.7.1 casts FP8 to and from the three smaller float types only.
PAIRS = [
    pair
    for pair in itertools.permutations(NUMPY, 2)
    if not set(pair) & set(FP8)
    or set(pair) - set(FP8)
    and set(pair) - set(FP8) <= {torch.float16, torch.bfloat16, torch.float32}
]


# Values that Triton 3.7.1's own code of integer instructions converts wrongly, as its LLVM IR says: it
# widens by shifts without looking for infinity or NaN, and takes float16 numbers from 464 to 480 for NaN.
WRONG_IN_TRITON = {
    (torch.float8_e4m3fn, torch.bfloat16): lambda x: ~np.isfinite(x),
    (torch.float8_e5m2, torch.bfloat16): lambda x: ~np.isfinite(x),
    (torch.float16, torch.float8_e4m3fn): lambda x: (np.abs(x) > 464) & (np.abs(x) < 480),
}
BLOCK = 1024


def codes(dtype: torch.dtype) -> np.ndarray:
    """Every value of a type of 8 or 16 bits; of a wider one its edges and random bits."""
    kind = np.dtype(NUMPY[dtype])
    if dtype == torch.bool:
        return np.array([False, True])
    if kind.itemsize <= 2:
        return np.arange(1 << 8 * kind.itemsize, dtype=f"u{kind.itemsize}").view(kind)
    generator = np.random.default_rng(12)
    some = generator.integers(0, 1 << 8 * kind.itemsize - 1, 1024, f"u{kind.itemsize}").view(kind)
    if not dtype.is_floating_point:
        powers = np.array([sign << k for k in range(8 * kind.itemsize - 1) for sign in (1, -1)], kind)
        return np.concatenate([some, -some, some >> 5 * kind.itemsize, powers, powers - 1, powers + 1])
    # Of each narrower type: halfway between two neighbours, and a step of this type to either side.
    halfway = np.concatenate([between(NUMPY[t], kind) for t in NUMPY if t.is_floating_point and t != dtype])
    beside = [np.nextafter(halfway, kind.type(end)) for end in (0, np.inf)]
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e-40], kind)
    return np.concatenate([some, -some, halfway, *beside, special])


def between(narrow: type, kind: np.dtype) -> np.ndarray:
    """Numbers halfway between neighbours of a narrow type, where `kind` is the wider one."""
    size = np.dtype(narrow).itemsize
    if size >= kind.itemsize:
        return np.zeros(0, kind)
    low = np.random.default_rng(13).integers(0, 1 << 8 * size - 1, 500, f"u{size}")
    values = (low.view(narrow).astype(kind) + (low + 1).astype(low.dtype).view(narrow).astype(kind)) / 2
    return values[np.isfinite(values)]


def expected(x: np.ndarray, target: torch.dtype) -> np.ndarray:
    kind = NUMPY[target]
    if target in FP8:
        # Triton saturates, infinities too.
        highest = float(ml_dtypes.finfo(kind).max)
        return np.clip(x.astype(np.float32), -highest, highest).astype(kind)
    if x.dtype == np.float64 and target == torch.bfloat16:
        return nearest_bfloat16(x)
    return x.astype(kind)


def nearest_bfloat16(x: np.ndarray) -> np.ndarray:
    """float64 rounded once; ml_dtypes goes by way of float32."""
    upper = x.astype(np.float32).view(np.uint32) >> np.uint32(16)
    around = (upper[:, None] + np.arange(-1, 3)).astype(np.uint16)
    distance = np.abs(around.view(ml_dtypes.bfloat16).astype(np.float64) - x[:, None])
    distance = np.where(np.isnan(distance), np.inf, distance)
    # Of two at one distance the even code, which the stable sort by parity puts first.
    order = np.argsort(around & 1, axis=1, kind="stable")
    best = np.take_along_axis(order, np.take_along_axis(distance, order, 1).argmin(1)[:, None], 1)
    chosen = np.take_along_axis(around, best, 1)[:, 0].view(ml_dtypes.bfloat16)
    return np.where(np.isfinite(x) & (np.abs(x) < 3.3e38), chosen, x.astype(ml_dtypes.bfloat16))


@pytest.mark.usefixtures("no_finding")
@pytest.mark.parametrize(("source", "target"), PAIRS, ids=str)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_conversions(source, target):
    x = codes(source)
    if source.is_floating_point and not target.is_floating_point and target != torch.bool:
        limits, whole = np.iinfo(NUMPY[target]), np.trunc(x.astype(np.float64))
        # A float64 just below 2**63 is the largest that int64 takes.
        x = x[(whole >= limits.min) & (whole <= limits.max) & (whole < 2.0**63)]
    if (source, target) in WRONG_IN_TRITON:
        x = x[~WRONG_IN_TRITON[source, target](x.astype(np.float32))]
    out = torch.zeros(len(x)).to(target)
    kernels.convert_kernel[(-(-len(x) // BLOCK),)](from_numpy(x, source), out, len(x), BLOCK)
    got, want = out.view(INTEGERS[target.itemsize]).numpy().view(NUMPY[target]), expected(x, target)
    different = got.view(f"u{target.itemsize}") != want.view(f"u{target.itemsize}")
    if target.is_floating_point:
        different &= ~(np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64)))
    where = np.flatnonzero(different)
    assert not where.size, [(x[k], got[k], want[k]) for k in where[:5]]


INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def from_numpy(x: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    bits = np.dtype(str(INTEGERS[dtype.itemsize]).removeprefix("torch."))
    return torch.from_numpy(x.view(bits).copy()).view(dtype)
