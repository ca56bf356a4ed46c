"""MFMA for float64, one matrix or four blocks of 4x4, against NumPy.

The layout is that of AMD's matrix instruction calculator (its formulas for A[i][k].block, B[k][j].block and
D[i][j].block).
"""

import itertools

import numpy as np
import pytest

from tests.emulator.harness import execute, make_state
from tests.emulator.matrix_harness import held, place, run

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize("mnemonic", ["16x16x4_f64", "16x16x4f64"])
def test_float64(mnemonic):
    """Lane 16*k + r holds A[r][k] and B[k][r]; pair i of lane 16*g + c is D[4*i + g][c]."""
    rng = np.random.default_rng(4)
    a, b = rng.integers(-9, 9, (16, 4)) / 8 + 2.0**-40, rng.integers(-9, 9, (4, 16)) / 4
    c = rng.integers(-99, 99, (16, 16)) + 0.5
    left = np.array([[a[lane % 16, lane // 16]] for lane in range(64)])
    right = np.array([[b[lane // 16, lane % 16]] for lane in range(64)])
    where = [[(4 * i + lane // 16, lane % 16) for i in range(4)] for lane in range(64)]
    source = np.array([[c[at] for at in row] for row in where])
    got = run(f"f64_{mnemonic}", left, right, source, 4, np.float64)
    product = a @ b + c
    np.testing.assert_array_equal(got, [[product[at] for at in row] for row in where])


@pytest.mark.parametrize("mnemonic", ["4x4x4_4b_f64", "4x4x4f64"])
def test_float64_in_four_blocks(mnemonic):
    """Lane 16*k + 4*b + r holds A[r][k] and B[k][r] of block b; lane 16*i + 4*b + j holds D[i][j]."""
    rng = np.random.default_rng(5)
    left, right, source = (rng.integers(-9, 9, (64, 1)) / 8 for _ in range(3))
    got = run(f"f64_{mnemonic}", left, right, source, 1, np.float64)
    for i, b, j in itertools.product(range(4), repeat=3):
        lane = 16 * i + 4 * b + j
        products = [left[16 * k + 4 * b + i, 0] * right[16 * k + 4 * b + j, 0] for k in range(4)]
        assert got[lane, 0] == sum(products) + source[lane, 0]


def test_float64_is_no_float32():
    tiny, ones = np.full((64, 1), 1 + 2.0**-50), np.ones((64, 1))
    assert (run("f64_16x16x4_f64", tiny, ones, "0", 4, np.float64) == 4 + 2.0**-48).all()
    assert (run("f64_16x16x4_f64", tiny * 2.0**500, ones, "1.0", 4, np.float64) > 2.0**501).all()
    assert (run("f64_16x16x4_f64", ones, ones, "-4.0", 4, np.float64) == 0).all()


def test_float64_infinity_and_nan():
    left, right = np.zeros((64, 1)), np.ones((64, 1))
    left[3], left[16 + 7] = np.inf, np.nan  # A[3][0], A[7][1]
    got = run("f64_16x16x4_f64", left, right, "0", 4, np.float64)
    for lane, i in itertools.product(range(64), range(4)):
        expected = {3: np.inf, 7: np.nan}.get(4 * i + lane // 16, 0.0)
        np.testing.assert_equal(got[lane, i], expected)


def test_float64_accumulates_in_place():
    ones = np.ones((64, 1))
    state = make_state()
    place(state, 0, ones)
    place(state, 16, np.arange(256.0).reshape(64, 4))
    execute(state, "v_mfma_f64_16x16x4_f64 v[16:23], v[0:1], v[0:1], v[16:23]\n" * 2)
    np.testing.assert_array_equal(held(state, 16, 4, np.float64), np.arange(256.0).reshape(64, 4) + 8)
