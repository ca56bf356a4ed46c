"""Branches, barriers and a program's start and end: small programs in assembly, run as a launch runs them."""

import numpy as np
import pytest

from labkit.emulator.arguments import TensorArgument
from labkit.emulator.counters import Counters
from labkit.emulator.faults import Faults
from labkit.emulator.launch import Call, execute
from labkit.emulator.program import parse_program
from labkit.errors import UnsupportedInstruction

pytestmark = pytest.mark.usefixtures("engine")

FRAME = """
\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
\t.text
kernel:
{body}
\t.amdhsa_kernel kernel
\t\t.amdhsa_group_segment_fixed_size 0
\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1
\t\t.amdhsa_user_sgpr_count {count}
\t\t.amdhsa_user_sgpr_kernarg_preload_length {preload}
\t\t.amdhsa_system_sgpr_workgroup_id_x 1
\t\t.amdhsa_system_sgpr_workgroup_id_y {y}
\t.end_amdhsa_kernel
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .name:           kernel
...
\t.end_amdgpu_metadata
"""
# The address of this lane's word of `out`: 64 words a wave, the waves of a workgroup one after the other.
ADDRESS = """
\ts_load_dwordx2 s[20:21], s[0:1], 0x0
\ts_waitcnt lgkmcnt(0)
\tv_lshlrev_b32_e32 v1, 2, v0
"""
STORE = "\tglobal_store_dword v1, v2, s[20:21]\n\ts_endpgm\n"


def run(body, waves=1, grid=(1, 1, 1), lds_bytes=0, preload=0, y=0, words=None):
    """Run `body` with the address of `out` as its only argument; returns out, 64 words a wave."""
    program = parse_program(FRAME.format(body=body, preload=preload, count=2 + preload, y=y))
    out = np.zeros((words or waves * 64), np.uint32)
    kernarg = np.array([out.ctypes.data, 0x2222222211111111], np.uint64).view(np.uint8)
    base, end = out.ctypes.data, out.ctypes.data + out.nbytes
    call = Call(program, grid, kernarg, [TensorArgument(0, "out", base, end, base, end)], waves, lds_bytes)
    execute(call, Counters.of(program), Faults())
    return out


def test_a_lane_starts_with_its_thread_number():
    """v0 holds x in one dimension, whole (pitfall 2); the workgroup's number follows the user registers."""
    body = ADDRESS + "\tv_lshl_add_u32 v1, s2, 9, v1\n\tv_lshl_add_u32 v2, s2, 16, v0\n" + STORE
    out = run(body, waves=2, grid=(3, 1, 1), words=3 * 128)
    assert out.tolist() == [group << 16 | thread for group in range(3) for thread in range(128)]


def test_preloaded_arguments_and_the_entry_behind_the_prologue():
    """The first instructions serve firmware that cannot preload; a wave enters 256 bytes on (pitfall 1)."""
    body = f"""
\ts_mov_b32 s2, 0
\ts_branch .Lbody
\t.p2align 8
.Lbody:
\ts_lshl_b32 s8, s6, 8
\tv_lshl_add_u32 v1, v0, 2, s8
\ts_mov_b64 s[20:21], s[2:3]
\tv_mov_b32_e32 v2, s5
\tv_mov_b32_e32 v3, s7
\tv_lshl_or_b32 v2, v3, 31, v2
{STORE}"""
    out = run(body, grid=(2, 2, 1), preload=4, y=1, words=128)
    # s[2:5] are the four words of the arguments, s6 and s7 the workgroup's x and y; y = 1 stores last.
    assert out.tolist() == [0x22222222 | 1 << 31] * 128


CONDITIONS = {
    # branch: (what makes it so, what does not)
    "s_cbranch_scc1": ("s_cmp_eq_u32 s3, s3", "s_cmp_lg_u32 s3, s3"),
    "s_cbranch_scc0": ("s_cmp_lg_u32 s3, s3", "s_cmp_eq_u32 s3, s3"),
    "s_cbranch_vccz": ("s_mov_b64 vcc, 0", "s_brev_b32 vcc_hi, 1"),
    "s_cbranch_vccnz": ("s_brev_b32 vcc_hi, 1", "s_mov_b64 vcc, 0"),
    "s_cbranch_execz": ("s_mov_b64 exec, 0", "s_brev_b32 exec_hi, 1"),
    "s_cbranch_execnz": ("s_mov_b64 exec, 1", "s_mov_b64 exec, 0"),
}
CASES = [
    (branch, setup, taken)
    for branch, sides in CONDITIONS.items()
    for setup, taken in zip(sides, (1, 0), strict=True)
]


