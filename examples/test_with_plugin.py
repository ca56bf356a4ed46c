"""Test kernels for MI300X on any machine: pytest -p labkit.pytest_plugin examples/test_with_plugin.py."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = x + y, one block of BLOCK elements a program."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """out[row] = the sum of x[row, :], one row a program; BLOCK is at least `columns`."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x + y by the kernel."""
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out


def row_sum(x: torch.Tensor) -> torch.Tensor:
    """x.sum(dim=1) by the kernel."""
    rows, columns = x.shape
    out = torch.empty(rows, device=x.device)
    row_sum_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out


def test_vector_add():
    x, y = torch.rand(5000), torch.rand(5000)
    torch.testing.assert_close(add(x, y), x + y)


def test_row_sum():
    x = torch.rand(7, 300)
    torch.testing.assert_close(row_sum(x), x.sum(dim=1))


def test_vector_add_asks_for_no_more_bytes_than_it_needs(mi300x):
    n = 5000
    x, y = (torch.rand(n, device=mi300x.torch_device) for _ in range(2))
    add(x, y)
    requested = mi300x.launches[0].counters.memory.groupby("kind")["bytes_requested"].sum()
    assert requested["load"] == 2 * 4 * n
    assert requested["store"] == 4 * n
