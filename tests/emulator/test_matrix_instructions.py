"""Each MFMA against float64, its operands laid out as AMD's matrix instruction calculator documents them."""

import ml_dtypes
import numpy as np
import pytest

from labkit.errors import UnsupportedInstruction
from tests.emulator.harness import execute, make_state, set_exec

pytestmark = pytest.mark.usefixtures("engine")

TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "xf32": np.float32,
         "fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}  # fmt: skip
OCP = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2}
# mnemonic -> rows and columns, depth, type of A, type of B
SHAPES = {
    "16x16x16_f16": (16, 16, "f16", "f16"),
    "32x32x8_f16": (32, 8, "f16", "f16"),
    "16x16x16_bf16": (16, 16, "bf16", "bf16"),
    "32x32x8_bf16": (32, 8, "bf16", "bf16"),
    "16x16x4_f32": (16, 4, "f32", "f32"),
    "32x32x2_f32": (32, 2, "f32", "f32"),
    "16x16x8_xf32": (16, 8, "xf32", "xf32"),
    "32x32x4_xf32": (32, 4, "xf32", "xf32"),
    # The names that these have in older assemblers.
    "16x16x16f16": (16, 16, "f16", "f16"),
    "32x32x8f16": (32, 8, "f16", "f16"),
    "16x16x16bf16_1k": (16, 16, "bf16", "bf16"),
    "32x32x8bf16_1k": (32, 8, "bf16", "bf16"),
    "16x16x4f32": (16, 4, "f32", "f32"),
    "32x32x2f32": (32, 2, "f32", "f32"),
    **{f"16x16x32_{a}_{b}": (16, 32, a, b) for a in ("fp8", "bf8") for b in ("fp8", "bf8")},
    **{f"32x32x16_{a}_{b}": (32, 16, a, b) for a in ("fp8", "bf8") for b in ("fp8", "bf8")},
}
GFX950 = {
    "16x16x32_f16": (16, 32, "f16", "f16"),
    "32x32x16_f16": (32, 16, "f16", "f16"),
    "16x16x32_bf16": (16, 32, "bf16", "bf16"),
    "32x32x16_bf16": (32, 16, "bf16", "bf16"),
}


