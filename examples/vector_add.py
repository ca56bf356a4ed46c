"""Add two vectors with Triton: an ordinary script, with nothing of labkit in it.

On a GPU: python examples/vector_add.py. Without one: python -m labkit exec examples/vector_add.py.
"""

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


def main() -> None:
    """Add 98,432 random numbers and print the largest difference from PyTorch's sum."""
    device = triton.runtime.driver.active.get_active_torch_device()
    n = 98_432
    x, y = torch.rand(n, device=device), torch.rand(n, device=device)
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    print(f"max error on {device}: {(out - (x + y)).abs().max().item()}")


if __name__ == "__main__":
    main()
