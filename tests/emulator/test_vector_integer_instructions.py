"""Each vector integer instruction against Python integers."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import UnsupportedInstruction
from tests.emulator.harness import (
    ALL,
    EDGES32,
    EDGES64,
    execute,
    lanes,
    make_state,
    pairs,
    run_lanes,
    set_exec,
    set_pair,
    signed,
)

pytestmark = pytest.mark.usefixtures("engine")

M = 0xFFFFFFFF
EDGES16 = [0, 1, 15, 16, 17, 0x7FFF, 0x8000, 0x8001, 0x1234, 0xFFFE, 0xFFFF]
TRIPLES = [0, 1, 5, 16, 31, 32, 0xFFFF, 0x12345678, 0x7FFFFFFF, 0x80000000, 0xDEADBEEF, 0xFFFFFFFF]


def _median(values):
    return sorted(values)[1]


def _bfe(a, offset, width, is_signed):
    width %= 32
    value = (signed(a) if is_signed else a) >> offset % 32 & ((1 << width) - 1)
    return signed(value, width) if is_signed and width else value


def _perm(a, b, selector):
    """ISA guide, V_PERM_B32: bytes 0-3 are b's, 4-7 a's; 8-11 repeat a sign, 12 is 0x00, above is 0xFF."""
    data = [*b.to_bytes(4, "little"), *a.to_bytes(4, "little")]
    signs = {8: data[1], 9: data[3], 10: data[5], 11: data[7]}

    def byte(choice):
        if choice in signs:
            return 0xFF * (signs[choice] >> 7)
        return data[choice] if choice < 8 else 0x00 if choice == 12 else 0xFF

    return int.from_bytes(bytes(byte(choice) for choice in selector.to_bytes(4, "little")), "little")


def _relations():
    return {"lt": int.__lt__, "eq": int.__eq__, "le": int.__le__, "gt": int.__gt__, "ge": int.__ge__,
            "ne": int.__ne__}  # fmt: skip


ONE = {
    "v_mov_b32_e32": lambda a: a,
    "v_not_b32_e32": lambda a: ~a,
    "v_bfrev_b32_e32": lambda a: int(f"{a:032b}"[::-1], 2),
    "v_ffbh_u32_e32": lambda a: 32 - a.bit_length() if a else -1,
    # How many bits from the top agree with the sign; -1 where all do.
    "v_ffbh_i32_e32": lambda a: 32 - (a if a < 1 << 31 else ~a & M).bit_length() if a not in (0, M) else -1,
    "v_ffbl_b32_e32": lambda a: (a & -a).bit_length() - 1,
}
TWO = {
    "v_and_b32_e32": lambda a, b: a & b,
    "v_or_b32_e32": lambda a, b: a | b,
    "v_xor_b32_e32": lambda a, b: a ^ b,
    "v_xnor_b32_e32": lambda a, b: ~(a ^ b),
    "v_add_u32_e32": lambda a, b: a + b,
    "v_sub_u32_e32": lambda a, b: a - b,
    "v_subrev_u32_e32": lambda a, b: b - a,
    "v_mul_lo_u32": lambda a, b: a * b,
    "v_mul_hi_u32": lambda a, b: a * b >> 32,
    "v_mul_hi_i32": lambda a, b: signed(a) * signed(b) >> 32,
    "v_mul_u32_u24_e32": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "v_mul_i32_i24_e32": lambda a, b: signed(a, 24) * signed(b, 24),
    "v_min_u32_e32": min,
    "v_max_u32_e32": max,
    "v_min_i32_e32": lambda a, b: min(signed(a), signed(b)),
    "v_max_i32_e32": lambda a, b: max(signed(a), signed(b)),
    # "rev" shifts take the amount first, and its low five bits count (pitfall 10).
    "v_lshlrev_b32_e32": lambda n, a: a << n % 32,
    "v_lshrrev_b32_e32": lambda n, a: a >> n % 32,
    "v_ashrrev_i32_e32": lambda n, a: signed(a) >> n % 32,
    "v_bfm_b32": lambda n, at: ((1 << n % 32) - 1) << at % 32,
    "v_bcnt_u32_b32": lambda a, b: a.bit_count() + b,
}
THREE = {
    "v_and_or_b32": lambda a, b, c: a & b | c,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_lshl_add_u32": lambda a, n, c: (a << n % 32) + c,
    "v_add_lshl_u32": lambda a, b, n: (a + b & M) << n % 32,
    "v_lshl_or_b32": lambda a, n, c: a << n % 32 | c,
    "v_bfe_u32": lambda a, offset, width: _bfe(a, offset, width, False),
    "v_bfe_i32": lambda a, offset, width: _bfe(a, offset, width, True),
    "v_bfi_b32": lambda mask, a, b: mask & a | ~mask & b,
    "v_alignbit_b32": lambda a, b, n: (a << 32 | b) >> n % 32,
    "v_alignbyte_b32": lambda a, b, n: (a << 32 | b) >> 8 * (n % 4),
    "v_sad_u32": lambda a, b, c: abs(a - b) + c,
    "v_perm_b32": _perm,
    "v_mad_u32_u24": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "v_mad_i32_i24": lambda a, b, c: signed(a, 24) * signed(b, 24) + c,
    "v_min3_u32": lambda *v: min(v),
    "v_max3_u32": lambda *v: max(v),
    "v_med3_u32": lambda *v: _median(v),
    "v_min3_i32": lambda *v: min(map(signed, v)),
    "v_max3_i32": lambda *v: max(map(signed, v)),
    "v_med3_i32": lambda *v: _median(map(signed, v)),
}
HALVES = {
    "v_lshlrev_b16_e32": lambda n, a: a << n % 16,
    "v_lshrrev_b16_e32": lambda n, a: a >> n % 16,
    "v_ashrrev_i16_e32": lambda n, a: signed(a, 16) >> n % 16,
    "v_add_u16_e32": lambda a, b: a + b,
    "v_sub_u16_e32": lambda a, b: a - b,
    "v_subrev_u16_e32": lambda a, b: b - a,
    "v_mul_lo_u16_e32": lambda a, b: a * b,
    "v_min_u16_e32": min,
    "v_max_u16_e32": max,
    "v_min_i16_e32": lambda a, b: min(signed(a, 16), signed(b, 16)),
    "v_max_i16_e32": lambda a, b: max(signed(a, 16), signed(b, 16)),
}


THREE_HALVES = {
    f"v_{name}_{kind}16": lambda *v, pick=pick, kind=kind: pick(
        *((signed(x, 16) for x in v) if kind == "i" else v)
    )
    for name, pick in (("min3", min), ("max3", max), ("med3", lambda *v: _median(v)))
    for kind in "iu"
}


def check(text, function, *sources, bits=32, out="u4"):
    expected = [
        function(*values) & ((1 << bits) - 1) for values in zip(*(s.tolist() for s in sources), strict=True)
    ]
    assert run_lanes(text, *sources, out=out).tolist() == expected, text


@pytest.mark.parametrize("name", ONE)
def test_one_source(name):
    check(f"{name} v0, v2", ONE[name], np.array(EDGES32 + [0x00800000, 0x00400001], "u4"))


@pytest.mark.parametrize("name", TWO)
def test_two_sources(name):
    check(f"{name} v0, v2, v4", TWO[name], *pairs(EDGES32, EDGES32))


@pytest.mark.parametrize("name", THREE)
def test_three_sources(name):
    sources = np.array(list(itertools.product(TRIPLES, repeat=3)), "u4").T
    check(f"{name} v0, v2, v4, v6", THREE[name], *map(np.ascontiguousarray, sources))


@pytest.mark.parametrize("name", HALVES)
def test_16_bit_results_zero_the_upper_half(name):
    """The sources' upper halves hold other bits, which must not matter."""
    check(f"{name} v0, v2, v4", lambda *v: HALVES[name](*v) & 0xFFFF, *pairs(EDGES16, EDGES16, "u2", "u2"))


