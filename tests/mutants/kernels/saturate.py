"""Answers to the exercise "Saturate rightly": right ones, and wrong ones named after their mistake."""

import triton
import triton.language as tl


@triton.jit
def right(x_ptr, scale_ptr, out_ptr, n, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i, mask=i < n) / tl.load(scale_ptr)
    y = tl.clamp(y, -LARGEST, LARGEST, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def right_by_where(x_ptr, scale_ptr, out_ptr, n, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i, mask=i < n, other=0.0) * (1.0 / tl.load(scale_ptr))
    y = tl.where(y > LARGEST, LARGEST, y)
    y = tl.where(y < -LARGEST, -LARGEST, y)
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def right_by_the_cast_alone(x_ptr, scale_ptr, out_ptr, n, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    """Triton's casts to FP8 saturate: on gfx942 it sets MODE.FP16_OVFL, under which infinities do, too."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i, mask=i < n) / tl.load(scale_ptr)
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def nan_lost(x_ptr, scale_ptr, out_ptr, n, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.clamp(tl.load(x_ptr + i, mask=i < n) / tl.load(scale_ptr), -LARGEST, LARGEST)
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def multiplied(x_ptr, scale_ptr, out_ptr, n, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i, mask=i < n) * tl.load(scale_ptr)
    y = tl.clamp(y, -LARGEST, LARGEST, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def clamped_first(x_ptr, scale_ptr, out_ptr, n, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.clamp(tl.load(x_ptr + i, mask=i < n), -LARGEST, LARGEST, propagate_nan=tl.PropagateNan.ALL)
    y = tl.clamp(x / tl.load(scale_ptr), -LARGEST, LARGEST, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def limit_of_the_other_chip(x_ptr, scale_ptr, out_ptr, n, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i, mask=i < n) / tl.load(scale_ptr)
    y = tl.clamp(y, -240.0, 240.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def sign_by_division(x_ptr, scale_ptr, out_ptr, n, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i, mask=i < n) / tl.load(scale_ptr)
    y = tl.where(tl.abs(y) > LARGEST, LARGEST * (y / tl.abs(y)), y)
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def no_mask_on_the_store(x_ptr, scale_ptr, out_ptr, n, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i, mask=i < n, other=0.0) / tl.load(scale_ptr)
    y = tl.clamp(y, -LARGEST, LARGEST, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty))
