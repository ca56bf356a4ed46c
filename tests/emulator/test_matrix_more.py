"""MFMA forms for int8, float64 and blocks of 4x4, against sums written out from the layout, lane by lane.

Each layout is that of AMD's matrix instruction calculator (its formulas "A[i][k].block" and "D[i][j].block"),
written here as dictionaries from (block, row, column) to (lane, place) and read one element at a time.
"""

import itertools

import ml_dtypes
import numpy as np
import pytest

from labkit.errors import UnsupportedInstruction
from tests.emulator.harness import execute, make_state, set_exec, signed

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
        ("v_mfma_f32_4x4x4_16b_f16 v[20:23], v[0:1], v[8:9], 0", np.float32, 4),
    ],
)
def test_each_wave_multiplies_its_own(text, dtype, results):
    """All of A and B is 1 or 2, a wave's number times; a wave that stands elsewhere keeps what it had."""
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


@pytest.mark.parametrize(
    "text,names",
    [
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
