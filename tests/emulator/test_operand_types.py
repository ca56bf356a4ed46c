"""The types that instructions take their operands for, and how such registers read as values."""

import ml_dtypes
import numpy as np
import pytest

from labkit.emulator.operands import Register
from labkit.emulator.settle import settle
from labkit.emulator.steps import Value
from labkit.emulator.typed import Typed
from labkit.emulator.uses import uses
from tests.emulator.harness import straight


def told(side):
    return [f"{typed.name}: {typed.type}" for typed in side]


# From the ISA guide's description of each instruction. "raw" is what it only moves.
@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("v_add_f32 v1, v2, v3", ["v2: f32", "v3: f32"], ["v1: f32"]),
        ("v_add_f32 v1, 1.0, -|s3|", ["s3: f32"], ["v1: f32"]),
        ("v_fmac_f32_e32 v1, v2, v3", ["v2: f32", "v3: f32", "v1: f32"], ["v1: f32"]),
        ("v_add_f64 v[0:1], v[2:3], v[4:5]", ["v[2:3]: f64", "v[4:5]: f64"], ["v[0:1]: f64"]),
        ("v_ashrrev_i32_e32 v1, 3, v2", ["v2: i32"], ["v1: i32"]),
        ("v_cmp_gt_i32_e32 vcc, s4, v2", ["s4: i32", "v2: i32"], ["vcc: mask"]),
        (
            "v_cndmask_b32_e64 v1, v2, v3, s[4:5]",
            ["v2: raw x4", "v3: raw x4", "s[4:5]: mask"],
            ["v1: raw x4"],
        ),
        ("v_add_co_u32 v1, vcc, v2, v3", ["v2: u32", "v3: u32"], ["v1: u32", "vcc: mask"]),
        ("v_div_fmas_f32 v1, v2, v3, v4", ["v2: f32", "v3: f32", "v4: f32", "vcc: mask"], ["v1: f32"]),
        ("v_cvt_f32_f16_e32 v1, v2", ["v2: f16"], ["v1: f32"]),
        ("v_cvt_f32_f16_sdwa v1, v2 dst_sel:DWORD src0_sel:WORD_1", ["v2: f16 in bits 31:16"], ["v1: f32"]),
        ("v_cvt_f32_ubyte3_e32 v1, v2", ["v2: u8 in bits 31:24"], ["v1: f32"]),
        (
            "v_cvt_f32_i32_sdwa v1, sext(v2) dst_sel:DWORD src0_sel:BYTE_1",
            ["v2: i8 in bits 15:8"],
            ["v1: f32"],
        ),
        (
            "v_lshrrev_b32_sdwa v8, v7, v6 dst_sel:BYTE_1 src0_sel:DWORD src1_sel:DWORD",
            ["v7: u32", "v6: u32"],
            ["v8: u8 in bits 15:8"],
        ),
        ("v_cvt_pkrtz_f16_f32 v1, v2, v3", ["v2: f32", "v3: f32"], ["v1: f16 x2"]),
        ("v_pk_mul_f16 v1, v2, v3", ["v2: f16 x2", "v3: f16 x2"], ["v1: f16 x2"]),
        ("v_pk_lshlrev_b16 v1, v2, v3", ["v2: u16 x2", "v3: u16 x2"], ["v1: u16 x2"]),
        ("v_pk_add_f32 v[0:1], v[2:3], v[4:5]", ["v[2:3]: f32 x2", "v[4:5]: f32 x2"], ["v[0:1]: f32 x2"]),
        (
            "v_fma_mix_f32 v1, v2, s3, v4 op_sel:[1,0,0] op_sel_hi:[1,0,0]",
            ["v2: f16 in bits 31:16", "s3: f32", "v4: f32"],
            ["v1: f32"],
        ),
        ("v_fma_mixhi_f16 v1, v2, v3, v4", ["v2: f32", "v3: f32", "v4: f32"], ["v1: f16 in bits 31:16"]),
        ("v_cvt_pk_fp8_f32 v1, v2, v3", ["v2: f32", "v3: f32"], ["v1: e4m3fnuz x2"]),
        (
            "v_cvt_pk_bf8_f32 v1, v2, v3 op_sel:[0,0,1]",
            ["v2: f32", "v3: f32"],
            ["v1: e5m2fnuz x2 in bits 31:16"],
        ),
        ("v_cvt_f32_fp8_sdwa v1, v2 src0_sel:BYTE_2", ["v2: e4m3fnuz in bits 23:16"], ["v1: f32"]),
        ("v_cvt_pk_f32_fp8_e32 v[0:1], v2", ["v2: e4m3fnuz x2"], ["v[0:1]: f32 x2"]),
        (
            "v_mfma_f32_16x16x16_bf16 v[0:3], v[4:5], v[6:7], v[0:3]",
            ["v[4:5]: bf16 x4", "v[6:7]: bf16 x4", "v[0:3]: f32 x4"],
            ["v[0:3]: f32 x4"],
        ),
        (
            "v_mfma_f32_16x16x32_fp8_bf8 a[0:3], v[4:5], v[6:7], 0",
            ["v[4:5]: e4m3fnuz x8", "v[6:7]: e5m2fnuz x8"],
            ["a[0:3]: f32 x4"],
        ),
        (
            "v_mfma_i32_16x16x32_i8 v[0:3], v[4:5], v[6:7], v[0:3]",
            ["v[4:5]: i8 x8", "v[6:7]: i8 x8", "v[0:3]: i32 x4"],
            ["v[0:3]: i32 x4"],
        ),
        ("v_readlane_b32 s1, v2, s3", ["v2: raw x4", "s3: u32"], ["s1: raw x4"]),
        ("s_add_u32 s1, s2, s3", ["s2: u32", "s3: u32"], ["s1: u32", "scc: bit"]),
        ("s_addc_u32 s1, s2, 0", ["s2: u32", "scc: bit"], ["s1: u32", "scc: bit"]),
        ("s_cmp_lt_i32 s1, 5", ["s1: i32"], ["scc: bit"]),
        ("s_lshl_b64 s[0:1], s[2:3], 2", ["s[2:3]: u64"], ["s[0:1]: u64", "scc: bit"]),
        ("s_and_b64 s[0:1], vcc, s[2:3]", ["vcc: mask", "s[2:3]: raw x8"], ["s[0:1]: raw x8", "scc: bit"]),
        (
            "s_and_saveexec_b64 s[0:1], vcc",
            ["vcc: mask", "exec: mask"],
            ["s[0:1]: mask", "exec: mask", "scc: bit"],
        ),
        ("s_cbranch_vccnz .L", ["vcc: mask"], []),
        ("s_waitcnt vmcnt(0)", [], []),
        ("s_load_dwordx4 s[4:7], s[0:1], 0x10", ["s[0:1]: u64"], ["s[4:7]: raw x16"]),
        ("global_load_ushort v1, v2, s[4:5]", ["v2: u32", "s[4:5]: u64"], ["v1: raw x2"]),
        ("global_store_dwordx2 v[0:1], v[2:3], off", ["v[0:1]: u64", "v[2:3]: raw x8"], []),
        (
            "buffer_load_dword v1, v2, s[4:7], s8 offen",
            ["v2: u32", "s[4:5]: u64", "s[6:7]: u32 x2", "s8: u32"],
            ["v1: raw x4"],
        ),
        (
            "buffer_load_dword v2, s[4:7], 0 offen lds",
            ["v2: u32", "s[4:5]: u64", "s[6:7]: u32 x2", "m0: u32"],
            [],
        ),
        ("global_atomic_add_f32 v1, v2, s[4:5]", ["v1: u32", "s[4:5]: u64", "v2: f32"], []),
        ("global_atomic_smax v0, v[2:3], v4, off sc0", ["v[2:3]: u64", "v4: i32"], ["v0: i32"]),
        ("global_atomic_pk_add_bf16 v1, v2, s[4:5]", ["v1: u32", "s[4:5]: u64", "v2: bf16 x2"], []),
        ("ds_read2_b32 v[0:1], v2 offset1:4", ["v2: u32"], ["v[0:1]: raw x8"]),
        ("ds_write2_b32 v0, v1, v2 offset1:4", ["v0: u32", "v1: raw x4", "v2: raw x4"], []),
        ("ds_read_i8 v0, v1", ["v1: u32"], ["v0: i32"]),
        ("ds_write_b16 v0, v1", ["v0: u32", "v1: raw x2"], []),
        ("ds_add_rtn_u32 v0, v1, v2", ["v1: u32", "v2: u32"], ["v0: u32"]),
        ("ds_bpermute_b32 v0, v1, v2", ["v1: u32", "v2: raw x4"], ["v0: raw x4"]),
        ("scratch_store_dword off, v1, off offset:4", ["v1: raw x4"], []),
    ],
)
def test_what_an_instruction_reads_and_writes(text, reads, writes):
    (instruction,) = straight(text).instructions
    assert tuple(map(told, uses(instruction, fnuz=True))) == (reads, writes)


