"""Planted errors in machine code: what Triton itself never does with LDS, waits and barriers.

Each kernel has one line marked `@` that is wrong, and that a right line replaces in its twin. It runs as four
waves with 1024 bytes of LDS, on the tensors x and out of 256 words each.
"""

from contextlib import nullcontext
from dataclasses import dataclass

import pytest
import torch

from labkit.emulator.faults import Faults
from labkit.emulator.machine import numpy_only
from labkit.errors import MemoryFault
from tests.emulator.harness import execute_text

RACE, UNWRITTEN, BEYOND = "LDS race", "LDS read before write", "LDS access outside"
EARLY, PASSED = "register used before its load came back", "barrier before an LDS write is done"
OUTSIDE, MISALIGNED = "global access outside", "misaligned access"

# s[4:5] and s[6:7] point to x and out, v1 is 4 * thread, v2 4 * lane, s12 4 * the wave's first thread;
# s[8:11] is x as a buffer.
START = """
s_load_dwordx4 s[4:7], s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
v_and_b32_e32 v2, 0xfc, v1
v_readfirstlane_b32 s12, v1
s_mov_b32 s10, 0x7ffffffe
s_mov_b32 s11, 0x27000
s_waitcnt lgkmcnt(0)
s_mov_b32 s8, s4
s_and_b32 s9, s5, 0xffff
"""
OWN = "ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\n"  # each thread its own word
FROM_NEXT_WAVE = "v_xor_b32_e32 v3, 0x100, v1\nds_read_b32 v4, v3\ns_waitcnt lgkmcnt(0)\n"
TO_LDS = "buffer_load_dword v1, s[8:11], 0 offen lds\ns_waitcnt vmcnt(0)\n"


@dataclass(frozen=True)
class Seed:
    """`@` in `text` is `bad`, or `good`; `found` begins the instruction that is reported ("" for `bad`)."""

    name: str
    text: str
    bad: str
    good: str
    kind: str
    found: str = ""
    wave: int = 0
    lane: int | None = None
    address: int | None = None  # within LDS, or from the start of `tensor`
    tensor: str = ""


