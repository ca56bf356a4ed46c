"""SwiGLU and FP8 quantization in one pass: the gate and the up half of one tensor."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from labkit.kernels.fp8 import (
    check_scale,
    current_target,
    fp8_format,
    saturating_cast,
    saturating_cast_reference,
)

_DTYPES = (torch.float16, torch.bfloat16, torch.float32)
_BLOCK_SIZE = 512


@triton.jit
def swiglu_kernel(
    X_ptr, X_row_stride, Scale_ptr, Y_ptr, Y_row_stride, n_cols, n_blocks, BLOCK_SIZE: tl.constexpr
):
    """One program a block of BLOCK_SIZE columns of one row, on a flat grid.

    y = gate * sigmoid(gate) * up, in fp32; the gate is columns 0..n_cols-1 of x, up the rest
    y = fp8(y / scale) where there is a scale, else the input's dtype
    """
    LOG2_E: tl.constexpr = 1.4426950408889634
    program = tl.program_id(0)
    row = (program // n_blocks).to(tl.int64)
    cols = (program % n_blocks) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols

    X_ptrs = X_ptr + row * X_row_stride + cols
    gate = tl.load(X_ptrs, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(X_ptrs + n_cols, mask=mask, other=0.0).to(tl.float32)
    # The chip has an instruction for 2^x, not for e^x: e^-g = 2^(-g log2 e).
    y = gate / (1.0 + tl.exp2(-gate * LOG2_E)) * up

    Y_ptrs = Y_ptr + row * Y_row_stride + cols
    if Scale_ptr is not None:
        tl.store(Y_ptrs, saturating_cast(y / tl.load(Scale_ptr), Y_ptr.dtype.element_ty), mask=mask)
    else:
        tl.store(Y_ptrs, y.to(Y_ptr.dtype.element_ty), mask=mask)


def swiglu(input: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
    """Return silu(gate) * up, [M, N], of `input` [M, 2N], whose first N columns are the gate.

    input: fp16, bf16 or fp32, rows contiguous. scale: one fp32 number by which the result is divided;
    the result is then FP8 (the chip's format, saturated), else the input's dtype.

    Raises ValueError or TypeError, naming the argument, for a wrong shape, dtype, stride or device.
    """
    _check(input, scale)
    rows, columns = input.shape[0], input.shape[1] // 2
    out_dtype = input.dtype if scale is None else fp8_format().torch_dtype
    out = torch.empty((rows, columns), dtype=out_dtype, device=input.device)
    if out.numel() == 0:
        return out
    blocks = triton.cdiv(columns, _BLOCK_SIZE)
    swiglu_kernel[(rows * blocks,)](
        input,
        input.stride(0),
        scale,
        out,
        out.stride(0),
        columns,
        blocks,
        BLOCK_SIZE=_BLOCK_SIZE,
        # Eight elements a work-item: 16 bytes of fp16 in one load.
        num_warps=_BLOCK_SIZE // (8 * current_target().warp_size),
    )
    return out


def swiglu_reference(
    input: torch.Tensor, scale: torch.Tensor | None = None, fp8_dtype: torch.dtype = torch.float8_e4m3fnuz
) -> torch.Tensor:
    """The same in PyTorch: [M, 2N] -> [M, N]."""
    gate, up = input.float().chunk(2, dim=-1)
    product = torch.nn.functional.silu(gate) * up
    if scale is None:
        return product.to(input.dtype)
    return saturating_cast_reference(product / scale, fp8_dtype)


def _check(input: torch.Tensor, scale: torch.Tensor | None) -> None:
    if input.dim() != 2:
        raise ValueError(f"input has {input.dim()} dimensions; pass [M, 2N]; input.view(-1, 2 * N) may do.")
    if input.shape[1] % 2:
        raise ValueError(f"input has {input.shape[1]} columns; pass the gate and then as many of up.")
    if input.dtype not in _DTYPES:
        raise TypeError(f"input has dtype {input.dtype}; pass fp16, bf16 or fp32.")
    if input.stride(-1) != 1 and input.numel() > 0:
        raise ValueError("input is not contiguous in its last dimension; pass input.contiguous().")
    if scale is not None:
        check_scale(scale, input.device)
