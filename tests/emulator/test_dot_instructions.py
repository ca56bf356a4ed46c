"""v_dot2, v_dot4 and v_dot8 against Python integers and exact fractions."""

import itertools
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import UnsupportedInstruction
from tests.emulator.harness import EDGES32, EDGES_FLOAT, execute, make_state, rounded, run_lanes, signed

U32 = st.integers(0, 2**32 - 1)
INTEGER = [(2, "i", 16), (2, "u", 16), (4, "i", 8), (4, "u", 8), (8, "i", 4), (8, "u", 4)]
FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
TRIPLES = np.array(list(itertools.product(EDGES32, repeat=3)), np.uint32).T


def fields(word, bits, kind):
    parts = [word >> at & (1 << bits) - 1 for at in range(0, 32, bits)]
    return [signed(part, bits) for part in parts] if kind == "i" else parts


def integer_dot(a, b, c, bits, kind):
    products = [x * y for x, y in zip(fields(a, bits, kind), fields(b, bits, kind), strict=True)]
    return (c + sum(products)) % 2**32


@pytest.mark.parametrize("count,kind,bits", INTEGER)
def test_integer_edges(count, kind, bits):
    got = run_lanes(f"v_dot{count}_{kind}32_{kind}{bits} v0, v2, v4, v6", *TRIPLES)
    rows = zip(*(column.tolist() for column in TRIPLES), strict=True)
    assert got.tolist() == [integer_dot(a, b, c, bits, kind) for a, b, c in rows]


@pytest.mark.parametrize("count,kind,bits", INTEGER)
@given(st.lists(st.tuples(U32, U32, U32), min_size=1, max_size=64))
def test_integers(count, kind, bits, rows):
    columns = np.array(rows, np.uint32).T
    got = run_lanes(f"v_dot{count}_{kind}32_{kind}{bits} v0, v2, v4, v6", *columns)
    assert got.tolist() == [integer_dot(a, b, c, bits, kind) for a, b, c in rows]