SEEDS = [
    # Races: the words of waves 0 and 1 lie 0x100 bytes apart.
    Seed("no barrier", OWN + "@\n" + FROM_NEXT_WAVE, "s_nop 0", "s_barrier", RACE, "ds_read_b32", 0, 0,
         0x100),
    Seed("read by another wave, then written", OWN + "s_barrier\n" + FROM_NEXT_WAVE +
         "@\nds_write_b32 v1, v2", "s_nop 0", "s_barrier", RACE, "ds_write_b32 v1, v2", 0, 1, 4),
    Seed("all waves to the same words", "@", "ds_write_b32 v2, v0", "ds_write_b32 v1, v0", RACE, "", 0, 0, 0),
    Seed("two words, one of them another wave's", OWN + "s_barrier\n@",
         "ds_write2st64_b32 v2, v0, v0 offset1:1", "ds_write2_b32 v1, v0, v0", RACE, "", 0, 0, 0),
    Seed("copied to LDS, no barrier", "s_mov_b32 m0, s12\n" + TO_LDS + "@\n" + FROM_NEXT_WAVE, "s_nop 0",
         "s_barrier", RACE, "ds_read_b32", 0, 0, 0x100),
    # Reads of what nothing wrote.
    Seed("nothing was written", "@\ns_waitcnt lgkmcnt(0)\nds_read_b32 v4, v1", "s_nop 0",
         "ds_write_b32 v1, v0", UNWRITTEN, "ds_read_b32", 0, 0, 0),
    Seed("half of the lanes wrote", "s_mov_b64 exec, @\n" + OWN + "s_mov_b64 exec, -1\nds_read_b32 v4, v1",
         "0xffffffff", "-1", UNWRITTEN, "ds_read_b32", 0, 32, 128),
    Seed("half of each word was written", "@\ns_waitcnt lgkmcnt(0)\nds_read_b32 v4, v1",
         "ds_write_b16 v1, v0", "ds_write_b32 v1, v0", UNWRITTEN, "ds_read_b32", 0, 0, 0),
    Seed("the second of two", "s_mov_b64 exec, 1\n" + OWN + "@", "ds_read2_b32 v[4:5], v1 offset1:1",
         "ds_read2_b32 v[4:5], v1", UNWRITTEN, "", 0, 0, 4),
    Seed("wider than what was written", "s_mov_b64 exec, 3\n" + OWN + "ds_read_@ v1", "b96 v[4:6],",
         "b32 v4,", UNWRITTEN, "ds_read_b96", 0, 0, 0),
    Seed("copied elsewhere",
         "s_mov_b32 m0, @\nbuffer_load_dword v2, s[8:11], 0 offen lds\ns_waitcnt vmcnt(0)\n"
         "ds_read_b32 v4, v2 offset:512", "0x100", "0x200", UNWRITTEN, "ds_read_b32", 0, 0, 0x200),
    # Beyond the 1024 bytes of LDS.
    Seed("read past the end", OWN + "s_barrier\n@", "ds_read_b32 v4, v1 offset:4", "ds_read_b32 v4, v1",
         BEYOND, "", 3, 63, 1024),
    Seed("write past the end", "@", "ds_write_b32 v1, v0 offset:1020", "ds_write_b32 v1, v0", BEYOND, "", 0,
         1, 1024),
    Seed("second word of a read past the end", OWN + "s_barrier\n@", "ds_read2_b32 v[4:5], v1 offset1:1",
         "ds_read2_b32 v[4:5], v1", BEYOND, "", 3, 63, 1024),
    Seed("second word of a write past the end", "@", "ds_write2st64_b32 v1, v0, v0 offset1:4",
         "ds_write2st64_b32 v1, v0, v0", BEYOND, "", 0, 0, 1024),
    Seed("atomic past the end", "@", "ds_add_u32 v1, v0 offset:768", "ds_add_u32 v1, v0", BEYOND, "", 1, 0,
         1024),
    Seed("copied past the end", "@\n" + TO_LDS, "s_add_u32 m0, s12, 0x100", "s_mov_b32 m0, s12", BEYOND,
         "buffer_load_dword", 3, 0, 1024),
    # Atomics that are not aligned.
    Seed("atomic between two words", "@", "ds_add_u32 v2, v0 offset:2", "ds_add_u32 v2, v0", MISALIGNED, "",
         0, 0, 2),
    Seed("wide atomic at a word", "v_lshlrev_b32_e32 v6, 1, v2\n@", "ds_add_u64 v2, v[4:5]",
         "ds_add_u64 v6, v[4:5]", MISALIGNED, "", 0, 1, 4),
    Seed("wide global atomic at a word", "v_lshlrev_b32_e32 v6, 1, v2\n@",
         "global_atomic_add_x2 v2, v[4:5], s[6:7]", "global_atomic_add_x2 v6, v[4:5], s[6:7]", MISALIGNED, "",
         0, 1, 4, "out" ),
    Seed("scalar load between two words", "@", "s_load_dword s14, s[4:5], 0x6",
         "s_load_dword s14, s[4:5], 0x4", MISALIGNED, "", 0, None, 6, "x" ),
    # Global memory.
    Seed("one thread too far", "@", "global_load_dword v4, v1, s[4:5] offset:4",
         "global_load_dword v4, v1, s[4:5]", OUTSIDE, "", 3, 63, 1024, "x" ),
    Seed("store before the start", "@", "global_store_dword v1, v0, s[6:7] offset:-8",
         "global_store_dword v1, v0, s[6:7]", OUTSIDE, "", 0, 0, -8, "out" ),
    Seed("wide load over the end", "@", "global_load_dwordx2 v[4:5], v1, s[4:5]",
         "global_load_dword v4, v1, s[4:5]", OUTSIDE, "", 3, 63, 1020, "x" ),
    Seed("scalar load over the end", "@", "s_load_dwordx2 s[14:15], s[4:5], 0x3fc",
         "s_load_dwordx2 s[14:15], s[4:5], 0x3f8", OUTSIDE, "", 0, None, 1020, "x" ),
    Seed("masked by a buffer of the wrong size", "s_mov_b32 s10, @\nv_add_u32_e32 v3, 0x80, v1\n"
         "buffer_load_dword v4, v3, s[8:11], 0 offen", "0x408", "0x400", OUTSIDE, "buffer_load", 3, 32, 1024,
         "x" ),
    # Waits that are missing, or wait for too little.
    Seed("no wait for a load", "global_load_dword v4, v1, s[4:5]\n@\nv_add_u32_e32 v5, v4, v4", "s_nop 0",
         "s_waitcnt vmcnt(0)", EARLY, "v_add_u32" ),
    Seed("a wait for the first of two",
         "global_load_dword v4, v1, s[4:5]\nglobal_load_dword v5, v1, s[4:5]\n@\n" "v_mov_b32_e32 v6, v5",
         "s_waitcnt vmcnt(1)", "s_waitcnt vmcnt(0)", EARLY, "v_mov_b32" ),
    Seed("a wait for the other counter",
         "global_load_dword v4, v1, s[4:5]\n@\nglobal_store_dword v1, v4, s[6:7]", "s_waitcnt lgkmcnt(0)",
         "s_waitcnt vmcnt(0)", EARLY, "global_store" ),
    Seed("overwritten before it came", "global_load_dword v4, v1, s[4:5]\n@\nv_mov_b32_e32 v4, 0", "s_nop 0",
         "s_waitcnt vmcnt(0)", EARLY, "v_mov_b32" ),
    Seed("no wait for what an atomic returns",
         "global_atomic_add v4, v1, v0, s[6:7] sc0\n@\nv_mov_b32_e32 v5, v4", "s_nop 0", "s_waitcnt vmcnt(0)",
         EARLY, "v_mov_b32" ),
    Seed("no wait for LDS", OWN + "ds_read_b32 v4, v1\n@\nv_mov_b32_e32 v5, v4", "s_nop 0",
         "s_waitcnt lgkmcnt(0)", EARLY, "v_mov_b32" ),
    Seed("no wait for another lane's value", "ds_bpermute_b32 v4, v2, v0\n@\nv_mov_b32_e32 v5, v4", "s_nop 0",
         "s_waitcnt lgkmcnt(0)", EARLY, "v_mov_b32" ),
    Seed("no wait for a scalar load", "s_load_dword s14, s[4:5], 0x0\n@\ns_add_u32 s15, s14, s14", "s_nop 0",
         "s_waitcnt lgkmcnt(0)", EARLY, "s_add_u32" ),
    Seed("scalar loads come in any order", "s_load_dword s14, s[4:5], 0x0\ns_load_dword s15, s[4:5], 0x8\n@\n"
         "s_mov_b32 s16, s14", "s_waitcnt lgkmcnt(1)", "s_waitcnt lgkmcnt(0)", EARLY, "s_mov_b32 s16" ),
    Seed("a wait on one of two ways",
         "global_load_dword v4, v1, s[4:5]\ns_cmp_eq_u32 s12, 0\ns_cbranch_scc1 .on\n"
         "s_waitcnt vmcnt(0)\ns_branch .use\n.on:\n@\n.use:\nv_mov_b32_e32 v5, v4", "s_nop 0",
         "s_waitcnt vmcnt(0)", EARLY, "v_mov_b32" ),
    Seed("barrier behind a write", "ds_write_b32 v1, v0\n@\ns_barrier\n" + FROM_NEXT_WAVE, "s_nop 0",
         "s_waitcnt lgkmcnt(0)", PASSED, "s_barrier" ),
    Seed("barrier behind the second write", "ds_write_b32 v1, v0\nds_write_b32 v1, v2\n@\ns_barrier",
         "s_waitcnt lgkmcnt(1)", "s_waitcnt lgkmcnt(0)", PASSED, "s_barrier" ),
    Seed("barrier behind an atomic", "ds_add_u32 v2, v0\n@\ns_barrier", "s_waitcnt vmcnt(0)",
         "s_waitcnt lgkmcnt(0)", PASSED, "s_barrier" ),
]  # fmt: skip

