"""labkit.trace: every step of one wave, its EXEC, and what it wrote."""

import numpy as np
import pytest
import torch

import labkit
from labkit.errors import LabkitError, LaunchError
from tests.emulator import kernels
from tests.emulator.harness import straight

pytestmark = pytest.mark.usefixtures("mi300x")


def trace_add(n=100, **which):
    x, y, out = torch.arange(512.0), torch.arange(512.0) * 100, torch.full((512,), -1.0)
    found = labkit.trace(kernels.add_kernel, (2,), (x, y, out, n), {"BLOCK": 256}, **which)
    return found, out


def test_steps_stand_in_order_with_their_lines():
    found, out = trace_add()
    steps = found.table
    assert steps["instruction"].iloc[-1] == "s_endpgm"
    kinds = [step.instruction.kind for step in found.executed]
    assert kinds.index("VMEM load") < kinds.index("VMEM store")
    lines = set(steps["source_line"]) - {0}
    assert lines <= set(range(8, 13))  # the body of add_kernel
    assert out[:100].tolist() == [101.0 * k for k in range(100)]
    assert (out[256:] == -1).all()  # the other workgroup did not run


def test_registers_of_a_lane():
    found, _ = trace_add(workgroup=(0, 0, 0), wave=1)
    values = found.lane(3)
    sums = values[values["instruction"].str.contains("add_f32")]
    assert sums["value"].iloc[-1] == 101.0 * 67  # wave 1, lane 3


def test_another_workgroup_and_wave():
    found, out = trace_add(n=400, workgroup=(1, 0, 0), wave=2)
    assert (found.workgroup, found.wave) == ((1, 0, 0), 2)
    assert (out[:256] == -1).all()
    assert out[256:400].tolist() == [101.0 * k for k in range(256, 400)]


def test_exec_lanes_follow_the_mask():
    out = torch.zeros(4)
    found = labkit.trace(kernels.reduce_kernel, (1,), (torch.ones(64), out, 64, "sum", 64), {"num_warps": 1})
    lanes = found.exec_lanes()
    assert lanes.shape == (len(found.executed), 64)
    assert lanes[0].all()
    assert np.flatnonzero(lanes[-1]).tolist() == [0]  # one lane stores the sum
    assert out[0] == 64


def test_stores_and_compares_write_no_register():
    found, _ = trace_add()
    for step in found.executed:
        if step.instruction.kind in ("VMEM store", "wait") or step.instruction.operation.startswith("s_cmp"):
            assert step.written == {}


def test_a_workgroup_outside_the_grid():
    with pytest.raises(LaunchError, match=r"\(5, 0, 0\) is not in the grid \(2, 1, 1\)"):
        trace_add(workgroup=(5, 0, 0))


def test_a_wave_that_the_workgroup_does_not_have():
    with pytest.raises(LaunchError, match="wave 9.*has 4 waves"):
        trace_add(wave=9)


def test_a_launch_that_did_not_reach_the_emulator():
    class Elsewhere:
        def __getitem__(self, grid):
            return lambda *args, **kwargs: None

    with pytest.raises(LabkitError, match="cannot be traced"):
        labkit.trace(Elsewhere(), (1,))


def test_a_function_that_is_no_kernel():
    with pytest.raises(LaunchError, match="expected a function decorated with @triton.jit"):
        labkit.trace(len, (1,))


@pytest.mark.parametrize(
    ("text", "has_result"),
    [
        ("v_add_f32 v0, v1, v2", True),
        ("ds_read_b32 v0, v1", True),
        ("ds_bpermute_b32 v0, v1, v2", True),
        ("ds_add_rtn_u32 v0, v1, v2", True),
        ("ds_add_u32 v0, v1", False),  # v0 is its address
        ("ds_write_b32 v0, v1", False),
        ("buffer_load_dword v0, s[0:3], 0 offen", True),
        ("buffer_load_dword v0, s[0:3], 0 offen lds", False),  # likewise: the bytes go to LDS
        ("global_atomic_add v0, v[2:3], v4, off sc0", True),
        ("global_atomic_add v[2:3], v4, off", False),
        ("s_cmp_eq_u32 s0, s1", False),
        ("s_waitcnt vmcnt(0)", False),
    ],
)
def test_what_an_instruction_writes_is_its_first_operand_or_nothing(text, has_result):
    (instruction,) = straight(text).instructions
    assert instruction.has_result == has_result
