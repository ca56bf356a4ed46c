"""Kernels with a planted error: BUG plants it, and without it the same kernel is right."""

import triton
import triton.language as tl


@triton.jit
def seeded_mask_off_by_one(x_ptr, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    limit = n + 1 if BUG else n
    x = tl.load(x_ptr + at, mask=at < limit)
    tl.store(out_ptr + at, x, mask=at < n)


@triton.jit
def seeded_mask_forgotten(x_ptr, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    inside = at < n
    if BUG:
        inside = at >= 0
    tl.store(out_ptr + at, x + 1, mask=inside)


@triton.jit
def seeded_mask_before_shift(x_ptr, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    """The mask is of the element itself, the access of its right neighbour."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    shift = 0 if BUG else 1
    right = tl.load(x_ptr + at + 1, mask=at + shift < n, other=0.0)
    tl.store(out_ptr + at, right, mask=at < n)


@triton.jit
def seeded_left_neighbour(x_ptr, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = 0 if BUG else 1
    left = tl.load(x_ptr + at - 1, mask=(at >= first) & (at < n), other=0.0)
    tl.store(out_ptr + at, left * 2, mask=at < n)


@triton.jit
def seeded_negative_in_64_bits(x_ptr, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    at = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    last = n - 2 if BUG else n - 1
    x = tl.load(x_ptr + last - at, mask=at < n)
    tl.store(out_ptr + at, x, mask=at < n)


@triton.jit
def seeded_reversed(x_ptr, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    """n - at instead of n - 1 - at."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    last = n if BUG else n - 1
    x = tl.load(x_ptr + (last - at), mask=at < n)
    tl.store(out_ptr + at, x, mask=at < n)


@triton.jit
def seeded_wrong_stride(x_ptr, out_ptr, n_cols, stride, BUG: tl.constexpr, BLOCK: tl.constexpr):
    """The block size in place of the row's stride."""
    columns = tl.arange(0, BLOCK)
    step = BLOCK if BUG else stride
    x = tl.load(x_ptr + tl.program_id(0) * step + columns, mask=columns < n_cols)
    tl.store(out_ptr + tl.program_id(0) * n_cols + columns, x, mask=columns < n_cols)


@triton.jit
def seeded_next_row(x_ptr, out_ptr, n_cols, BUG: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    row = tl.program_id(0) + (1 if BUG else 0)
    x = tl.load(x_ptr + tl.program_id(0) * n_cols + columns, mask=columns < n_cols)
    tl.store(out_ptr + row * n_cols + columns, -x, mask=columns < n_cols)


@triton.jit
def seeded_shifted_twice(x_ptr, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    """The pointer is moved to the block, and the offsets are the whole tensor's."""
    start = tl.program_id(0) * BLOCK
    at = start + tl.arange(0, BLOCK)
    own_ptr = x_ptr + start if BUG else x_ptr
    x = tl.load(own_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x, mask=at < n)


@triton.jit
def seeded_tile_rows(x_ptr, out_ptr, rows, columns, BUG: tl.constexpr, BLOCK: tl.constexpr):
    """The rows of the last tile are not masked."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    inside = j < columns
    if not BUG:
        inside = inside & (i < rows)
    x = tl.load(x_ptr + i * columns + j, mask=inside)
    tl.store(out_ptr + i * columns + j, x, mask=(i < rows) & (j < columns))


@triton.jit
def seeded_tile_columns(x_ptr, out_ptr, rows, columns, BUG: tl.constexpr, BLOCK: tl.constexpr):
    """The columns of a tile are not masked: in the last row alone that leaves the tensor."""
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + i * columns + j, mask=(i < rows) & (j < columns))
    inside = i < rows
    if not BUG:
        inside = inside & (j < columns)
    tl.store(out_ptr + i * columns + j, x, mask=inside)


@triton.jit
def seeded_masks_exchanged(x_ptr, out_ptr, rows, columns, BUG: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    height = columns if BUG else rows
    width = rows if BUG else columns
    x = tl.load(x_ptr + i * columns + j, mask=(i < height) & (j < width))
    tl.store(out_ptr + i * columns + j, x, mask=(i < rows) & (j < columns))


@triton.jit
def seeded_transposed(x_ptr, out_ptr, rows, columns, BUG: tl.constexpr, BLOCK: tl.constexpr):
    """The result's rows are as long as x has rows."""
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    inside = (i < rows) & (j < columns)
    length = columns if BUG else rows
    tl.store(out_ptr + j * length + i, tl.load(x_ptr + i * columns + j, mask=inside), mask=inside)


@triton.jit
def seeded_block_pointer(x_ptr, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    block = tl.make_block_ptr(x_ptr, (n,), (1,), (tl.program_id(0) * BLOCK,), (BLOCK,), (0,))
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(block) if BUG else tl.load(block, boundary_check=(0,))
    tl.store(out_ptr + at, x, mask=at < n)


@triton.jit
def seeded_one_turn_too_many(x_ptr, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n + (BLOCK if BUG else 0), BLOCK):
        total += tl.load(x_ptr + start + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.sum(total))


@triton.jit
def seeded_inner_dimension(a_ptr, b_ptr, out_ptr, K, BUG: tl.constexpr, BLOCK: tl.constexpr):
    """A product whose K is no multiple of the block."""
    i, j = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK, BLOCK], tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + i[:, None] * K + k[None, :], mask=k[None, :] < K, other=0.0)
        limit = K + BLOCK if BUG else K
        b = tl.load(b_ptr + k[:, None] * BLOCK + j[None, :], mask=k[:, None] < limit, other=0.0)
        total += tl.dot(a, b)
    tl.store(out_ptr + i[:, None] * BLOCK + j[None, :], total)


@triton.jit
def seeded_index_overflow(x_ptr, out_ptr, a, b, scale, BUG: tl.constexpr):
    """a * b needs more than 32 bits."""
    product = a * b if BUG else a.to(tl.int64) * b
    tl.store(out_ptr, tl.load(x_ptr + product // scale))


@triton.jit
def seeded_wrong_argument(x_ptr, scale_ptr, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n) * tl.load(scale_ptr)
    target_ptr = scale_ptr if BUG else out_ptr
    tl.store(target_ptr + at, x, mask=at < n)


@triton.jit
def seeded_chosen_argument(x_ptr, y_ptr, which_ptr, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    """x is long, y is short, and which of them is read is known at run time alone."""
    at = tl.arange(0, BLOCK)
    first = tl.load(which_ptr) == 0
    limit = n if BUG else tl.where(first, n, n // 2)
    source_ptr = tl.where(first, x_ptr, y_ptr)
    tl.store(out_ptr + at, tl.load(source_ptr + at, mask=at < limit), mask=at < n)


@triton.jit
def seeded_gather(x_ptr, index_ptr, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    index = tl.load(index_ptr + at, mask=at < n, other=0)
    if not BUG:
        index = index % n
    tl.store(out_ptr + at, tl.load(x_ptr + index), mask=at < n)


@triton.jit
def seeded_scalar_load(lengths_ptr, out_ptr, n, BUG: tl.constexpr):
    row = tl.program_id(0) + (1 if BUG else 0)
    tl.store(out_ptr + tl.program_id(0), tl.load(lengths_ptr + row))


@triton.jit
def seeded_wider_type(x_ptr, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    """Halves read as floats: twice as many bytes."""
    at = tl.arange(0, BLOCK)
    if BUG:
        x = tl.load(x_ptr.to(tl.pointer_type(tl.float32)) + at, mask=at < n)
    else:
        x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    tl.store(out_ptr + at, x, mask=at < n)


@triton.jit
def seeded_histogram(x_ptr, out_ptr, n, bins, BUG: tl.constexpr, BLOCK: tl.constexpr):
    """The largest value falls into a bin that is none."""
    at = tl.arange(0, BLOCK)
    bin = tl.load(x_ptr + at, mask=at < n, other=0)
    if not BUG:
        bin = tl.minimum(bin, bins - 1)
    tl.atomic_add(out_ptr + bin, 1, mask=at < n)


@triton.jit
def seeded_atomic_unmasked(x_ptr, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    inside = at < (n + BLOCK if BUG else n)
    tl.atomic_max(out_ptr + at, x, mask=inside)


@triton.jit
def seeded_compare_and_swap(locks_ptr, out_ptr, BUG: tl.constexpr):
    lock = tl.program_id(0) * (2 if BUG else 1)
    tl.store(out_ptr + tl.program_id(0), tl.atomic_cas(locks_ptr + lock, 0, 1))


@triton.jit
def seeded_grouped(pointers_ptr, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    """Tensors by an array of pointers; each has n elements."""
    x_ptr = tl.load(pointers_ptr + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < (BLOCK if BUG else n), other=0.0)
    tl.store(out_ptr + tl.program_id(0) * BLOCK + at, x)


@triton.jit
def seeded_view(x_ptr, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < (n + 3 if BUG else n))
    tl.store(out_ptr + at, x, mask=at < n)


@triton.jit
def seeded_store_before_view(x_ptr, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK).to(tl.int64)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at - (2 if BUG else 0), x, mask=at < n)


@triton.jit
def seeded_misaligned_atomic(x_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    bytes_ptr = x_ptr.to(tl.pointer_type(tl.int8)) + (2 if BUG else 4)
    tl.atomic_add(bytes_ptr.to(tl.pointer_type(tl.int32)) + at, 1, mask=at < n)


@triton.jit
def seeded_misaligned_scalar(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr + 3))


@triton.jit
def seeded_forgotten_increment(x_ptr, out_ptr, n, BUG: tl.constexpr):
    at, total = 0, 0.0
    while at < n:
        total += tl.load(x_ptr + at)
        at += 0 if BUG else 1
    tl.store(out_ptr, total)


@triton.jit
def seeded_never_true(out_ptr, n, BUG: tl.constexpr):
    """Steps of two, from an even start, never meet an odd end."""
    at = 0
    while at != n:
        at += 2 if BUG else 1
    tl.store(out_ptr, at)


@triton.jit
def seeded_spin(flag_ptr, out_ptr, BUG: tl.constexpr):
    """Program 0 waits for a flag that the other one sets."""
    if tl.program_id(0) == 0:
        while tl.atomic_add(flag_ptr, 0) == 0:
            pass
        tl.store(out_ptr, 7)
    elif not BUG:
        tl.atomic_xchg(flag_ptr, 1)


@triton.jit
def seeded_lock(lock_ptr, out_ptr, BUG: tl.constexpr):
    """Who holds the lock gives it back, or doesn't."""
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(out_ptr, tl.load(out_ptr) + 1)
    if not BUG:
        tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def seeded_halving(x_ptr, out_ptr, BUG: tl.constexpr):
    """A float that is halved reaches 0, a product with 1 stays."""
    x = tl.load(x_ptr)
    turns = 0
    while x > 0:
        x = x * (1.0 if BUG else 0.5)
        turns += 1
    tl.store(out_ptr, turns)


@triton.jit
def seeded_number_as_pointer(address, out_ptr, n, BUG: tl.constexpr, BLOCK: tl.constexpr):
    x_ptr = address.to(tl.int64).to(tl.pointer_type(tl.float32))
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < (BLOCK if BUG else n), other=0.0)
    tl.store(out_ptr + at, x)


@triton.jit
def seeded_inner_loop(x_ptr, out_ptr, n, BUG: tl.constexpr):
    """The outer loop's counter is the inner one's, which begins anew each time."""
    rows, total = 0, 0.0
    while rows < n:
        at = 0
        while at < 12:
            total += tl.load(x_ptr + at)
            at += 1
        rows = at // 12 if BUG else rows + 1
    tl.store(out_ptr, total)


@triton.jit
def seeded_divergent(x_ptr, out_ptr, BUG: tl.constexpr, BLOCK: tl.constexpr):
    """Collatz's numbers, of which each element of x comes to 1; 0 does not."""
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    if BUG:
        x = tl.where(at == 37, 0, x)
    turns = tl.zeros([BLOCK], tl.int32)
    while tl.max((x != 1).to(tl.int32)) > 0:
        turns += (x != 1).to(tl.int32)
        x = tl.where(x == 1, 1, tl.where(x % 2 == 0, x // 2, 3 * x + 1))
    tl.store(out_ptr + at, turns)


@triton.jit
def long_loop(x_ptr, out_ptr, n):
    """Honest, though its work is the same in every turn."""
    total = 0.0
    for at in range(n):
        total += tl.load(x_ptr + at % 4)
    tl.store(out_ptr, total)


@triton.jit
def slow_handshake(flag_ptr, out_ptr, n):
    """Program 0 waits while program 1 counts for long."""
    if tl.program_id(0) == 0:
        while tl.atomic_add(flag_ptr, 0) == 0:
            pass
        tl.store(out_ptr, tl.load(flag_ptr))
    else:
        value = 1
        for turn in range(n):
            value = (value * 5 + turn) & 0xFFFF
        tl.atomic_xchg(flag_ptr, value | 1)


@triton.jit
def tickets(counter_ptr, out_ptr, n):
    """Each turn is decided by a number from memory, and changes it."""
    taken = 0
    while tl.atomic_add(counter_ptr, 1) < n:
        taken += 1
    tl.atomic_add(out_ptr, taken)


@triton.jit
def many_barriers(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Two barriers and more in each turn."""
    at = tl.arange(0, BLOCK)
    total = 0.0
    for turn in range(n):
        total += tl.sum(tl.load(x_ptr + at)) - turn
    tl.store(out_ptr, total)
