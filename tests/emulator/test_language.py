"""What the language offers on blocks: scans, sorts, searches, gathers, and 64-bit arithmetic."""

import math
from fractions import Fraction

import pytest
import torch
import triton
import triton.language as tl

pytestmark = pytest.mark.usefixtures("no_finding")


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def after(a1, b1, a2, b2):
    """x -> a1 x + b1, then x -> a2 x + b2, as one step."""
    return a1 * a2, a2 * b1 + b2


@triton.jit
def scan_kernel(x_ptr, y_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, OP: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    if OP == "sum":
        z = tl.cumsum(x, 1)
    elif OP == "sum back":
        z = tl.cumsum(x, 1, reverse=True)
    elif OP == "sum down":
        z = tl.cumsum(x, 0)
    elif OP == "product":
        z = tl.cumprod(x, 1)
    elif OP == "max":
        z = tl.associative_scan(x, 1, larger)
    elif OP == "recurrence":
        _, z = tl.associative_scan((x, y), 1, after)
    tl.store(out_ptr + at, z)


def recurrence(a, b):
    steps = [b[:, 0]]
    for k in range(1, a.shape[1]):
        steps.append(a[:, k] * steps[-1] + b[:, k])
    return torch.stack(steps, 1)


SCANS = {
    "sum": lambda x, y: x.cumsum(1),
    "sum back": lambda x, y: x.flip(1).cumsum(1).flip(1),
    "sum down": lambda x, y: x.cumsum(0),
    "product": lambda x, y: x.cumprod(1),
    "max": lambda x, y: x.cummax(1)[0],
    "recurrence": recurrence,
}


@pytest.mark.parametrize("op", SCANS)
def test_scans(op):
    """Whole numbers and signs, so that every order of the operations gives the same."""
    rows, columns = 4, 512  # longer than a wave, and than a lane's registers
    generator = torch.Generator().manual_seed(6)
    x, y = (torch.randint(-9, 10, (rows, columns), generator=generator).float() for _ in range(2))
    if op in ("product", "recurrence"):
        x = x.sign() + (x == 0)
    out = torch.zeros(rows, columns)
    scan_kernel[(1,)](x, y, out, rows, columns, op, num_warps=2)
    assert torch.equal(out.double(), SCANS[op](x.double(), y.double()))


@triton.jit
def order_kernel(x_ptr, sorted_ptr, best_ptr, flipped_ptr, N: tl.constexpr, K: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    tl.store(sorted_ptr + at, tl.sort(x, descending=True))
    tl.store(best_ptr + tl.arange(0, K), tl.topk(x, K))
    tl.store(flipped_ptr + at, tl.flip(x, 0))


@pytest.mark.parametrize("dtype", [torch.float16, torch.int32], ids=str)
def test_order(dtype):
    n, k = 128, 8
    x = torch.randint(-50, 50, (n,), generator=torch.Generator().manual_seed(7)).to(dtype)
    ordered, best, flipped = torch.zeros_like(x), torch.zeros(k, dtype=dtype), torch.zeros_like(x)
    order_kernel[(1,)](x, ordered, best, flipped, n, k)
    assert torch.equal(ordered, x.sort(descending=True)[0])
    assert torch.equal(best, x.sort(descending=True)[0][:k])
    assert torch.equal(flipped, x.flip(0))


@triton.jit
def histogram_kernel(x_ptr, out_ptr, n, N: tl.constexpr, BINS: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at, at < n, other=0)
    tl.store(out_ptr + tl.arange(0, BINS), tl.histogram(x, BINS, mask=at < n))


@pytest.mark.parametrize("bins", [2, 64, 256])
def test_histogram(bins):
    x = torch.randint(0, bins, (1000,), dtype=torch.int32, generator=torch.Generator().manual_seed(8))
    out = torch.zeros(bins, dtype=torch.int32)
    histogram_kernel[(1,)](x, out, 1000, 1024, bins)
    assert out.tolist() == x.bincount(minlength=bins).tolist()


@triton.jit
def search_kernel(x_ptr, out_ptr, values_ptr, N: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * N + tl.arange(0, N))
    high, at_high = tl.max(x, 0, return_indices=True)
    low, at_low = tl.min(x, 0, return_indices=True)
    tl.store(values_ptr + row * 2, high)
    tl.store(values_ptr + row * 2 + 1, low)
    tl.store(out_ptr + row * 2, at_high)
    tl.store(out_ptr + row * 2 + 1, at_low)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.float32, torch.float64, torch.int8, torch.int64], ids=str
)
def test_the_first_of_equal_extremes_is_found(dtype):
    x = torch.randint(-5, 6, (3, 256), generator=torch.Generator().manual_seed(9)).to(dtype)
    x[1], x[2, 200] = 4, 100
    where, values = torch.zeros(3, 2, dtype=torch.int32), torch.zeros(3, 2, dtype=dtype)
    search_kernel[(3,)](x, where, values, 256)
    for row in range(3):
        numbers = x[row].tolist()
        assert values[row].tolist() == [max(numbers), min(numbers)]
        assert where[row].tolist() == [numbers.index(max(numbers)), numbers.index(min(numbers))]