def inputs_in_registers(matrix, size, dtype):
    """Lane size * g + r holds row r of A (or column r of B), for the g-th run of k: [registers, 64]."""
    groups = 64 // size
    run = matrix.shape[1] // groups
    registers = np.zeros((run * np.dtype(dtype).itemsize // 4, 64), np.uint32)
    for lane in range(64):
        group, row = divmod(lane, size)
        values = np.ascontiguousarray(matrix[row, group * run : (group + 1) * run].astype(dtype))
        registers[:, lane] = values.view(np.uint32)
    return registers


def row_of(register, lane, size):
    """The row of D or C that a register of a lane holds; its column is lane % size."""
    if size == 16:
        return 4 * (lane // 16) + register
    return 8 * (register // 4) + 4 * (lane // 32) + register % 4


def results_in_registers(matrix, size):
    registers = size * size // 64
    return np.array(
        [[matrix[row_of(i, lane, size), lane % size] for lane in range(64)] for i in range(registers)],
        np.float32,
    )


def matrices(size, depth, seed=0):
    """Small whole numbers: any order of adding gives the same sum. None is like its transpose."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-3, 5, (size, depth)), rng.integers(-4, 4, (depth, size))
    return a.astype(float), b.astype(float), rng.integers(-50, 50, (size, size)).astype(float)


def registers(file, first, count):
    return f"{file}{first}" if count == 1 else f"{file}[{first}:{first + count - 1}]"


def multiply(mnemonic, shape, a, b, c, fnuz=True, files="vv", modifiers="", exec_mask=0):
    """D as the lanes hold it. `files`: where the inputs and the accumulators lie; EXEC must not matter."""
    size, _, kind_a, kind_b = shape
    types = {**TYPES, **({} if fnuz else OCP)}
    state = make_state(fnuz=fnuz)
    left = inputs_in_registers(a, size, types[kind_a])
    right = inputs_in_registers(b.T, size, types[kind_b])
    ins, outs = (getattr(state, name) for name in files)
    ins[0 : len(left), 0], ins[8 : 8 + len(right), 0] = left, right
    count = size * size // 64
    source = c
    if isinstance(c, np.ndarray):
        outs[16 : 16 + count, 0] = results_in_registers(c, size).view(np.uint32)
        source = registers(files[1], 16, count)
    set_exec(state, exec_mask)
    operands = [
        registers(files[1], 40, count),
        registers(files[0], 0, len(left)),
        registers(files[0], 8, len(right)),
    ]
    execute(state, f"v_mfma_f32_{mnemonic} {', '.join(operands)}, {source}{modifiers}")
    return outs[40 : 40 + count, 0].view(np.float32)


@pytest.mark.parametrize("mnemonic", [*SHAPES, *GFX950])
@pytest.mark.parametrize("files", ["vv", "va", "aa"])
def test_product_and_sum(mnemonic, files):
    shape = {**SHAPES, **GFX950}[mnemonic]
    a, b, c = matrices(*shape[:2])
    got = multiply(mnemonic, shape, a, b, c, fnuz=mnemonic in SHAPES, files=files)
    np.testing.assert_array_equal(got, results_in_registers(a @ b + c, shape[0]))


@pytest.mark.parametrize("mnemonic", ["16x16x32_fp8_fp8", "32x32x8_f16"])
@pytest.mark.parametrize("constant,value", [("0", 0.0), ("1.0", 1.0), ("-4.0", -4.0)])
def test_a_constant_accumulator(mnemonic, constant, value):
    shape = SHAPES[mnemonic]
    a, b, _ = matrices(*shape[:2])
    got = multiply(mnemonic, shape, a, b, constant)
    np.testing.assert_array_equal(got, results_in_registers(a @ b + value, shape[0]))


@pytest.mark.parametrize("size,depth,shape", [(16, 128, "16x16x128"), (32, 64, "32x32x64")])
@pytest.mark.parametrize("kinds", [("fp8", "fp8"), ("bf8", "fp8"), ("fp8", "bf8"), ("bf8", "bf8")])
def test_f8f6f4_names_its_formats(size, depth, shape, kinds):
    """cbsz names A's format and blgp B's. Which lane holds which k does not show in a product."""
    a, b, c = matrices(size, depth)
    number = {"fp8": 0, "bf8": 1}
    modifiers = "".join(
        f" {name}:{number[kind]}" for name, kind in zip(("cbsz", "blgp"), kinds, strict=True) if number[kind]
    )
    got = multiply(f"{shape}_f8f6f4", (size, depth, *kinds), a, b, c, fnuz=False, modifiers=modifiers)
    np.testing.assert_array_equal(got, results_in_registers(a @ b + c, size))


@pytest.mark.parametrize("mnemonic", SHAPES)
def test_fractions_stay_close_to_float64(mnemonic):
    """The order of adding is not published: within float32's error of the sum of absolute products."""
    shape = SHAPES[mnemonic]
    size, depth, kind_a, kind_b = shape
    rng = np.random.default_rng(8)
    a = rng.normal(size=(size, depth)).astype(TYPES[kind_a]).astype(float)
    b = rng.normal(size=(depth, size)).astype(TYPES[kind_b]).astype(float)
    c = rng.normal(size=(size, size)).astype(np.float32).astype(float)
    got = multiply(mnemonic, shape, a, b, c)
    bound = (np.abs(a) @ np.abs(b) + np.abs(c)) * (depth + 1) * 2.0**-24
    if kind_a == "xf32":  # its inputs keep 10 fraction bits, rounded in a way that no text tells
        bound += np.abs(a) @ np.abs(b) * 2 * 2.0**-10
    error = np.abs(got - results_in_registers(a @ b + c, size))
    assert (error <= results_in_registers(bound, size) * (1 + 2.0**-20)).all()


def test_xf32_drops_the_low_bits():
    one = 1 + 2.0**-20
    shape = SHAPES["16x16x8_xf32"]
    got = multiply("16x16x8_xf32", shape, np.full((16, 8), one), np.full((8, 16), 1.0), "0")
    assert (got == 8).all()
    got = multiply("16x16x4_f32", SHAPES["16x16x4_f32"], np.full((16, 4), one), np.full((4, 16), 1.0), "0")
    assert (got == np.float32(4 * one)).all()


def test_denormal_inputs_count():
    """float16's and bfloat16's denormals are not flushed (ISA guide, "Floating-point handling details")."""
    for mnemonic, tiny in (
        ("16x16x16_f16", 2.0**-24),
        ("16x16x16_bf16", 2.0**-133),
        ("16x16x32_fp8_fp8", 2.0**-10),
    ):
        shape = SHAPES[mnemonic]
        a, b = np.full((16, shape[1]), tiny), np.full((shape[1], 16), 2.0)
        got = multiply(mnemonic, shape, a, b, "0")
        assert (got == np.float32(shape[1] * 2 * tiny)).all()


def test_infinity_and_nan_go_through():
    shape = SHAPES["16x16x16_f16"]
    a, b = np.zeros((16, 16)), np.ones((16, 16))
    a[3, 5], a[7, 0] = np.inf, np.nan
    got = multiply("16x16x16_f16", shape, a, b, "0")
    for i in range(4):
        for lane in range(64):
            row = row_of(i, lane, 16)
            expected = np.inf if row == 3 else np.nan if row == 7 else 0.0
            np.testing.assert_equal(got[i, lane], np.float32(expected))


def test_fp8_nan_is_0x80():
    shape = SHAPES["16x16x32_fp8_fp8"]
    a = np.zeros((16, 32))
    a[2, 9] = np.nan
    got = multiply("16x16x32_fp8_fp8", shape, a, np.ones((32, 16)), "0")
    rows = np.array([[row_of(i, lane, 16) for lane in range(64)] for i in range(4)])
    assert np.isnan(got[rows == 2]).all() and (got[rows != 2] == 0).all()


def test_the_accumulator_in_place():
    """D over C, as a loop over k does, twice."""
    shape = SHAPES["32x32x8_f16"]
    a, b, c = matrices(*shape[:2])
    state = make_state()
    state.v[0:2, 0], state.v[8:10, 0] = (
        inputs_in_registers(a, 32, np.float16),
        inputs_in_registers(b.T, 32, np.float16),
    )
    state.v[16:32, 0] = results_in_registers(c, 32).view(np.uint32)
    execute(state, "v_mfma_f32_32x32x8_f16 v[16:31], v[0:1], v[8:9], v[16:31]\n" * 2)
    np.testing.assert_array_equal(
        state.v[16:32, 0].view(np.float32), results_in_registers(2 * (a @ b) + c, 32)
    )


@pytest.mark.parametrize("target", [14, 16, 17, 18, 19, 20])
def test_the_result_over_a_part_of_the_accumulator(target):
    """D starts before, in or after C, which lies in v[16:19]."""
    shape = SHAPES["16x16x16_f16"]
    a, b, c = matrices(*shape[:2])
    state = make_state()
    state.v[0:2, 0] = inputs_in_registers(a, 16, np.float16)
    state.v[8:10, 0] = inputs_in_registers(b.T, 16, np.float16)
    state.v[16:20, 0] = results_in_registers(c, 16).view(np.uint32)
    execute(state, f"v_mfma_f32_16x16x16_f16 v[{target}:{target + 3}], v[0:1], v[8:9], v[16:19]")
    got = state.v[target : target + 4, 0].view(np.float32)
    np.testing.assert_array_equal(got, results_in_registers(a @ b + c, 16))


def test_each_wave_multiplies_its_own():
    shape = SHAPES["16x16x16_bf16"]
    state = make_state(waves=3)
    products = []
    for wave in range(3):
        a, b, _ = matrices(*shape[:2], seed=wave)
        state.v[0:2, wave] = inputs_in_registers(a, 16, ml_dtypes.bfloat16)
        state.v[8:10, wave] = inputs_in_registers(b.T, 16, ml_dtypes.bfloat16)
        products.append(results_in_registers(a @ b, 16))
    state.set_group(np.array([[True], [False], [True]]))
    execute(state, "v_mfma_f32_16x16x16_bf16 v[20:23], v[0:1], v[8:9], 0")
    products[1][:] = 0  # this wave stands elsewhere
    np.testing.assert_array_equal(state.v[20:24].view(np.float32).transpose(1, 0, 2), np.stack(products))


@pytest.mark.parametrize(
    "text,names",
    [
        ("v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0 cbsz:1", "cbsz"),
        ("v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0 blgp:1", "blgp"),
        ("v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], 0 cbsz:2", "FP6"),
        ("v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[6:7], 0 abid:1", "no 1 blocks to share block 1"),
        ("v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[6:7], 0 cbsz:5", "no 32 blocks"),
        ("v_mfma_f64_4x4x4_4b_f64 v[0:1], v[4:5], v[6:7], 0 cbsz:1", "cbsz"),
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
