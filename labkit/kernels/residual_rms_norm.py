"""Residual addition, RMSNorm and FP8 quantization in one pass over the row."""

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
# The row stays in registers, 64 fp32 values a work-item at this width with 1024 work-items.
_WIDEST_ROW = 65536


@triton.jit
def residual_rms_norm_kernel(
    X_ptr,
    X_row_stride,
    R_ptr,
    R_row_stride,
    W_ptr,
    Scale_ptr,
    Y_ptr,
    Y_row_stride,
    n_cols,
    eps,
    BLOCK_SIZE: tl.constexpr,
):
    """One program a row.

    s = dtype(x + r), written back over r
    y = s * rsqrt(mean(s^2) + eps) * w
    y = fp8(y / scale) where there is a scale, else the input's dtype
    """
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols

    x = tl.load(X_ptr + row * X_row_stride + cols, mask=mask, other=0.0)
    r = tl.load(R_ptr + row * R_row_stride + cols, mask=mask, other=0.0)
    # The sum is rounded to the input's dtype first: the next layer adds to what is stored here.
    s = x + r
    tl.store(R_ptr + row * R_row_stride + cols, s, mask=mask)

    s = s.to(tl.float32)
    # Masked lanes hold zero, so they add nothing; the mean divides by the true width.
    variance = tl.sum(s * s, axis=0) / n_cols
    w = tl.load(W_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    y = s * tl.rsqrt(variance + eps) * w

    Y_ptrs = Y_ptr + row * Y_row_stride + cols
    if Scale_ptr is not None:
        tl.store(Y_ptrs, saturating_cast(y / tl.load(Scale_ptr), Y_ptr.dtype.element_ty), mask=mask)
    else:
        tl.store(Y_ptrs, y.to(Y_ptr.dtype.element_ty), mask=mask)


def residual_rms_norm(
    input: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float = 1e-5,
    scale: torch.Tensor | None = None,
) -> torch.Tensor:
    """Add `input` into `residual` (in place), and return its RMSNorm.

    input, residual: [M, N], fp16, bf16 or fp32 alike, rows contiguous. weight: [N], the same device.
    scale: one fp32 number by which the result is divided; the result is then FP8 (the chip's format,
    saturated), else the input's dtype. N is at most 65536.

    On AMD, Triton sets the FP16_OVFL mode in a kernel that writes FP8. In that mode an fp16 sum that
    overflows from finite numbers is stored as 65504, not as infinity; PyTorch stores infinity.

    Raises ValueError or TypeError, naming the argument, for a wrong shape, dtype, stride or device.
    """
    _check(input, residual, weight, scale)
    out_dtype = input.dtype if scale is None else fp8_format().torch_dtype
    out = torch.empty(input.shape, dtype=out_dtype, device=input.device)
    rows, columns = input.shape
    if input.numel() == 0:
        return out
    block_size = triton.next_power_of_2(columns)
    # Eight elements a work-item are 16 bytes of fp16, the widest load; a workgroup holds 1024 work-items.
    waves = min(max(block_size // (8 * current_target().warp_size), 1), 16)
    residual_rms_norm_kernel[(rows,)](
        input,
        input.stride(0),
        residual,
        residual.stride(0),
        weight,
        scale,
        out,
        out.stride(0),
        columns,
        eps,
        BLOCK_SIZE=block_size,
        num_warps=waves,
    )
    return out


def residual_rms_norm_reference(
    input: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float = 1e-5,
    scale: torch.Tensor | None = None,
    fp8_dtype: torch.dtype = torch.float8_e4m3fnuz,
    fp16_saturates: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same in PyTorch: (result, new residual), both [M, N]; nothing is changed in place.

    `fp16_saturates` gives what an AMD kernel in FP16_OVFL mode stores: finite fp16 sums stop at 65504.
    """
    total = input + residual
    if fp16_saturates and input.dtype == torch.float16:
        overflowed = total.isinf() & ~input.isinf() & ~residual.isinf()
        total = torch.where(overflowed, total.sign() * torch.finfo(torch.float16).max, total)
    values = total.float()
    normed = values * torch.rsqrt(values.square().mean(dim=-1, keepdim=True) + eps) * weight.float()
    if scale is None:
        return normed.to(input.dtype), total
    return saturating_cast_reference(normed / scale, fp8_dtype), total


def _check(
    input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor | None
) -> None:
    if input.dim() != 2:
        raise ValueError(f"input has {input.dim()} dimensions; pass [M, N], for example input.view(-1, N).")
    if input.dtype not in _DTYPES:
        raise TypeError(f"input has dtype {input.dtype}; pass fp16, bf16 or fp32.")
    if residual.shape != input.shape or residual.dtype != input.dtype:
        raise ValueError(
            f"residual is {tuple(residual.shape)} {residual.dtype} and input {tuple(input.shape)} "
            f"{input.dtype}; they must be alike."
        )
    if weight.shape != input.shape[1:]:
        raise ValueError(f"weight has shape {tuple(weight.shape)}; a row of input needs ({input.shape[1]},).")
    if weight.dtype not in _DTYPES:
        raise TypeError(f"weight has dtype {weight.dtype}; pass fp16, bf16 or fp32.")
    if input.shape[1] > _WIDEST_ROW:
        raise ValueError(f"input has {input.shape[1]} columns; a row may have at most {_WIDEST_ROW}.")
    for name, tensor in (("input", input), ("residual", residual), ("weight", weight)):
        if tensor.stride(-1) != 1 and tensor.shape[-1] > 1:
            raise ValueError(f"{name} is not contiguous in its last dimension; pass {name}.contiguous().")
        if tensor.device != input.device:
            raise ValueError(f"{name} is on {tensor.device} and input on {input.device}; move one.")
    if scale is not None:
        check_scale(scale, input.device)
