"""Attention in one pass over the keys, with a running maximum and sum, against softmax in float64."""

import pytest
import torch
import triton
import triton.language as tl

pytestmark = pytest.mark.usefixtures("no_finding")


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, n_queries, n_keys,
    CAUSAL: tl.constexpr, HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """out = softmax(q k^T scale) v of one head (program 1) for BLOCK_M queries (program 0)."""
    head = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns, dims = tl.arange(0, BLOCK_N), tl.arange(0, HEAD)
    q_ptrs = q_ptr + (head * n_queries + rows)[:, None] * HEAD + dims[None, :]
    q = tl.load(q_ptrs, (rows < n_queries)[:, None], other=0.0)
    highest = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    out = tl.zeros([BLOCK_M, HEAD], tl.float32)
    end = tl.minimum(n_keys, (tl.program_id(0) + 1) * BLOCK_M) if CAUSAL else n_keys
    for start in range(0, end, BLOCK_N):
        keys = start + columns
        inside = (keys < n_keys)[:, None]
        offsets = (head * n_keys + keys)[:, None] * HEAD + dims[None, :]
        k = tl.load(k_ptr + offsets, inside, other=0.0)
        v = tl.load(v_ptr + offsets, inside, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * (scale * 1.4426950408889634)
        allowed = (keys < n_keys)[None, :]
        if CAUSAL:
            allowed = allowed & (keys[None, :] <= rows[:, None])
        scores = tl.where(allowed, scores, -float("inf"))
        larger = tl.maximum(highest, tl.max(scores, 1))
        p = tl.exp2(scores - larger[:, None])
        shrink = tl.exp2(highest - larger)
        total = total * shrink + tl.sum(p, 1)
        out = tl.dot(p.to(v.dtype), v, out * shrink[:, None])
        highest = larger
    out_ptrs = out_ptr + (head * n_queries + rows)[:, None] * HEAD + dims[None, :]
    tl.store(out_ptrs, (out / total[:, None]).to(out_ptr.dtype.element_ty), (rows < n_queries)[:, None])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("dtype", "instruction"), [(torch.float16, 16), (torch.bfloat16, 32)], ids=str)
@pytest.mark.parametrize("head", [64, 128])
def test_attention(head, dtype, instruction, causal):
    heads, n = 2, 100
    generator = torch.Generator().manual_seed(head)
    q, k, v = (torch.randn(heads, n, head, generator=generator).to(dtype) for _ in range(3))
    out, scale = torch.empty_like(q), head**-0.5
    attention_kernel[(-(-n // 64), heads)](
        q, k, v, out, scale, n, n, causal, head, 64, 32,
        num_warps=4, num_stages=2, matrix_instr_nonkdim=instruction,
    )  # fmt: skip
    q, k, v = q.double(), k.double(), v.double()
    scores = q @ k.mT * scale
    if causal:
        scores = scores.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
    weights = scores.softmax(-1)
    exact, sizes = weights @ v, weights @ v.abs()
    # Each weight is rounded to the type, and the result once more. The rest is float32: sums of `head` and
    # of n terms, and exp, whose argument is off by float32's rounding of the largest score.
    largest = (q.abs() @ k.abs().mT * scale).max()
    single = 2.0**-24 * ((head + 8) * largest + n + 8)
    bound = (torch.finfo(dtype).eps + 2 * single) * sizes
    assert ((out.double() - exact).abs() <= bound).all()
