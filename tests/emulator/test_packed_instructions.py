"""Packed and mixed-precision instructions: which part of each operand is read, negated and written."""

import itertools
import math

import numpy as np
import pytest

from labkit.errors import UnsupportedInstruction
from tests.emulator.harness import (
    EDGES_FLOAT,
    assert_same_floats,
    exactly,
    execute,
    lanes,
    make_state,
    run_lanes,
    set_exec,
    signed,
)

pytestmark = pytest.mark.usefixtures("engine")

FUNCTIONS = {
    "add": (2, lambda a, b: a + b),
    "mul": (2, lambda a, b: a * b),
    "fma": (3, lambda a, b, c: a * b + c),
}
RNG = np.random.default_rng(2)


def parts(kind, count):
    """Pairs of values [n, 2] for each of `count` sources, and as the bits of registers."""
    edges = np.array(EDGES_FLOAT["f2" if kind == "f16" else "f4"]).astype("f2" if kind == "f16" else "f4")
    values = [edges[RNG.integers(0, edges.size, (192, 2))] for _ in range(count)]
    return values, [np.ascontiguousarray(v).view("u4" if kind == "f16" else "u8").ravel() for v in values]


def bit_lists(count):
    return list(itertools.product((0, 1), repeat=count))


def text_of(bits):
    return f"[{','.join(map(str, bits))}]"


def expected_pairs(function, values, kind, low, high, neg_low, neg_high):
    """The two results, each from the chosen part of each source, negated where told so."""
    code = "f2" if kind == "f16" else "f4"
    columns = []
    for chosen, negated in ((low, neg_low), (high, neg_high)):
        picked = [
            v[:, part].astype(float) * (-1.0 if n else 1.0)
            for v, part, n in zip(values, chosen, negated, strict=True)
        ]
        columns.append([exactly(function, code, *map(float, row)) for row in zip(*picked, strict=True)])
    return np.array(columns).T


