"""Whole kernels, as Triton compiles them, against PyTorch or NumPy."""

import pytest
import torch

from tests.emulator import kernels

pytestmark = pytest.mark.usefixtures("mi300x")

N, BLOCK = 1000, 256
GRID = (-(-N // BLOCK),)
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def values(dtype: torch.dtype, n: int = N) -> torch.Tensor:
    generator = torch.Generator().manual_seed(17)
    if dtype.is_floating_point:
        return (torch.randn(n, generator=generator) * 3).to(dtype)
    info = torch.iinfo(dtype)
    low, high = max(info.min, -(2**40)), min(info.max, 2**40)
    return torch.randint(low, high, (n,), dtype=dtype, generator=generator)


def two(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    x = values(dtype, 2 * N)
    return x[:N].contiguous(), x[N:].contiguous()


def assert_same(got: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(got, wanted, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 255, 256, 257, 1000, 4099])
def test_vector_add_with_a_masked_tail(n):
    x, y, out = torch.randn(n), torch.randn(n), torch.full((n + 64,), -7.0)
    kernels.add_kernel[(-(-n // BLOCK),)](x, y, out, n, BLOCK)
    assert_same(out[:n], x + y)
    assert (out[n:] == -7).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("shape", [(1, 1), (7, 781), (33, 1024)])
def test_row_softmax(shape, dtype):
    x = torch.randn(shape).to(dtype)
    out = torch.empty(shape)
    kernels.softmax_kernel[(shape[0],)](x, out, shape[1], x.stride(0), BLOCK=1024)
    torch.testing.assert_close(out, x.float().softmax(1), rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS, ids=str)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "min", "max"])
def test_arithmetic_is_exact(op, dtype):
    x, y = two(dtype)
    out = torch.zeros(N, dtype=dtype)
    kernels.binary_kernel[GRID](x, y, out, N, op, BLOCK)
    reference = {"min": torch.minimum, "max": torch.maximum}.get(op) or getattr(torch, op)
    assert_same(out, reference(x, y))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("op", ["and", "or", "xor", "shl", "shr", "floordiv", "mod"])
def test_integer_operations(op, dtype):
    x, y = two(dtype)
    y[y == 0] = 1
    out = torch.zeros(N, dtype=dtype)
    kernels.binary_kernel[GRID](x, y, out, N, op, BLOCK)
    reference = {
        "and": lambda: x & y,
        "or": lambda: x | y,
        "xor": lambda: x ^ y,
        "shl": lambda: x << (y & 7),
        "shr": lambda: x >> (y & 7),
        "floordiv": lambda: torch.div(x, y, rounding_mode="trunc"),  # Triton's // on tensors is C's
        "mod": lambda: torch.fmod(x, y),
    }[op]()
    assert_same(out, reference)


def test_division_is_correctly_rounded():
    x, y = two(torch.float32)
    # Every size of quotient: near overflow, near the least number, denormal operands and results.
    scale = torch.tensor([1.0, 2.0**100, 2.0**-100, 2.0**-130, 2.0**126])
    x, y = x * scale[torch.arange(N) % 5], y * scale[torch.arange(N) // 5 % 5]
    special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0, 1e-45, 3e38])
    x[:64], y[:64] = special.repeat(8), special.repeat_interleave(8)
    out = torch.zeros(N)
    kernels.binary_kernel[GRID](x, y, out, N, "div", BLOCK)
    # float64 rounds a float32 quotient twice without harm: 53 >= 2 * 24 + 2 bits.
    assert_same(out, (x.double() / y.double()).float())


POSITIVE = ["log", "log2", "sqrt", "rsqrt", "log1p", "pow"]


@pytest.mark.parametrize("op", [*POSITIVE, "exp", "exp2", "sin", "cos", "erf", "sigmoid", "tanh", "expm1"])
def test_elementary_functions(op):
    x = values(torch.float32)
    if op in POSITIVE:
        x = x.abs() + 0.01
    out = torch.zeros(N)
    kernels.unary_kernel[GRID](x, out, N, op, BLOCK)
    exact = x.double() ** 1.7 if op == "pow" else getattr(torch, op)(x.double())
    torch.testing.assert_close(out.double(), exact, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("op", ["abs", "floor", "ceil", "neg", "trunc", "sqrt_rn"])
def test_exact_functions(op):
    x = values(torch.float32)
    x = x.abs() if op == "sqrt_rn" else x
    out = torch.zeros(N)
    kernels.unary_kernel[GRID](x, out, N, op, BLOCK)
    # In float64, since torch.sqrt of float32 is not correctly rounded on every CPU.
    assert_same(out, getattr(torch, "sqrt" if op == "sqrt_rn" else op)(x.double()).float())


@pytest.mark.parametrize("dtype", [torch.int32, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("op", ["sum", "max", "min", "argmax"])
@pytest.mark.parametrize("columns", [5, 250])
def test_reductions(op, dtype, columns):
    x = (values(dtype, 4 * columns) % 1000).reshape(4, columns)
    out = torch.zeros(4, dtype=torch.int32 if op == "argmax" else dtype)
    kernels.reduce_kernel[(4,)](x, out, columns, op, 256)
    padded = torch.cat([x, torch.zeros(4, 256 - columns, dtype=dtype)], 1)  # other=0 of the load
    wanted = {"sum": lambda: x.sum(1), "max": lambda: padded.amax(1), "min": lambda: padded.amin(1),
              "argmax": lambda: padded.argmax(1)}[op]()  # fmt: skip
    torch.testing.assert_close(out, wanted.to(out.dtype), rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32], ids=str)
def test_scan_and_sort(dtype):
    x = (values(dtype, 512) % 100).reshape(8, 64)
    out = torch.empty_like(x)
    kernels.scan_kernel[(1,)](x, out, 8, 64)
    torch.testing.assert_close(out, x.cumsum(1, dtype=dtype), rtol=1e-5, atol=1e-3)
    flat = x.flatten()
    kernels.sort_kernel[(1,)](flat, out, 512)
    assert_same(out.flatten(), flat.sort()[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int8], ids=str)
def test_transpose_through_lds(dtype):
    x = values(dtype, 512).reshape(16, 32)
    out = torch.empty(32, 16, dtype=dtype)
    kernels.transpose_kernel[(1,)](x, out, 16, 32)
    assert_same(out, x.T)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("op", ["add", "max", "min"])
def test_atomics_with_many_lanes_on_one_address(op, dtype):
    x = (values(dtype) % 1000).to(dtype)
    out = torch.zeros(7, dtype=dtype)
    kernels.atomic_kernel[GRID](x, out, N, op, BLOCK)
    slots = torch.arange(N) % 7
    how = {"add": "sum", "max": "amax", "min": "amin"}[op]
    wanted = torch.zeros(7, dtype=dtype).scatter_reduce(0, slots, x, how, include_self=True)
    torch.testing.assert_close(out, wanted, rtol=1e-4, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_atomic_add_of_halves(dtype):
    x = torch.ones(N, dtype=dtype)
    out = torch.zeros(7, dtype=dtype)
    kernels.atomic_kernel[GRID](x, out, N, "add", BLOCK)
    assert out.tolist() == [143.0] * 6 + [142.0]  # 1000 = 7 * 142 + 6


def test_each_program_gets_a_ticket_of_its_own():
    counter, out = torch.zeros(1, dtype=torch.int32), torch.full((700,), -1, dtype=torch.int32)
    kernels.ticket_kernel[(700,)](counter, out)
    assert counter.item() == 700
    assert sorted(out.tolist()) == list(range(700))


def test_loops_of_unequal_length_run_side_by_side():
    turns = torch.randint(0, 60, (700,), dtype=torch.int32, generator=torch.Generator().manual_seed(1))
    out = torch.zeros(700, dtype=torch.int32)
    kernels.uneven_loop_kernel[(700,)](turns, out)
    for count, got in zip(turns.tolist(), out.tolist(), strict=True):
        value = 1
        for turn in range(count):
            value = value * 3 + turn
        value = -value if count % 2 == 0 else value
        assert (got - value) % 2**32 == 0


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz], ids=str
)
@pytest.mark.parametrize("tile", [(16, 16, 32), (32, 32, 32), (128, 64, 64)])
def test_matrix_multiplication(dtype, tile):
    m, n, k = 70, 90, 100
    generator = torch.Generator().manual_seed(5)
    a, b = torch.randn(m, k, generator=generator).to(dtype), torch.randn(k, n, generator=generator).to(dtype)
    out = torch.zeros(m, n)
    kernels.matmul_kernel[(-(-m // tile[0]), -(-n // tile[1]))](a, b, out, m, n, k, *tile)
    wanted = a.float().double() @ b.float().double()
    torch.testing.assert_close(out.double(), wanted, rtol=1e-5, atol=1e-4)


def test_random_numbers_are_in_range_and_even():
    out = torch.zeros(4096)
    kernels.random_kernel[(1,)](out, 123, 4096)
    assert out.min() >= 0 and out.max() < 1
    assert abs(out.mean() - 0.5) < 0.02  # four standard errors of 4096 uniform numbers
    assert out.unique().numel() > 4000


def test_a_program_may_wait_for_another_one():
    flag, out = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    kernels.handshake_kernel[(5,)](flag, out)
    assert out.item() == 7