def test_fp8_is_ocp_on_gfx950():
    (instruction,) = straight("v_cvt_scalef32_pk_fp8_bf16 v0, v1, 1.0 op_sel:[0,0,1]").instructions
    assert tuple(map(told, uses(instruction, fnuz=False))) == (
        ["v1: bf16 x2"],
        ["v0: e4m3fn x2 in bits 31:16"],
    )


def settled(text, moved=None):
    instructions = straight(text).instructions
    steps = settle([uses(i, True) for i in instructions], moved or [""] * len(instructions))
    return [tuple(map(told, step)) for step in steps]


def test_a_load_takes_the_type_in_which_it_is_used_next():
    load, *_ = settled(
        "global_load_dwordx4 v[0:3], v9, s[4:5]\n"
        "v_add_f32 v8, v0, v1\n"
        "v_lshl_add_u64 v[6:7], v[2:3], 1, v[6:7]"
    )
    assert load[1] == ["v[0:1]: f32 x2", "v[2:3]: u64"]


def test_a_move_hands_the_type_on_and_a_store_takes_it():
    steps = settled(
        "v_cvt_i32_f32 v0, v9\nv_mov_b32 v1, v0\nv_readlane_b32 s0, v1, 0\n"
        "v_mov_b32 v2, s0\nds_write_b32 v8, v2"
    )
    assert [writes for _, writes in steps[:4]] == [["v0: i32"], ["v1: i32"], ["s0: i32"], ["v2: i32"]]
    assert steps[-1][0] == ["v8: u32", "v2: i32"]


