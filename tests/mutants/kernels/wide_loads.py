"""Answers to the exercise "128-bit loads by a hint": right ones, and wrong ones named after their mistake."""

import triton
import triton.language as tl


@triton.jit
def right(pool_ptr, starts_ptr, lengths_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = tl.multiple_of(tl.load(starts_ptr + row), 16)
    length = tl.multiple_of(tl.load(lengths_ptr + row), 16)
    i = tl.arange(0, BLOCK)
    values = tl.load(pool_ptr + start + i, mask=i < length)
    tl.store(out_ptr + row * BLOCK + i, 2.0 * values, mask=i < length)


@triton.jit
def right_by_rounding(pool_ptr, starts_ptr, lengths_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = tl.load(starts_ptr + row) // 16 * 16
    length = tl.load(lengths_ptr + row) // 16 * 16
    i = tl.arange(0, BLOCK)
    values = tl.load(pool_ptr + start + i, mask=i < length, other=0.0)
    tl.store(out_ptr + row * BLOCK + i, values + values, mask=i < length)


@triton.jit
def no_hint(pool_ptr, starts_ptr, lengths_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = tl.load(starts_ptr + row)
    length = tl.load(lengths_ptr + row)
    i = tl.arange(0, BLOCK)
    values = tl.load(pool_ptr + start + i, mask=i < length)
    tl.store(out_ptr + row * BLOCK + i, 2.0 * values, mask=i < length)


@triton.jit
def only_length_hinted(pool_ptr, starts_ptr, lengths_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = tl.load(starts_ptr + row)
    length = tl.multiple_of(tl.load(lengths_ptr + row), 16)
    i = tl.arange(0, BLOCK)
    values = tl.load(pool_ptr + start + i, mask=i < length)
    tl.store(out_ptr + row * BLOCK + i, 2.0 * values, mask=i < length)


@triton.jit
def only_start_hinted(pool_ptr, starts_ptr, lengths_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = tl.multiple_of(tl.load(starts_ptr + row), 16)
    length = tl.load(lengths_ptr + row)
    i = tl.arange(0, BLOCK)
    values = tl.load(pool_ptr + start + i, mask=i < length)
    tl.store(out_ptr + row * BLOCK + i, 2.0 * values, mask=i < length)


@triton.jit
def no_mask_at_all(pool_ptr, starts_ptr, lengths_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = tl.multiple_of(tl.load(starts_ptr + row), 16)
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + row * BLOCK + i, 2.0 * tl.load(pool_ptr + start + i))


@triton.jit
def store_unmasked(pool_ptr, starts_ptr, lengths_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = tl.multiple_of(tl.load(starts_ptr + row), 16)
    length = tl.multiple_of(tl.load(lengths_ptr + row), 16)
    i = tl.arange(0, BLOCK)
    values = tl.load(pool_ptr + start + i, mask=i < length, other=0.0)
    tl.store(out_ptr + row * BLOCK + i, 2.0 * values)


@triton.jit
def length_rounded_too_far(pool_ptr, starts_ptr, lengths_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = tl.multiple_of(tl.load(starts_ptr + row), 16)
    length = tl.load(lengths_ptr + row) // 64 * 64
    i = tl.arange(0, BLOCK)
    values = tl.load(pool_ptr + start + i, mask=i < length)
    tl.store(out_ptr + row * BLOCK + i, 2.0 * values, mask=i < length)


@triton.jit
def start_rounded_too_far(pool_ptr, starts_ptr, lengths_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = tl.load(starts_ptr + row) // 1024 * 1024
    length = tl.multiple_of(tl.load(lengths_ptr + row), 16)
    i = tl.arange(0, BLOCK)
    values = tl.load(pool_ptr + start + i, mask=i < length)
    tl.store(out_ptr + row * BLOCK + i, 2.0 * values, mask=i < length)
