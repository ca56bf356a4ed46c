"""MFMA for int8, float64, blocks of 4x4 and a sparse A, against sums written out from the layout.

Each layout is that of AMD's matrix instruction calculator (its formulas for A[i][k].block, B[k][j].block and
D[i][j].block); the expectations add products element by element, or are NumPy's product of whole matrices.
"""

import itertools

import ml_dtypes
import numpy as np
import pytest

from labkit.errors import UnsupportedInstruction
from tests.emulator.harness import execute, make_state, set_exec, signed

pytestmark = pytest.mark.usefixtures("engine")

INT8 = {  # mnemonic -> size, depth
    "16x16x32_i8": (16, 32),
    "16x16x32i8": (16, 32),
    "32x32x16_i8": (32, 16),
    "32x32x16i8": (32, 16),
    "16x16x64_i8": (16, 64),
    "32x32x32_i8": (32, 32),
}
BLOCKS16 = {  # mnemonic -> depth, type
    "4x4x4_16b_f16": (4, np.float16),
    "4x4x4f16": (4, np.float16),
    "4x4x4_16b_bf16": (4, ml_dtypes.bfloat16),
    "4x4x4bf16_1k": (4, ml_dtypes.bfloat16),
    "4x4x1_16b_f32": (1, np.float32),
    "4x4x1f32": (1, np.float32),
}
EDGES = np.array([-128, 127, -1, 0, 1, -127], np.int8)


def span(first, count):
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def place(state, first, lanes):
    """Values [64, n] in registers from `first`; returns how the text names them."""
    words = np.ascontiguousarray(lanes).view(np.uint32)
    state.v[first : first + words.shape[1], 0] = words.T
    return span(first, words.shape[1])


def held(state, first, count, dtype):
    """[64, count] values of wave 0 in the registers from `first`."""
    words = count * np.dtype(dtype).itemsize // 4
    return np.ascontiguousarray(state.v[first : first + words, 0].T).view(dtype)


def run(mnemonic, left, right, source, results, dtype, modifiers=""):
    """D as [64, results] from A's and B's [64, n] as the lanes hold them. EXEC is 0: it must not matter."""
    state = make_state(fnuz=False)
    a, b = place(state, 0, left), place(state, 8, right)
    words = results * np.dtype(dtype).itemsize // 4
    c = place(state, 16, source) if isinstance(source, np.ndarray) else source
    set_exec(state, 0)
    execute(state, f"v_mfma_{mnemonic} {span(40, words)}, {a}, {b}, {c}{modifiers}")
    return held(state, 40, results, dtype)


def row32(size, register, lane):
    """The row of a 32-bit result of a 16x16 or 32x32 form."""
    return (
        4 * (lane // 16) + register if size == 16 else 8 * (register // 4) + 4 * (lane // 32) + register % 4
    )


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


def test_float64_accumulates_in_place():
    ones = np.ones((64, 1))
    state = make_state()
    place(state, 0, ones)
    place(state, 16, np.arange(256.0).reshape(64, 4))
    execute(state, "v_mfma_f64_16x16x4_f64 v[16:23], v[0:1], v[0:1], v[16:23]\n" * 2)
    np.testing.assert_array_equal(held(state, 16, 4, np.float64), np.arange(256.0).reshape(64, 4) + 8)


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
        ("v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[6:7], 0 cbsz:1", "cbsz"),
        ("v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[6:7], 0 abid:1", "abid"),
        ("v_mfma_f32_4x4x1_16b_f32 v[0:3], v4, v6, 0 blgp:2", "blgp"),
        ("v_mfma_i32_16x16x32_i8 v[0:3], v[4:5], v[6:7], 0 blgp:1", "blgp"),
        ("v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], 0 neg:[1,0,0]", "neg"),
        ("v_mfma_f32_32x32x1_2b_f32 v[0:31], v32, v33, 0", "v_mfma_f32_32x32x1_2b_f32"),
        ("v_mfma_f32_4x4x2bf16 v[0:3], v4, v6, 0", "v_mfma_f32_4x4x2bf16"),
    ],
)
def test_what_is_not_implemented_is_refused(text, names):
    with pytest.raises(UnsupportedInstruction, match=names):
        execute(make_state(fnuz=False), text)
