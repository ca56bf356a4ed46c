"""Instruction classes by the ISA guide's chapters, and the listing against the text it was read from."""

import pytest

from labkit.compiler.listing import CLASSES, instruction_class
from labkit.errors import LabkitError

BY_CLASS = {
    "SALU": "s_add_u32 s_and_saveexec_b64 s_cmp_lt_i32 s_movk_i32 s_setreg_imm32_b32",
    "VALU": "v_add_f32_e32 v_mov_b32_dpp v_readfirstlane_b32 v_cvt_pk_fp8_f32 v_accvgpr_read_b32",
    "MFMA": "v_mfma_f32_16x16x32_fp8_fp8 v_smfmac_f32_16x16x64_fp8_fp8 v_wmma_f32_16x16x16_f16",
    "SMEM": "s_load_dwordx8 s_buffer_load_dword s_memtime s_dcache_inv s_load_b64",
    "VMEM load": "global_load_dwordx4 buffer_load_ushort flat_load_dword global_load_lds_dword",
    "VMEM store": "global_store_dwordx2 buffer_store_short scratch_store_dword",
    "VMEM atomic": "global_atomic_add_f32 buffer_atomic_pk_add_f16 flat_atomic_cmpswap",
    "LDS": "ds_read_b128 ds_write2st64_b32 ds_bpermute_b32 ds_add_u32",
    "branch": "s_branch s_cbranch_execz s_swappc_b64 s_setpc_b64",
    "wait": "s_waitcnt s_waitcnt_vmcnt s_wait_loadcnt",
    "barrier": "s_barrier",
    "other": "s_nop s_endpgm s_setprio s_sleep s_delay_alu buffer_inv buffer_wbl2 unheard_of",
}


@pytest.mark.parametrize("expected", CLASSES)
def test_classes(expected):
    names = BY_CLASS[expected].split()
    assert {name: instruction_class(name) for name in names} == dict.fromkeys(names, expected)


def test_listing_is_the_text(softmax):
    table = softmax.listing()
    text = softmax.stages["amdgcn"].splitlines()
    assert list(table.columns) == [
        *("assembly_line", "instruction", "mnemonic", "operands", "class", "source_file", "source_line")
    ]
    for row in table.itertuples():
        assert text[row.assembly_line - 1].split(";")[0].split() == row.instruction.split()
        assert row.instruction.split()[0] == row.mnemonic
    assert table["instruction"].iloc[-1] == "s_endpgm"


def test_counts_that_the_kernel_implies(softmax):
    counts = softmax.listing()["class"].value_counts()
    # One row of 1000 floats in 256 lanes: 4 elements a lane. Its odd length allows no wide loads.
    assert counts["VMEM load"] == 4
    assert counts["VMEM store"] == 4
    assert counts["barrier"] >= 2  # two reductions over four waves


def test_only_amd_has_a_listing(add_cuda):
    with pytest.raises(LabkitError, match='target="gfx942"'):
        add_cuda.listing()
