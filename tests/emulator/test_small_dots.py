"""tl.dot of few rows or columns, which Triton makes with other instructions than those of large tiles."""

import pytest
import torch
import triton
import triton.language as tl

import labkit

SHAPES = [(4, 64, 64), (64, 4, 64), (2, 16, 32), (1, 16, 32), (16, 16, 16)]
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8]
# What some of these are for, on both chips.
INSTRUCTIONS = {
    ((4, 64, 64), torch.float16): "cbsz:4 abid:15",
    ((64, 4, 64), torch.bfloat16): "cbsz:4",
    ((4, 64, 64), torch.float32): "v_mfma_f32_4x4x1_16b_f32",
    ((4, 64, 64), torch.int8): "v_mfma_i32_4x4x4_16b_i8",
    ((2, 16, 32), torch.float16): "v_dot2c_f32_f16",
    ((16, 16, 16), torch.int8): "v_dot4c_i32_i8",
}


@triton.jit
def dot_kernel(
    a_ptr, b_ptr, c_ptr, out_ptr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """out = a @ b + c, one tile."""
    rows, columns, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + rows[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + columns[None, :])
    at = rows[:, None] * N + columns[None, :]
    c = tl.load(c_ptr + at)
    tl.store(out_ptr + at, tl.dot(a, b, c, input_precision=PRECISION, out_dtype=c.dtype))


@pytest.fixture(params=["MI300X", "MI355X"])
def chip(request):
    yield labkit.start(request.param, quiet=True)
    labkit.start("MI300X", quiet=True)


def operands(m, n, k, dtype):
    generator = torch.Generator().manual_seed(6)
    if dtype == torch.int8:
        a, b = (torch.randint(-128, 128, shape, generator=generator).to(dtype) for shape in ((m, k), (k, n)))
        return a, b, torch.randint(-(2**20), 2**20, (m, n), generator=generator, dtype=torch.int32)
    a, b = (torch.randn(*shape, generator=generator).to(dtype) for shape in ((m, k), (k, n)))
    return a, b, torch.randn(m, n, generator=generator, dtype=torch.promote_types(dtype, torch.float32))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("m,n,k", SHAPES)
def test_a_small_tile(chip, m, n, k, dtype):
    a, b, c = operands(m, n, k, dtype)
    out = torch.zeros_like(c)
    dot_kernel[(1,)](a, b, c, out, m, n, k, "ieee", num_warps=1)
    if dtype == torch.int8:
        assert torch.equal(out, a.int() @ b.int() + c)
    else:
        wanted = a.double() @ b.double() + c.double()
        steps = torch.finfo(c.dtype).eps * (a.double().abs() @ b.double().abs() + c.double().abs())
        assert ((out.double() - wanted).abs() <= k * steps).all()
    if ((m, n, k), dtype) in INSTRUCTIONS:
        assert INSTRUCTIONS[(m, n, k), dtype] in labkit.last_launch().compiled.stages["amdgcn"]


@pytest.mark.parametrize("m,n,k", [(32, 32, 32), (16, 16, 64), (64, 64, 16)])
def test_tf32_is_xf32(mi300x, m, n, k):
    """Each input keeps 10 bits of its fraction, so its error is below 2**-11 of it."""
    a, b, c = operands(m, n, k, torch.float32)
    out = torch.zeros(m, n)
    dot_kernel[(1,)](a, b, c, out, m, n, k, "tf32")
    assert "xf32" in labkit.last_launch().compiled.stages["amdgcn"]
    wanted = a.double() @ b.double() + c.double()
    bound = 2.0**-9 * (a.double().abs() @ b.double().abs()) + 2.0**-20 * c.double().abs()
    assert ((out.double() - wanted).abs() <= bound).all()
    assert (out.double() - wanted).abs().max() > 2.0**-20  # it is not float32
