"""v_smfmac, which multiplies a 2:4 sparse A, against NumPy's product of whole matrices.

Which index names which value is in AMD's matrix instruction calculator ("Compression Index Information").
"""

import itertools

import ml_dtypes
import numpy as np
import pytest

from labkit.errors import UnsupportedInstruction
from tests.emulator.harness import execute, make_state, set_exec
from tests.emulator.matrix_harness import held, place, row32, span

pytestmark = pytest.mark.usefixtures("engine")

SPARSE = {  # mnemonic -> size, depth, type
    "16x16x32_f16": (16, 32, np.float16),
    "32x32x16_f16": (32, 16, np.float16),
    "16x16x32_bf16": (16, 32, ml_dtypes.bfloat16),
    "32x32x16_bf16": (32, 16, ml_dtypes.bfloat16),
}
# Which two of four places hold a value.
PAIRS = list(itertools.combinations(range(4), 2))


def compressed(dense, size, dtype, pairs):
    """A sparse A [size, depth] as the lanes hold it: values [64, 4] and their indices, 8 bits a lane."""
    values, bits = np.zeros((64, 4), dtype), np.zeros(64, np.uint32)
    for lane in range(64):
        group, row = divmod(lane, size)
        for v in range(4):
            four = 2 * group + v // 2  # which four of A's columns
            at = int(pairs[row, four, v % 2])
            values[lane, v] = dense[row, 4 * four + at]
            bits[lane] |= at << 2 * v
    return values, bits


def sparse_matrices(size, depth, seed=7):
    """A with two values in each four, where these stand [size, depth/4, 2], B, and D before."""
    rng = np.random.default_rng(seed)
    pairs = np.array(PAIRS)[rng.integers(0, 6, (size, depth // 4))]
    a = np.zeros((size, depth // 4, 4))
    np.put_along_axis(a, pairs, rng.integers(1, 9, pairs.shape), -1)
    b, d = rng.integers(-8, 8, (depth, size)), rng.integers(-99, 99, (size, size))
    return a.reshape(size, depth), pairs, b.astype(float), d.astype(float)


def multiply_sparse(mnemonic, a, pairs, b, d, modifiers="", byte=0):
    """D of `d + a @ b` as a matrix. The index bits lie in one byte of their register, the rest is noise."""
    size, depth, dtype = SPARSE[mnemonic]
    values, bits = compressed(a, size, dtype, pairs)
    right = np.array([b[8 * (lane // size) : 8 * (lane // size) + 8, lane % size] for lane in range(64)])
    state, results = make_state(), size * size // 64
    where = [[(row32(size, i, lane), lane % size) for i in range(results)] for lane in range(64)]
    place(state, 0, values)
    place(state, 4, right.astype(dtype))
    place(state, 40, np.array([[d[at] for at in row] for row in where], np.float32))
    noise = np.random.default_rng(9).integers(0, 2**32, 64, np.uint32) & ~np.uint32(0xFF << 8 * byte)
    state.v[9, 0] = noise | bits << np.uint32(8 * byte)
    set_exec(state, 0)
    execute(state, f"v_smfmac_f32_{mnemonic} {span(40, results)}, v[0:1], v[4:7], v9{modifiers}")
    got, out = held(state, 40, results, np.float32), np.zeros((size, size))
    for lane, i in itertools.product(range(64), range(results)):
        out[where[lane][i]] = got[lane, i]
    return out


@pytest.mark.parametrize("mnemonic", SPARSE)
@pytest.mark.parametrize(
    "modifiers,byte", [("", 0), (" abid:1", 1), (" abid:3", 3), (" cbsz:1", 0), (" cbsz:1 abid:2", 0)]
)
def test_sparse(mnemonic, modifiers, byte):
    a, pairs, b, d = sparse_matrices(*SPARSE[mnemonic][:2])
    np.testing.assert_array_equal(multiply_sparse(mnemonic, a, pairs, b, d, modifiers, byte), a @ b + d)


def test_sparse_index_as_the_calculator_prints_it():
    """K[2][31] of v_smfmac_f32_16x16x32_f16 is v0{50}.[7:4] (its README): the only value of A is there."""
    state = make_state()
    state.v[1, 0, 50] = np.float16(3).view(
        np.uint16
    )  # value 2 of lane 50: the low half of its second register
    state.v[9, 0, 50] = 3 << 4  # column 28 + 3
    right = np.zeros((64, 8), np.float16)
    right[48:, 7] = np.arange(16)  # B[31][j]
    place(state, 4, right)
    execute(state, "v_smfmac_f32_16x16x32_f16 v[40:43], v[0:1], v[4:7], v9")
    expected = np.zeros((64, 4), np.float32)
    expected[:16, 2] = 3 * np.arange(16)  # D[2][j]
    np.testing.assert_array_equal(held(state, 40, 4, np.float32), expected)


def test_sparse_reads_only_what_its_indices_name():
    """Row 31 of B is infinite, and no index names it but that of A's row 2."""
    a, pairs = np.zeros((16, 32)), np.tile([0, 1], (16, 8, 1))
    pairs[2, 7] = 0, 3
    a[:, 0], a[2, 31] = 1, 1
    b = np.ones((32, 16))
    b[31] = np.inf
    got = multiply_sparse("16x16x32_f16", a, pairs, b, np.zeros((16, 16)))
    assert np.isinf(got[2]).all() and (np.delete(got, 2, 0) == 1).all()


def test_sparse_in_each_wave():
    """Waves with their own values and indices; one that stands elsewhere keeps what it had."""
    state = make_state(waves=3)
    right = np.tile(np.arange(8, dtype=np.float16), (64, 1))  # B[8*g + e][j] = e
    for wave in range(3):
        values = np.full((64, 4), wave + 1, np.float16)
        state.v[0:2, wave] = values.view(np.uint32).T
        state.v[4:8, wave] = right.view(np.uint32).T
        state.v[9, wave] = (0b1110_0100, 0, 0b1011_0001)[wave]  # places 0 1 2 3, -, 1 0 3 2
    state.set_group(np.array([[True], [False], [True]]))
    execute(state, "v_smfmac_f32_16x16x32_f16 v[40:43], v[0:1], v[4:7], v9")
    got = state.v[40:44].view(np.float32)
    # Four groups of k, each 0 + 1 + (4 + 2) + (4 + 3).
    assert (got[:, 0] == 4 * 14).all() and (got[:, 1] == 0).all() and (got[:, 2] == 3 * 4 * 14).all()


@pytest.mark.parametrize(
    "text,names",
    [
        ("v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10 blgp:1", "blgp"),
        ("v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10 abid:4", "four sets"),
        ("v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], a10", "vector register"),
        ("v_smfmac_f32_16x16x64_f16 v[0:3], v[4:7], v[8:15], v16", "v_smfmac_f32_16x16x64_f16"),
        ("v_smfmac_i32_16x16x64_i8 v[0:3], v[4:5], v[6:9], v10", "v_smfmac_i32_16x16x64_i8"),
    ],
)
def test_what_is_not_implemented_is_refused(text, names):
    with pytest.raises(UnsupportedInstruction, match=names):
        execute(make_state(fnuz=False), text)