def test_who_takes_the_upper_half_leaves_the_lower_to_another():
    load, *_ = settled("global_load_dword v0, v9, s[4:5]\nv_cvt_f32_f16_sdwa v1, v0 src0_sel:WORD_1")
    assert load[1] == ["v0: f16 x2"]


def test_a_tensor_knows_its_elements():
    load, _ = settled("global_load_ushort v0, v9, s[4:5]\nv_lshlrev_b32 v1, 16, v0", ["bf16", ""])
    assert load[1] == ["v0: bf16"]
    (wide,) = settled("buffer_load_dwordx2 v[0:1], v9, s[4:7], 0 offen", ["e4m3fnuz"])
    assert wide[1] == ["v[0:1]: e4m3fnuz x8"]
    (double,) = settled("buffer_load_dwordx4 v[0:3], v9, s[4:7], 0 offen", ["f64"])
    assert double[1] == ["v[0:1]: f64", "v[2:3]: f64"]


def test_a_register_that_is_written_anew_gives_no_type_to_what_it_held():
    first, _, second, _ = settled(
        "ds_read_b32 v0, v9\nv_mov_b32 v0, 0\nds_read_u16 v1, v9\nv_cvt_f32_f16 v2, v0"
    )
    assert (first[1], second[1]) == (["v0: b32"], ["v1: b16"])


def test_half_a_64_bit_value_has_no_type_of_its_own():
    load, _ = settled("ds_read_b32 v2, v9\nv_lshl_add_u64 v[6:7], v[2:3], 1, v[6:7]")
    assert load[1] == ["v2: b32"]


@pytest.mark.parametrize(
    ("typed", "words", "expected"),
    [
        (("f32",), [0x3FC00000], 1.5),
        (("i32",), [0xFFFFFFFE], -2),
        (("u32",), [0xFFFFFFFE], 4294967294),
        (("f16", 0, 2), [0xC0003E00], (1.5, -2.0)),
        (("f16", 1, 1), [0xC0003E00], -2.0),
        (("bf16", 0, 2), [0xC0003FC0], (1.5, -2.0)),
        (("i16", 0, 2), [0xFFFF0001], (1, -1)),
        (("u8", 3, 1), [0x7F000000], 127),
        (("e4m3fnuz", 0, 4), [0x7FC04840], (1.0, 2.0, -1.0, 240.0)),
        (("e4m3fn", 0, 2), [0x4038], (1.0, 2.0)),
        (("u64",), [0x00000001, 0x00000002], (2 << 32) + 1),
        (("i64",), [0xFFFFFFFF, 0xFFFFFFFF], -1),
        (("f64",), [0x00000000, 0x3FF80000], 1.5),
        (("f32", 0, 2), [0x3F800000, 0x40000000], (1.0, 2.0)),
    ],
)
def test_values_of_registers(typed, words, expected):
    value = Value(
        Typed(Register("v", 0, len(words)), *typed), np.repeat(np.array(words, np.uint32)[:, None], 64, 1)
    )
    assert value.in_lane(63) == expected


def test_a_mask_is_a_bool_a_lane_and_bits_are_hexadecimal():
    mask = Value(Typed(Register("s", 0, 2), "mask"), np.array([[5], [1 << 31]], np.uint32))
    assert np.flatnonzero(mask.values).tolist() == [0, 2, 63]
    assert mask.text(np.ones(64, bool)) == "s[0:1] = 0x8000000000000005 (mask of 3 lanes)"
    bits = Value(Typed(Register("v", 7), "b16"), np.full((1, 64), 0xAB, np.uint32))
    assert bits.text(np.ones(64, bool)) == "v7 = 0x00ab in each lane (b16)"
    assert bits.text(np.zeros(64, bool)) == "v7 = nothing, as every lane is off (b16)"


def test_a_nan_in_each_lane_reads_so():
    nan = Value(Typed(Register("v", 7), "f32"), np.full((1, 64), np.float32(np.nan).view(np.uint32)))
    assert nan.text(np.ones(64, bool)) == "v7 = nan in each lane (f32)"
    odd = np.array(ml_dtypes.bfloat16(np.nan)).view(np.uint16)
    assert np.isnan(Value(Typed(Register("v", 7), "bf16"), np.full((1, 64), odd, np.uint32)).in_lane(0))
