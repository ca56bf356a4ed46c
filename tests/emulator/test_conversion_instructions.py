"""Each conversion between number types: against ml_dtypes, NumPy's casts and Python's integers."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import UnsupportedInstruction
from tests.emulator.harness import (
    EDGES32,
    EDGES_FLOAT,
    assert_same_floats,
    execute,
    lanes,
    make_state,
    pairs,
    run_lanes,
    signed,
)

pytestmark = pytest.mark.usefixtures("engine")

ALL_HALVES = np.arange(1 << 16, dtype="u2").view("f2")
# Two float32 that lie a hair above and below each, and so beside every rounding boundary of FP8.
with np.errstate(all="ignore"):
    WIDE = ALL_HALVES.astype("f4")
    NEIGHBOURS = np.concatenate([WIDE, *(np.nextafter(WIDE, np.float32(x)) for x in (-np.inf, np.inf))])
RANDOM = np.random.default_rng(7).integers(0, 1 << 32, 4096, dtype="u4").view("f4")
FP8 = {
    ("fp8", True): ml_dtypes.float8_e4m3fnuz,
    ("bf8", True): ml_dtypes.float8_e5m2fnuz,
    ("fp8", False): ml_dtypes.float8_e4m3fn,
    ("bf8", False): ml_dtypes.float8_e5m2,
}


def mode(fnuz=True, saturate=False):
    def setup(state):
        state.fnuz = fnuz
        state.fp16_overflow[...] = saturate

    return setup


def assert_same_fp8(got, expected, sources):
    """Equal bytes; any NaN for a NaN (OCP has several)."""
    same = (got == expected.view("u1")) | (np.isnan(got.view(expected.dtype)) & np.isnan(expected))
    bad = np.flatnonzero(~same)
    assert not bad.size, [(sources[k], got[k], expected[k]) for k in bad[:5]]


@pytest.mark.parametrize("form,fnuz", FP8)
@pytest.mark.parametrize("saturate", [False, True])
def test_to_fp8(form, fnuz, saturate):
    """All float16 values, what lies beside them, and any float32.

    FNUZ has no -0: a negative that rounds to zero is 0x00, and 0x80 is NaN (pitfall 4). With MODE.FP16_OVFL
    numbers and infinities beyond the largest give the largest, NaN stays (ISA guide, "FP16_OVFL rule").
    """
    dtype = FP8[form, fnuz]
    source = np.concatenate([NEIGHBOURS, RANDOM])
    with np.errstate(all="ignore"):
        top = np.float32(ml_dtypes.finfo(dtype).max)
        expected = (np.clip(source, -top, top) if saturate else source).astype(dtype)
    other = np.roll(source, 1)
    got = run_lanes(f"v_cvt_pk_{form}_f32 v0, v2, v4", source, other, setup=mode(fnuz, saturate))
    assert_same_fp8((got & 0xFF).astype("u1"), expected, source)
    assert_same_fp8((got >> 8 & 0xFF).astype("u1"), np.roll(expected, 1), other)


@pytest.mark.parametrize(
    "value,byte,saturated",
    [
        (240.0, 0x7F, 0x7F),
        (247.99, 0x7F, 0x7F),
        (248.0, 0x80, 0x7F),  # halfway to 256, and 240 is odd
        (-248.0, 0x80, 0xFF),
        (1e4, 0x80, 0x7F),
        (math.inf, 0x80, 0x7F),
        (-math.inf, 0x80, 0xFF),
        (math.nan, 0x80, 0x80),
        (-0.0, 0x00, 0x00),
        (2.0**-10, 0x01, 0x01),
        (2.0**-11, 0x00, 0x00),  # halfway to the smallest, and 0 is even
        (-(2.0**-11), 0x00, 0x00),
        (3 * 2.0**-11, 0x02, 0x02),
        (62.08, 0x70, 0x70),  # the carry into the exponent that Triton's interpreter loses: 64
    ],
)
def test_fp8_of_mi300x_by_hand(value, byte, saturated):
    source = np.array([value], "f4")
    assert run_lanes("v_cvt_pk_fp8_f32 v0, v2, v2", source)[0] & 0xFF == byte
    assert run_lanes("v_cvt_pk_fp8_f32 v0, v2, v2", source, setup=mode(saturate=True))[0] & 0xFF == saturated


def test_setreg_makes_one_conversion_saturate():
    """Triton turns FP16_OVFL on only around its conversions to FP8 (pitfall 3)."""
    state = make_state()
    state.v[2] = lanes([1e6], "f4")
    execute(state, "v_cvt_pk_fp8_f32 v0, v2, v2\ns_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1")
    execute(state, "v_cvt_pk_fp8_f32 v1, v2, v2\nv_cvt_f16_f32_e32 v3, v2")
    execute(state, "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 0\nv_cvt_f16_f32_e32 v4, v2")
    assert [int(state.v[k][0, 0]) & 0xFFFF for k in (0, 1, 3, 4)] == [0x8080, 0x7F7F, 0x7BFF, 0x7C00]


def test_waves_may_differ_in_fp16_overflow():
    state = make_state(waves=2)
    state.fp16_overflow[1] = True
    state.v[2] = lanes([1e6], "f4")
    execute(state, "v_cvt_pk_fp8_f32 v0, v2, v2\nv_cvt_f16_f32_e32 v1, v2")
    assert state.v[0][:, 0].tolist() == [0x8080, 0x7F7F]
    assert state.v[1][:, 0].tolist() == [0x7C00, 0x7BFF]


def test_op_sel_chooses_the_half_of_the_result():
    """op_sel:[0,0,1] writes the high half, else the low one; the other half stays (pitfall 8)."""
    state = make_state()
    state.v[0], state.v[1] = 0x11112222, 0x11112222
    state.v[2], state.v[3] = lanes([1.0], "f4"), lanes([-2.0], "f4")
    execute(state, "v_cvt_pk_fp8_f32 v0, v2, v3\nv_cvt_pk_fp8_f32 v1, v2, -v3 op_sel:[0,0,1]")
    assert state.v[0][0, 0] == 0x1111C840
    assert state.v[1][0, 0] == 0x48402222


BYTES = np.arange(256, dtype="u4")
SPREAD = BYTES | (255 - BYTES) << 8 | (BYTES ^ 0x55) << 16 | (BYTES ^ 0xAA) << 24


@pytest.mark.parametrize("form,fnuz", FP8)
def test_from_fp8(form, fnuz):
    dtype = FP8[form, fnuz]
    values = SPREAD.view("u1").reshape(-1, 4).view(dtype).astype("f4")
    got = run_lanes(f"v_cvt_f32_{form}_e32 v0, v2", SPREAD, out="f4", setup=mode(fnuz))
    assert_same_floats(got, values[:, 0].tolist())
    for byte in range(4):
        text = f"v_cvt_f32_{form}_sdwa v0, v2 src0_sel:BYTE_{byte}"
        assert_same_floats(run_lanes(text, SPREAD, out="f4", setup=mode(fnuz)), values[:, byte].tolist())
    for suffix, part in (("_e32 v[0:1], v2", 0), ("_sdwa v[0:1], v2 src0_sel:WORD_1", 1)):
        got = run_lanes(f"v_cvt_pk_f32_{form}{suffix}", SPREAD, out="u8", setup=mode(fnuz)).view("f4")
        assert_same_floats(got, values[:, 2 * part : 2 * part + 2].ravel().tolist())


def test_half_to_float_and_back():
    """All halves, exactly; the other way every float32 that lies beside a half, a tie or anywhere."""
    got = run_lanes("v_cvt_f32_f16_e32 v0, v2", ALL_HALVES, out="f4")
    with np.errstate(all="ignore"):
        assert_same_floats(got, ALL_HALVES.astype("f8").tolist())
        finite = ALL_HALVES[np.isfinite(ALL_HALVES)].astype("f4")
        ties = (finite + np.nextafter(finite.astype("f2"), np.float16(np.inf)).astype("f4")) / 2
        source = np.concatenate([NEIGHBOURS, ties, RANDOM, np.float32([65519.99, 65520, 2**-25, 3 * 2**-25])])
        half = source.astype("f2")
        saturated = np.where(np.isinf(source), half, np.clip(source, -65504, 65504).astype("f2"))
    assert_same_floats(run_lanes("v_cvt_f16_f32_e32 v0, v2", source, out="f2"), half.astype("f8").tolist())
    got = run_lanes("v_cvt_f16_f32_e32 v0, v2", source, out="f2", setup=mode(saturate=True))
    assert_same_floats(got, saturated.astype("f8").tolist(), [source])


def test_half_results_zero_the_upper_half():
    """Pitfall 17."""
    got = run_lanes("v_cvt_f16_f32_e32 v0, v2", np.float32([1.0, -2.0]))
    assert got.tolist() == [0x3C00, 0xC000]


INTEGER_RANGES = {
    "i32": (-(2**31), 2**31 - 1),
    "u32": (0, 2**32 - 1),
    "i16": (-32768, 32767),
    "u16": (0, 65535),
}
NUMBERS = [0.0, -0.0, 0.5, -0.5, 0.99, -0.99, 1.5, 2.5, -1.5, -2.5, 127.9, 255.5, 32767.5, -32768.5, 65535.5,
           1e9, 2147483647.0, 2147483648.0, -2147483648.0, -2147483904.0, 4294967040.0, 4294967296.0, 1e20,
           -1e20, 2.0**-149, math.inf, -math.inf, math.nan]  # fmt: skip


def saturating(kind, rounding=math.trunc):
    low, high = INTEGER_RANGES[kind]

    def convert(x):
        if math.isnan(x):
            return 0
        return (high if x > 0 else low) if math.isinf(x) else min(max(rounding(Fraction(x)), low), high)

    return convert


@pytest.mark.parametrize(
    "text,dtype,convert",
    [
        ("v_cvt_i32_f32_e32 v0, v2", "f4", saturating("i32")),
        ("v_cvt_u32_f32_e32 v0, v2", "f4", saturating("u32")),
        ("v_cvt_i32_f64_e32 v0, v[2:3]", "f8", saturating("i32")),
        ("v_cvt_u32_f64_e32 v0, v[2:3]", "f8", saturating("u32")),
        ("v_cvt_flr_i32_f32_e32 v0, v2", "f4", saturating("i32", math.floor)),
        ("v_cvt_rpi_i32_f32_e32 v0, v2", "f4", saturating("i32", lambda x: math.floor(x + Fraction(1, 2)))),
        ("v_cvt_i16_f16_e32 v0, v2", "f2", saturating("i16")),
        ("v_cvt_u16_f16_e32 v0, v2", "f2", saturating("u16")),
    ],
)
def test_float_to_integer_saturates(text, dtype, convert):
    with np.errstate(all="ignore"):
        source = np.array(NUMBERS + [2147483646.5, 4294967295.5]).astype(dtype)
    mask = 0xFFFF if "16" in text else 0xFFFFFFFF
    assert run_lanes(text, source).tolist() == [convert(float(x)) & mask for x in source]


@pytest.mark.parametrize(
    "text,bits,is_signed,out",
    [
        ("v_cvt_f32_i32_e32 v0, v2", 32, True, "f4"),
        ("v_cvt_f32_u32_e32 v0, v2", 32, False, "f4"),
        ("v_cvt_f64_i32_e32 v[0:1], v2", 32, True, "f8"),
        ("v_cvt_f64_u32_e32 v[0:1], v2", 32, False, "f8"),
        ("v_cvt_f16_i16_e32 v0, v2", 16, True, "f2"),
        ("v_cvt_f16_u16_e32 v0, v2", 16, False, "f2"),
    ],
)
def test_integer_to_float_rounds_to_even(text, bits, is_signed, out):
    near = [16777217, 16777219, 33554431, 0xFFFFFF7F, 0xFFFFFF80, 2049, 2051, 65519, 65520]
    source = np.array([x & ((1 << bits) - 1) for x in EDGES32 + near], f"u{bits // 8}")
    values = [signed(x, bits) if is_signed else x for x in source.tolist()]
    with np.errstate(over="ignore"):
        assert_same_floats(run_lanes(text, source, out=out), [np.dtype(out).type(x) for x in values])


def test_bytes_to_float():
    source = np.array(EDGES32, "u4")
    for byte in range(4):
        got = run_lanes(f"v_cvt_f32_ubyte{byte}_e32 v0, v2", source, out="f4")
        assert got.tolist() == [x >> 8 * byte & 0xFF for x in EDGES32]


def test_double_and_single():
    wide = np.array(
        [*EDGES_FLOAT["f8"], 1 + 2.0**-24, 1 + 2.0**-24 + 2.0**-50, 3.5e38, 2.0**-150, 1.5 * 2.0**-149]
    )
    with np.errstate(all="ignore"):
        narrow = wide.astype("f4")
    assert_same_floats(
        run_lanes("v_cvt_f32_f64_e32 v0, v[2:3]", wide, out="f4"), narrow.astype("f8").tolist()
    )
    assert_same_floats(
        run_lanes("v_cvt_f64_f32_e32 v[0:1], v2", narrow, out="f8"), narrow.astype("f8").tolist()
    )


def toward_zero(x):
    """float32 -> float16 bits, rounded toward zero: the last half not beyond x."""
    if math.isnan(x) or math.isinf(x):
        return np.float16(x)
    step = Fraction(2) ** max(math.frexp(x)[1] - 11, -24)
    size = min(math.floor(abs(Fraction(x)) / step) * step, 65504)
    return np.float16(math.copysign(float(size), x))


@given(st.lists(st.floats(width=32), min_size=20, max_size=64))
def test_pair_of_halves_toward_zero(values):
    a = np.array(values + [65519.0, 65520.0, 1e9, 2.0**-25, -(2.0**-24), 1.00048828125], "f4")
    got = run_lanes("v_cvt_pkrtz_f16_f32 v0, v2, v4", a, a[::-1].copy()).view("f2").reshape(-1, 2)
    expected = [toward_zero(float(x)) for x in a]
    assert_same_floats(got[:, 0].copy(), expected, [a])
    assert_same_floats(got[:, 1].copy(), expected[::-1], [a[::-1]])


def test_pairs_of_integers():
    a, b = pairs(EDGES32, EDGES32)
    both = list(zip(a.tolist(), b.tolist(), strict=True))
    got = run_lanes("v_cvt_pk_u16_u32 v0, v2, v4", a, b)
    assert got.tolist() == [min(x, 65535) | min(y, 65535) << 16 for x, y in both]

    def clip(x):
        return min(max(signed(x), -32768), 32767) & 0xFFFF

    got = run_lanes("v_cvt_pk_i16_i32 v0, v2, v4", a, b)
    assert got.tolist() == [clip(x) | clip(y) << 16 for x, y in both]
    values = np.float32([0, 1, -1, 0.5, -0.5, 2, -2, math.nan, math.inf, 0.25, 1 / 32767])
    got = run_lanes("v_cvt_pknorm_i16_f32 v0, v2, v2", values)
    expected = [0, 32767, -32767, 16384, -16384, 32767, -32767, 0, 32767, 8192, 1]  # 16383.5 and 8191.75
    assert got.tolist() == [(x & 0xFFFF) * 0x10001 for x in expected]


def test_pairs_of_sixteen_bit_floats_of_gfx950():
    source = np.concatenate([NEIGHBOURS[::37], RANDOM])
    with np.errstate(all="ignore"):
        brain = source.astype(ml_dtypes.bfloat16)
        half = source.astype("f2")
    got = run_lanes("v_cvt_pk_bf16_f32 v0, v2, v4", source, np.roll(source, 1), setup=mode(fnuz=False))
    pair = got.view(ml_dtypes.bfloat16).reshape(-1, 2)
    assert_same_floats(pair[:, 0].astype("f4"), brain.astype("f4").tolist())
    assert_same_floats(pair[:, 1].astype("f4"), np.roll(brain, 1).astype("f4").tolist())
    got = run_lanes("v_cvt_pk_f16_f32 v0, v2, v4", source, np.roll(source, 1), setup=mode(fnuz=False))
    pair = got.view("f2").reshape(-1, 2)
    assert_same_floats(pair[:, 0].copy(), half.tolist())
    assert_same_floats(pair[:, 1].copy(), np.roll(half, 1).tolist())


WIDER = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


@pytest.mark.parametrize("form", ["fp8", "bf8"])
@pytest.mark.parametrize("wide", WIDER)
def test_scaled_fp8_of_gfx950(form, wide):
    """OCP types, with the scale 1.0 that Triton uses; op_sel picks the half that holds the bytes."""
    dtype = FP8[form, False]
    with np.errstate(all="ignore"):
        source = np.concatenate([NEIGHBOURS[::5], RANDOM]).astype(WIDER[wide])
        source = source[: source.size // 2 * 2]
        expected = source.astype("f4").astype(dtype)
    if wide == "f32":
        sources, operands, last = [source[0::2].copy(), source[1::2].copy()], "v2, v4", "[0,0,0,1]"
    else:
        sources, operands, last = [source.view("u4")], "v2", "[0,0,1]"
    for half, modifier in ((0, ""), (1, f" op_sel:{last}")):
        text = f"v_cvt_scalef32_pk_{form}_{wide} v0, {operands}, 1.0{modifier}"
        got = run_lanes(text, *sources, setup=mode(fnuz=False)).view("u2")[half::2]
        assert_same_fp8(np.ascontiguousarray(got).view("u1"), expected, source)
    out, target = ("u8", "v[0:1]") if wide == "f32" else ("u4", "v0")
    for half, modifier in ((0, ""), (1, " op_sel:[1,0,0]")):
        text = f"v_cvt_scalef32_pk_{wide}_{form} {target}, v2, 1.0{modifier}"
        got = run_lanes(text, SPREAD, out=out, setup=mode(fnuz=False)).view(WIDER[wide]).astype("f4")
        halves = SPREAD.view("u2")[half::2]
        assert_same_floats(got, np.ascontiguousarray(halves).view(dtype).astype("f4").tolist())


FP4 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]


def scaled_up(values, exponents, wide):
    """Each value times 2**(exponent - 127), NaN for 255: exact in float64, then rounded once to `wide`."""
    with np.errstate(all="ignore"):
        powers = np.where(exponents == 255, np.nan, 2.0 ** (exponents.astype("f8") - 127))
        return (values.astype("f8") * np.repeat(powers, 2)).astype(WIDER[wide]).astype("f4")


@pytest.mark.parametrize("form", ["fp8", "bf8", "fp4"])
@pytest.mark.parametrize("wide", WIDER)
def test_scaled_up_on_gfx950(form, wide):
    """All the scales there are; its other bits are noise. op_sel picks the half or, for fp4, the byte."""
    words = np.resize(SPREAD, 256).view("u4")
    exponents = np.random.default_rng(3).permutation(256).astype("u4")
    noise = np.random.default_rng(4).integers(0, 2**32, 256, "u4") & ~np.uint32(0xFF << 23)
    out, target = ("u8", "v[0:1]") if wide == "f32" else ("u4", "v0")
    for part in range(4 if form == "fp4" else 2):
        text = f"v_cvt_scalef32_pk_{wide}_{form} {target}, v2, v4 op_sel:[{part & 1},{part >> 1},0]"
        got = run_lanes(text, words, noise | exponents << np.uint32(23), out=out, setup=mode(fnuz=False))
        if form == "fp4":
            byte = words >> np.uint32(8 * part)
            values = np.array([[FP4[b & 15], FP4[b >> 4 & 15]] for b in byte.tolist()]).ravel()
        else:
            values = np.ascontiguousarray(words.view("u2")[part::2]).view(FP8[form, False]).astype("f4")
        assert_same_floats(got.view(WIDER[wide]).astype("f4"), scaled_up(values, exponents, wide).tolist())


# Bits 8n.. of a register by their SDWA name.
FIELDS = {**{f"BYTE_{n}": (8 * n, 8) for n in range(4)}, **{f"WORD_{n}": (16 * n, 16) for n in range(2)},
          "DWORD": (0, 32)}  # fmt: skip


PAD, PRESERVE = "dst_unused:UNUSED_PAD", "dst_unused:UNUSED_PRESERVE"


def field(value, name):
    shift, width = FIELDS[name]
    return value >> shift & ((1 << width) - 1)


@pytest.mark.parametrize("first", FIELDS)
@pytest.mark.parametrize("second", ["BYTE_3", "WORD_1", "DWORD"])
def test_sdwa_sources(first, second):
    a, b = pairs(EDGES32, EDGES32)
    both = list(zip(a.tolist(), b.tolist(), strict=True))
    select = f"dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:{first} src1_sel:{second}"
    got = run_lanes(f"v_or_b32_sdwa v0, v2, v4 {select}", a, b)
    assert got.tolist() == [field(x, first) | field(y, second) for x, y in both]
    got = run_lanes(f"v_add_u32_sdwa v0, sext(v2), v4 {select}", a, b)
    widths = FIELDS[first][1]
    assert got.tolist() == [signed(field(x, first), widths) + field(y, second) & 0xFFFFFFFF for x, y in both]


@pytest.mark.parametrize("target", FIELDS)
@pytest.mark.parametrize("unused", ["UNUSED_PAD", "UNUSED_PRESERVE"])
def test_sdwa_results(target, unused):
    """PAD zeroes the rest of the register, PRESERVE keeps it (pitfall 7)."""
    a, b = pairs(EDGES32, EDGES32)
    old = np.roll(a, 3)
    shift, width = FIELDS[target]
    mask = ((1 << width) - 1) << shift
    text = f"v_xor_b32_sdwa v0, v2, v4 dst_sel:{target} dst_unused:{unused} src0_sel:DWORD src1_sel:DWORD"
    got = run_lanes(text, a, b, old=old)
    rest = [(x & ~mask if unused == "UNUSED_PRESERVE" else 0) for x in old.tolist()]
    expected = [(x ^ y) << shift & mask | z for x, y, z in zip(a.tolist(), b.tolist(), rest, strict=True)]
    assert got.tolist() == expected


@pytest.mark.parametrize(
    "text,source,out,expected",
    [
        ("v_cvt_f32_f16_sdwa v0, v2 src0_sel:WORD_1", 0xC0003C00, "f4", -2.0),
        ("v_cvt_f32_f16_sdwa v0, -v2 src0_sel:WORD_0", 0xC0003C00, "f4", -1.0),
        ("v_cvt_f32_f16_sdwa v0, |v2| src0_sel:WORD_1", 0xC0003C00, "f4", 2.0),
        ("v_cvt_f32_i32_sdwa v0, sext(v2) src0_sel:BYTE_3", 0x80000000, "f4", -128.0),
        ("v_cvt_f32_u32_sdwa v0, v2 src0_sel:BYTE_3", 0x80000000, "f4", 128.0),
        ("v_cvt_f16_i16_sdwa v0, sext(v2) src0_sel:BYTE_1", 0x0000FE00, "f2", -2.0),
        ("v_cvt_f16_u16_sdwa v0, v2 src0_sel:BYTE_1", 0x0000FE00, "f2", 254.0),
        ("v_cvt_i16_f16_sdwa v0, v2 src0_sel:WORD_1", 0xC2003C00, "u4", 0xFFFD),
        (f"v_cvt_i32_f32_sdwa v0, v2 dst_sel:BYTE_1 {PAD} src0_sel:DWORD", 0xC0400000, "u4", 0xFD00),
        (f"v_lshlrev_b32_sdwa v0, v3, v2 {PAD} src0_sel:BYTE_1 src1_sel:WORD_1", 0x00050000, "u4", 0x50),
        (f"v_mov_b32_sdwa v0, v2 dst_sel:WORD_1 {PRESERVE} src0_sel:BYTE_0", 0x7F, "u4", 0x7F1234),
        (f"v_add_f16_sdwa v0, v2, v2 dst_sel:WORD_1 {PRESERVE} src0_sel:WORD_0 src1_sel:WORD_1",
         0xC0004200, "u4", 0x3C001234),
    ],
)  # fmt: skip
def test_sdwa_forms(text, source, out, expected):
    state = make_state()
    state.v[0], state.v[2], state.v[3] = 0x1234, source, 0xFF04FF
    execute(state, text)
    got = state.v[0][0, :1].view(out)[0]
    assert got == expected


def test_sdwa_compare_and_select():
    state = make_state()
    state.v[2], state.v[4] = lanes([0x00010002, 0x00020001, 0x7E007E01], "u4"), lanes([0x00020001], "u4")
    execute(state, "v_cmp_eq_u16_sdwa s[8:9], v2, v4 src0_sel:WORD_1 src1_sel:WORD_0")
    execute(state, f"v_cndmask_b32_sdwa v0, v2, v4, vcc dst_sel:DWORD {PAD} src0_sel:DWORD src1_sel:WORD_1")
    assert state.s[8][0, 0] & 7 == 0b001
    assert (state.v[0] == state.v[2]).all()
    execute(state, "s_mov_b64 vcc, -1\nv_cndmask_b32_sdwa v0, v2, v4, vcc src0_sel:DWORD src1_sel:WORD_1")
    assert (state.v[0] == 2).all()
    execute(state, "v_cmp_o_f16_sdwa s[8:9], v2, v2 src0_sel:WORD_1 src1_sel:WORD_1")
    assert state.s[8][0, 0] & 7 == 0b011


@pytest.mark.parametrize(
    "text,names",
    [
        ("v_cvt_sr_fp8_f32 v0, v2, v4", "stochastic"),
        ("v_cvt_sr_bf16_f32 v0, v2, v4", "stochastic"),
        ("v_cvt_scalef32_pk_fp8_f32 v0, v2, v4, v6", "scale"),
        ("v_cvt_scalef32_pk_f32_fp8 v[0:1], v2, v4 op_sel:[0,1,0]", "op_sel"),
        ("v_cvt_scalef32_pk_f32_fp4 v[0:1], v2, v4 op_sel:[0,0,1]", "op_sel"),
        ("v_cvt_pk_fp8_f32 v0, v2, v4 clamp", "clamp"),
        ("v_xor_b32_sdwa v0, v2, v4 dst_sel:BYTE_1 dst_unused:UNUSED_SEXT", "UNUSED_SEXT"),
        ("v_xor_b32_sdwa v0, v2, v4 src0_sel:NIBBLE_1", "NIBBLE_1"),
        ("v_add_f32_sdwa v0, v2, v4 mul:2", "mul"),
        ("v_cvt_f16_f32_e64 v0, v2 clamp", "clamp"),
    ],
)
def test_what_is_not_implemented_is_refused(text, names):
    with pytest.raises(UnsupportedInstruction, match=names):
        execute(make_state(), text)