KERNEL = """\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
seeded:
{body}
s_endpgm
\t.amdhsa_kernel seeded
\t\t.amdhsa_user_sgpr_count 2
\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1
\t.end_amdhsa_kernel
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .args:
      - .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .offset:         8
        .size:           8
        .value_kind:     global_buffer
    .kernarg_segment_size: 16
    .name:           seeded
...
\t.end_amdgpu_metadata
"""


@pytest.fixture(params=["fast", "numpy"], autouse=True)
def path(request):
    """The compiled path, in which a wave runs as far as it gets, and NumPy's, in which all go together."""
    with numpy_only() if request.param == "numpy" else nullcontext():
        yield request.param


def launch(body, mode="report"):
    """The tensors, the lines of the text and the findings."""
    tensors = {name: torch.arange(256, dtype=torch.int32) for name in ("x", "out")}
    text, faults = KERNEL.format(body=body.strip("\n")), Faults(mode)
    execute_text(text, [(name, "*i32", tensor) for name, tensor in tensors.items()], faults, lds_bytes=1024)
    return tensors, text.splitlines(), faults.findings


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_a_planted_error_is_found(seed, path):
    tensors, lines, findings = launch(START + seed.text.replace("@", seed.bad))
    if seed.kind == RACE and path == "fast":
        # A race has two sides, and which is told depends on which wave runs first.
        assert {finding.kind for finding in findings} == {RACE}
        assert any(finding.instruction.startswith(seed.found or seed.bad) for finding in findings)
        return
    (finding,) = findings
    assert (finding.kind, finding.soft) == (seed.kind, False)
    assert finding.instruction.startswith(seed.found or seed.bad)
    assert lines[finding.assembly_line - 1] == finding.instruction
    assert (finding.workgroup, finding.wave, finding.lane) == ((0, 0, 0), seed.wave, seed.lane)
    start = tensors[seed.tensor].data_ptr() if seed.tensor else 0
    assert finding.address == (None if seed.address is None else start + seed.address)
    assert finding.tensor == seed.tensor
    with pytest.raises(MemoryFault, match="`" + finding.instruction.split()[0]):
        launch(START + seed.text.replace("@", seed.bad), "raise")


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_without_the_error_there_is_no_finding(seed):
    assert launch(START + seed.text.replace("@", seed.good))[2] == []


def test_off_looks_for_none():
    for seed in SEEDS:
        assert launch(START + seed.text.replace("@", seed.bad), "off")[2] == [], seed.name


def test_a_misaligned_atomic_is_not_carried_out():
    tensors, _, _ = launch(START + "v_mov_b32_e32 v4, 5\nglobal_atomic_add v2, v4, s[6:7] offset:2")
    assert torch.equal(tensors["out"], torch.arange(256, dtype=torch.int32))
