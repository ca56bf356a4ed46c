"""v_smfmac, which multiplies a 2:4 sparse A, against NumPy's product of whole matrices.

Which index names which value is in AMD's matrix instruction calculator ("Compression Index Information").
"""

import itertools

import ml_dtypes
import numpy as np
import pytest

from labkit.errors import UnsupportedInstruction
from tests.emulator.harness import execute, make_state, set_exec
from tests.emulator.matrix_harness import held, place, row32

pytestmark = pytest.mark.usefixtures("engine")

NARROW = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8}
FNUZ = {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}
OCP = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2}
FP8_PAIRS = [f"{a}_{b}" for a in FNUZ for b in FNUZ]
# mnemonic -> size, depth, type of A, type of B; gfx950's FP8 is OCP
SPARSE = {
    **{f"f32_{size}x{size}x{depth}_{kind}": (size, depth, NARROW[kind], NARROW[kind])
       for size, depth in ((16, 32), (32, 16)) for kind in ("f16", "bf16")},
    **{f"f32_{size}x{size}x{depth}_{pair}": (size, depth, *(FNUZ[kind] for kind in pair.split("_")))
       for size, depth in ((16, 64), (32, 32)) for pair in FP8_PAIRS},
    **{f"i32_{size}x{size}x{depth}_i8": (size, depth, np.int8, np.int8)
       for size, depth in ((16, 64), (32, 32))},
}  # fmt: skip
GFX950 = {
    **{f"f32_{size}x{size}x{depth}_{kind}": (size, depth, NARROW[kind], NARROW[kind])
       for size, depth in ((16, 64), (32, 32)) for kind in ("f16", "bf16")},
    **{f"f32_{size}x{size}x{depth}_{pair}": (size, depth, *(OCP[kind] for kind in pair.split("_")))
       for size, depth in ((16, 128), (32, 64)) for pair in FP8_PAIRS},
    **{f"i32_{size}x{size}x{depth}_i8": (size, depth, np.int8, np.int8)
       for size, depth in ((16, 128), (32, 64))},
}  # fmt: skip
# Which two of four places hold a value.
PAIRS = list(itertools.combinations(range(4), 2))


def compressed(dense, size, dtype, pairs):
    """A sparse A [size, depth] as the lanes hold it: values [64, n/2] and their indices, n bits a lane."""
    n = dense.shape[1] * size // 64
    values, bits = np.zeros((64, n // 2), dtype), np.zeros(64, np.uint32)
    for lane in range(64):
        group, row = divmod(lane, size)
        for v in range(n // 2):
            four = n // 4 * group + v // 2  # which four of A's columns
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


def multiply_sparse(mnemonic, a, pairs, b, d, modifiers="", number=0):
    """D of `d + a @ b` as a matrix. Index set `number` lies in its register, the rest of which is noise."""
    size, depth, left, right = {**SPARSE, **GFX950}[mnemonic]
    n, results = depth * size // 64, size * size // 64
    values, bits = compressed(a, size, left, pairs)
    columns = np.array([b[n * (lane // size) : n * (lane // size) + n, lane % size] for lane in range(64)])
    state = make_state(fnuz=mnemonic in SPARSE)
    where = [[(row32(size, i, lane), lane % size) for i in range(results)] for lane in range(64)]
    out = np.int32 if mnemonic.startswith("i32") else np.float32
    before = np.array([[d[at] for at in row] for row in where], out)
    held_a, held_b = place(state, 0, values), place(state, 8, columns.astype(right))
    held_d = place(state, 40, before)
    used = np.uint32(((1 << n) - 1) << n * number)
    noise = np.random.default_rng(9).integers(0, 2**32, 64, np.uint32) & ~used
    state.v[20, 0] = noise | bits << np.uint32(n * number)
    set_exec(state, 0)
    execute(state, f"v_smfmac_{mnemonic} {held_d}, {held_a}, {held_b}, v20{modifiers}")
    got, matrix = held(state, 40, results, out), np.zeros((size, size))
    for lane, i in itertools.product(range(64), range(results)):
        matrix[where[lane][i]] = got[lane, i]
    return matrix


@pytest.mark.parametrize("mnemonic", [*SPARSE, *GFX950])
def test_sparse(mnemonic):
    """With each set of indices that a register holds: 4, 2 or 1 by their size."""
    size, depth, *_ = {**SPARSE, **GFX950}[mnemonic]
    a, pairs, b, d = sparse_matrices(size, depth)
    sets = 32 // (depth * size // 64)
    for number in range(sets):
        got = multiply_sparse(mnemonic, a, pairs, b, d, f" abid:{number}" if number else "", number)
        np.testing.assert_array_equal(got, a @ b + d)
        got = multiply_sparse(mnemonic, a, pairs, b, d, f" cbsz:1 abid:{number}", 0)
        np.testing.assert_array_equal(got, a @ b + d)


def test_sparse_int8_wraps_around():
    """-128 times -128 in each of 32 products, over the largest number."""
    pairs = np.tile([1, 2], (16, 16, 1))
    a, b = np.full((16, 64), -128.0), np.full((64, 16), -128.0)
    got = multiply_sparse("i32_16x16x64_i8", a, pairs, b, np.full((16, 16), 2**31 - 1))
    assert (got == 2**31 - 1 + 32 * 16384 - 2**32).all()


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
    got = multiply_sparse("f32_16x16x32_f16", a, pairs, b, np.zeros((16, 16)))
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
        ("v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10 abid:4", "only 4 sets"),
        ("v_smfmac_i32_16x16x64_i8 v[0:3], v[4:5], v[6:9], v10 abid:2", "only 2 sets"),
        ("v_smfmac_i32_32x32x64_i8 v[0:15], v[20:23], v[24:31], v40 abid:1", "only 1 sets"),
        ("v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], a10", "vector register"),
        ("v_smfmac_f32_16x16x64_f32 v[0:3], v[4:7], v[8:15], v16", "v_smfmac_f32_16x16x64_f32"),
    ],
)
def test_what_is_not_implemented_is_refused(text, names):
    with pytest.raises(UnsupportedInstruction, match=names):
        execute(make_state(fnuz=False), text)