@triton.jit
def gather_kernel(
    x_ptr, index_ptr, out_ptr, across_ptr, scattered_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    at = i * COLUMNS + j
    index = tl.load(index_ptr + at)
    tl.store(out_ptr + at, tl.load(x_ptr + i * COLUMNS + index))
    x = tl.load(x_ptr + at)
    tl.store(across_ptr + at, tl.gather(x, index, 1))
    tl.store(scattered_ptr + i * COLUMNS + index, tl.where(index % 2 == 0, x, -x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64], ids=str)
def test_gather_and_scatter(dtype):
    rows, columns = 8, 64
    generator = torch.Generator().manual_seed(10)
    x = torch.randint(-99, 99, (rows, columns), generator=generator).to(dtype)
    index = torch.stack([torch.randperm(columns, generator=generator) for _ in range(rows)])
    out, across, scattered = (torch.zeros_like(x) for _ in range(3))
    gather_kernel[(1,)](x, index.int(), out, across, scattered, rows, columns)
    assert torch.equal(out, x.gather(1, index)) and torch.equal(across, out)
    signed = torch.where(index % 2 == 0, x, -x)
    assert torch.equal(scattered, torch.zeros_like(x).scatter(1, index, signed))


@triton.jit
def division_kernel(x_ptr, y_ptr, quotient_ptr, rest_ptr, high_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    tl.store(quotient_ptr + at, x // y)
    tl.store(rest_ptr + at, x % y)
    tl.store(high_ptr + at, tl.umulhi(x, y))


EDGES = [0, 1, 2, 3, 7, 10, 63, 255, 2**16 + 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 10**12,
         2**53 + 1, 2**62, 2**63 - 25]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint32, torch.int64, torch.uint64], ids=str)
def test_integer_division(dtype):
    """Quotients round toward zero, as C's do; the remainder has the sign of the dividend."""
    info = torch.iinfo(dtype)
    numbers = [sign * edge for edge in EDGES for sign in (1, -1)] + [info.min, info.max]
    numbers = sorted({value for value in numbers if info.min <= value <= info.max})
    pairs = [(x, y) for x in numbers for y in numbers if y and (x, y) != (info.min, -1)]
    size = 2048
    x, y = (
        torch.tensor(column + (1,) * (size - len(pairs)), dtype=dtype) for column in zip(*pairs, strict=True)
    )
    quotient, rest, high = (torch.zeros(size, dtype=dtype) for _ in range(3))
    division_kernel[(1,)](x, y, quotient, rest, high, size)
    exact = [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in pairs]
    assert quotient.tolist()[: len(pairs)] == exact
    assert rest.tolist()[: len(pairs)] == [a - b * q for (a, b), q in zip(pairs, exact, strict=True)]
    if not dtype.is_signed:
        assert high.tolist()[: len(pairs)] == [a * b >> info.bits for a, b in pairs]


@triton.jit
def double_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    tl.store(out_ptr + at, x / y)
    tl.store(out_ptr + N + at, tl.fma(x, y, x))
    tl.store(out_ptr + 2 * N + at, tl.sqrt(tl.abs(x)))
    tl.store(out_ptr + 3 * N + at, tl.floor(x) - tl.ceil(y))
    tl.store(out_ptr + 4 * N + at, tl.where(x < y, x, y) * 0.1)
    tl.store(out_ptr + 5 * N + at, tl.exp(x / 1e3))
    tl.store(out_ptr + 6 * N + at, tl.log(tl.abs(x)))


def test_double_precision():
    n = 256
    generator = torch.Generator().manual_seed(11)
    x, y = ((torch.randn(n, generator=generator, dtype=torch.float64) * 1000).contiguous() for _ in range(2))
    out = torch.zeros(7, n, dtype=torch.float64)
    double_kernel[(1,)](x, y, out, n)
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    assert out[0].tolist() == [a / b for a, b in pairs]
    fused = [float(Fraction(a) * Fraction(b) + Fraction(a)) for a, b in pairs]
    assert out[1].tolist() == fused
    # Python's own functions are within a unit in the last place; so must these be, and a little more.
    torch.testing.assert_close(out[2], x.abs().sqrt(), rtol=2**-52, atol=0)
    assert out[3].tolist() == [math.floor(a) - math.ceil(b) for a, b in pairs]
    assert out[4].tolist() == [min(a, b) * 0.1 for a, b in pairs]
    torch.testing.assert_close(out[5], torch.exp(x / 1e3), rtol=2**-50, atol=0)
    torch.testing.assert_close(out[6], x.abs().log(), rtol=2**-50, atol=2**-52)