@pytest.mark.parametrize("kind", "ui")
@pytest.mark.parametrize("name,upper", [("mad_legacy", 0), ("mad", 0xABCD0000)])
def test_16_bit_multiply_and_add(name, upper, kind):
    """The legacy form zeroes the upper half, as GFX8 did; the other keeps it."""
    a, b, c = np.array(list(itertools.product(EDGES16, repeat=3)), "u2").T.copy()
    got = run_lanes(f"v_{name}_{kind}16 v0, v2, v4, v6", a, b, c, old=np.uint32([0xABCD0000]))
    rows = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    assert got.tolist() == [(x * y + z) % 2**16 | upper for x, y, z in rows]


@pytest.mark.parametrize("name", THREE_HALVES)
def test_three_way_16_bit_results_keep_the_upper_half(name):
    sources = np.array(list(itertools.product(EDGES16, repeat=3)), "u2").T
    got = run_lanes(
        f"{name} v0, v2, v4, v6", *map(np.ascontiguousarray, sources), old=np.uint32([0xABCD0000])
    )
    expected = [THREE_HALVES[name](*row) & 0xFFFF | 0xABCD0000 for row in sources.T.tolist()]
    assert got.tolist() == expected


@pytest.mark.parametrize("table", [0, 1, 0x78, 0xEC, 0x80, 0xFF])
def test_bitop3_of_gfx950(table):
    """Bit 4a + 2b + c of the table is the result for bits a, b and c."""

    def function(*sources):
        bits = range(32)
        rows = [sum((source >> bit & 1) << 2 - k for k, source in enumerate(sources)) for bit in bits]
        return sum((table >> row & 1) << bit for bit, row in zip(bits, rows, strict=True))

    sources = np.random.default_rng(6).integers(0, 1 << 32, (3, 64), dtype="u4")
    check(f"v_bitop3_b32 v0, v2, v4, v6 bitop3:{table:#x}", function, *sources)
    halves = [np.ascontiguousarray(source).astype("u2") for source in sources]
    got = run_lanes(f"v_bitop3_b16 v0, v2, v4, v6 bitop3:{table:#x}", *halves, out="u2")
    assert got.tolist() == [
        function(*values) & 0xFFFF for values in zip(*(h.tolist() for h in halves), strict=True)
    ]


