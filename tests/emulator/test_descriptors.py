"""Tensor descriptors: made on the host, as an argument, and made in the kernel."""

import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

import labkit
from labkit.errors import MemoryFault

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int8, torch.float8_e4m3fnuz]


@triton.jit
def copy_kernel(source, target, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """One block a program, through the descriptors that it receives."""
    at = [tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS]
    target.store(at, source.load(at))


@triton.jit
def dense_kernel(source, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, first):
    """The block that begins at row `first`, written out whole."""
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out_ptr + at, source.load([first, 0]))


@triton.jit
def in_kernel(x_ptr, out_ptr, rows, columns, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """out = 2 * x, with descriptors that the kernel makes."""
    source = tl.make_tensor_descriptor(x_ptr, [rows, columns], [stride, 1], [ROWS, COLUMNS])
    target = tl.make_tensor_descriptor(out_ptr, [rows, columns], [stride, 1], [ROWS, COLUMNS])
    at = [tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS]
    target.store(at, source.load(at) * 2)


@triton.jit
def vector_kernel(source, offset, target, scale, BLOCK: tl.constexpr):
    """Descriptors among other arguments: each must arrive in its place."""
    target.store([0], source.load([offset]) * scale)


@pytest.fixture(params=["MI300X", "MI355X"])
def chip(request):
    yield labkit.start(request.param, quiet=True)
    labkit.start("MI300X", quiet=True)


def numbers(shape, dtype):
    return (torch.arange(torch.Size(shape).numel()) % 97 - 40).reshape(shape).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_copy_of_ragged_blocks(chip, dtype):
    """50 x 60 in blocks of 16 x 32, in rows of 64: what lies outside the shape stays as it was."""
    x, out = numbers((50, 64), dtype), torch.ones(50, 64).to(dtype)
    descriptors = [TensorDescriptor(t, [50, 60], [64, 1], [16, 32]) for t in (x, out)]
    copy_kernel[(4, 2)](*descriptors, ROWS=16, COLUMNS=32)
    assert torch.equal(out[:, :60].float(), x[:, :60].float())
    assert (out[:, 60:].float() == 1).all()


@pytest.mark.parametrize("padding,beyond", [("zero", 0.0), ("nan", float("nan"))])
@pytest.mark.parametrize("first", [-3, 0, 45, 50, 1000])
def test_what_a_load_finds_outside_the_shape(mi300x, padding, beyond, first):
    x, out = numbers((50, 32), torch.float32), torch.ones(16, 32)
    source = TensorDescriptor.from_tensor(x, [16, 32], padding=padding)
    dense_kernel[(1,)](source, out, ROWS=16, COLUMNS=32, first=first)
    expected = torch.full((16, 32), beyond)
    for row in range(16):
        if 0 <= first + row < 50:
            expected[row] = x[first + row]
    torch.testing.assert_close(out, expected, rtol=0, atol=0, equal_nan=True)


def test_descriptors_among_other_arguments(chip):
    x, out = torch.arange(64.0), torch.zeros(32)
    source, target = TensorDescriptor.from_tensor(x, [16]), TensorDescriptor.from_tensor(out, [16])
    vector_kernel[(1,)](source, 8, target, 0.5, BLOCK=16)
    assert torch.equal(out, torch.cat([0.5 * x[8:24], torch.zeros(16)]))


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
def test_descriptors_made_in_the_kernel(chip, dtype):
    x, out = numbers((50, 64), dtype), torch.ones(50, 64).to(dtype)
    in_kernel[(4, 2)](x, out, 50, 60, 64, ROWS=16, COLUMNS=32)
    assert torch.equal(out[:, :60], 2 * x[:, :60])
    assert (out[:, 60:] == 1).all()


def test_a_descriptor_larger_than_its_tensor_is_a_fault(mi300x):
    x, out = torch.zeros(8, 32), torch.zeros(16, 32)
    source = TensorDescriptor(x, [16, 32], [32, 1], [16, 32])
    with pytest.raises(MemoryFault, match="source"):
        dense_kernel[(1,)](source, out, ROWS=16, COLUMNS=32, first=0)


def test_a_launch_names_the_parts(mi300x):
    x, out = torch.zeros(16, 32), torch.zeros(16, 32)
    dense_kernel[(1,)](TensorDescriptor.from_tensor(x, [16, 32]), out, ROWS=16, COLUMNS=32, first=0)
    arguments = labkit.last_launch().arguments
    assert arguments["source"] == "float32 [16, 32]" and arguments["source.shape[1]"] == "32"