@pytest.mark.parametrize("count,bits", [(2, 16), (4, 8), (8, 4)])
@given(st.lists(st.tuples(U32, U32, U32), min_size=1, max_size=64))
def test_integers_added_to_the_destination(count, bits, rows):
    a, b, c = np.array(rows, np.uint32).T
    c = np.resize(c, -(-c.size // 64) * 64)
    got = run_lanes(f"v_dot{count}c_i32_i{bits}_e32 v0, v2, v4", a, b, old=c)
    assert got.tolist() == [integer_dot(*row, bits, "i") for row in rows]


def float_sources(kind, seed):
    """Two sources of pairs [n, 2] and a float32 addend [n]; edges, and numbers of about one size."""
    rng = np.random.default_rng(seed)
    edges = np.array([x for x in EDGES_FLOAT["f2"] if math.isfinite(x)])
    pairs = [np.where(rng.random((256, 2)) < 0.3, rng.choice(edges, (256, 2)), rng.normal(size=(256, 2)))
             for _ in range(2)]  # fmt: skip
    return [pair.astype(FLOATS[kind]) for pair in pairs], rng.normal(size=256).astype(np.float32)


def packed(pair):
    return np.ascontiguousarray(pair).view(np.uint32).ravel()


def assert_near_exact(got, pairs, addend):
    """Rounded once, but for what float64 lost: the nearest float32, or its neighbour at a tie."""
    a, b = (pair.astype(np.float64) for pair in pairs)
    for row, value in enumerate(got.tolist()):
        products = [Fraction(a[row, k]) * Fraction(b[row, k]) for k in (0, 1)]
        exact = sum(products) + Fraction(float(addend[row]))
        nearest = rounded(exact, "f4")
        if 0 < abs(nearest) < 2.0**-126:
            nearest = 0.0
        slack = (sum(map(abs, products)) + abs(Fraction(float(addend[row])))) * Fraction(2) ** -52
        tie = abs(abs(exact - Fraction(value)) - abs(exact - Fraction(nearest))) <= slack
        assert value == nearest or tie, (row, value, nearest)


@pytest.mark.parametrize("kind", FLOATS)
def test_float_products(kind):
    pairs, addend = float_sources(kind, 1)
    sources = [packed(pair) for pair in pairs]
    got = run_lanes(f"v_dot2_f32_{kind} v0, v2, v4, v6", *sources, addend, out="f4")
    assert_near_exact(got, pairs, addend)
    got = run_lanes(f"v_dot2c_f32_{kind}_e32 v0, v2, v4", *sources, old=addend, out="f4")
    assert_near_exact(got, pairs, addend)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("low", list(itertools.product((0, 1), repeat=2)))
@pytest.mark.parametrize("high", list(itertools.product((0, 1), repeat=2)))
def test_which_halves_and_signs(kind, low, high):
    """Sources 1, 2 and 10, 100: each product tells which halves it took."""
    state = make_state(fnuz=False)
    state.v[2] = packed(np.array([[1, 2]], FLOATS[kind]))
    state.v[4] = packed(np.array([[10, 100]], FLOATS[kind]))
    state.v[6] = np.float32(1000).view(np.uint32)
    first, second = ([1, 2], [10, 100])
    for signs, addend in (((1, 1, 1, 1), 1000), ((-1, 1, 1, -1), 1000), ((1, -1, -1, 1), -1000)):
        neg_lo = [int(signs[0] < 0), int(signs[1] < 0), int(addend < 0)]
        neg_hi = [int(signs[2] < 0), int(signs[3] < 0), 0]
        text = "v_dot2_f32_{} v0, v2, v4, v6 op_sel:[{},{},0] op_sel_hi:[{},{},1] neg_lo:{} neg_hi:{}"
        lists = (str(bits).replace(" ", "") for bits in (neg_lo, neg_hi))
        execute(state, text.format(kind, *low, *high, *lists))
        low_product = signs[0] * first[low[0]] * signs[1] * second[low[1]]
        high_product = signs[2] * first[high[0]] * signs[3] * second[high[1]]
        assert (state.v[0].view(np.float32) == low_product + high_product + addend).all()


@pytest.mark.parametrize("kind,signed_", [("i", True), ("u", False)])
def test_which_halves_of_integers(kind, signed_):
    state = make_state()
    state.v[2], state.v[4], state.v[6] = 0xFFFF0002, 0x00050003, 7
    execute(state, f"v_dot2_{kind}32_{kind}16 v0, v2, v4, v6 op_sel:[1,0,0] op_sel_hi:[0,1,0]")
    top = -1 if signed_ else 0xFFFF
    assert (state.v[0] == (top * 3 + 2 * 5 + 7) % 2**32).all()


@pytest.mark.parametrize("kind", FLOATS)
def test_float_specials(kind):
    """Infinities and NaN go through; a float32 denormal reads and writes as zero, a narrow one counts."""
    inf, nan, tiny = math.inf, math.nan, np.float32(2.0**-140)
    a = np.array([[inf, 1], [inf, 0], [nan, 0], [0, 0], [0, 0]], FLOATS[kind])
    b = np.array([[1, 1], [0, 0], [0, 0], [1, 1], [0, 0]], FLOATS[kind])
    c = np.array([1, 1, 1, tiny, -0.0], np.float32)
    got = run_lanes(f"v_dot2_f32_{kind} v0, v2, v4, v6", packed(a), packed(b), c, out="f4")
    np.testing.assert_equal(got, np.array([inf, nan, nan, 0, 0], np.float32))
    least = {"f16": 2.0**-24, "bf16": 2.0**-133}[kind]
    a, b = np.array([[least, 0]], FLOATS[kind]), np.array([[2.0**15, 0]], FLOATS[kind])
    c = np.zeros(1, np.float32)
    got = run_lanes(f"v_dot2_f32_{kind} v0, v2, v4, v6", packed(a), packed(b), c, out="f4")
    assert got[0] == least * 2.0**15


@pytest.mark.parametrize(
    "text,names",
    [
        ("v_dot2_f32_f16 v0, v2, v4, v6 clamp", "clamp"),
        ("v_dot4_i32_i8 v0, v2, v4, v6 clamp", "clamp"),
        ("v_dot8_u32_u4 v0, v2, v4, v6 op_sel_hi:[0,0,0]", "op_sel_hi"),
        ("v_dot2_i32_i16 v0, v2, v4, v6 neg_lo:[1,0,0]", "neg_lo"),
        ("v_dot2_u32_u16 v0, v2, v4, v6 neg_lo:[0,0,1]", "neg_lo"),
        ("v_dot2_f32_f16 v0, v2, v4, v6 op_sel:[0,0,1]", "half of the sum"),
        ("v_dot2_f32_bf16 v0, 1.0, v4, v6", "constant of bfloat16"),
    ],
)
def test_what_is_not_implemented_is_refused(text, names):
    with pytest.raises(UnsupportedInstruction, match=names):
        execute(make_state(fnuz=False), text)
