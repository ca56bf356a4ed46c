"""Each kind of goal, on launches whose counts follow from the kernel by hand."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

import labkit
from labkit.checks import goals
from labkit.checks.trial import Trial, run_trial


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def transpose(x_ptr, out_ptr, SIDE: tl.constexpr):
    i, j = tl.arange(0, SIDE)[:, None], tl.arange(0, SIDE)[None, :]
    tl.store(out_ptr + i * SIDE + j, tl.trans(tl.load(x_ptr + i * SIDE + j)))


@pytest.fixture(autouse=True)
def mi300x():
    labkit.start("MI300X", faults="report", quiet=True)


def copied(n, block=1024, floor=0):
    x, out = torch.rand(n), torch.full((n,), -7.0)
    options = {"BLOCK": block, "num_warps": 4}
    trial = Trial("copy", (-(-n // block),), (x, out, n), out, x.double().numpy(), -7.0, options)
    outcome = run_trial(copy, Trial(**{**vars(trial), "floor_bytes": floor}))
    assert outcome.error is None and not outcome.wrong.any()
    return outcome


def transposed(side=64):
    x, out = torch.rand(side, side), torch.full((side, side), -7.0)
    expected = x.T.double().numpy()
    outcome = run_trial(transpose, Trial("t", (1,), (x, out), out, expected, -7.0, {"SIDE": side}))
    assert outcome.error is None and not outcome.wrong.any()
    return outcome


@pytest.mark.parametrize(("floor", "reached"), [(8 * 4096, True), (8 * 4096 - 1, False)])
def test_bytes_at_the_floor(floor, reached):
    came, verdict = goals.bytes_at_floor().judge(copied(4096, floor=floor))
    assert came == f"32,768 bytes, floor {floor:,}" and verdict == reached


@pytest.mark.parametrize(("block", "width"), [(1024, 16), (512, 8), (256, 4)])
def test_load_width(block, width):
    """Four waves of 64 lanes share the block, so a lane has block / 256 floats."""
    outcome = copied(4096, block)
    assert goals.load_width(width).judge(outcome) == (f"{width} bytes a lane", True)
    assert not goals.load_width(2 * width).judge(outcome)[1]


def test_active_share():
    """Of the last block of 256, 32 lanes of the first wave have an element: most of it is off."""
    with triton.knobs.amd.scope():
        # With buffer operations Triton masks by the address, and leaves the lanes on.
        triton.knobs.amd.use_buffer_ops = False
        full, part = copied(256, 256), copied(32, 256)
    assert goals.active_share(100).judge(full) == ("100.0 %", True)
    came, reached = goals.active_share(100).judge(part)
    assert not reached and 0 < float(came.split()[0]) < 100


def test_bank_conflicts():
    assert goals.no_bank_conflicts().judge(copied(1024)) == ("0 cycles", True)
    came, reached = goals.no_bank_conflicts().judge(transposed())
    assert not reached, came


def test_registers():
    outcome = copied(1024)
    count = outcome.launch.compiled.registers.vgprs_total
    assert goals.registers_at_most(count).judge(outcome) == (f"{count} registers", True)
    assert not goals.registers_at_most(count - 1).judge(outcome)[1]


def test_instructions_present_and_absent():
    outcome = copied(1024)
    assert goals.executes(r".*_load_dwordx4", "wide").judge(outcome) == ("buffer_load_dwordx4", True)
    assert goals.executes(r"load", "the whole name counts").judge(outcome) == ("none", False)
    assert goals.avoids(r"ds_.*", "no LDS").judge(outcome) == ("none", True)
    assert not goals.avoids(r"ds_.*", "no LDS").judge(transposed())[1]


def test_a_launch_that_ran_says_what_it_wrote():
    assert copied(100, 128).written() == {"x_ptr": 0, "out_ptr": 400}
    assert not np.isnan(copied(5, 128).got).any()
