"""Launching on the emulated chip: arguments, errors in plain words, the record of launches."""

import _thread
import threading

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

import labkit
from labkit.emulator.arguments import tensors
from labkit.emulator.faults import Faults
from labkit.emulator.launch_memory import LaunchMemory
from labkit.emulator.machine import limit_instructions
from labkit.emulator.memory import Allocation
from labkit.errors import EndlessKernel, LabkitError, LaunchError, MemoryFault, UnsupportedInstruction
from tests.emulator import kernels
from tests.emulator.harness import execute_text, straight
from tests.emulator.seeded_kernels import seeded_never_true

pytestmark = pytest.mark.usefixtures("mi300x")


def launch_add(n=1000, block=256, **options):
    x, y, out = torch.randn(n), torch.randn(n), torch.empty(n)
    kernels.add_kernel[(-(-n // block),)](x, y, out, n, BLOCK=block, **options)
    return x, y, out


def test_tuples_defaults_none_and_scalars():
    x, y, z, out = torch.randn(200), torch.randn(200), torch.randn(200), torch.zeros(200)
    kernels.tuple_kernel[(1,)]((x, y), out, 2.5, None, 200)
    torch.testing.assert_close(out, x + y * 2.5)
    kernels.tuple_kernel[(1,)]((x, y), out, 0.5, z, 200)
    torch.testing.assert_close(out, x + y * 0.5 + z)


def test_scalars_of_every_kind():
    out = torch.zeros(5, dtype=torch.float64)
    scalar_kernel[(1,)](out, 7, -3, 2**40, 1.5, True)
    assert out.tolist() == [7, -3, 2**40, 1.5, 1]


@triton.jit
def scalar_kernel(out_ptr, natural, small, large, real, flag):
    tl.store(out_ptr, natural.to(tl.float64))
    tl.store(out_ptr + 1, small.to(tl.float64))
    tl.store(out_ptr + 2, large.to(tl.float64))
    tl.store(out_ptr + 3, real.to(tl.float64))
    tl.store(out_ptr + 4, flag.to(tl.float64))


def test_several_launches_on_the_same_tensors():
    x, out = torch.ones(64), torch.ones(64)
    for _ in range(5):
        kernels.add_kernel[(1,)](x, out, out, 64, BLOCK=64)
    assert (out == 6).all()


def test_three_dimensional_grid():
    out = torch.zeros(4, 3, 5, dtype=torch.int32)
    grid_kernel[(5, 3, 4)](out)
    z, y, x = torch.meshgrid(torch.arange(4), torch.arange(3), torch.arange(5), indexing="ij")
    assert (out == 1 + x + 10 * y + 100 * z).all()


@triton.jit
def grid_kernel(out_ptr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    index = x + tl.num_programs(0) * (y + tl.num_programs(1) * z)
    tl.store(out_ptr + index, 1 + x + 10 * y + 100 * z)


@pytest.mark.parametrize("grid", [(0,), (-1,), (4, 0), (2**31,), (2.0,), ("4",), (None,)])
def test_impossible_grid(grid):
    with pytest.raises(LaunchError, match="grid dimension"):
        kernels.ticket_kernel[grid](torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32))


def test_tensor_on_another_device():
    x = torch.randn(64)
    elsewhere = torch.empty(64, device="meta")
    with pytest.raises(LaunchError, match=r"`y_ptr` is on device `meta`.*y_ptr\.cpu\(\)"):
        kernels.add_kernel[(1,)](x, elsewhere, x, 64, BLOCK=64)


def test_tensor_that_is_not_contiguous_is_addressed_as_it_lies():
    x = torch.arange(128.0)[::2]
    out = torch.zeros(64)
    # The kernel was not told the stride, so it reads the storage's first 64 numbers, as on a GPU.
    kernels.add_kernel[(1,)](x, x, out, 64, BLOCK=64)
    assert (out == 2 * torch.arange(64.0)).all()


def test_access_outside_a_tensor_names_line_lane_and_tensor():
    x, out = torch.randn(60), torch.empty(1024)
    with pytest.raises(MemoryFault) as caught:
        unmasked_kernel[(1,)](x, out, BLOCK=1024)
    message = str(caught.value)
    assert "test_launch.py" in message
    assert "`x_ptr` (240 bytes)" in message
    assert "workgroup (0, 0, 0)" in message


@triton.jit
def unmasked_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


def test_store_outside_changes_nothing():
    x, out = torch.ones(1024), torch.zeros(60)
    with pytest.raises(MemoryFault, match="out_ptr"):
        unmasked_kernel[(1,)](x, out, BLOCK=1024)


def test_endless_kernel_is_stopped():
    said = r"`endless_kernel` ran 1,000 instructions.*kernels\.py:\d+"
    with limit_instructions(1000), pytest.raises(EndlessKernel, match=said):
        kernels.endless_kernel[(1,)](torch.zeros(1, dtype=torch.int32))


@triton.jit
def barriers_kernel(x_ptr, rounds):
    for _ in range(rounds):
        tl.debug_barrier()
    tl.store(x_ptr, 1.0)


def test_many_barriers_are_no_endless_kernel():
    x = torch.zeros(1)
    with limit_instructions(100_000):
        barriers_kernel[(1,)](x, 500)
    assert x.item() == 1
    with limit_instructions(1000), pytest.raises(EndlessKernel):
        barriers_kernel[(1,)](x, 1 << 30)


def test_too_many_waves_is_out_of_resources():
    x = torch.zeros(64)
    with pytest.raises(triton.runtime.errors.OutOfResources, match="threads"):
        kernels.add_kernel[(1,)](x, x, x, 64, BLOCK=64, num_warps=32)


def test_kernel_that_does_not_compile_gives_tritons_own_message():
    with pytest.raises(triton.compiler.errors.CompilationError, match="undefined_name is not defined"):
        broken_kernel[(1,)](torch.zeros(1))


@triton.jit
def broken_kernel(x_ptr):
    tl.store(x_ptr, undefined_name)  # noqa: F821


def test_last_launch_and_record():
    with labkit.record() as outer:
        launch_add()
        with labkit.record() as inner:
            launch_add(block=512)
    launch_add(block=128)
    assert [launch.grid for launch in outer] == [(4, 1, 1), (2, 1, 1)]
    assert [launch.grid for launch in inner] == [(2, 1, 1)]
    last = labkit.last_launch()
    assert last.grid == (8, 1, 1)
    assert last.name == "add_kernel" and last.compiled.target == "gfx942"
    assert last.arguments["x_ptr"] == "float32 [1000]" and last.arguments["n"] == "1000"
    assert "add_kernel, 8 x 1 x 1 workgroups" in str(last)


def test_last_launch_before_any(monkeypatch):
    monkeypatch.setattr("labkit.emulator.launch._last", [])
    with pytest.raises(LabkitError, match="no kernel has run"):
        labkit.last_launch()


@triton.autotune(
    [triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((64, 32), (128, 2), (256, 4))], key=["n"]
)
@triton.jit
def tuned_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask) * 2, mask)


def test_autotuning_takes_the_first_valid_configuration(capsys):
    for n in (100, 1000):
        x, out = torch.randn(n), torch.empty(n)
        with labkit.record() as launches:
            tuned_kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, out, n)
        assert (out == 2 * x).all()
        # 32 warps of 64 lanes do not fit in a workgroup, so the second configuration is the first valid one.
        assert launches[-1].compiled.num_warps == 2
        assert len(launches) == 2  # the trial and the launch itself: nothing else was run
    said = capsys.readouterr().out
    assert said.count("first valid config") == 2 and "BLOCK: 128" in said