@pytest.mark.parametrize("branch,setup,taken", [*CASES, ("s_branch", "s_nop 0", 1)])
def test_branch(branch, setup, taken):
    body = f"""{ADDRESS}
\ts_mov_b32 s9, 1
\t{setup}
\t{branch} .Lthere
\ts_mov_b32 s9, 2
.Lthere:
\ts_mov_b64 exec, -1
\tv_mov_b32_e32 v2, s9
{STORE}"""
    assert run(body).tolist() == [1 if taken else 2] * 64


def test_waves_part_and_meet_again():
    """Each wave loops as many times as its number says; a store after the loop runs in all of them."""
    body = f"""{ADDRESS}
\tv_readfirstlane_b32 s8, v0
\ts_lshr_b32 s8, s8, 6
\ts_mov_b32 s9, 100
\ts_cmp_eq_u32 s8, 0
\ts_cbranch_scc1 .Lend
.Lloop:
\ts_add_i32 s9, s9, s8
\ts_sub_i32 s8, s8, 1
\ts_cmp_gt_i32 s8, 0
\ts_cbranch_scc1 .Lloop
.Lend:
\tv_mov_b32_e32 v2, s9
{STORE}"""
    out = run(body, waves=5).reshape(5, 64)
    assert out.tolist() == [[100 + wave * (wave + 1) // 2] * 64 for wave in range(5)]


def test_lanes_part_and_meet_again():
    """if (lane & 1) 10 else 20, as LLVM writes it: saveexec, the other half, and EXEC back (pitfall 5)."""
    body = f"""{ADDRESS}
\tv_and_b32_e32 v3, 1, v0
\tv_cmp_eq_u32_e32 vcc, 1, v3
\ts_and_saveexec_b64 s[4:5], vcc
\ts_xor_b64 s[4:5], exec, s[4:5]
\tv_mov_b32_e32 v2, 10
\ts_andn2_saveexec_b64 s[4:5], s[4:5]
\tv_mov_b32_e32 v2, 20
\ts_or_b64 exec, exec, s[4:5]
{STORE}"""
    assert run(body).tolist() == [20, 10] * 32


def test_a_store_with_no_lane_on_stores_nothing():
    """LLVM leaves s_cbranch_execz out of short bodies, so such an access does run (pitfall 5)."""
    body = f"""{ADDRESS}
\tv_mov_b32_e32 v2, 7
\ts_mov_b64 exec, 0
\tv_mov_b32_e32 v1, -1
{STORE}"""
    assert not run(body).any()


def test_a_barrier_shows_the_other_waves_writes():
    """Each wave reads what the next one wrote; LDS comes from the launch, not from the text (pitfall 18)."""
    body = f"""{ADDRESS}
\tv_add_u32_e32 v3, 1000, v0
\tds_write_b32 v1, v3
\ts_waitcnt lgkmcnt(0)
\ts_barrier
\tv_add_u32_e32 v4, 256, v1
\tv_and_b32_e32 v4, 0x3ff, v4
\tds_read_b32 v2, v4
\ts_waitcnt lgkmcnt(0)
{STORE}"""
    out = run(body, waves=4, lds_bytes=1024)
    assert out.tolist() == [1000 + (thread + 64) % 256 for thread in range(256)]


def test_a_wave_that_ended_does_not_hold_a_barrier():
    body = f"""{ADDRESS}
\tv_readfirstlane_b32 s8, v0
\ts_cmp_eq_u32 s8, 64
\ts_cbranch_scc1 .Lquit
\ts_barrier
\tv_mov_b32_e32 v2, 5
{STORE}
.Lquit:
\ts_endpgm
"""
    out = run(body, waves=3).reshape(3, 64)
    assert out[:, 0].tolist() == [5, 0, 5]


def test_text_that_is_no_kernel():
    with pytest.raises(UnsupportedInstruction, match="no AMD kernel"):
        parse_program("\ts_endpgm\n")
    with pytest.raises(UnsupportedInstruction, match="no label"):
        run("\ts_branch 5\n\ts_endpgm\n")
