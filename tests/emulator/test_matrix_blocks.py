"""MFMA in sixteen blocks of 4x4, and that waves multiply apart, whatever the type.

The layout is that of AMD's matrix instruction calculator (its formulas for A[i][k].block, B[k][j].block and
D[i][j].block); expectations add products element by element.
"""

import itertools

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.harness import execute, make_state, signed
from tests.emulator.matrix_harness import run

pytestmark = pytest.mark.usefixtures("engine")

BLOCKS16 = {  # mnemonic -> depth, type
    "4x4x4_16b_f16": (4, np.float16),
    "4x4x4f16": (4, np.float16),
    "4x4x4_16b_bf16": (4, ml_dtypes.bfloat16),
    "4x4x4bf16_1k": (4, ml_dtypes.bfloat16),
    "4x4x1_16b_f32": (1, np.float32),
    "4x4x1f32": (1, np.float32),
}


@pytest.mark.parametrize("mnemonic", BLOCKS16)
def test_sixteen_blocks(mnemonic):
    """Lane 4*b + r holds row r of A and column r of B; register i of lane 4*b + c holds D[i][c]."""
    depth, dtype = BLOCKS16[mnemonic]
    rng = np.random.default_rng(6)
    left, right = (rng.integers(-8, 8, (64, depth)).astype(dtype) for _ in range(2))
    source = rng.integers(-99, 99, (64, 4)).astype(np.float32)
    got = run(f"f32_{mnemonic}", left, right, source, 4, np.float32)
    for b, i, j in itertools.product(range(16), range(4), range(4)):
        products = [float(left[4 * b + i, k]) * float(right[4 * b + j, k]) for k in range(depth)]
        assert got[4 * b + j, i] == sum(products) + source[4 * b + j, i]


@pytest.mark.parametrize("mnemonic", BLOCKS16)
@pytest.mark.parametrize("cbsz,abid", [(0, 0), (1, 0), (1, 1), (2, 3), (3, 5), (4, 0), (4, 11), (4, 15)])
def test_blocks_share_a_matrix(mnemonic, cbsz, abid):
    """Of each 2**cbsz blocks, the abid-th one's A serves all of them."""
    depth, dtype = BLOCKS16[mnemonic]
    rng = np.random.default_rng(10)
    left, right = (rng.integers(-8, 8, (64, depth)).astype(dtype) for _ in range(2))
    modifiers = "".join(f" {name}:{value}" for name, value in (("cbsz", cbsz), ("abid", abid)) if value)
    got = run(f"f32_{mnemonic}", left, right, "0", 4, np.float32, modifiers)
    for b, i, j in itertools.product(range(16), range(4), range(4)):
        giver = b // 2**cbsz * 2**cbsz + abid
        products = [float(left[4 * giver + i, k]) * float(right[4 * b + j, k]) for k in range(depth)]
        assert got[4 * b + j, i] == sum(products)


@pytest.mark.parametrize("mnemonic", ["4x4x4_16b_i8", "4x4x4i8"])
@pytest.mark.parametrize("modifiers,giver", [("", None), (" cbsz:4 abid:9", 9)])
def test_sixteen_blocks_of_int8(mnemonic, modifiers, giver):
    rng = np.random.default_rng(11)
    left, right = (rng.integers(-128, 128, (64, 4), np.int8) for _ in range(2))
    source = rng.integers(-(2**31), 2**31, (64, 4), np.int32)
    got = run(f"i32_{mnemonic}", left, right, source, 4, np.int32, modifiers)
    for b, i, j in itertools.product(range(16), range(4), range(4)):
        row = left[4 * (b if giver is None else giver) + i].tolist()
        products = [x * y for x, y in zip(row, right[4 * b + j].tolist(), strict=True)]
        assert got[4 * b + j, i] == signed(sum(products) + int(source[4 * b + j, i]))


def test_blocks_do_not_mix():
    """An infinity in one block leaves the others alone."""
    left, right = np.zeros((64, 4), np.float16), np.ones((64, 4), np.float16)
    left[4 * 5 + 2, 1] = np.inf  # row 2 of block 5
    got = run("f32_4x4x4_16b_f16", left, right, "0", 4, np.float32)
    expected = np.zeros((64, 4), np.float32)
    expected[20:24, 2] = np.inf
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    "text,dtype,results",
    [
        ("v_mfma_i32_16x16x32_i8 v[20:23], v[0:1], v[8:9], 0", np.int32, 4),
        ("v_mfma_f64_16x16x4_f64 v[20:27], v[0:1], v[8:9], 0", np.float64, 4),
        ("v_mfma_f64_4x4x4_4b_f64 v[20:21], v[0:1], v[8:9], 0", np.float64, 1),
        ("v_mfma_f64_4x4x4_4b_f64 v[20:21], v[0:1], v[8:9], v[30:31]", np.float64, 1),
        ("v_mfma_f32_4x4x4_16b_f16 v[20:23], v[0:1], v[8:9], 0", np.float32, 4),
    ],
)
def test_each_wave_multiplies_its_own(text, dtype, results):
    """A and B hold the wave's number, 1, 2 or 3; a wave that stands elsewhere keeps what it had."""
    inputs = {np.int32: np.int8, np.float64: np.float64, np.float32: np.float16}[dtype]
    state = make_state(waves=3)
    for wave in range(3):
        words = np.full(8 // np.dtype(inputs).itemsize, wave + 1, inputs).view(np.uint32)
        state.v[0:2, wave] = state.v[8:10, wave] = words[:, None]
    state.set_group(np.array([[True], [False], [True]]))
    execute(state, text)
    depth = 32 if dtype is np.int32 else 4
    words = results * np.dtype(dtype).itemsize // 4
    got = np.ascontiguousarray(np.moveaxis(state.v[20 : 20 + words], 0, -1)).view(dtype)
    for wave, expected in enumerate([depth, 0, 9 * depth]):
        assert (got[wave] == expected).all()
