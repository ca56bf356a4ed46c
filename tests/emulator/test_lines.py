"""The cache lines that a launch hands over: worked by hand, against the totals, by both engines."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

import labkit
from labkit.emulator.lines import KINDS
from labkit.emulator.machine import numpy_only
from labkit.emulator.traffic import Count
from labkit.errors import LabkitError
from tests.emulator import kernels
from tests.emulator.test_engines import LAUNCHES, execute

pytestmark = pytest.mark.usefixtures("mi300x")


def record(run, *arguments, most=10_000_000, **options):
    with labkit.record_lines(most) as launches:
        run(*arguments, **options)
    return launches


def by_wave(lines):
    """Rows (workgroup, wave, instruction, line, kind), each wave's in its own order."""
    rows = np.stack([lines.workgroup, lines.wave, lines.instruction, lines.line, lines.kind], axis=1)
    return rows[np.lexsort((lines.wave, lines.workgroup))]


def start(lines, tensor):
    return next(first for name, first, _ in lines.tensors if name == tensor)


def add(n, block, **options):
    x, y, out = torch.ones(n), torch.ones(n), torch.empty(n)
    kernels.add_kernel[(triton.cdiv(n, block),)](x, y, out, n, BLOCK=block, **options)


def test_a_stream_by_hand():
    (lines,) = record(add, 1000, 256, num_warps=4)
    assert lines.complete and lines.grid == (4, 1, 1) and lines.recorded_workgroups == 4
    tensors = {name: (first, count) for name, first, count in lines.tensors}
    assert list(tensors) == ["kernel arguments", "out_ptr", "x_ptr", "y_ptr"]
    # 2 MiB are 16,384 lines.
    assert [first for first, _ in tensors.values()] == [0, 16384, 32768, 49152]
    # A wave's 64 floats are two lines of each tensor.
    for name, kind in (("out_ptr", "store"), ("x_ptr", "load"), ("y_ptr", "load")):
        first, count = tensors[name]
        assert count == 32  # 4000 bytes
        here = [row for row in by_wave(lines) if first <= row[3] < first + count]
        # 1000 floats end in line 31, and the last wave has 40 of its 64 lanes on, which still reach both.
        assert [(row[0], row[1], row[3] - first) for row in here] == [
            (line // 8, line // 2 % 4, line) for line in range(32)
        ], name
        assert {KINDS[row[4]] for row in here} == {kind}
    assert lines.by_tensor().values.tolist() == [[name, 32, 32] for name in ("out_ptr", "x_ptr", "y_ptr")]


@triton.jit
def strided_kernel(x_ptr, out_ptr, stride):
    lane = tl.arange(0, 64)
    tl.store(out_ptr + lane, tl.load(x_ptr + (63 - lane) * stride))


@pytest.mark.parametrize("numpy", [False, True])
def test_lines_come_in_the_order_of_lanes_each_once(numpy):
    x, out = torch.arange(64.0 * 8), torch.empty(64)

    def launch():
        strided_kernel[(1,)](x, out, 8, num_warps=1)

    if numpy:
        with numpy_only():
            (lines,) = record(launch)
    else:
        (lines,) = record(launch)
    # 32 bytes apart, four lanes to a line, from the last line down.
    loads, stores = (lines.line[lines.kind == kind] for kind in (0, 1))
    assert (loads - start(lines, "x_ptr")).tolist() == list(range(15, -1, -1))
    assert (stores - start(lines, "out_ptr")).tolist() == [0, 1]


@pytest.mark.parametrize("name", LAUNCHES)
def test_both_engines_record_the_same_and_as_many_as_are_counted(name):
    run, shape, dtype = (*LAUNCHES[name], torch.float32)[:3]
    (fast,) = record(execute, run, shape, dtype)
    counted = labkit.last_launch().counters.traffic[:, Count.LINES]
    with numpy_only():
        (slow,) = record(execute, run, shape, dtype)
    np.testing.assert_array_equal(by_wave(fast), by_wave(slow))
    np.testing.assert_array_equal(np.bincount(fast.instruction, minlength=counted.size), counted)


def test_atomics_are_their_own_kind():
    x, out = torch.arange(100, dtype=torch.int32), torch.zeros(7, dtype=torch.int32)
    (lines,) = record(lambda: kernels.atomic_kernel[(1,)](x, out, 100, "add", 256))
    atomic = lines.kind == KINDS.index("atomic")
    # 100 lanes in two waves, all on the one line of `out`.
    assert len(set(lines.line[atomic].tolist())) == 1 and 1 <= atomic.sum() <= 2


def test_more_records_than_the_buffer_first_holds():
    (lines,) = record(add, 1 << 20, 1024)
    assert len(lines) == 3 * (1 << 20) * 4 // 128
    stored = np.sort(lines.line[lines.kind == 1]) - start(lines, "out_ptr")
    np.testing.assert_array_equal(stored, np.arange(32768))


def test_a_part_of_a_launch_is_whole_workgroups_and_says_so():
    (lines,) = record(add, 1 << 20, 1024, most=1000, num_warps=4)
    assert not lines.complete
    count = lines.recorded_workgroups
    assert 0 < count < 1024 and f"the first {count:,} of 1,024 workgroups" in str(lines)
    # 1024 floats are 32 lines of each of three tensors.
    np.testing.assert_array_equal(np.bincount(lines.workgroup), [96] * count)


def test_lines_do_not_depend_on_where_the_tensors_lie():
    pad = [torch.empty(77) for _ in range(5)]
    (first,) = record(add, 5000, 512)
    pad += [torch.empty(12345) for _ in range(20)]
    (second,) = record(add, 5000, 512)
    np.testing.assert_array_equal(by_wave(first), by_wave(second))


def test_each_launch_gives_its_lines_and_none_outside_the_block():
    launches = record(lambda: (add(300, 64), add(64, 64)))
    add(64, 64)
    assert [lines.grid for lines in launches] == [(5, 1, 1), (1, 1, 1)]


@pytest.mark.parametrize("most", [0, -5, 2.5])
def test_most_must_be_a_count(most):
    with pytest.raises(LabkitError, match="1 or more"):
        record(add, 64, 64, most=most)
