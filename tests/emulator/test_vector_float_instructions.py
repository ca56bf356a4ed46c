"""Each vector floating-point instruction against exact fractions, or Python's math for the functions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import UnsupportedInstruction
from tests.emulator.harness import (
    EDGES_FLOAT,
    assert_same_floats,
    exactly,
    execute,
    float_edges,
    lanes,
    make_state,
    run_lanes,
)

pytestmark = pytest.mark.usefixtures("engine")

ARITHMETIC = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "subrev": lambda a, b: b - a,
    "mul": lambda a, b: a * b,
}
KINDS = {"f16": "f2", "f32": "f4", "f64": "f8"}


def operands(kind, count):
    return [f"v[{k}:{k + 1}]" if kind == "f64" else f"v{k}" for k in range(0, 2 * count + 2, 2)]


def check(name, kind, function, sources):
    """`function` takes and returns Python floats."""
    text = f"{name} {', '.join(operands(kind, len(sources)))}"
    expected = [function(*map(float, row)) for row in zip(*sources, strict=True)]
    assert_same_floats(run_lanes(text, *sources, out=KINDS[kind]), expected, sources)


@pytest.mark.parametrize(
    "kind,name", [(k, n) for k in KINDS for n in ARITHMETIC if (k, n[:3]) != ("f64", "sub")]
)
def test_arithmetic(kind, name):
    """Denormals in and out included: float32's are on in Triton's kernels (pitfall 12)."""
    suffix = "" if kind == "f64" else "_e32"
    function = ARITHMETIC[name]
    check(
        f"v_{name}_{kind}{suffix}",
        kind,
        lambda *v: exactly(function, KINDS[kind], *v),
        float_edges(KINDS[kind], 2),
    )


def fma(a, b, c):
    return a * b + c


@pytest.mark.parametrize("kind", KINDS)
def test_fma_rounds_once_at_the_edges(kind):
    rows = float_edges(KINDS[kind], 3)
    # All triples are many; a stride that shares no factor with their number keeps every value at work.
    sources = [np.ascontiguousarray(column[::7]) for column in rows]
    check(f"v_fma_{kind}", kind, lambda *v: exactly(fma, KINDS[kind], *v), sources)


def floats(kind):
    """Finite values; of float16 by their bits, which hypothesis is quicker to make."""
    if kind == "f2":
        return st.integers(0, 0xFBFF).map(lambda b: float(np.uint16(b).view("f2"))).filter(math.isfinite)
    return st.floats(width=32 if kind == "f4" else 64, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("kind", KINDS)
def test_fma_rounds_once_anywhere(kind):
    @given(st.lists(st.tuples(*[floats(KINDS[kind])] * 3), min_size=20, max_size=64))
    def run(rows):
        sources = [np.array(column, KINDS[kind]) for column in zip(*rows, strict=True)]
        check(f"v_fma_{kind}", kind, lambda *v: exactly(fma, KINDS[kind], *v), sources)

    run()


@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_fma_near_a_tie(kind):
    """Products that land on or a hair beside a halfway point: rounding twice would go wrong."""
    rng = np.random.default_rng(5)
    bits = 10 if kind == "f16" else 23
    a = (1 + rng.integers(0, 1 << bits, 2000) * 2.0**-bits).astype(KINDS[kind])
    b = np.full(2000, 1 + 2.0 ** -(bits // 2 + 1), KINDS[kind])
    c = (
        rng.choice([-1, 1], 2000) * 2.0 ** rng.integers(-3 * bits if kind == "f32" else -24, 2, 2000)
    ).astype(a.dtype)
    check(f"v_fma_{kind}", kind, lambda *v: exactly(fma, KINDS[kind], *v), [a, b, c])


def test_fma_near_a_tie_between_denormals():
    """c plus half a step, but for 2^-46 of that half: in float64 the sum looks like a tie, and it is none."""
    a, b = np.float32((1 + 2.0**-23) * 2.0**-75), np.float32((1 - 2.0**-23) * 2.0**-75)
    steps = np.array([1 << 22, (1 << 22) + 1, (1 << 23) - 1, 12345677, 3, 4])
    c = np.concatenate([steps, -steps]) * 2.0**-149
    sources = [np.full(24, a), np.repeat([b, -b], 12), np.tile(c.astype("f4"), 2)]
    check("v_fma_f32", "f32", lambda *v: exactly(fma, "f4", *v), sources)


def test_fma_forms_that_keep_a_constant_or_the_destination():
    a, b = float_edges("f4", 2)
    old = np.roll(a, 5)
    k = np.uint32(0xBD5C1C4E).view(np.float32)
    got = run_lanes("v_fmac_f32_e32 v0, v2, v4", a, b, old=old, out="f4")
    assert_same_floats(got, [exactly(fma, "f4", *map(float, v)) for v in zip(a, b, old, strict=True)])
    got = run_lanes("v_fmaak_f32 v0, v2, v4, 0xbd5c1c4e", a, b, out="f4")
    assert_same_floats(
        got, [exactly(fma, "f4", float(x), float(y), float(k)) for x, y in zip(a, b, strict=True)]
    )
    got = run_lanes("v_fmamk_f32 v0, v2, 0xbd5c1c4e, v4", a, b, out="f4")
    assert_same_floats(
        got, [exactly(fma, "f4", float(x), float(k), float(y)) for x, y in zip(a, b, strict=True)]
    )
    a, b = float_edges("f8", 2)
    old = np.roll(a, 5)
    got = run_lanes("v_fmac_f64_e32 v[0:1], v[2:3], v[4:5]", a, b, old=old, out="f8")
    assert_same_floats(got, [exactly(fma, "f8", *map(float, v)) for v in zip(a, b, old, strict=True)])


def smallest(*values):
    """NaN only where all are; -0 below +0."""
    numbers = [value for value in values if not math.isnan(value)]
    return min(numbers, key=lambda x: (x, math.copysign(1, x))) if numbers else math.nan


def largest(*values):
    return -smallest(*[-value for value in values])


def middle(*values):
    if any(math.isnan(value) for value in values):
        return smallest(*values)
    return sorted(values, key=lambda x: (x, math.copysign(1, x)))[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name,function", [("min", smallest), ("max", largest)])
def test_min_and_max(name, function, kind):
    suffix = "" if kind == "f64" else "_e32"
    check(f"v_{name}_{kind}{suffix}", kind, function, float_edges(KINDS[kind], 2))


@pytest.mark.parametrize("name,function", [("min3", smallest), ("max3", largest), ("med3", middle)])
def test_three_way_min_max_and_median(name, function):
    values = [0.0, -0.0, 1.0, -1.0, 240.0, -240.0, 2.0**-149, math.inf, -math.inf, math.nan]
    grid = np.array(np.meshgrid(values, values, values)).reshape(3, -1).astype("f4")
    check(f"v_{name}_f32", "f32", function, list(grid))
    values[6] = 2.0**-24
    grid = np.array(np.meshgrid(values, values, values)).reshape(3, -1).astype("f2")
    got = run_lanes(f"v_{name}_f16 v0, v2, v4, v6", *grid, out="f2")
    assert_same_floats(got, [function(*map(float, row)) for row in grid.T])


def _round(function):
    def call(a):
        if not math.isfinite(a) or a == 0:
            return a
        return math.copysign(float(function(Fraction(a))), a)

    return call


def _fract(kind):
    below_one = {"f16": 1 - 2.0**-11, "f32": 1 - 2.0**-24, "f64": 1 - 2.0**-53}[kind]

    def call(a):
        if not math.isfinite(a):
            return math.nan
        # Where nothing is left, a + -floor(a) is +0, for -0 as well.
        return min(exactly(lambda x: x - math.floor(x), KINDS[kind], a), below_one) if a % 1 else 0.0

    return call


ROUNDING = {"trunc": math.trunc, "floor": math.floor, "ceil": math.ceil, "rndne": round}


@pytest.mark.parametrize("kind", KINDS)
def test_rounding_to_whole_numbers(kind):
    values = [*EDGES_FLOAT[KINDS[kind]], 0.49999997, -0.5, -0.75, 3.5, 4.5, -3.5, 1e-3, -1e-3]
    source = [np.array(values).astype(KINDS[kind])]
    for name, function in ROUNDING.items():
        check(f"v_{name}_{kind}_e32", kind, _round(function), source)
    check(f"v_fract_{kind}_e32", kind, _fract(kind), source)


@pytest.mark.parametrize("kind", KINDS)
def test_frexp(kind):
    """Denormals are left out: what their exponent reads as depends on a mode, by no text that I found."""
    tiny = float(np.finfo(KINDS[kind]).tiny)
    values = [x for x in EDGES_FLOAT[KINDS[kind]] if not 0 < abs(x) < tiny]
    source = np.array(values).astype(KINDS[kind])
    check(f"v_frexp_mant_{kind}_e32", kind, lambda a: math.frexp(a)[0], [source])
    if kind != "f16":
        text = f"v_frexp_exp_i32_{kind}_e32 v0, {operands(kind, 1)[1]}"
        expected = [math.frexp(x)[1] if math.isfinite(x) else 0 for x in source.tolist()]
        assert run_lanes(text, source, out="i4").tolist() == expected


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_ldexp(kind):
    powers = [0, 1, -1, 24, -24, 126, -126, -149, -150, 200, -200, 1100, -1100, 2**31 - 1, -(2**31)]
    values = EDGES_FLOAT[KINDS[kind]]
    a = np.repeat(np.array(values).astype(KINDS[kind]), len(powers))
    n = np.tile(np.array(powers, np.int32), len(values))

    def ldexp(x, power):
        if not math.isfinite(x) or x == 0:
            return x
        return exactly(lambda y: y * Fraction(2) ** max(min(power, 3000), -3000), KINDS[kind], x)

    expected = [ldexp(float(x), int(power)) for x, power in zip(a, n, strict=True)]
    first, second = ("v[0:1], v[2:3]", "v4") if kind == "f64" else ("v0, v2", "v4")
    assert_same_floats(
        run_lanes(f"v_ldexp_{kind} {first}, {second}", a, n, out=KINDS[kind]), expected, [a, n]
    )


def turns(function):
    """sin or cos of a number of turns, exactly reduced to an eighth of one."""

    def call(a):
        quarters = round(Fraction(a) * 4)
        rest = float(Fraction(a) - Fraction(quarters, 4)) * 2 * math.pi
        shift = quarters + (function is math.cos)
        value = math.cos(rest) if shift % 2 else math.sin(rest)
        return -value if shift % 4 >= 2 else value

    return call


UNITS = {
    "rcp_f32": lambda a: 1 / a if a else math.copysign(math.inf, a),
    "rcp_iflag_f32": lambda a: 1 / a if a else math.copysign(math.inf, a),
    "rsq_f32": lambda a: (1 / math.sqrt(a) if a > 0 else math.nan) if a else math.copysign(math.inf, a),
    "sqrt_f32": lambda a: math.sqrt(a) if a >= 0 else math.nan,
    "exp_f32": lambda a: math.exp2(min(a, 1000.0)) if a == a else a,
    "log_f32": lambda a: (math.log2(a) if a > 0 else math.nan) if a else -math.inf,
    "sin_f32": turns(math.sin),
    "cos_f32": turns(math.cos),
}


def assert_within_one_ulp(got, expected, inputs):
    """Within one unit in the last place, denormals as zeros; infinities and NaNs equal."""
    expected = np.array(expected)
    with np.errstate(all="ignore"):
        nearest = expected.astype(got.dtype)
        close = np.abs(got.astype("f8") - expected) <= np.spacing(np.abs(nearest)).astype("f8")
    flushed = (got == 0) & (np.abs(expected) < np.finfo(got.dtype).tiny)
    same = (got == nearest) | (np.isnan(got) & np.isnan(nearest))
    bad = np.flatnonzero(~(close | same | flushed))
    assert not bad.size, [(inputs[k], got[k], expected[k]) for k in bad[:5]]


@pytest.mark.parametrize("name", UNITS)
def test_units_are_within_one_unit_in_the_last_place(name):
    """The chip's results are about so exact; the denormals are the next test's (pitfall 12)."""
    rng = np.random.default_rng(11)
    values = [
        *rng.normal(0, 3, 300),
        *np.exp(rng.uniform(-80, 80, 300)),
        *rng.uniform(-150, 150, 300),
        0.0,
        -0.0,
        1,
        2,
        4,
    ]
    if name[:3] in ("sin", "cos"):
        values = [x for x in values if abs(x) <= 256] + [
            0.25,
            0.5,
            0.75,
            1.0,
            100.5,
            -200.25,
            256.0,
            1 / 8,
            1e-20,
        ]
    else:
        values += [math.nan, math.inf, -math.inf]
    source = np.array(values).astype("f4")
    source = np.where(np.abs(source) < 2.0**-126, np.copysign(0, source), source).astype("f4")
    expected = [UNITS[name](x) for x in source.tolist()]
    assert_within_one_ulp(run_lanes(f"v_{name}_e32 v0, v2", source, out="f4"), expected, source)


@pytest.mark.parametrize(
    "name,expected",
    [
        ("rcp_f32", [math.inf, -math.inf, 0.0, -0.0]),
        ("rsq_f32", [math.inf, -math.inf, 2.0**-63.5, math.nan]),
        ("sqrt_f32", [0.0, -0.0, 2.0**63.5, math.nan]),
        ("log_f32", [-math.inf, -math.inf, 127.0, math.nan]),
        ("exp_f32", [1.0, 1.0, math.inf, 0.0]),
    ],
)
def test_units_flush_denormals(name, expected):
    """Denormal arguments count as zero, and so do denormal results: that is why Triton scales around them."""
    source = np.array([2.0**-127, -(2.0**-127), 2.0**127, -(2.0**127)], "f4")
    assert_same_floats(run_lanes(f"v_{name}_e32 v0, v2", source, out="f4"), [np.float32(x) for x in expected])
    if name == "exp_f32":
        assert run_lanes("v_exp_f32_e32 v0, v2", np.array([-127, -126], "f4"), out="f4").tolist() == [
            0,
            2.0**-126,
        ]


def test_sin_and_cos_of_many_turns():
    source = np.array([257.0, -1e9, math.inf, math.nan], "f4")
    assert run_lanes("v_sin_f32_e32 v0, v2", source, out="f4")[:2].tolist() == [0, 0]
    assert run_lanes("v_cos_f32_e32 v0, v2", source, out="f4")[:2].tolist() == [1, 1]
    assert np.isnan(run_lanes("v_cos_f32_e32 v0, v2", source, out="f4")[2:]).all()


@pytest.mark.parametrize("name", ["rcp", "rsq", "sqrt", "exp", "log"])
def test_half_precision_units(name):
    """Every float16 there is."""
    source = np.arange(1 << 16, dtype="u2").view("f2")
    with np.errstate(all="ignore"):
        wide = source.astype("f8")
        exact = {"rcp": 1 / wide, "rsq": 1 / np.sqrt(wide), "sqrt": np.sqrt(wide), "exp": np.exp2(wide),
                 "log": np.log2(wide)}[name]  # fmt: skip
    assert_within_one_ulp(run_lanes(f"v_{name}_f16_e32 v0, v2", source, out="f2"), exact, source)


@pytest.mark.parametrize("name", ["rcp", "rsq", "sqrt"])
def test_double_precision_units(name):
    source = np.array([1.0, 2.0, 3.0, 1e300, 1e-300, 7.25, math.inf, 0.0, -0.0, math.nan])
    with np.errstate(all="ignore"):
        exact = {"rcp": 1 / source, "rsq": 1 / np.sqrt(source), "sqrt": np.sqrt(source)}[name]
    assert_within_one_ulp(run_lanes(f"v_{name}_f64_e32 v[0:1], v[2:3]", source, out="f8"), exact, source)


# The code that LLVM makes of a / b: v2 is the numerator, v4 the denominator (pitfall 11).
DIVISION = {
    "f32": """
        v_div_scale_f32 v10, s[4:5], v4, v4, v2
        v_div_scale_f32 v11, vcc, v2, v4, v2
        v_rcp_f32_e32 v12, v10
        v_fma_f32 v13, -v10, v12, 1.0
        v_fmac_f32_e32 v12, v13, v12
        v_mul_f32_e32 v13, v11, v12
        v_fma_f32 v14, -v10, v13, v11
        v_fmac_f32_e32 v13, v14, v12
        v_fma_f32 v10, -v10, v13, v11
        v_div_fmas_f32 v10, v10, v12, v13
        v_div_fixup_f32 v0, v10, v4, v2""",
    "f64": """
        v_div_scale_f64 v[10:11], s[4:5], v[4:5], v[4:5], v[2:3]
        v_rcp_f64_e32 v[12:13], v[10:11]
        v_fma_f64 v[14:15], -v[10:11], v[12:13], 1.0
        v_fmac_f64_e32 v[12:13], v[12:13], v[14:15]
        v_fma_f64 v[14:15], -v[10:11], v[12:13], 1.0
        v_fmac_f64_e32 v[12:13], v[12:13], v[14:15]
        v_div_scale_f64 v[14:15], vcc, v[2:3], v[4:5], v[2:3]
        v_mul_f64 v[16:17], v[14:15], v[12:13]
        v_fma_f64 v[10:11], -v[10:11], v[16:17], v[14:15]
        v_div_fmas_f64 v[10:11], v[10:11], v[12:13], v[16:17]
        v_div_fixup_f64 v[0:1], v[10:11], v[4:5], v[2:3]""",
}


def divide(kind):
    def call(a, b):
        if b == 0 or not (math.isfinite(a) and math.isfinite(b)):
            with np.errstate(all="ignore"):
                return float(np.float64(a) / np.float64(b))
        if a == 0:
            return math.copysign(0.0, a) * math.copysign(1.0, b)
        return exactly(lambda x, y: x / y, KINDS[kind], a, b)

    return call


@pytest.mark.parametrize("kind", DIVISION)
def test_the_division_sequence_is_correctly_rounded(kind):
    a, b = float_edges(KINDS[kind], 2)
    expected = [divide(kind)(float(x), float(y)) for x, y in zip(a, b, strict=True)]
    assert_same_floats(run_lanes(DIVISION[kind], a, b, out=KINDS[kind]), expected, [a, b])


@given(st.lists(st.tuples(floats("f4"), floats("f4")), min_size=40, max_size=64))
def test_any_two_floats_divide_correctly(rows):
    a, b = (np.array(column, "f4") for column in zip(*rows, strict=True))
    expected = [divide("f32")(float(x), float(y)) for x, y in zip(a, b, strict=True)]
    assert_same_floats(run_lanes(DIVISION["f32"], a, b, out="f4"), expected, [a, b])


def test_division_of_ordinary_numbers():
    """Random quotients over the whole range of exponents, denormal and infinite ones among them."""
    rng = np.random.default_rng(3)
    a, b = ((rng.uniform(1, 2, 2000) * 2.0 ** rng.integers(-149, 127, 2000)).astype("f4") for _ in range(2))
    expected = [divide("f32")(float(x), float(y)) for x, y in zip(a, b, strict=True)]
    assert_same_floats(run_lanes(DIVISION["f32"], a, b, out="f4"), expected, [a, b])


def test_div_fixup_f16_keeps_the_upper_half():
    """As v_fma_f16 does; other 16-bit results zero it (LLVM, GCNSubtarget::zeroesHigh16BitsOfDest)."""
    a, b = float_edges("f2", 2)
    ordinary = (a != 0) & np.isfinite(a) & (b != 0) & np.isfinite(b)
    quotient = np.where(ordinary, 3, 0).astype("f2")
    got = run_lanes("v_div_fixup_f16 v0, v2, v4, v6", quotient, b, a, out="f2")
    with np.errstate(all="ignore"):
        expected = np.where(ordinary, np.copysign(3, a * np.sign(b)), a.astype("f8") / b.astype("f8"))
    assert_same_floats(got, expected.tolist(), [a, b])
    state = make_state()
    state.v[0], state.v[1] = 0xABCD0000, 0x3C00
    execute(state, "v_fma_f16 v0, v1, v1, v1\nv_max3_f16 v0, v0, v1, v1\nv_div_fixup_f16 v0, v0, v1, v1")
    assert (state.v[0] == 0xABCD4000).all()
    execute(state, "v_mul_f16_e32 v0, v1, v1")
    assert (state.v[0] == 0x3C00).all()


RELATIONS = {
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lg": lambda a, b: a < b or a > b,
    "o": lambda a, b: a == a and b == b,
}
OPPOSITES = {"nlt": "lt", "neq": "eq", "nle": "le", "ngt": "gt", "nge": "ge", "nlg": "lg", "u": "o"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*RELATIONS, *OPPOSITES])
def test_compare(name, kind):
    """The n-forms are true where the plain ones are not, so with a NaN, too."""
    a, b = float_edges(KINDS[kind], 2)
    holds = RELATIONS[OPPOSITES.get(name, name)]
    expected = [holds(x, y) != (name in OPPOSITES) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    _, first, second = operands(kind, 2)
    got = run_lanes(f"v_cmp_{name}_{kind}_e64 s[0:1], {first}, {second}", a, b, out="mask")
    assert got.tolist() == expected


# One value of each class, by its bit in the second operand (ISA guide, V_CMP_CLASS).
CLASSES = {
    "f32": [0x7F800001, 0x7FC00000, 0xFF800000, 0xBF800000, 0x80000001, 0x80000000, 0, 1,
            0x3F800000, 0x7F800000],
    "f64": [x << 32 for x in (0x7FF00001, 0x7FF80000, 0xFFF00000, 0xBFF00000, 0x80000001, 0x80000000, 0, 1,
                              0x3FF00000, 0x7FF00000)],
}  # fmt: skip


@pytest.mark.parametrize("kind", CLASSES)
def test_class(kind):
    values = np.array(CLASSES[kind], "u4" if kind == "f32" else "u8")
    source = "v2" if kind == "f32" else "v[2:3]"
    for bit in range(10):
        wanted = np.full(10, 1 << bit, "u4")
        got = run_lanes(f"v_cmp_class_{kind}_e64 s[0:1], {source}, v4", values, wanted, out="mask")
        assert got.tolist() == [k == bit for k in range(10)]
    got = run_lanes(
        f"v_cmp_class_{kind}_e64 s[0:1], {source}, v4", values, np.full(10, 0x204, "u4"), out="mask"
    )
    assert np.flatnonzero(got).tolist() == [2, 9]


@pytest.mark.parametrize(
    "text,function",
    [
        ("v_add_f32_e64 v0, -v2, |v4|", lambda a, b: abs(b) - a),
        ("v_add_f32_e64 v0, -|v2|, v4", lambda a, b: b - abs(a)),
        ("v_mul_f32_e64 v0, v2, -v4", lambda a, b: a * -b),
        ("v_add_f32_e64 v0, v2, v4 mul:2", lambda a, b: 2 * (a + b)),
        ("v_add_f32_e64 v0, v2, v4 mul:4", lambda a, b: 4 * (a + b)),
        ("v_add_f32_e64 v0, v2, v4 div:2", lambda a, b: (a + b) / 2),
        ("v_add_f32_e64 v0, v2, v4 clamp", lambda a, b: 0.0 if a + b != a + b else min(max(a + b, 0.0), 1.0)),
        ("v_max_f32_e64 v0, -v2, -v4", lambda a, b: largest(-a, -b)),
    ],
)
def test_modifiers(text, function):
    values = [0.25, -0.5, 1.0, -3.0, 0.75, math.nan, math.inf, -0.0]
    a, b = (x.reshape(-1).astype("f4") for x in np.meshgrid(values, values))
    keep = ~((a == 0) & (b == 0))  # the sign of a zero sum is another test's
    a, b = a[keep], b[keep]
    expected = [function(float(x), float(y)) for x, y in zip(a, b, strict=True)]
    got = run_lanes(text, a, b, out="f4")
    np.testing.assert_array_equal(got, np.array(expected, "f4"))


@pytest.mark.parametrize(
    "text,out,expected",
    [
        # An integer is a bit pattern even where a float is read: 2 is a denormal (pitfall 9).
        ("v_add_f32_e32 v0, 2, v2", "f4", 1.5 + 2 * 2.0**-149),
        ("v_mul_f32_e64 v0, v2, 64", "f4", 1.5 * 64 * 2.0**-149),
        ("v_mul_f32_e32 v0, 2.0, v2", "f4", 3.0),
        ("v_mul_f32_e32 v0, 0x40400000, v2", "f4", 4.5),
        ("v_sub_f32_e32 v0, -4.0, v2", "f4", -5.5),
        ("v_add_f16_e32 v0, 1.0, v3", "f2", 3.0),
        ("v_add_f16_e32 v0, 1, v3", "f2", 2.0),
        ("v_add_f16_e32 v0, 0x4200, v3", "f2", 5.0),
        ("v_add_f64 v[0:1], v[4:5], 1.0", "f8", 2.0),
        ("v_add_f64 v[0:1], v[4:5], -16", "f8", math.nan),
        ("v_fmac_f64_e32 v[0:1], 0xc1f00000, v[4:5]", "f8", -(2.0**32)),
        ("v_mul_f32_e32 v0, s2, v2", "f4", 0.75),
        ("v_add_f64 v[0:1], s[4:5], v[4:5]", "f8", 3.0),
    ],
)
def test_constants_and_scalar_sources(text, out, expected):
    state = make_state()
    state.v[2], state.v[3] = lanes([1.5], "f4"), lanes([2.0], "f2")
    state.v[5], state.s[2], state.s[5] = 0x3FF00000, 0x3F000000, 0x40000000
    execute(state, text)
    words = np.stack([state.v[0][0, 0], state.v[1][0, 0]])
    got = words.view(np.uint8)[: np.dtype(out).itemsize].view(out)
    assert_same_floats(got, [expected])


def test_fp16_overflow_mode_holds_for_arithmetic_in_half_precision():
    """A finite sum or product that overflows stays the largest half; an infinite source stays infinite."""
    a = np.array([65504.0, -65504.0, 65504.0, math.inf], "f2")
    b = np.array([65504.0, -65504.0, -65504.0, 1.0], "f2")

    def mode(state):
        state.fp16_overflow[...] = True

    assert run_lanes("v_add_f16_e32 v0, v2, v4", a, b, out="f2", setup=mode).tolist() == [
        65504,
        -65504,
        0,
        math.inf,
    ]
    got = run_lanes("v_fma_f16 v0, v2, v4, v2", a, b, out="f2", setup=mode)
    assert got.tolist() == [65504, 65504, -65504, math.inf]
    assert run_lanes("v_add_f16_e32 v0, v2, v4", a, b, out="f2").tolist() == [
        math.inf,
        -math.inf,
        0,
        math.inf,
    ]


@pytest.mark.parametrize(
    "text,names",
    [
        ("v_mad_legacy_f32 v0, v2, v4, v6", "v_mad_legacy_f32"),
        ("v_add_f16_e64 v0, v2, v4 clamp", "clamp"),
        ("v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7] mul:2", "mul"),
        ("v_fma_f16 v0, v2, v4, v6 op_sel:[0,0,0,1]", "op_sel"),
        ("v_fma_f32 v0, v2, v4, v6 op_sel:[1,0,0,0]", "op_sel"),
        ("v_add_f32_e32 v0, v2, v4 row_shr:1", "row_shr"),
        ("v_add_f64 v[0:1], v[2:3], v4", "register pair"),
    ],
)
def test_what_is_not_implemented_is_refused(text, names):
    with pytest.raises(UnsupportedInstruction, match=names):
        execute(make_state(), text)