word = st.integers(0, M)


@given(st.lists(st.tuples(word, word, word), min_size=1, max_size=64))
def test_perm_of_any_bytes(rows):
    check("v_perm_b32 v0, v2, v4, v6", _perm, *np.array(rows, "u4").T.copy())


def test_perm_selectors_above_seven():
    """Selector bytes 8 to 13 in turn, for bytes whose signs differ."""
    a, b = 0x7F80017F, 0x80FF7F01
    for selector in (0x0B0A0908, 0x0F0E0D0C, 0xFF808182, 0x07060504, 0x03020100, 0x00040C08):
        check("v_perm_b32 v0, v2, v4, v6", _perm, *(np.array([x], "u4") for x in (a, b, selector)))


WIDE = {
    "v_lshlrev_b64 v[0:1], v2, v[4:5]": (lambda n, a: a << n % 64, "u4", "u8"),
    "v_lshrrev_b64 v[0:1], v2, v[4:5]": (lambda n, a: a >> n % 64, "u4", "u8"),
    "v_ashrrev_i64 v[0:1], v2, v[4:5]": (lambda n, a: signed(a, 64) >> n % 64, "u4", "u8"),
    "v_mov_b64_e32 v[0:1], v[2:3]": (lambda a: a, "u8"),
}


@pytest.mark.parametrize("text", WIDE)
def test_64_bit(text):
    function, *kinds = WIDE[text]
    sources = [np.array(EDGES64, "u8")] if len(kinds) == 1 else pairs(EDGES32, EDGES64, *kinds)
    check(text, function, *sources, bits=64, out="u8")


@pytest.mark.parametrize("shift", range(5))
def test_lshl_add_u64(shift):
    a, c = pairs(EDGES64, EDGES64, "u8", "u8")
    check(
        f"v_lshl_add_u64 v[0:1], v[2:3], {shift}, v[4:5]",
        lambda x, y: (x << shift) + y,
        a,
        c,
        bits=64,
        out="u8",
    )


@pytest.mark.parametrize("name,meaning", [("v_mad_u64_u32", int), ("v_mad_i64_i32", signed)])
def test_wide_multiply_add(name, meaning):
    """The carry of the unsigned form goes to the scalar pair; what the signed one puts there is unclear."""
    a, b = (np.resize(x, 13 * 23 * 23) for x in pairs(EDGES32, EDGES32))
    c = np.repeat(np.array(EDGES64, "u8"), 23 * 23)
    values = list(zip(a.tolist(), b.tolist(), c.tolist(), strict=True))
    text = f"{name} v[0:1], s[0:1], v2, v4, v[6:7]"
    got = run_lanes(text, a, b, c, out="u8")
    assert got.tolist() == [meaning(x) * meaning(y) + z & ALL for x, y, z in values]
    if meaning is int:
        carry = run_lanes(text, a, b, c, out="mask")
        assert carry.tolist() == [x * y + z > ALL for x, y, z in values]


