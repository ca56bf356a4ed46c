"""Test a kernel for MI300X on any machine: pytest -p labkit.pytest_plugin examples/test_with_plugin.py."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    """out = factor * x, one block of BLOCK elements a program."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, factor * x, mask=offsets < n)


def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    """factor * x by the kernel."""
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, factor, x.numel(), BLOCK=1024)
    return out


def test_the_result_is_right():
    x = torch.rand(5000)
    torch.testing.assert_close(scale(x, 3.0), 3.0 * x)


def test_no_more_bytes_than_needed_are_asked_for(mi300x):
    scale(torch.rand(5000), 3.0)
    (launch,) = mi300x.launches
    requested = launch.counters.memory.groupby("kind")["bytes_requested"].sum()
    assert requested["load"] == requested["store"] == 4 * 5000
