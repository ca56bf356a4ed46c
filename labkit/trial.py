"""The smallest launch that shows the whole way works: Triton compiles, something runs, sums are right."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import labkit


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def trial_launch(n: int = 300, block: int = 256) -> str:
    """Add two vectors of `n` float32 on the device of labkit.start(); return a sentence about it.

    Raises ArithmeticError where a sum is wrong, and whatever stops the launch. The last block is
    only partly full, so masked lanes are tried as well.
    """
    labkit.start()
    device = triton.runtime.driver.active.get_active_torch_device()
    x = torch.arange(n, dtype=torch.float32, device=device)
    out = torch.full_like(x, -1)
    _add_kernel[(triton.cdiv(n, block),)](x, x, out, n, BLOCK=block)
    wrong = int((out != 2 * x).sum())
    if wrong:
        raise ArithmeticError(f"{wrong} of {n} sums are wrong on {device}")
    return f"a kernel added {n} numbers rightly"