@pytest.mark.parametrize("kind", ["f32", "f16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_op_sel_and_neg(name, kind):
    """Each choice of op_sel and op_sel_hi, and each sign, over edge values.

    op_sel serves the low result (0 for want of it), op_sel_hi the high one (1): pitfall 8.
    """
    count, function = FUNCTIONS[name]
    values, sources = parts(kind, count)
    operands = [f"v[{k}:{k + 1}]" if kind == "f32" else f"v{k}" for k in range(0, 2 * count + 2, 2)]
    out, code = ("u8", "f4") if kind == "f32" else ("u4", "f2")
    zeros = (0,) * count
    cases = [(low, (1,) * count, zeros, zeros) for low in bit_lists(count)]
    cases += [(zeros, high, zeros, zeros) for high in bit_lists(count)]
    cases += [(zeros, (1,) * count, low, low[::-1]) for low in bit_lists(count)]
    for low, high, neg_low, neg_high in cases:
        text = f"v_pk_{name}_{kind} {', '.join(operands)}"
        for modifier, bits, default in (("op_sel", low, 0), ("op_sel_hi", high, 1), ("neg_lo", neg_low, 0),
                                        ("neg_hi", neg_high, 0)):  # fmt: skip
            text += "" if set(bits) == {default} else f" {modifier}:{text_of(bits)}"
        got = run_lanes(text, *sources, out=out).view(code).reshape(-1, 2)
        expected = expected_pairs(function, values, kind, low, high, neg_low, neg_high)
        assert_same_floats(got.ravel(), expected.ravel().tolist())


def test_half_minimum_and_maximum():
    """The number where one is NaN, and -0 below +0."""
    values, sources = parts("f16", 2)

    def smallest(a, b):
        if math.isnan(a) or math.isnan(b):
            return b if math.isnan(a) else a
        return min(a, b, key=lambda x: (x, math.copysign(1, x)))

    pairs = list(zip(values[0].ravel().tolist(), values[1].ravel().tolist(), strict=True))
    got = run_lanes("v_pk_min_f16 v0, v2, v4", *sources).view("f2")
    assert_same_floats(got, [smallest(a, b) for a, b in pairs])
    got = run_lanes("v_pk_max_f16 v0, v2, v4", *sources).view("f2")
    assert_same_floats(got, [-smallest(-a, -b) for a, b in pairs])


INTEGERS = {
    "add_u16": lambda a, b: a + b,
    "add_i16": lambda a, b: a + b,
    "sub_u16": lambda a, b: a - b,
    "sub_i16": lambda a, b: a - b,
    "mul_lo_u16": lambda a, b: a * b,
    "min_u16": min,
    "max_u16": max,
    "min_i16": lambda a, b: min(signed(a, 16), signed(b, 16)),
    "max_i16": lambda a, b: max(signed(a, 16), signed(b, 16)),
    "lshlrev_b16": lambda n, a: a << n % 16,
    "lshrrev_b16": lambda n, a: a >> n % 16,
    "ashrrev_i16": lambda n, a: signed(a, 16) >> n % 16,
    "mad_u16": lambda a, b, c: a * b + c,
    "mad_i16": lambda a, b, c: a * b + c,
}


@pytest.mark.parametrize("name", INTEGERS)
def test_packed_integers(name):
    count = 3 if "mad" in name else 2
    edges = np.array([0, 1, 15, 16, 0x7FFF, 0x8000, 0x8001, 0x1234, 0xFFFF], "u2")
    values = [edges[RNG.integers(0, 9, (192, 2))] for _ in range(count)]
    sources = [np.ascontiguousarray(v).view("u4").ravel() for v in values]
    operands = ", ".join(f"v{2 * k}" for k in range(count + 1))
    for swapped in (False, True):
        modifiers = f" op_sel:{text_of((1,) * count)} op_sel_hi:{text_of((0,) * count)}" if swapped else ""
        got = run_lanes(f"v_pk_{name} {operands}{modifiers}", *sources).view("u2").reshape(-1, 2)
        for part in range(2):
            rows = zip(*(v[:, 1 - part if swapped else part].tolist() for v in values), strict=True)
            assert got[:, part].tolist() == [INTEGERS[name](*row) & 0xFFFF for row in rows]


@pytest.mark.parametrize("name", [name for name in INTEGERS if name[:3] in ("add", "sub", "mad")])
def test_packed_integers_that_saturate(name):
    """With clamp a result stops at the ends of its type."""
    count, has_sign = 3 if "mad" in name else 2, "i16" in name
    low, high = (-(1 << 15), (1 << 15) - 1) if has_sign else (0, (1 << 16) - 1)
    edges = np.array([0, 1, 2, 255, 0x7FFF, 0x8000, 0x8001, 0x1234, 0xFFFF], "u2")
    values = [edges[RNG.integers(0, 9, 192)] for _ in range(count)]
    sources = [v.astype("u4") * 0x10001 for v in values]
    operands = ", ".join(f"v{2 * k}" for k in range(count + 1))
    got = run_lanes(f"v_pk_{name} {operands} clamp", *sources).view("u2").reshape(-1, 2)
    for row, result in zip(zip(*[v.tolist() for v in values], strict=True), got.tolist(), strict=True):
        exact = INTEGERS[name](*(signed(x, 16) if has_sign else x for x in row))
        assert result == [min(max(exact, low), high) & 0xFFFF] * 2


@pytest.mark.parametrize(
    ("kind", "code", "registers"), [("f16", "f2", "v{}"), ("f32", "f4", "v[{}:{}]")], ids=["f16", "f32"]
)
def test_packed_floats_that_clamp(kind, code, registers):
    """To 0..1, and NaN to 0."""
    values = np.array([-3.0, -0.5, 0.25, 1.0, 7.0, math.inf, -math.inf, math.nan], code)
    pair = np.ascontiguousarray(np.stack([values, values[::-1]], 1)).view("u4" if kind == "f16" else "u8")
    operands = ", ".join(registers.format(k, k + 1) for k in (0, 2, 4))
    one = np.ones(2, code).view(pair.dtype)
    got = run_lanes(f"v_pk_mul_{kind} {operands} clamp", pair.ravel(), one, out=f"u{pair.itemsize}")
    clamped = [0.0, 0.0, 0.25, 1.0, 1.0, 1.0, 0.0, 0.0]
    assert got.view(code).reshape(-1, 2).tolist() == [
        list(x) for x in zip(clamped, clamped[::-1], strict=True)
    ]


@pytest.mark.parametrize(
    "text,expected",
    [
        # Scalar pairs give both registers; a constant serves both only with op_sel_hi 0.
        ("v_pk_add_f32 v[0:1], s[34:35], v[4:5]", (1.5 + 10, 2.5 + 20)),
        ("v_pk_add_f32 v[0:1], s[34:35], v[4:5] op_sel_hi:[0,1]", (1.5 + 10, 1.5 + 20)),
        ("v_pk_mul_f32 v[0:1], v[4:5], 2.0 op_sel_hi:[1,0]", (20, 40)),
        ("v_pk_mul_f32 v[0:1], v[4:5], s[34:35] op_sel:[1,0] op_sel_hi:[0,1]", (20 * 1.5, 10 * 2.5)),
        ("v_pk_fma_f32 v[0:1], v[4:5], s[34:35], v[4:5] neg_lo:[1,0,0] neg_hi:[0,0,1]", (-5, 30)),
        # The result overlaps a source: both are computed before either is written (pitfall 8).
        (
            "v_pk_mul_f32 v[4:5], v[4:5], v[4:5] op_sel:[1,0] op_sel_hi:[0,1]\nv_mov_b64_e32 v[0:1], v[4:5]",
            (200, 200),
        ),
        ("v_pk_add_f32 v[0:1], v[0:1], v[4:5] op_sel:[0,1] op_sel_hi:[0,0]", (23, 13)),
        ("v_pk_mov_b32 v[0:1], v[4:5], s[34:35] op_sel:[1,0]", (20, 1.5)),
        ("v_pk_mov_b32 v[4:5], v[4:5], v[4:5] op_sel:[1,0]\nv_mov_b64_e32 v[0:1], v[4:5]", (20, 10)),
    ],
)
def test_float_pairs(text, expected):
    state = make_state()
    state.v[0], state.v[1] = lanes([3.0], "f4"), lanes([7.0], "f4")
    state.v[4], state.v[5] = lanes([10.0], "f4"), lanes([20.0], "f4")
    state.s[34], state.s[35] = 0x3FC00000, 0x40200000
    execute(state, text)
    assert (state.v[:2].view(np.float32)[:, 0] == np.array(expected, "f4")[:, None]).all()


def test_packed_constants_of_16_bits():
    """A constant is one 32-bit word: a float lies in its low half, an integer fills it."""
    state = make_state()
    state.v[2] = 0x40003C00  # 2.0, 1.0
    execute(state, "v_pk_mul_f16 v0, v2, 4.0 op_sel_hi:[1,0]\nv_pk_add_u16 v1, v2, -1")
    execute(state, "v_pk_add_u16 v3, v2, 5 op_sel_hi:[1,0]\nv_pk_lshlrev_b16 v4, 4, v2 op_sel_hi:[0,1]")
    assert [hex(state.v[k][0, 0]) for k in (0, 1, 3, 4)] == [
        "0x48004400",
        "0x3fff3bff",
        "0x40053c05",
        "0xc000",
    ]


def test_lanes_that_are_off_keep_both_parts():
    state = make_state()
    state.v[:8] = lanes([1.0], "f4")
    set_exec(state, 1 << 5)
    execute(state, "v_pk_add_f32 v[0:1], v[4:5], v[6:7]\nv_pk_mov_b32 v[2:3], v[0:1], v[0:1] op_sel:[0,1]")
    for k in range(4):
        assert np.flatnonzero(state.v[k].view(np.float32)[0] != 1).tolist() == [5]


def test_mixed_precision():
    """op_sel_hi says which sources are halves, op_sel which half; nothing said is all float32 (pitfall 8)."""
    state = make_state()
    half = np.array([1.5, -2.0], "f2").view("u4")[0]
    state.v[2], state.v[4], state.v[6] = int(half), lanes([3.0], "f4"), lanes([0.25], "f4")
    state.s[11] = int(half)
    for text, expected in {
        "v4, v4, v6": 9.25,
        "v2, v4, v6 op_sel_hi:[1,0,0]": 4.75,
        "v2, v4, v6 op_sel:[1,0,0] op_sel_hi:[1,0,0]": -5.75,
        "-v2, v4, v6 op_sel_hi:[1,0,0]": -4.25,
        "|v2|, v4, -v6 op_sel:[1,0,0] op_sel_hi:[1,0,0]": 5.75,
        "v4, s11, v2 op_sel:[0,1,0] op_sel_hi:[0,1,1]": -4.5,
        "v2, v2, v2 op_sel:[0,1,1] op_sel_hi:[1,1,1]": -5.0,
        "v4, 2.0, v6": 6.25,
    }.items():
        execute(state, f"v_fma_mix_f32 v0, {text}")
        assert (state.v[0].view(np.float32) == np.float32(expected)).all(), text


def test_mixed_precision_rounds_once_to_float32():
    a, b, c = (np.resize(np.array(EDGES_FLOAT["f4"], "f4"), n * 26)[::n][:26] for n in (1, 3, 5))
    expected = [exactly(lambda x, y, z: x * y + z, "f4", *map(float, v)) for v in zip(a, b, c, strict=True)]
    assert_same_floats(run_lanes("v_fma_mix_f32 v0, v2, v4, v6", a, b, c, out="f4"), expected)


def test_mixed_precision_results_in_one_half():
    state = make_state()
    state.v[0] = state.v[1] = 0x11112222
    state.v[2], state.v[3] = lanes([3.0], "f4"), lanes([1e6], "f4")
    execute(state, "v_fma_mixlo_f16 v0, v2, v2, 0\nv_fma_mixhi_f16 v1, v2, v2, 0")
    assert (state.v[0][0, 0], state.v[1][0, 0]) == (0x11114880, 0x48802222)
    execute(state, "v_fma_mixlo_f16 v0, v3, v2, 0")
    assert state.v[0][0, 0] == 0x11117C00
    state.fp16_overflow[...] = True
    execute(state, "v_fma_mixlo_f16 v0, v3, v2, 0")
    assert state.v[0][0, 0] == 0x11117BFF


def test_pack():
    """op_sel picks the half of each source."""
    state = make_state()
    state.v[2], state.v[4] = 0x11112222, 0x33334444
    halves = {"": 0x44442222, "[1,0,0]": 0x44441111, "[0,1,0]": 0x33332222, "[1,1,0]": 0x33331111}
    for chosen, expected in halves.items():
        modifier = f" op_sel:{chosen}" if chosen else ""
        execute(state, f"v_pack_b32_f16 v0, v2, v4{modifier}")
        assert state.v[0][0, 0] == expected
    execute(state, "v_pack_b32_f16 v0, -v2, 1.0")
    assert state.v[0][0, 0] == 0x3C00A222


@pytest.mark.parametrize(
    "text,names",
    [
        ("v_pk_mul_lo_u16 v0, v2, v4 clamp", "clamp"),
        ("v_pk_mul_f32 v[0:1], v[2:3], 2.0", "packed float32 constant"),
        ("v_fma_mix_f32 v0, v2, v4, v6 clamp", "clamp"),
        ("v_pk_mov_b32 v[0:1], v[2:3], v[4:5] neg_lo:[1,0]", "neg_lo"),
        ("v_pack_b32_f16 v0, v2, v4 op_sel:[0,0,1]", "op_sel"),
    ],
)
def test_what_is_not_implemented_is_refused(text, names):
    with pytest.raises(UnsupportedInstruction, match=names):
        execute(make_state(), text)
