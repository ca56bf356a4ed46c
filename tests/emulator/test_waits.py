"""Missing waits: found in code by hand, in Triton's code with its waits taken out, and nowhere else."""

import re

import pytest
import torch

import labkit
from labkit.emulator.faults import Faults
from labkit.emulator.program import parse_program
from labkit.emulator.waits import find_hazards
from tests.emulator import kernels
from tests.emulator.harness import execute_text, straight

LOADS = """
global_load_dword v2, v[0:1], off
global_load_dword v3, v[0:1], off offset:4
"""


def hazards(text):
    found = find_hazards(straight(text)).get(0, [])
    return [(hazard.instruction.line.text.split()[0], hazard.register) for hazard in found]


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("s_waitcnt vmcnt(0)\nv_add_f32 v4, v2, v3", []),
        ("s_waitcnt vmcnt(1)\nv_mov_b32 v4, v2", []),  # the first of two is back
        ("s_waitcnt vmcnt(1)\nv_mov_b32 v4, v3", [("v_mov_b32", "v3")]),
        ("v_mov_b32 v4, v2", [("v_mov_b32", "v2")]),
        ("s_waitcnt lgkmcnt(0)\nv_mov_b32 v4, v2", [("v_mov_b32", "v2")]),  # the other counter
        ("v_mov_b32 v3, 0", [("v_mov_b32", "v3")]),  # the load would overwrite it later
        ("global_store_dword v[0:1], v5, off\ns_waitcnt vmcnt(1)\nv_add_f32 v4, v2, v3", []),  # stores count
        ("global_store_dword v[0:1], v3, off", [("global_store_dword", "v3")]),
        ("global_load_dword v3, v[0:1], off", []),  # same queue, same register: in order
        ("ds_read_b32 v3, v5", [("ds_read_b32", "v3")]),
    ],
)
def test_vector_loads(rest, expected):
    assert hazards(LOADS + rest) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ds_read_b32 v1, v0\nds_read_b32 v2, v0\ns_waitcnt lgkmcnt(1)\nv_mov_b32 v3, v1", []),
        ("ds_read_b32 v1, v0\ns_waitcnt lgkmcnt(1)\nv_mov_b32 v3, v1", [("v_mov_b32", "v1")]),
        ("ds_bpermute_b32 v1, v0, v2\nv_mov_b32 v3, v1", [("v_mov_b32", "v1")]),
        ("ds_add_rtn_u32 v1, v0, v2\nv_mov_b32 v3, v1", [("v_mov_b32", "v1")]),
        ("ds_add_u32 v0, v2\nv_mov_b32 v3, v0", []),
        ("s_load_dwordx2 s[2:3], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\ns_mov_b32 s4, s3", []),
        # Scalar loads come back in any order, so a count above 0 says nothing.
        (
            "s_load_dword s2, s[0:1], 0x0\ns_load_dword s3, s[0:1], 0x4\n"
            "s_waitcnt lgkmcnt(1)\ns_mov_b32 s4, s2",
            [("s_mov_b32", "s2")],
        ),
        ("global_atomic_add v1, v[2:3], v4, off sc0\nv_mov_b32 v5, v1", [("v_mov_b32", "v1")]),
        ("global_atomic_add v[2:3], v4, off\nv_mov_b32 v5, v4", []),
        ("buffer_load_dword v1, s[0:3], 0 offen lds\nv_mov_b32 v5, v1", []),
    ],
)
def test_lds_scalar_and_atomic(text, expected):
    assert hazards(text) == expected


BARRIER = [("s_barrier", None)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ds_write_b32 v0, v1\ns_barrier", BARRIER),
        ("ds_write2st64_b64 v0, v[2:3], v[4:5] offset1:1\ns_barrier", BARRIER),
        ("ds_add_u32 v0, v1\ns_barrier", BARRIER),
        ("ds_add_rtn_u32 v2, v0, v1\ns_barrier", BARRIER),
        ("ds_write_b32 v0, v1\ns_waitcnt vmcnt(0)\ns_barrier", BARRIER),
        ("ds_write_b32 v0, v1\nds_write_b32 v0, v2\ns_waitcnt lgkmcnt(1)\ns_barrier", BARRIER),
        ("ds_write_b32 v0, v1\ns_waitcnt lgkmcnt(0)\ns_barrier", []),
        # A read behind the write: what it waits for is done after the write.
        ("ds_write_b32 v0, v1\nds_read_b32 v2, v0\ns_waitcnt lgkmcnt(1)\ns_barrier", []),
        ("ds_read_b32 v2, v0\ns_barrier\ns_waitcnt lgkmcnt(0)", []),
        ("ds_bpermute_b32 v1, v0, v2\ns_barrier", []),
        ("buffer_load_dword v1, s[0:3], 0 offen lds\ns_barrier", []),  # copies may go on over barriers
    ],
)
def test_a_write_to_lds_and_a_barrier(text, expected):
    assert hazards(text) == expected


@pytest.mark.parametrize(
    ("load", "another", "count"),
    [
        ("global_load_dword v1, v[2:3], off", "global_load_dword v{}, v[2:3], off", 63),
        ("ds_read_b32 v1, v2", "ds_read_b32 v{}, v2", 15),
    ],
)
def test_a_counter_that_is_full_has_waited(load, another, count):
    """The 64th load issues once the first is back: vmcnt counts to 63 and lgkmcnt to 15."""
    younger = [another.format(100 + k) for k in range(count)]
    assert hazards("\n".join([load, *younger, "v_mov_b32 v0, v1"])) == []
    assert hazards("\n".join([load, *younger[1:], "v_mov_b32 v0, v1"])) == [("v_mov_b32", "v1")]


def test_a_loop_carries_loads_into_its_next_turn():
    labkit.start("MI300X", quiet=True)
    x, out = torch.rand(2, 4096), torch.zeros(2)
    kernels.loop_kernel[(2,)](x, out, 4096, BLOCK=256)
    text = labkit.last_launch().compiled.stages["amdgcn"]
    assert find_hazards(parse_program(text)) == {}
    # Inside the loop the load is used a turn later or below; without its wait that shows.
    cut = re.sub(r"s_waitcnt vmcnt\(\d+\)", "s_nop 0", text)
    assert find_hazards(parse_program(cut))


EARLY, PASSED = "register used before its load came back", "barrier before an LDS write is done"


@pytest.mark.parametrize(("counter", "kinds"), [("vmcnt", {EARLY}), ("lgkmcnt", {EARLY, PASSED})])
def test_a_wait_taken_out_of_a_launch_is_reported_where_the_register_is_used(counter, kinds):
    labkit.start("MI300X", quiet=True)
    x, out = torch.rand(4, 1024), torch.zeros(4, 1024)
    kernels.softmax_kernel[(4,)](x, out, 1024, 1024, BLOCK=1024)
    compiled = labkit.last_launch().compiled
    text = re.sub(rf"s_waitcnt {counter}\(\d+\)", "s_nop 0", compiled.stages["amdgcn"])
    arguments = [("x", "*fp32", x), ("out", "*fp32", out), ("n", "i32", 1024), ("stride", "i32", 1024)]
    faults = Faults("report")
    execute_text(text, arguments, faults, grid=(4, 1, 1), lds_bytes=compiled.registers.lds_bytes)
    assert {f.kind for f in faults.findings} == kinds
    first = faults.findings[0]
    assert (first.workgroup, first.wave, first.lane, first.address) == ((0, 0, 0), 0, None, None)
    assert first.source.startswith("kernels.py:") and "s_waitcnt" in first.message
