"""Each scalar instruction against Python integers: result, SCC, EXEC."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.emulator.scalar import SCALAR
from labkit.errors import UnsupportedInstruction
from tests.emulator.harness import (
    ALL,
    EDGES32,
    EDGES64,
    execute,
    make_state,
    pair,
    pairs,
    run_waves,
    set_exec,
    set_pair,
    signed,
)

pytestmark = pytest.mark.usefixtures("engine")

M = 0xFFFFFFFF


def _logic(function, mask):
    return lambda a, b: (function(a, b) & mask, int(function(a, b) & mask != 0))


def _bfe(a, field, is_signed):
    offset, width = field & 31, min(field >> 16 & 127, 32)
    # The ISA guide shifts the signed value, so bits beyond bit 31 repeat the sign.
    value = (signed(a) if is_signed else a) >> offset & ((1 << width) - 1)
    return signed(value, width) & M if is_signed and width else value


LOGIC = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
}
RELATIONS = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


def _in_range(value):
    return -(1 << 31) <= value < 1 << 31


# Two 32-bit sources -> (result or None, SCC or None where it keeps its value).
TWO = {
    "s_mul_i32": lambda a, b: (a * b & M, None),
    "s_mul_hi_u32": lambda a, b: (a * b >> 32, None),
    "s_mul_hi_i32": lambda a, b: (signed(a) * signed(b) >> 32 & M, None),
    "s_bitcmp0_b32": lambda a, n: (None, 1 - (a >> (n % 32) & 1)),
    "s_bitcmp1_b32": lambda a, n: (None, a >> (n % 32) & 1),
    "s_pack_ll_b32_b16": lambda a, b: (a & 0xFFFF | (b & 0xFFFF) << 16, None),
    "s_pack_lh_b32_b16": lambda a, b: (a & 0xFFFF | b >> 16 << 16, None),
    "s_pack_hh_b32_b16": lambda a, b: (a >> 16 | b >> 16 << 16, None),
    "s_lshl_b32": lambda a, n: (a << n % 32 & M, int(a << n % 32 & M != 0)),
    "s_lshr_b32": lambda a, n: (a >> n % 32, int(a >> n % 32 != 0)),
    "s_ashr_i32": lambda a, n: (signed(a) >> n % 32 & M, int(signed(a) >> n % 32 != 0)),
    "s_add_u32": lambda a, b: (a + b & M, int(a + b > M)),
    "s_sub_u32": lambda a, b: (a - b & M, int(a < b)),
    "s_add_i32": lambda a, b: (a + b & M, int(not _in_range(signed(a) + signed(b)))),
    "s_sub_i32": lambda a, b: (a - b & M, int(not _in_range(signed(a) - signed(b)))),
    "s_min_i32": lambda a, b: (min(signed(a), signed(b)) & M, int(signed(a) < signed(b))),
    "s_min_u32": lambda a, b: (min(a, b), int(a < b)),
    "s_bfe_u32": lambda a, b: (_bfe(a, b, False), int(_bfe(a, b, False) != 0)),
    "s_bfe_i32": lambda a, b: (_bfe(a, b, True), int(_bfe(a, b, True) != 0)),
    "s_bfm_b32": lambda n, at: (((1 << n % 32) - 1) << at % 32 & M, None),
    **{
        f"s_lshl{n}_add_u32": lambda a, b, n=n: ((a << n) + b & M, int((a << n) + b > M))
        for n in (1, 2, 3, 4)
    },
    **{f"s_{name}_b32": _logic(function, M) for name, function in LOGIC.items()},
    **{
        f"s_cmp_{name}_u32": lambda a, b, f=function: (None, int(f(a, b)))
        for name, function in RELATIONS.items()
    },
    **{
        f"s_cmp_{name}_i32": lambda a, b, f=function: (None, int(f(signed(a), signed(b))))
        for name, function in RELATIONS.items()
    },
}
# Bit fields need offsets and widths of their own in the second source.
FIELDS = [0, 0x10000, 0x80008, 0x1F0001, 0x200000, 0x10001F, 0x180010, 0x40001C, 0x7F001F, 0xFFFFFFFF]


def check(text, values, expected, keeps):
    got, scc = values
    results, codes = zip(*expected, strict=True)
    if results[0] is not None:
        assert got == list(results), text
    assert scc == [keeps if code is None else code for code in codes], text


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("scc", [0, 1])
def test_two_sources(name, scc):
    a, b = pairs(EDGES32, FIELDS if "bfe" in name else EDGES32)
    expected = [TWO[name](x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    text = f"{name} {'' if expected[0][0] is None else 's0, '}s2, s4"
    check(text, run_waves(text, a, b, scc=scc), expected, scc)


ONE = {
    "s_mov_b32": lambda a: (a, None),
    "s_brev_b32": lambda a: (int(f"{a:032b}"[::-1], 2), None),
    "s_sext_i32_i16": lambda a: (signed(a, 16) & M, None),
    "s_sext_i32_i8": lambda a: (signed(a, 8) & M, None),
    "s_ff1_i32_b32": lambda a: ((a & -a).bit_length() - 1 & M, None),
    "s_flbit_i32_b32": lambda a: (32 - a.bit_length() if a else M, None),
    "s_bcnt1_i32_b32": lambda a: (a.bit_count(), int(a != 0)),
    "s_not_b32": lambda a: (~a & M, int(~a & M != 0)),
    "s_abs_i32": lambda a: (abs(signed(a)) & M, int(a != 0)),
}


@pytest.mark.parametrize("name", ONE)
def test_one_source(name):
    for scc in (0, 1):
        values = run_waves(f"{name} s0, s2", np.array(EDGES32, "u4"), scc=scc)
        check(name, values, [ONE[name](a) for a in EDGES32], scc)


WIDE = {
    "s_mov_b64": (lambda a: (a, None), "u8"),
    "s_not_b64": (lambda a: (~a & ALL, int(~a & ALL != 0)), "u8"),
    "s_bcnt1_i32_b64": (lambda a: (a.bit_count(), int(a != 0)), "u8"),
    "s_lshl_b64": (lambda a, n: (a << n % 64 & ALL, int(a << n % 64 & ALL != 0)), "u8", "u4"),
    "s_lshr_b64": (lambda a, n: (a >> n % 64, int(a >> n % 64 != 0)), "u8", "u4"),
    "s_ashr_i64": (
        lambda a, n: (signed(a, 64) >> n % 64 & ALL, int(signed(a, 64) >> n % 64 != 0)),
        "u8",
        "u4",
    ),
    "s_cmp_eq_u64": (lambda a, b: (None, int(a == b)), "u8", "u8"),
    "s_cmp_lg_u64": (lambda a, b: (None, int(a != b)), "u8", "u8"),
    **{f"s_{name}_b64": (_logic(function, ALL), "u8", "u8") for name, function in LOGIC.items()},
}


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("scc", [0, 1])
def test_64_bit(name, scc):
    function, *kinds = WIDE[name]
    if len(kinds) == 1:
        sources = [np.array(EDGES64, "u8")]
    else:
        sources = pairs(EDGES64, EDGES64 if kinds[1] == "u8" else EDGES32, *kinds)
    expected = [function(*values) for values in zip(*(s.tolist() for s in sources), strict=True)]
    target = [] if expected[0][0] is None else ["s0" if "i32_b64" in name else "s[0:1]"]
    operands = [
        f"s[{2 * k + 2}:{2 * k + 3}]" if kind == "u8" else f"s{2 * k + 2}" for k, kind in enumerate(kinds)
    ]
    text = f"{name} {', '.join(target + operands)}"
    check(text, run_waves(text, *sources, scc=scc), expected, scc)


@pytest.mark.parametrize("carry", [0, 1])
def test_add_and_subtract_with_carry(carry):
    a, b = pairs(EDGES32, EDGES32)
    both = list(zip(a.tolist(), b.tolist(), strict=True))
    values = run_waves("s_addc_u32 s0, s2, s4", a, b, scc=carry)
    check("s_addc_u32", values, [(x + y + carry & M, int(x + y + carry > M)) for x, y in both], carry)
    values = run_waves("s_subb_u32 s0, s2, s4", a, b, scc=carry)
    check("s_subb_u32", values, [(x - y - carry & M, int(x < y + carry)) for x, y in both], carry)


@given(st.integers(0, ALL), st.integers(0, ALL))
def test_a_64_bit_sum_in_two_halves(a, b):
    state = make_state()
    set_pair(state, 2, a)
    set_pair(state, 4, b)
    execute(state, "s_add_u32 s0, s2, s4\ns_addc_u32 s1, s3, s5\ns_sub_u32 s6, s2, s4\ns_subb_u32 s7, s3, s5")
    assert pair(state, 0) == a + b & ALL
    assert pair(state, 6) == a - b & ALL
    assert state.scc[0, 0] == (a < b)


@pytest.mark.parametrize("kind", ["i32", "u32"])
def test_max(kind):
    """SCC says that the first source was taken; for equal sources the guide and others disagree."""
    a, b = pairs(EDGES32, EDGES32)
    a, b = a[a != b], b[a != b]
    meaning = signed if kind == "i32" else int
    both = [(meaning(x), meaning(y)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    values = run_waves(f"s_max_{kind} s0, s2, s4", a, b)
    check(f"s_max_{kind}", values, [(max(x, y) & M, int(x > y)) for x, y in both], 0)
    assert run_waves(f"s_max_{kind} s0, s2, s4", [np.uint32(9)], [np.uint32(9)])[0] == [9]


@pytest.mark.parametrize("constant", [0, 1, 0x7FFF, 0x8000, 0xFF00, 0xFFFF])
def test_16_bit_constants(constant):
    """Signed forms extend the sign of the constant; the unsigned compares do not (pitfall 9)."""
    k, a = signed(constant, 16), np.array(EDGES32 + [M - 255, 0xFFFFFF00], "u4")
    values = a.tolist()
    assert run_waves(f"s_movk_i32 s0, {constant:#x}", a)[0] == [k & M] * a.size
    got = run_waves(f"s_addk_i32 s0, {constant:#x}", a, old=a)
    check("s_addk_i32", got, [(x + k & M, int(not _in_range(signed(x) + k))) for x in values], 0)
    got = run_waves(f"s_mulk_i32 s0, {constant:#x}", a, old=a, scc=1)
    check("s_mulk_i32", got, [(x * k & M, None) for x in values], 1)
    for name, relation in RELATIONS.items():
        scc = run_waves(f"s_cmpk_{name}_i32 s2, {constant:#x}", a)[1]
        assert scc == [int(relation(signed(x), k)) for x in values], name
        scc = run_waves(f"s_cmpk_{name}_u32 s2, {constant:#x}", a)[1]
        assert scc == [int(relation(x, constant)) for x in values], name


@pytest.mark.parametrize("scc", [0, 1])
def test_select(scc):
    a, b = np.array(EDGES64, "u8"), np.array(EDGES64[::-1], "u8")
    assert run_waves("s_cselect_b64 s[0:1], s[2:3], s[4:5]", a, b, scc=scc)[0] == (a if scc else b).tolist()
    low = run_waves("s_cselect_b32 s0, s2, s4", a, b, scc=scc)[0]
    assert low == [x & M for x in (a if scc else b).tolist()]


def test_set_a_bit_of_the_destination():
    old, n = pairs(EDGES32, EDGES32)
    both = list(zip(old.tolist(), n.tolist(), strict=True))
    assert run_waves("s_bitset0_b32 s0, s2", n, old=old)[0] == [a & ~(1 << k % 32) & M for a, k in both]
    assert run_waves("s_bitset1_b32 s0, s2", n, old=old)[0] == [a | 1 << k % 32 for a, k in both]


def test_each_scalar_instruction_is_tested_here():
    elsewhere = "addc_u32 subb_u32 max_i32 max_u32 movk_i32 addk_i32 mulk_i32 cselect_b32 cselect_b64"
    elsewhere = {f"s_{name}" for name in (elsewhere + " bitset0_b32 bitset1_b32").split()}
    compares = {f"s_cmpk_{name}_{kind}" for name in RELATIONS for kind in ("i32", "u32")}
    assert {*TWO, *ONE, *WIDE, *elsewhere, *compares} == set(SCALAR)


@pytest.mark.parametrize(
    "text,value",
    [
        ("s_mov_b32 s0, 64", 64),
        ("s_mov_b32 s0, -16", 0xFFFFFFF0),
        ("s_mov_b32 s0, 1.0", 0x3F800000),
        ("s_mov_b32 s0, -0.5", 0xBF000000),
        ("s_mov_b32 s0, 0x27000", 0x27000),
        ("s_mov_b32 s0, 0.15915494", 0x3E22F983),  # the inline constant 1 / (2 * pi)
        ("s_mov_b64 s[0:1], -1", ALL),
        ("s_mov_b64 s[0:1], 1.0", 0x3FF0000000000000),
        ("s_mov_b64 s[0:1], 0x12345678", 0x12345678),
    ],
)
def test_constants_are_bits(text, value):
    assert run_waves(text, [np.uint32(0)])[0] == [value]


SAVEEXEC = {
    "and": lambda s, e: s & e,
    "or": lambda s, e: s | e,
    "xor": lambda s, e: s ^ e,
    "andn1": lambda s, e: ~s & e,
    "andn2": lambda s, e: s & ~e,
    "orn1": lambda s, e: ~s | e,
    "orn2": lambda s, e: s | ~e,
}
MASKS = [0, 1, 1 << 63, ALL >> 1, ALL, 0x00FF00FF12345678]


@pytest.mark.parametrize("name", SAVEEXEC)
def test_saveexec(name):
    for source in MASKS:
        for before in MASKS:
            state = make_state()
            set_exec(state, before)
            set_pair(state, 2, source)
            execute(state, f"s_{name}_saveexec_b64 s[0:1], s[2:3]")
            after = SAVEEXEC[name](source, before) & ALL
            assert (pair(state, 0), pair(state, 126), bool(state.scc[0, 0])) == (before, after, after != 0)
            assert state.lane_mask().count == after.bit_count()


def test_saveexec_into_its_own_source():
    state = make_state()
    set_exec(state, 0xFF)
    set_pair(state, 2, 0x3C)
    execute(state, "s_andn2_saveexec_b64 s[2:3], s[2:3]")
    assert (pair(state, 2), pair(state, 126)) == (0xFF, 0)


def test_vector_instructions_see_a_new_exec():
    state = make_state()
    set_pair(state, 2, 0b1010)
    execute(state, "s_mov_b64 exec, s[2:3]\nv_mov_b32_e32 v1, 7\ns_mov_b32 exec_lo, 1\nv_mov_b32_e32 v1, 8")
    assert state.v[1][0, :5].tolist() == [8, 7, 0, 7, 0]


@pytest.mark.parametrize("mask,count", [(0, 0), (1, 1), (ALL >> 1, 63), (ALL, 64)])
def test_compare_and_saveexec(mask, count):
    """The pair that starts a branch: a compare writes 0 for lanes that are off (pitfall 5)."""
    state = make_state()
    set_exec(state, mask)
    execute(state, "v_cmp_eq_u32_e32 vcc, 0, v0\ns_and_saveexec_b64 s[2:3], vcc")
    assert (pair(state, 106), pair(state, 126), pair(state, 2)) == (mask, mask, mask)
    assert state.lane_mask().count == count


def test_vcc_and_named_registers_are_scalar_registers():
    state = make_state()
    execute(state, "s_mov_b32 vcc_lo, 5\ns_mov_b32 vcc_hi, 6\ns_mov_b32 m0, 7\ns_mov_b64 s[0:1], vcc")
    assert pair(state, 0) == 5 | 6 << 32
    assert state.s[124][0, 0] == 7


@pytest.mark.parametrize(
    "text", ["s_nop 1", "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_setprio 1", "s_sleep 1", "buffer_inv sc1",
             "buffer_wbl2 sc1", "s_dcache_wb",
        "s_dcache_inv",
        "s_ttracedata", "s_icache_inv", "s_sethalt 0",
             "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0"]
)  # fmt: skip
def test_hints_change_nothing(text):
    state = make_state()
    before = [array.copy() for array in (state.s, state.v, state.scc, state.fp16_overflow)]
    execute(state, text)
    for old, new in zip(before, (state.s, state.v, state.scc, state.fp16_overflow), strict=True):
        np.testing.assert_array_equal(old, new)


def test_setreg_sets_fp16_overflow():
    state = make_state()
    execute(state, "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1")
    assert state.fp16_overflow.all()
    execute(state, "s_mov_b32 s0, 0\ns_setreg_b32 hwreg(HW_REG_MODE, 23, 1), s0")
    assert not state.fp16_overflow.any()


@pytest.mark.parametrize(
    "text,names",
    [
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 3", "s_setreg_imm32_b32"),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 0", "s_setreg_imm32_b32"),
        ("s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS, 0, 1), 0", "s_setreg_imm32_b32"),
        ("s_getreg_b32 s0, hwreg(HW_REG_MODE, 0, 4)", "s_getreg_b32"),
        ("s_setpc_b64 s[0:1]", "s_setpc_b64"),
        ("s_memtime s[0:1]", "s_memtime"),
        ("s_add_u32 0, s2, s4", "s_add_u32"),
        ("s_add_u32 s0, s2, s4 glc", "glc"),
    ],
)
def test_what_is_not_implemented_is_refused(text, names):
    with pytest.raises(UnsupportedInstruction, match=names):
        execute(make_state(), text)