CARRIES = {
    "v_add_co_u32": (lambda a, b, c: a + b, False),
    "v_sub_co_u32": (lambda a, b, c: a - b, False),
    "v_subrev_co_u32": (lambda a, b, c: b - a, False),
    "v_addc_co_u32": (lambda a, b, c: a + b + c, True),
    "v_subb_co_u32": (lambda a, b, c: a - b - c, True),
    "v_subbrev_co_u32": (lambda a, b, c: b - a - c, True),
}


@pytest.mark.parametrize("name", CARRIES)
@pytest.mark.parametrize("carry", [0, 1])
def test_carry(name, carry):
    """The carry or borrow is an exact result outside 0 .. 2^32 - 1."""
    function, takes = CARRIES[name]
    a, b = pairs(EDGES32, EDGES32)
    exact = [function(x, y, carry) for x, y in zip(a.tolist(), b.tolist(), strict=True)]

    def carry_in(state):
        state.s[8:10] = M * carry

    text = f"{name}_e64 v0, s[0:1], v2, v4{', s[8:9]' if takes else ''}"
    assert run_lanes(text, a, b, setup=carry_in).tolist() == [x & M for x in exact]
    assert run_lanes(text, a, b, out="mask", setup=carry_in).tolist() == [not 0 <= x <= M for x in exact]


def test_carry_through_vcc_lane_by_lane():
    """A 64-bit sum in two instructions whose carry differs between lanes; the e32 form names VCC twice."""
    state = make_state()
    low = lanes([0, M, 0x80000000], "u4")
    state.v[2], state.v[3], state.v[4], state.v[5] = low, 7, low, 1
    execute(state, "v_add_co_u32_e32 v0, vcc, v2, v4\nv_addc_co_u32_e32 v1, vcc, v3, v5, vcc")
    for lane, value in enumerate(low[0].tolist()):
        total = 2 * value + (8 << 32)
        assert int(state.v[0][0, lane]) | int(state.v[1][0, lane]) << 32 == total


COMPARED = {"i16": (EDGES16, "u2", 16), "u16": (EDGES16, "u2", 0), "i32": (EDGES32, "u4", 32),
            "u32": (EDGES32, "u4", 0), "i64": (EDGES64, "u8", 64), "u64": (EDGES64, "u8", 0)}  # fmt: skip