def test_nothing_can_be_timed():
    with pytest.raises(LabkitError, match="no clock"):
        triton.testing.do_bench(launch_add)


def test_the_result_comes_from_the_text(mi300x):
    """Change one instruction of the assembly, and the result changes with it."""
    x, y, out = launch_add(n=256)
    launch = labkit.last_launch()
    text = launch.compiled.stages["amdgcn"]
    assert (out == x + y).all()
    sums = [line for line in text.splitlines() if line.strip().startswith(("v_add_f32", "v_pk_add_f32"))]
    assert sums
    for old, new in (("v_add_f32", "v_mul_f32"), ("v_pk_add_f32", "v_pk_mul_f32")):
        text = text.replace(old, new)
    run_text(text, [x, y, out], n=256)
    assert (out == x * y).all()


def run_text(text, tensors, n):
    """Execute assembly of add_kernel on tensors, as its launcher does."""
    arguments = [(f"arg{k}", "*fp32", tensor) for k, tensor in enumerate(tensors)] + [("n", "i32", n)]
    execute_text(text, arguments, Faults())


def test_unknown_instruction_is_refused_with_both_lines():
    x, y, out = launch_add(n=256)
    text = labkit.last_launch().compiled.stages["amdgcn"]
    number, line = next((k, line) for k, line in enumerate(text.splitlines(), 1) if "s_waitcnt vmcnt" in line)
    changed = text.replace(line, "\tv_frobnicate_f32 v0, v1", 1)
    with pytest.raises(UnsupportedInstruction) as caught:
        run_text(changed, [x, y, out], n=256)
    assert "`v_frobnicate_f32 v0, v1`" in str(caught.value)
    assert f"assembly line {number}" in str(caught.value)
    assert "kernels.py:" in str(caught.value)


