"""Matrix multiplications as people write them: grouped tile order, strides, split-K, arrays of pointers."""

import triton
import triton.language as tl


@triton.jit
def gemm_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    a_row_stride, a_column_stride, b_row_stride, b_column_stride, c_row_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr, SPLIT_K: tl.constexpr, EVEN_K: tl.constexpr,
    PRECISION: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """C[m, n] = sum over k of A[m, k] B[k, n]; SPLIT_K programs add up one tile of C, which begins as 0."""
    tile, split = tl.program_id(0), tl.program_id(1)
    across = tl.cdiv(N, BLOCK_N)
    group = tile // (GROUP_M * across)
    height = min(tl.cdiv(M, BLOCK_M) - group * GROUP_M, GROUP_M)
    tile_m = group * GROUP_M + tile % (GROUP_M * across) % height
    tile_n = tile % (GROUP_M * across) // height

    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = split * BLOCK_K + tl.arange(0, BLOCK_K)
    # Rows past the end read others again: only k needs a mask then.
    a_ptrs = a_ptr + (rows % M)[:, None] * a_row_stride + ks[None, :] * a_column_stride
    b_ptrs = b_ptr + ks[:, None] * b_row_stride + (columns % N)[None, :] * b_column_stride
    total = tl.zeros([BLOCK_M, BLOCK_N], SUM)
    for start in range(0, tl.cdiv(K, BLOCK_K * SPLIT_K)):
        if EVEN_K:
            a, b = tl.load(a_ptrs), tl.load(b_ptrs)
        else:
            left = K - start * BLOCK_K * SPLIT_K
            a = tl.load(a_ptrs, ks[None, :] < left, other=0.0)
            b = tl.load(b_ptrs, ks[:, None] < left, other=0.0)
        total = tl.dot(a, b, total, input_precision=PRECISION, out_dtype=SUM)
        a_ptrs += BLOCK_K * SPLIT_K * a_column_stride
        b_ptrs += BLOCK_K * SPLIT_K * b_row_stride

    c = total.to(c_ptr.dtype.element_ty)
    c_ptrs = c_ptr + rows[:, None] * c_row_stride + columns[None, :]
    mask = (rows < M)[:, None] & (columns < N)[None, :]
    if SPLIT_K == 1:
        tl.store(c_ptrs, c, mask)
    else:
        tl.atomic_add(c_ptrs, c, mask, sem="relaxed")


@triton.jit
def grouped_gemm_kernel(
    a_ptrs, b_ptrs, c_ptrs, sizes_ptr, n_problems,
    PROGRAMS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Products of different sizes in one launch: arrays of addresses, and the sizes (M, N, K) of each."""
    tile = tl.program_id(0)
    first = 0  # tile of this problem
    for problem in range(n_problems):
        M = tl.load(sizes_ptr + problem * 3)
        N = tl.load(sizes_ptr + problem * 3 + 1)
        K = tl.load(sizes_ptr + problem * 3 + 2)
        across = tl.cdiv(N, BLOCK_N)
        last = first + tl.cdiv(M, BLOCK_M) * across
        while tile < last:
            a_ptr = tl.load(a_ptrs + problem).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(b_ptrs + problem).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(c_ptrs + problem).to(tl.pointer_type(tl.float16))
            rows = (tile - first) // across * BLOCK_M + tl.arange(0, BLOCK_M)
            columns = (tile - first) % across * BLOCK_N + tl.arange(0, BLOCK_N)
            total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
            for start in range(0, K, BLOCK_K):
                ks = start + tl.arange(0, BLOCK_K)
                a_mask = (rows < M)[:, None] & (ks < K)[None, :]
                b_mask = (ks < K)[:, None] & (columns < N)[None, :]
                a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], a_mask, other=0.0)
                b = tl.load(b_ptr + ks[:, None] * N + columns[None, :], b_mask, other=0.0)
                total = tl.dot(a, b, total)
            c_mask = (rows < M)[:, None] & (columns < N)[None, :]
            tl.store(c_ptr + rows[:, None] * N + columns[None, :], total.to(tl.float16), c_mask)
            tile += PROGRAMS
        first = last