@pytest.mark.parametrize("kind", COMPARED)
@pytest.mark.parametrize("relation", ["lt", "eq", "le", "gt", "ge", "ne"])
def test_compare(kind, relation):
    values, dtype, bits = COMPARED[kind]
    a, b = pairs(values, values, dtype, dtype)
    meaning = (lambda x: signed(x, bits)) if bits else int
    holds = _relations()[relation]
    expected = [holds(meaning(x), meaning(y)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    first, second = ("v[2:3]", "v[4:5]") if dtype == "u8" else ("v2", "v4")
    got = run_lanes(f"v_cmp_{relation}_{kind}_e64 s[0:1], {first}, {second}", a, b, out="mask")
    assert got.tolist() == expected


def test_select_by_lane_mask():
    """The first source where the mask's bit is 0, the second where it is 1."""
    state = make_state()
    mask = 0x8000000100F0000F
    state.v[2], state.v[4] = lanes(list(range(64)), "u4"), lanes(list(range(100, 164)), "u4")
    set_pair(state, 6, mask)
    set_pair(state, 106, ~mask & ALL)
    execute(state, "v_cndmask_b32_e64 v0, v2, v4, s[6:7]\nv_cndmask_b32_e32 v1, v2, v4, vcc")
    execute(state, "v_cndmask_b32_e64 v8, -v2, |v4|, s[6:7]")
    for lane in range(64):
        chosen, other = (100 + lane, lane) if mask >> lane & 1 else (lane, 100 + lane)
        assert (state.v[0][0, lane], state.v[1][0, lane]) == (chosen, other)
        # A sign modifier acts on the bits as on a float's.
        assert state.v[8][0, lane] == (chosen if mask >> lane & 1 else lane | 1 << 31)


@pytest.mark.parametrize("name", ["add", "sub", "subrev"])
def test_clamp_saturates_unsigned(name):
    """With clamp an unsigned result stops at 0 and at its largest value."""
    exact = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "subrev": lambda a, b: b - a}[name]
    for bits, values, dtype in ((32, EDGES32, "u4"), (16, EDGES16, "u2")):
        a, b = pairs(values, values, dtype, dtype)
        top = (1 << bits) - 1
        check(
            f"v_{name}_u{bits}_e64 v0, v2, v4 clamp",
            lambda x, y, top=top: min(max(exact(x, y), 0), top),
            a,
            b,
        )


@pytest.mark.parametrize("mask", [0, 1, 0x5555555555555555, ALL, (1 << 32) - 1, 0xFFFFFFFF00000000])
def test_count_of_lower_lanes(mask):
    """The idiom for a lane's rank among the set bits of a mask."""
    state = make_state()
    set_pair(state, 2, mask)
    execute(state, "v_mbcnt_lo_u32_b32 v1, s2, 5\nv_mbcnt_hi_u32_b32 v1, s3, v1")
    assert state.v[1][0].tolist() == [5 + (mask & ((1 << lane) - 1)).bit_count() for lane in range(64)]


def test_accumulation_registers():
    state = make_state()
    state.v[1] = lanes(list(range(64)), "u4")
    execute(state, "v_accvgpr_write_b32 a3, v1\nv_accvgpr_mov_b32 a4, a3")
    set_exec(state, 0b101)
    execute(state, "v_accvgpr_read_b32 v2, a4")
    assert state.v[2][0, :4].tolist() == [0, 0, 2, 0]


@pytest.mark.parametrize(
    "text,value",
    [
        ("v_mov_b32_e32 v0, 2.0", 0x40000000),
        ("v_mov_b32_e32 v0, -16", 0xFFFFFFF0),
        ("v_mov_b32_e32 v0, s2", 77),
        ("v_add_u32_e32 v0, 64, v2", 64),
        ("v_add_u32_e32 v0, 0xffffff00, v2", 0xFFFFFF00),
        ("v_sub_u16_e32 v0, 0, v4", 0xFFFF),
        ("v_add_u16_e32 v0, -1, v2", 0xFFFF),
        ("v_mul_u32_u24_e32 v0, 0x88, v4", 0x88),
    ],
)
def test_constants_and_scalar_sources(text, value):
    state = make_state()
    state.s[2], state.v[4] = 77, 1
    execute(state, text)
    assert (state.v[0] == value).all()


def test_a_result_may_be_its_own_source():
    state = make_state()
    state.v[0], state.v[1] = lanes(list(range(64)), "u4"), 3
    execute(state, "v_mad_u64_u32 v[0:1], s[0:1], v0, 5, v[0:1]")
    assert [int(x) for x in state.v[0][0]] == [6 * lane for lane in range(64)]
    assert (state.v[1] == 3).all()


@pytest.mark.parametrize(
    "text,names",
    [
        ("v_qsad_pk_u16_u8 v[0:1], v[2:3], v4, v[6:7]", "v_qsad_pk_u16_u8"),
        ("v_add_i32 v0, v2, v4 clamp", "v_add_i32"),
        ("v_mul_lo_u32 v0, v2, v4 clamp", "clamp"),
        ("v_and_b32_e64 v0, -v2, v4", "sign modifier"),
        ("v_add_u32_e32 v0, v2", "2 sources"),
        ("v_lshlrev_b64 v[0:1], v2, v4", "register pair"),
        ("v_lshlrev_b16_e64 v0, v2, v4 op_sel:[0,0,1]", "op_sel"),
        ("v_cmpx_eq_u32_e32 vcc, v2, v4", "v_cmpx_eq_u32"),
        ("v_add_u32_e32 v0, v2, sext(v4)", "sext"),
    ],
)
def test_what_is_not_implemented_is_refused(text, names):
    state = make_state()
    with pytest.raises(UnsupportedInstruction, match=names):
        execute(state, text)