def test_views_of_one_storage_are_one_range_of_memory():
    base = torch.zeros(100)
    views = [base[:50], base[50:], torch.zeros(3)]
    found = tensors([(name, "*fp32", view) for name, view in zip("abc", views, strict=True)])
    assert [argument.end - argument.base for argument in found] == [200, 200, 12]
    memory = LaunchMemory(straight("s_endpgm"), found, np.zeros(8, np.uint8))
    assert {a.name: a.bytes.size for a in memory.allocations} == {"a/b": 400, "c": 12, "kernel arguments": 8}


@pytest.mark.parametrize(
    ("view", "first", "last"),
    [
        (lambda x: x, 0, 400),
        (lambda x: x[2:5], 80, 200),
        (lambda x: x[:, 2:4], 8, 9 * 40 + 16),  # the gaps between its rows belong to it
        (lambda x: x.t()[3], 12, 9 * 40 + 16),
        (lambda x: x[0].expand(5, 10), 0, 40),
        (lambda x: x[:0], 0, 0),
        (lambda x: x.to(torch.uint8)[0, 5:7], 4, 8),  # whole words, for small elements
    ],
)
def test_the_bytes_of_a_view(view, first, last):
    tensor = view(torch.zeros(10, 10))
    start = tensor.untyped_storage().data_ptr()
    (found,) = tensors([("x", "*fp32", tensor)])
    assert (found.base - start, found.end - start) == (first, last)


def test_kernel_arguments_that_are_empty_tensors():
    empty, out = torch.empty(0), torch.zeros(64)
    kernels.tuple_kernel[(1,)]((out, out), out, 1.0, empty, 0)
    assert (out == 0).all()


def test_mi355x_is_another_target():
    labkit.start("MI355X", quiet=True)
    x, y, out = launch_add()
    assert (out == x + y).all()
    assert labkit.last_launch().compiled.target == "gfx950"
    labkit.start("MI300X", quiet=True)
    launch_add()
    assert labkit.last_launch().compiled.target == "gfx942"


def test_allocation_reads_a_tensors_own_memory():
    tensor = torch.arange(6, dtype=torch.int16)
    allocation = Allocation.at("t", tensor.data_ptr(), 12)
    allocation.words[0] = 0x00070008
    assert tensor.tolist() == [8, 7, 2, 3, 4, 5]


@pytest.mark.parametrize("shift", [0, 16, 32, 48])
def test_line_counts_do_not_depend_on_where_the_host_put_a_tensor(shift):
    """A GPU's allocator aligns storages to 512 bytes; a view into one keeps its offset."""
    base = torch.zeros(4096 + 256)
    start = (-base.data_ptr() // 4) % 32  # the first element on a 128-byte line of the host
    # A storage of its own that begins `shift` elements after such a line.
    numbers = base.numpy()[start + shift : start + shift + 1024]
    x = torch.from_numpy(numbers)
    assert x.untyped_storage().data_ptr() % 128 == 4 * shift % 128
    out = torch.empty(1024)
    kernels.add_kernel[(4,)](x, x, out, 1024, BLOCK=256)
    memory = labkit.last_launch().counters.memory
    assert memory["lines_touched"].tolist() == memory["minimum_lines"].tolist() == [32, 32, 32]
    view = torch.from_numpy(base.numpy()[start : start + 1025])[1:]
    kernels.add_kernel[(4,)](view, view, out, 1024, BLOCK=256)
    memory = labkit.last_launch().counters.memory.query("kind == 'load'")
    assert memory["lines_touched"].sum() > memory["minimum_lines"].sum()


@triton.jit
def before_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets - 8, mask=offsets < n))


@pytest.mark.parametrize("n", [64, 60])
def test_a_negative_index_is_a_fault_also_where_the_chip_would_give_zero(n):
    """Inside a storage, too: x begins 16 elements into one, yet a buffer resource starts at x."""
    x, out = torch.ones(80)[16:], torch.zeros(64)
    with pytest.raises(
        MemoryFault, match=r"test_launch\.py:\d+.*32 bytes before the pointer.*lane 0; 8 lanes"
    ):
        before_kernel[(1,)](x, out, n, BLOCK=64, num_warps=1)


@triton.jit
def talking_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.device_print("x", tl.load(x_ptr + tl.arange(0, BLOCK)))


def test_device_print_is_refused_in_words():
    with pytest.raises(UnsupportedInstruction, match="tl.device_print .* take them out"):
        talking_kernel[(1,)](torch.zeros(64), BLOCK=64)


def test_an_interrupt_ends_a_launch_and_the_next_one_is_right():
    """Ctrl-C in a notebook: KeyboardInterrupt in the middle of an endless kernel."""
    launch_add()  # compiled before, so that the interrupt comes while machine code runs
    with limit_instructions(10**12):
        timer = threading.Timer(0.5, _thread.interrupt_main)
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            # A counter that runs for ever: nothing proves that it never ends.
            seeded_never_true[(1,)](torch.zeros(1, dtype=torch.int32), 7, BUG=True)
            timer.join()
    x, y, out = launch_add()
    assert torch.equal(out, x + y)
