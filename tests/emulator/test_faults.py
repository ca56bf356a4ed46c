"""Faults: planted errors are found at the right line, and the same kernels without them give no finding."""

import inspect

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

import labkit
from labkit.emulator.faults import Faults
from labkit.emulator.lds_shadow import SEVERAL, LdsShadow
from labkit.errors import LaunchError, MemoryFault
from tests.emulator import kernels
from tests.emulator.harness import execute_text


@pytest.fixture(params=["raise", "report"])
def mode(request):
    labkit.start("MI300X", faults=request.param, quiet=True)
    return request.param


def run(mode, kernel, grid, *args, **options):
    """Launch; returns the findings, in either mode."""
    if mode == "raise":
        try:
            kernel[grid](*args, **options)
        except MemoryFault as error:
            findings = labkit.last_launch().faults
            assert [str(error)] == [str(finding) for finding in findings]
            return findings
    else:
        kernel[grid](*args, **options)
    return labkit.last_launch().faults


def line_of(kernel, text):
    """The line of this file where `kernel` says `text`."""
    lines, first = inspect.getsourcelines(kernel.fn)
    return first + next(k for k, line in enumerate(lines) if text in line)


@triton.jit
def unmasked_load(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, x, mask=at < n)


@triton.jit
def unmasked_store(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x)


@triton.jit
def off_by_one_mask(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at <= n)
    tl.store(out_ptr + at, x, mask=at < n)


@triton.jit
def before_the_start(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at - 1, mask=at < n)
    tl.store(out_ptr + at, x, mask=at < n)


