"""Triton kernels for the emulator's tests: ordinary code, the kind that people write."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask) + tl.load(y_ptr + offsets, mask), mask)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, row_stride, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    row = tl.program_id(0) * row_stride
    x = tl.load(x_ptr + row + columns, mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row + columns, e / tl.sum(e, 0), mask)


@triton.jit
def convert_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask)
    tl.store(out_ptr + offsets, x.to(out_ptr.dtype.element_ty), mask)


@triton.jit
def binary_kernel(x_ptr, y_ptr, out_ptr, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask)
    y = tl.load(y_ptr + offsets, mask, other=1)
    if OP == "add":
        z = x + y
    elif OP == "sub":
        z = x - y
    elif OP == "mul":
        z = x * y
    elif OP == "div":
        z = x / y
    elif OP == "floordiv":
        z = x // y
    elif OP == "mod":
        z = x % y
    elif OP == "min":
        z = tl.minimum(x, y)
    elif OP == "max":
        z = tl.maximum(x, y)
    elif OP == "and":
        z = x & y
    elif OP == "or":
        z = x | y
    elif OP == "xor":
        z = x ^ y
    elif OP == "shl":
        z = x << (y & 7)
    elif OP == "shr":
        z = x >> (y & 7)
    elif OP == "lt":
        z = (x < y).to(tl.int32)
    elif OP == "fma":
        z = tl.fma(x, y, x)
    tl.store(out_ptr + offsets, z, mask)


@triton.jit
def unary_kernel(x_ptr, out_ptr, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask, other=1.0)
    if OP == "exp":
        y = tl.exp(x)
    elif OP == "exp2":
        y = tl.exp2(x)
    elif OP == "log":
        y = tl.log(x)
    elif OP == "log2":
        y = tl.log2(x)
    elif OP == "sqrt":
        y = tl.sqrt(x)
    elif OP == "sqrt_rn":
        y = tl.sqrt_rn(x)
    elif OP == "rsqrt":
        y = tl.rsqrt(x)
    elif OP == "sin":
        y = tl.sin(x)
    elif OP == "cos":
        y = tl.cos(x)
    elif OP == "erf":
        y = tl.erf(x)
    elif OP == "abs":
        y = tl.abs(x)
    elif OP == "floor":
        y = tl.floor(x)
    elif OP == "ceil":
        y = tl.ceil(x)
    elif OP == "sigmoid":
        y = tl.sigmoid(x)
    elif OP == "tanh":
        y = libdevice.tanh(x)
    elif OP == "neg":
        y = -x
    elif OP == "trunc":
        y = libdevice.trunc(x)
    elif OP == "log1p":
        y = libdevice.log1p(x)
    elif OP == "expm1":
        y = libdevice.expm1(x)
    elif OP == "pow":
        y = libdevice.pow(x, 1.7)
    tl.store(out_ptr + offsets, y, mask)


@triton.jit
def reduce_kernel(x_ptr, out_ptr, n_cols, OP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + columns, columns < n_cols, other=0)
    if OP == "sum":
        y = tl.sum(x, 0)
    elif OP == "max":
        y = tl.max(x, 0)
    elif OP == "min":
        y = tl.min(x, 0)
    elif OP == "argmax":
        y = tl.argmax(x, 0)
    elif OP == "xor":
        y = tl.xor_sum(x, 0)
    tl.store(out_ptr + row, y)


@triton.jit
def scan_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    offsets = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out_ptr + offsets, tl.cumsum(tl.load(x_ptr + offsets), 1))


@triton.jit
def sort_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.sort(tl.load(x_ptr + offsets)))


@triton.jit
def transpose_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + i[:, None] * COLUMNS + j[None, :])
    tl.store(out_ptr + j[:, None] * ROWS + i[None, :], tl.trans(x))


@triton.jit
def atomic_kernel(x_ptr, out_ptr, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask)
    if OP == "add":
        tl.atomic_add(out_ptr + offsets % 7, x, mask)
    elif OP == "max":
        tl.atomic_max(out_ptr + offsets % 7, x, mask)
    elif OP == "min":
        tl.atomic_min(out_ptr + offsets % 7, x, mask)
    elif OP == "xchg":
        tl.atomic_xchg(out_ptr + offsets, x, mask)


@triton.jit
def ticket_kernel(counter_ptr, out_ptr):
    ticket = tl.atomic_add(counter_ptr, 1)
    tl.store(out_ptr + ticket, tl.program_id(0))


@triton.jit
def loop_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * n_cols + columns, columns < n_cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(total, 0))


@triton.jit
def uneven_loop_kernel(turns_ptr, out_ptr):
    """A loop whose number of turns each program reads from memory."""
    pid = tl.program_id(0)
    turns = tl.load(turns_ptr + pid)
    value = 1
    for turn in range(turns):
        value = value * 3 + turn
    if turns % 2 == 0:
        value = -value
    tl.store(out_ptr + pid, value)


@triton.jit
def endless_kernel(out_ptr):
    value = 0
    while value >= 0:
        value = value & 1
    tl.store(out_ptr, value)


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros([BM, BN], tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], (rows[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(
            b_ptr + k[:, None] * N + columns[None, :], (k[:, None] < K) & (columns[None, :] < N), other=0.0
        )
        total = tl.dot(a, b, total)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total, mask)


@triton.jit
def tuple_kernel(pointers, out_ptr, scale, maybe_ptr, n, BLOCK: tl.constexpr = 256):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    y = tl.load(pointers[0] + offsets, mask) + tl.load(pointers[1] + offsets, mask) * scale
    if maybe_ptr is not None:
        y += tl.load(maybe_ptr + offsets, mask)
    tl.store(out_ptr + offsets, y, mask)


@triton.jit
def random_kernel(out_ptr, seed, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.rand(seed, offsets))


@triton.jit
def handshake_kernel(flag_ptr, out_ptr):
    """Program 0 waits for the last program, which raises a flag."""
    pid = tl.program_id(0)
    if pid == 0:
        while tl.atomic_add(flag_ptr, 0) == 0:
            pass
        tl.store(out_ptr, 7)
    elif pid == tl.num_programs(0) - 1:
        tl.atomic_xchg(flag_ptr, 1)


@triton.jit
def scaled_matmul_kernel(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, out_ptr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, A_FORMAT: tl.constexpr, B_FORMAT: tl.constexpr,
):  # fmt: skip
    """One tile of tl.dot_scaled: E8M0 scales of 32 values along K; "e2m1" packs two values in a byte."""
    K_A: tl.constexpr = K // 2 if A_FORMAT == "e2m1" else K
    K_B: tl.constexpr = K // 2 if B_FORMAT == "e2m1" else K
    rows, columns, blocks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
    k_a, k_b = tl.arange(0, K_A), tl.arange(0, K_B)
    a = tl.load(a_ptr + rows[:, None] * K_A + k_a[None, :])
    b = tl.load(b_ptr + k_b[:, None] * N + columns[None, :])
    a_scale, b_scale = None, None
    if a_scale_ptr is not None:
        a_scale = tl.load(a_scale_ptr + rows[:, None] * (K // 32) + blocks[None, :])
    if b_scale_ptr is not None:
        b_scale = tl.load(b_scale_ptr + columns[:, None] * (K // 32) + blocks[None, :])
    out = tl.dot_scaled(a, a_scale, A_FORMAT, b, b_scale, B_FORMAT)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], out)
