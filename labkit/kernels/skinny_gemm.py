"""FP8 matrix product for decoding: few rows of activations against a large weight."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from labkit.kernels.fp8 import check_scale, fp8_format

_MOST_ROWS = 32
_BLOCK_N = 16
_BLOCK_K = 256


@triton.jit
def skinny_gemm_kernel(
    A_ptr,
    A_row_stride,
    W_ptr,
    W_row_stride,
    Scale_ptr,
    C_ptr,
    C_row_stride,
    n_rows,
    n_cols,
    n_inner,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """One program a strip of BLOCK_N columns of c, over the whole of K.

    c = fp16(scale * (a @ w^T)), summed in fp32
    Each weight byte is read once, since the block holds all rows of a.
    """
    rows = tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    A_ptrs = A_ptr + rows[:, None] * A_row_stride + inner[None, :]
    # The weight of 405B's Gate/Up has 2.2e8 elements here; a larger one would pass 2^31.
    W_ptrs = W_ptr + cols[None, :].to(tl.int64) * W_row_stride + inner[:, None]

    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, n_inner, BLOCK_K):
        left = n_inner - start
        a = tl.load(A_ptrs + start, mask=(rows[:, None] < n_rows) & (inner[None, :] < left), other=0.0)
        w = tl.load(W_ptrs + start, mask=(cols[None, :] < n_cols) & (inner[:, None] < left), other=0.0)
        total = tl.dot(a, w, total)

    c = (total * tl.load(Scale_ptr)).to(C_ptr.dtype.element_ty)
    C_ptrs = C_ptr + rows[:, None] * C_row_stride + cols[None, :]
    tl.store(C_ptrs, c, mask=(rows[:, None] < n_rows) & (cols[None, :] < n_cols))


def skinny_gemm(a: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return fp16(scale * (a @ weight^T)), [M, N].

    a: [M, K], weight: [N, K], both in the chip's FP8 format and contiguous along K; M is at most 32.
    scale: one fp32 number, the product of the two tensors' scales.

    Raises ValueError or TypeError, naming the argument, for a wrong shape, dtype, stride or device.
    """
    _check(a, weight, scale)
    rows, inner = a.shape
    columns = weight.shape[0]
    out = torch.empty((rows, columns), dtype=torch.float16, device=a.device)
    if out.numel() == 0:
        return out
    skinny_gemm_kernel[(triton.cdiv(columns, _BLOCK_N),)](
        a,
        a.stride(0),
        weight,
        weight.stride(0),
        scale,
        out,
        out.stride(0),
        rows,
        columns,
        inner,
        # 16 rows are the smallest matrix instruction; fewer rows of a leave the rest as padding.
        BLOCK_M=16 if rows <= 16 else 32,
        BLOCK_N=_BLOCK_N,
        BLOCK_K=_BLOCK_K,
        num_warps=1,
    )
    return out


def skinny_gemm_reference(a: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """The same in PyTorch, with the product in fp32: [M, K], [N, K] -> fp16 [M, N]."""
    return (a.float() @ weight.float().T * scale).to(torch.float16)


def _check(a: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> None:
    if a.dim() != 2 or weight.dim() != 2 or a.shape[1] != weight.shape[1]:
        raise ValueError(
            f"a is {tuple(a.shape)} and weight {tuple(weight.shape)}; pass [M, K] and [N, K] with the same K."
        )
    if a.shape[0] > _MOST_ROWS:
        raise ValueError(f"a has {a.shape[0]} rows; this kernel takes at most {_MOST_ROWS}.")
    expected = fp8_format().torch_dtype
    for name, tensor in (("a", a), ("weight", weight)):
        if tensor.dtype != expected:
            raise TypeError(f"{name} has dtype {tensor.dtype}; this chip's FP8 is {expected}.")
        if tensor.stride(-1) != 1 and tensor.numel() > 0:
            raise ValueError(f"{name} is not contiguous along K; pass {name}.contiguous().")
        if tensor.device != a.device:
            raise ValueError(f"{name} is on {tensor.device} and a on {a.device}; move one.")
    check_scale(scale, a.device)
