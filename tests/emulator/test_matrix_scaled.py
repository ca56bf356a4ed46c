"""The f8f6f4 forms of v_mfma with scales and with FP4, against NumPy's product of whole matrices.

Where values and scales lie is from AMD's "Introduction to Matrix Core Programming on the CDNA 3 and CDNA 4
Architecture" (2025), whose kernels load 8-bit types in two runs of 16 values of k and FP4 in one of 32.
"""

import itertools

import ml_dtypes
import numpy as np
import pytest

from labkit.errors import UnsupportedInstruction
from tests.emulator.harness import execute, make_state, set_exec
from tests.emulator.matrix_harness import held, place, row32, span

SHAPES = {"16x16x128": (16, 128), "32x32x64": (32, 64)}
TYPES = {"fp8": (0, ml_dtypes.float8_e4m3fn), "bf8": (1, ml_dtypes.float8_e5m2), "fp4": (4, None)}
FP4 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]


def as_lanes(rows, kind):
    """A, or B's transpose, [size, depth] of values that all types hold, as bytes [64, 16 or 32]."""
    size, depth = rows.shape
    lanes = []
    for group, row in itertools.product(range(64 // size), range(size)):
        if kind == "fp4":
            codes = [FP4.index(abs(x)) | (8 if x < 0 else 0) for x in rows[row, 32 * group :][:32]]
            lanes.append([low | high << 4 for low, high in zip(codes[::2], codes[1::2], strict=True)])
        else:
            half = depth // 2
            values = [*rows[row, 16 * group :][:16], *rows[row, half + 16 * group :][:16]]
            lanes.append(np.array(values).astype(TYPES[kind][1]).view(np.uint8))
    return np.array(lanes, np.uint8)


def scale_words(scales, byte):
    """Scales [size, depth/32] as the lanes hold them: one in a byte of each lane's word, noise around it."""
    size, blocks = scales.shape
    noise = np.random.default_rng(5).integers(0, 2**32, 64, np.uint32) & ~np.uint32(0xFF << 8 * byte)
    lanes = [
        int(scales[row, block]) << 8 * byte for block, row in itertools.product(range(blocks), range(size))
    ]
    return noise | np.array(lanes, np.uint32)


def matrices(size, depth, seed=3):
    rng = np.random.default_rng(seed)
    a, b = (rng.choice([x for x in FP4 if x or not np.signbit(x)], (size, depth)) for _ in range(2))
    return a, b.T, rng.integers(-99, 99, (size, size)).astype(float)


def multiply(shape, kinds, a, b, c, scales=None, bytes_=(0, 0), sources=None):
    """D as a matrix; EXEC is 0, which must not matter."""
    size, _ = SHAPES[shape]
    results = size * size // 64
    state = make_state(fnuz=False)
    where = [[(row32(size, i, lane), lane % size) for i in range(results)] for lane in range(64)]
    left, right = place(state, 0, as_lanes(a, kinds[0])), place(state, 8, as_lanes(b.T, kinds[1]))
    source = place(state, 16, np.array([[c[at] for at in row] for row in where], np.float32))
    text = f"{span(40, results)}, {left}, {right}, {source}"
    if scales is not None:
        state.v[32, 0], state.v[33, 0] = (scale_words(s, k) for s, k in zip(scales, bytes_, strict=True))
        low, high = ([byte >> bit & 1 for byte in bytes_] for bit in (0, 1))
        text += f", {sources or 'v32, v33'} op_sel:[{low[0]},{low[1]},0] op_sel_hi:[{high[0]},{high[1]},0]"
    set_exec(state, 0)
    modifiers = f" cbsz:{TYPES[kinds[0]][0]} blgp:{TYPES[kinds[1]][0]}"
    execute(state, f"v_mfma_{'' if scales is None else 'scale_'}f32_{shape}_f8f6f4 {text}{modifiers}")
    got, out = held(state, 40, results, np.float32), np.zeros((size, size))
    for lane, i in itertools.product(range(64), range(results)):
        out[where[lane][i]] = got[lane, i]
    return out


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kinds", list(itertools.product(TYPES, repeat=2)))
def test_types_without_scales(shape, kinds):
    a, b, c = matrices(*SHAPES[shape])
    np.testing.assert_array_equal(multiply(shape, kinds, a, b, c), a @ b + c)


def scaled(matrix, scales):
    return matrix * np.repeat(2.0 ** (scales.astype(float) - 127), 32, axis=1)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kinds", list(itertools.product(TYPES, repeat=2)))
@pytest.mark.parametrize("bytes_", [(0, 0), (1, 2), (3, 1)])
def test_scales(shape, kinds, bytes_):
    """Powers of two from 1/8 to 8: all sums are exact in float32."""
    size, depth = SHAPES[shape]
    a, b, c = matrices(size, depth)
    rng = np.random.default_rng(4)
    scales = [rng.integers(124, 131, (size, depth // 32)) for _ in range(2)]
    got = multiply(shape, kinds, a, b, c, scales, bytes_)
    np.testing.assert_array_equal(got, scaled(a, scales[0]) @ scaled(b.T, scales[1]).T + c)


@pytest.mark.parametrize("shape", SHAPES)
def test_extreme_scales(shape):
    """2**127 times 2**-127 is 1; 255 is not a number, for its rows alone."""
    size, depth = SHAPES[shape]
    a, b, c = matrices(size, depth)
    scales = [np.full((size, depth // 32), 254), np.zeros((size, depth // 32), int)]
    np.testing.assert_array_equal(multiply(shape, ("fp8", "fp4"), a, b, c, scales), a @ b + c)
    scales[0][5, 1] = 255
    got = multiply(shape, ("fp8", "fp4"), a, b, c, scales)
    assert np.isnan(got[5]).all() and not np.isnan(np.delete(got, 5, 0)).any()


def test_a_constant_scale():
    a, b, c = matrices(16, 128)
    scales = [np.full((16, 4), 127), np.full((16, 4), 130)]
    got = multiply("16x16x128", ("fp8", "bf8"), a, b, c, scales, sources="0x7f, v33")
    np.testing.assert_array_equal(got, 8 * (a @ b) + c)


@pytest.mark.parametrize(
    "text,names",
    [
        ("v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:9], v[12:19], 0, v20, v21 cbsz:3", "FP6"),
        ("v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:9], v[12:19], 0, v20, v21 neg_lo:[1,0,0]", "neg_lo"),
        ("v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], 0 abid:1", "abid"),
    ],
)
def test_what_is_not_implemented_is_refused(text, names):
    with pytest.raises(UnsupportedInstruction, match=names):
        execute(make_state(fnuz=False), text)
