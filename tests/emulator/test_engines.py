"""Whole kernels by the fast path and by the NumPy steps alone: the same memory, the same counts."""

import numpy as np
import pytest
import torch

import labkit
from labkit.emulator.machine import numpy_only
from labkit.kernels.residual_rms_norm import residual_rms_norm
from labkit.kernels.skinny_gemm import skinny_gemm
from labkit.kernels.swiglu import swiglu
from tests.emulator import kernels

pytestmark = pytest.mark.usefixtures("mi300x")
BLOCK, N = 256, 1000
GRID = (4,)


def random(*shape, dtype=torch.float32, seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def numbers(*shape):
    return torch.randint(-1000, 1000, shape, dtype=torch.int32, generator=torch.Generator().manual_seed(2))


def unary(op):
    return lambda out: kernels.unary_kernel[GRID](random(N), out, N, op, BLOCK)


def binary(op, make):
    return lambda out: kernels.binary_kernel[GRID](make(N), make(N) + 1, out, N, op, BLOCK)


def matmul(dtype):
    a, b = random(40, 70, dtype=dtype), random(70, 50, dtype=dtype, seed=3)
    return lambda out: kernels.matmul_kernel[(2, 2)](a, b, out, 40, 50, 70, 32, 32, 32)


FP8 = torch.float8_e4m3fnuz
LAUNCHES = {
    "exp": (unary("exp"), (N,)),
    "log": (unary("log"), (N,)),
    "divide": (binary("div", random), (N,)),
    "remainder": (binary("mod", lambda n: numbers(n).abs()), (N,), torch.int32),
    "softmax": (
        lambda out: kernels.softmax_kernel[(5,)](random(5, 700), out, 700, 700, BLOCK=1024),
        (5, 700),
    ),
    "sum": (lambda out: kernels.reduce_kernel[(4,)](random(4, 200), out, 200, "sum", 256), (4,)),
    "scan": (lambda out: kernels.scan_kernel[(1,)](random(8, 64), out, 8, 64), (8, 64)),
    "transpose": (lambda out: kernels.transpose_kernel[(1,)](random(16, 32), out, 16, 32), (32, 16)),
    "loop": (
        lambda out: kernels.uneven_loop_kernel[(700,)](numbers(700).abs() % 60, out),
        (700,),
        torch.int32,
    ),
    "atomic": (lambda out: kernels.atomic_kernel[GRID](numbers(N), out, N, "add", BLOCK), (7,), torch.int32),
    "random": (lambda out: kernels.random_kernel[(1,)](out, 123, 4096), (4096,)),
    "rms": (lambda out: out.copy_(residual_rms_norm(random(3, 500), random(3, 500), random(500))), (3, 500)),
    "swiglu": (lambda out: out.copy_(swiglu(random(3, 900, dtype=torch.float16))), (3, 450), torch.float16),
    "matmul half": (matmul(torch.float16), (40, 50)),
    "matmul bfloat": (matmul(torch.bfloat16), (40, 50)),
    "matmul float": (matmul(torch.float32), (40, 50)),
    "skinny": (
        lambda out: out.copy_(skinny_gemm(random(5, 600).to(FP8), random(40, 600).to(FP8), torch.ones(1))),
        (5, 40),
        torch.float16,
    ),
}


def execute(run, shape, dtype):
    out = torch.zeros(shape, dtype=dtype)
    run(out)
    return out, labkit.last_launch().counters


@pytest.mark.parametrize("name", LAUNCHES)
def test_both_engines_leave_the_same_memory_and_counts(name):
    run, shape, dtype = (*LAUNCHES[name], torch.float32)[:3]
    fast, counted = execute(run, shape, dtype)
    with numpy_only():
        slow, expected = execute(run, shape, dtype)
    # The two add the products of a matrix instruction in another order.
    tolerance = 1e-2 if "matmul" in name or name == "skinny" else 0
    torch.testing.assert_close(fast, slow, rtol=tolerance / 10, atol=tolerance, equal_nan=True)
    for what in ("executions", "lanes", "traffic", "lds_traffic"):
        np.testing.assert_array_equal(getattr(counted, what), getattr(expected, what), err_msg=what)
    assert counted.touched == expected.touched


def test_most_of_a_kernel_goes_the_fast_way():
    """Else the tests above compare NumPy with itself."""
    swiglu(random(3, 900, dtype=torch.float16))
    (machine,) = labkit.last_launch().counters.program.bound.values()
    rows = machine._fast_plan.rows
    assert sum(row.op.name == "NUMPY" for row in rows) < 0.05 * len(rows)
