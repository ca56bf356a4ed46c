"""Small kernels for the compiler's tests, and the arguments to compile them with."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + offsets, mask=offsets < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + tl.program_id(0) * n + offsets, e / tl.sum(e, axis=0), mask=offsets < n)


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + m[:, None] * K + (start + k)[None, :], mask=m[:, None] < M, other=0.0)
        b = tl.load(b_ptr + n[None, :] * K + (start + k)[:, None])
        accumulator += tl.dot(a, b)
    tl.store(c_ptr + m[:, None] * N + n[None, :], accumulator.to(tl.float16), mask=m[:, None] < M)


@triton.jit
def gather_kernel(pointers, out_ptr, bias_ptr, width=64, BLOCK: tl.constexpr = 64):
    offsets = tl.arange(0, BLOCK)
    total = tl.load(pointers[0] + offsets) + tl.load(pointers[1] + offsets * width)
    if bias_ptr is not None:
        total += tl.load(bias_ptr + offsets)
    tl.store(out_ptr + offsets, total)


@triton.jit
def broken_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), no_such_name)  # noqa: F821


def add_args(n=1000, block=1024, dtype=torch.float32):
    x = torch.zeros(n, dtype=dtype)
    return (x, x, x, n), {"BLOCK": block}


def matmul_args(block_m=16, block_n=64, block_k=64):
    x = torch.zeros(64, dtype=torch.float16)
    return (x, x, x, 16, 1024, 2048), {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k}