@triton.jit
def unmasked_atomic(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.atomic_add(out_ptr + at, x)


@triton.jit
def bad_index(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + at, mask=at < n, other=0)
    x = tl.load(x_ptr + index, mask=at < n)
    tl.store(out_ptr + at, x, mask=at < n)


# (kernel, the text of its faulty line, the tensor)
OUTSIDE = [
    (unmasked_load, "tl.load(x_ptr", "x_ptr"),
    (unmasked_store, "tl.store", "out_ptr"),
    (off_by_one_mask, "tl.load(x_ptr", "x_ptr"),
    (before_the_start, "tl.load(x_ptr", "x_ptr"),
    (unmasked_atomic, "tl.atomic_add", "out_ptr"),
]


@pytest.mark.parametrize(("kernel", "text", "tensor"), OUTSIDE)
def test_an_access_outside_its_tensor_is_found_at_its_line(mode, kernel, text, tensor):
    # A page apart, so that beside each tensor there is none.
    x, out = torch.rand(1 << 16)[:1000].clone(), torch.zeros(1000)
    (finding,) = run(mode, kernel, (4,), x, out, 1000, BLOCK=256)
    assert finding.kind == "global access outside"
    assert finding.source_line == line_of(kernel, text)
    assert finding.tensor == tensor
    start = {"x_ptr": x, "out_ptr": out}[tensor].data_ptr()
    assert not start <= finding.address < start + 4000
    last = kernel is not before_the_start
    assert finding.workgroup == ((3, 0, 0) if last else (0, 0, 0))
    # 1000 = 3 * 256 + 3 * 64 + 40: lane 40 of wave 3 is the first that is past the end.
    assert (finding.wave, finding.lane) == ((3, 40) if last else (0, 0))


@pytest.mark.parametrize(
    "kernel", [unmasked_load, unmasked_store, off_by_one_mask, unmasked_atomic, bad_index]
)
def test_the_same_kernels_within_their_tensors_give_no_finding(mode, kernel):
    x, out = torch.rand(1024), torch.zeros(1024)
    if kernel is bad_index:
        assert run(mode, kernel, (4,), x, torch.randperm(1024), out, 1024, BLOCK=256) == []
        return
    n = 1023 if kernel is off_by_one_mask else 1024
    assert run(mode, kernel, (4,), x, out, n, BLOCK=256) == []


def test_a_bad_index_from_memory_is_found_where_it_is_used(mode):
    index = torch.arange(256)
    index[77] = 1 << 20
    findings = run(mode, bad_index, (1,), torch.rand(256), index, torch.zeros(256), 256, BLOCK=256)
    assert [(f.source_line, f.wave, f.lane) for f in findings] == [
        (line_of(bad_index, "tl.load(x_ptr"), 1, 13)  # 77 = 64 + 13
    ]


def test_reporting_goes_on_without_the_lanes_that_are_outside():
    labkit.start("MI300X", faults="report", quiet=True)
    x, out = torch.rand(1000), torch.full((1000,), 7.0)
    unmasked_store[(4,)](x, out, 1000, BLOCK=256)
    assert torch.equal(out, x)
    launch = labkit.last_launch()
    assert len(launch.faults) == 1 and "Fault:" in launch._repr_html_()


def test_off_looks_for_none_and_still_touches_nothing_outside():
    labkit.start("MI300X", faults="off", quiet=True)
    x, out = torch.rand(1000), torch.zeros(1000)
    unmasked_store[(4,)](x, out, 1000, BLOCK=256)
    assert torch.equal(out, x) and labkit.last_launch().faults == []


def test_a_mode_that_does_not_exist_is_refused():
    with pytest.raises(LaunchError, match="'raise', 'report', 'off'"):
        labkit.start("MI300X", faults="loud", quiet=True)


def test_findings_as_a_table():
    labkit.start("MI300X", faults="report", quiet=True)
    unmasked_load[(4,)](torch.rand(1000), torch.zeros(1000), 1000, BLOCK=256)
    faults = Faults("report", labkit.last_launch().faults)
    assert faults.table[["kind", "wave", "lane"]].to_numpy().tolist() == [["global access outside", 3, 40]]


@triton.jit
def through_memory(pointers_ptr, out_ptr, n, BLOCK: tl.constexpr):
    x_ptr = tl.load(pointers_ptr + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + tl.program_id(0) * n + at, x, mask=at < n)


def test_a_pointer_from_memory_is_good_while_its_tensor_lives(mode):
    tensors = [torch.rand(200) for _ in range(3)]
    pointers, out = torch.tensor([x.data_ptr() for x in tensors]), torch.zeros(3, 200)
    assert run(mode, through_memory, (3,), pointers, out, 200, BLOCK=256) == []
    assert torch.equal(out, torch.stack(tensors))


def test_a_pointer_from_memory_past_the_end_of_its_tensor_is_found(mode):
    tensors = [torch.rand(1 << 16) for _ in range(3)]
    pointers, out = torch.tensor([x.data_ptr() + 4 * 65400 for x in tensors]), torch.zeros(3, 200)
    (finding,) = run(mode, through_memory, (3,), pointers, out, 200, BLOCK=256)
    assert finding.source_line == line_of(through_memory, "tl.load(x_ptr")
    assert (finding.workgroup, finding.wave, finding.lane) == ((0, 0, 0), 2, 8)  # 65536 - 65400 = 2 * 64 + 8


def test_a_pointer_from_memory_to_nothing_is_found(mode):
    pointers, out = torch.tensor([4096]), torch.zeros(1, 200)
    (finding,) = run(mode, through_memory, (1,), pointers, out, 200, BLOCK=256)
    assert finding.address == 4096


def test_an_arguments_pointer_is_not_good_for_a_tensor_that_is_none(mode):
    far = torch.rand(1 << 16)
    x, index = torch.rand(256), torch.zeros(256, dtype=torch.int64)
    index[3] = (far.data_ptr() - x.data_ptr()) // 4
    findings = run(mode, bad_index, (1,), x, index, torch.zeros(256), 256, BLOCK=256)
    assert [finding.lane for finding in findings] == [3]


# LDS faults: Triton makes none by itself, so they are planted in its machine code.


def row_sum(change):
    """Findings of a sum over 4 waves whose assembly lines `change` edits; also the result's rightness."""
    labkit.start("MI300X", quiet=True)
    x, out = torch.rand(1, 1024), torch.zeros(1)
    kernels.reduce_kernel[(1,)](x, out, 1024, OP="sum", BLOCK=1024)
    compiled = labkit.last_launch().compiled
    lines = compiled.stages["amdgcn"].splitlines(keepends=True)
    arguments = [("x", "*fp32", x), ("out", "*fp32", out), ("n", "i32", 1024)]
    faults = Faults("report")
    execute_text("".join(change(lines)), arguments, faults, lds_bytes=compiled.registers.lds_bytes)
    return faults.findings, torch.allclose(out, x.sum(dim=1))


def without(word):
    return lambda lines: [line for line in lines if not line.strip().startswith(word)]


def test_a_reduction_over_waves_has_no_fault():
    assert row_sum(lambda lines: lines) == ([], True)


def test_a_missing_barrier_is_a_race():
    findings, _ = row_sum(without("s_barrier"))
    assert {finding.kind for finding in findings} == {"LDS race"}
    first = findings[0]
    assert "no barrier between" in first.message and first.instruction.startswith("ds_read")
    assert first.source_line == line_of(kernels.reduce_kernel, "tl.sum")


def test_a_read_of_what_nothing_wrote():
    findings, right = row_sum(without("ds_write"))
    assert [finding.kind for finding in findings][:1] == ["LDS read before write"] and not right


def test_an_access_beyond_the_lds():
    def far(lines):
        return [
            line.rstrip("\n") + " offset:65528\n" if line.strip().startswith("ds_write") else line
            for line in lines
        ]

    findings, _ = row_sum(far)
    assert findings[0].kind == "LDS access outside" and findings[0].instruction.startswith("ds_write")


# The shadow by hand: offsets, waves -> who races.


def touch(shadow, kind, offsets, waves, size=4, changed=True, lost=False):
    offsets, waves = np.array(offsets), np.array(waves)
    if kind == "read":
        return [part.tolist() for part in shadow.read(offsets, size, waves)]
    flags = [np.full(offsets.shape, flag) for flag in (changed, lost)]
    return shadow.write(offsets, size, waves, *flags).tolist()


def test_shadow_write_then_read_by_another_wave():
    shadow = LdsShadow(64)
    assert touch(shadow, "write", [0, 4], [0, 1]) == [0, 0]
    assert touch(shadow, "read", [0, 4], [0, 1]) == [[False, False], [0, 0]]
    assert touch(shadow, "read", [4, 0], [0, 1]) == [[False, False], [2, 1]]


def test_shadow_read_then_write_by_another_wave():
    shadow = LdsShadow(64)
    assert touch(shadow, "read", [0], [3]) == [[True], [0]]
    assert touch(shadow, "write", [0], [3]) == [0]
    assert touch(shadow, "write", [0], [1]) == [4]


def test_shadow_two_waves_write_at_once():
    shadow = LdsShadow(64)
    assert touch(shadow, "write", [8, 8], [0, 1], lost=False) == [0, 0]  # equal values
    assert touch(shadow, "read", [8], [2]) == [[False], [0]]
    shadow.reset()
    assert touch(shadow, "write", [8, 8], [0, 1], lost=True) == [SEVERAL, SEVERAL]


def test_shadow_several_readers_then_a_writer():
    shadow = LdsShadow(64)
    touch(shadow, "read", [0, 0], [0, 1])
    assert touch(shadow, "write", [0], [0]) == [SEVERAL]


def test_shadow_barrier_ends_it_for_its_part_only():
    shadow = LdsShadow(64)
    touch(shadow, "write", [0, 32], [0, 0])
    shadow.pass_barrier(slice(0, 32))
    assert touch(shadow, "read", [0, 32], [1, 1]) == [[False, False], [0, 1]]


def test_shadow_bytes_of_one_word_belong_to_different_waves():
    shadow = LdsShadow(64)
    assert touch(shadow, "write", [0, 1, 2], [0, 1, 2], size=1) == [0, 0, 0]
    assert touch(shadow, "read", [0], [0], size=4) == [[True], [3]]  # byte 3 was never written
    assert touch(shadow, "read", [1], [1], size=1) == [[False], [0]]
    assert touch(shadow, "write", [2], [2], size=1) == [1]  # wave 0 has read it with the whole word
