"""MFMA for int8, against Python integers.

The layout is that of AMD's matrix instruction calculator (its formulas for A[i][k].block, B[k][j].block and
D[i][j].block); expectations add products element by element.
"""

import itertools

import numpy as np
import pytest

from tests.emulator.harness import signed
from tests.emulator.matrix_harness import row32, run

pytestmark = pytest.mark.usefixtures("engine")

INT8 = {  # mnemonic -> size, depth
    "16x16x32_i8": (16, 32),
    "16x16x32i8": (16, 32),
    "32x32x16_i8": (32, 16),
    "32x32x16i8": (32, 16),
    "16x16x64_i8": (16, 64),
    "32x32x32_i8": (32, 32),
}
EDGES = np.array([-128, 127, -1, 0, 1, -127], np.int8)


def int8_expected(size, left, right, source):
    """Python integers, wrapped to 32 bits at the end. left, right: [64, n]; source: [64, results]."""
    groups, results = 64 // size, size * size // 64
    out = np.zeros((64, results), np.int32)
    for lane, i in itertools.product(range(64), range(results)):
        row, column = row32(size, i, lane), lane % size
        total = int(source[lane, i])
        for g in range(groups):
            pairs = zip(left[size * g + row].tolist(), right[size * g + column].tolist(), strict=True)
            total += sum(x * y for x, y in pairs)
        out[lane, i] = signed(total)
    return out


@pytest.mark.parametrize("mnemonic", INT8)
@pytest.mark.parametrize("edges", [False, True])
def test_int8(mnemonic, edges):
    size, depth = INT8[mnemonic]
    run_of_k, results = depth * size // 64, size * size // 64
    rng = np.random.default_rng(3)
    left, right = (
        rng.choice(EDGES, (64, run_of_k)) if edges else rng.integers(-128, 128, (64, run_of_k), np.int8)
        for _ in range(2)
    )
    source = rng.integers(-(2**31), 2**31, (64, results), np.int32)
    got = run(f"i32_{mnemonic}", left, right, source, results, np.int32)
    np.testing.assert_array_equal(got, int8_expected(size, left, right, source))


@pytest.mark.parametrize("mnemonic", INT8)
@pytest.mark.parametrize("low", [-128, 127])
def test_int8_sums_wrap_around(mnemonic, low):
    """Each row of A is -128 throughout: the largest product there is, or the smallest."""
    size, depth = INT8[mnemonic]
    run_of_k, results = depth * size // 64, size * size // 64
    left, right = np.full((64, run_of_k), -128, np.int8), np.full((64, run_of_k), low, np.int8)
    for start in (2**31 - 1, -(2**31), 2**31 - 1 - depth * 16384):
        source = np.full((64, results), start, np.int32)
        got = run(f"i32_{mnemonic}", left, right, source, results, np.int32)
        assert (got == signed(start - 128 * low * depth)).all()


@pytest.mark.parametrize("text,value", [("0", 0), ("64", 64), ("-16", -16)])
def test_int8_constant_accumulator(text, value):
    ones = np.ones((64, 8), np.int8)
    assert (run("i32_16x16x32_i8", ones, ones, text, 4, np.int32) == 32 + value).all()
