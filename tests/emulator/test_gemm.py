"""Matrix multiplications in many tilings, types and layouts, against float64, with no finding of a fault.

The bound is that of any order of summation in float32 (Higham, Accuracy and Stability of Numerical
Algorithms, section 3.1): K roundings of 2**-24, each relative to the sum of |a||b|. Products of two FP8,
float16 or bfloat16 numbers are exact in float32. A result of another type is rounded once more.
"""

from dataclasses import astuple, dataclass

import pytest
import torch
import triton.language as tl

import labkit
from tests.emulator.gemm_kernels import gemm_kernel, grouped_gemm_kernel

pytestmark = pytest.mark.usefixtures("no_finding")

E4M3, E5M2 = torch.float8_e4m3fnuz, torch.float8_e5m2fnuz
F16, BF16, F32, INT8 = torch.float16, torch.bfloat16, torch.float32, torch.int8


@dataclass(frozen=True)
class Tiling:
    """How the product is cut up, and what the compiler is told."""

    m: int
    n: int
    k: int
    warps: int
    instruction: int = 16  # matrix_instr_nonkdim: size of the MFMA's square
    kpack: int = 1
    stages: int = 2
    group: int = 8

    def __str__(self):
        return "-".join(map(str, astuple(self)))


def matrix(rows: int, columns: int, dtype: torch.dtype, seed: int, transposed: bool) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    shape = (columns, rows) if transposed else (rows, columns)
    if dtype == INT8:
        x = torch.randint(-128, 128, shape, dtype=dtype, generator=generator)
    else:
        x = torch.randn(shape, generator=generator).to(dtype)
    return x.T if transposed else x


def multiply(a, b, tiling: Tiling, out: torch.dtype, split_k: int = 1, precision: str = "ieee"):
    """A @ B on the emulated chip."""
    (m, k), n = a.shape, b.shape[1]
    c = torch.zeros(m, n, dtype=out)
    gemm_kernel[(-(-m // tiling.m) * -(-n // tiling.n), split_k)](
        a, b, c, m, n, k, *a.stride(), *b.stride(), c.stride(0),
        BLOCK_M=tiling.m, BLOCK_N=tiling.n, BLOCK_K=tiling.k, GROUP_M=tiling.group,
        SPLIT_K=split_k, EVEN_K=k % (tiling.k * split_k) == 0, PRECISION=precision,
        SUM=tl.int32 if a.dtype == INT8 else tl.float32,
        num_warps=tiling.warps, num_stages=tiling.stages,
        matrix_instr_nonkdim=tiling.instruction, kpack=tiling.kpack,
    )  # fmt: skip
    return c


def assert_product(c, a, b, additions: int = 1, input_rounding: float = 0.0) -> None:
    """Hold C to float64. additions: how many roundings to C's type; input_rounding: what A and B lose."""
    exact_a, exact_b = a.to(torch.float32).double(), b.to(torch.float32).double()
    exact, sizes = exact_a @ exact_b, exact_a.abs() @ exact_b.abs()
    if c.dtype == torch.int32:
        assert torch.equal(c.double(), exact)  # below 2**31, so nothing wraps around
        return
    k = a.shape[1]
    bound = ((k + additions) * 2.0**-24 + 2 * input_rounding) * sizes
    if c.dtype != F32:
        # Each addition to C rounds a partial sum, which is at most the sum of |a||b|.
        bound += additions * torch.finfo(c.dtype).eps / 2 * (exact.abs() if additions == 1 else sizes)
        bound += torch.finfo(c.dtype).smallest_normal
    assert ((c.double() - exact).abs() <= bound).all()


TILINGS = [
    Tiling(16, 16, 64, warps=1, instruction=16, kpack=2),
    Tiling(16, 64, 64, warps=4, instruction=16, kpack=1, stages=3),
    Tiling(32, 32, 32, warps=2, instruction=32, kpack=1, stages=1),
    Tiling(64, 64, 64, warps=4, instruction=32, kpack=2, group=1),
    Tiling(128, 64, 32, warps=8, instruction=16, kpack=1),
]


@pytest.mark.parametrize("tiling", TILINGS, ids=str)
@pytest.mark.parametrize("dtype", [E4M3, E5M2, F16, BF16, F32, INT8], ids=str)
def test_tilings(dtype, tiling):
    # Neither rows nor columns fill their tiles; each tiling sees its operands laid out another way.
    m, n, k = tiling.m + 7, tiling.n // 2 + 3, 2 * tiling.k + 16
    turn = TILINGS.index(tiling)
    a = matrix(m, k, dtype, seed=1, transposed=turn % 2 == 1)
    b = matrix(k, n, dtype, seed=2, transposed=turn % 3 != 0)
    out = torch.int32 if dtype == INT8 else (F32, F16, BF16)[turn % 3]
    assert_product(multiply(a, b, tiling, out), a, b)


@pytest.mark.parametrize("instruction", [16, 32])
def test_xf32(instruction):
    """input_precision="tf32" makes xf32 instructions, which round their inputs to 11 significant bits."""
    a, b = matrix(70, 96, F32, 1, False), matrix(96, 40, F32, 2, False)
    c = multiply(a, b, Tiling(64, 64, 32, warps=4, instruction=instruction), F32, precision="tf32")
    assert "_xf32" in labkit.last_launch().compiled.stages["amdgcn"]
    assert_product(c, a, b, input_rounding=2.0**-11)


@pytest.mark.parametrize("k", [1, 31, 33])
def test_a_depth_that_does_not_fill_a_tile(k):
    a, b = matrix(17, k, E4M3, 1, False), matrix(k, 19, E4M3, 2, False)
    assert_product(multiply(a, b, Tiling(16, 32, 32, warps=2), F32), a, b)


def test_large_tile_in_turns():
    """The eight waves go in two groups that take turns, with s_setprio and barriers of their own."""
    a, b = matrix(256, 192, F16, 1, False), matrix(192, 256, F16, 2, True)
    c = multiply(a, b, Tiling(256, 256, 64, warps=8, instruction=16), F16)
    assert "s_setprio 1" in labkit.last_launch().compiled.stages["amdgcn"]
    assert_product(c, a, b)


def test_more_registers_than_there_are_vector_registers():
    """Triton 3.7 and later then load some of them from LDS straight into accumulation registers."""
    a, b = matrix(128, 192, F32, 1, False), matrix(192, 128, F32, 2, False)
    c = multiply(a, b, Tiling(128, 128, 128, warps=4, instruction=32, stages=1), F32)
    assert labkit.last_launch().compiled.registers.agprs > 0
    assert_product(c, a, b)


@pytest.mark.parametrize(("dtype", "out"), [(E4M3, F32), (F16, F16), (BF16, BF16), (F32, F32)], ids=str)
def test_split_k(dtype, out):
    """Three programs add up each tile with atomics, in float32 or two 16-bit floats at a time."""
    a, b = matrix(37, 200, dtype, 1, False), matrix(200, 53, dtype, 2, False)
    c = multiply(a, b, Tiling(32, 32, 32, warps=2), out, split_k=3)
    assert "_atomic_" in labkit.last_launch().compiled.stages["amdgcn"]
    assert_product(c, a, b, additions=3)


def test_grouped_by_arrays_of_pointers():
    sizes = [(33, 47, 20), (16, 16, 64), (70, 5, 100)]
    pairs = [(matrix(m, k, F16, 1, False), matrix(k, n, F16, 2, False)) for m, n, k in sizes]
    results = [torch.zeros(m, n, dtype=F16) for m, n, _ in sizes]
    columns = zip(*[(a, b, c) for (a, b), c in zip(pairs, results, strict=True)], strict=True)
    addresses = [torch.tensor([x.data_ptr() for x in column]) for column in columns]
    grouped_gemm_kernel[(4,)](
        *addresses, torch.tensor(sizes, dtype=torch.int32), len(sizes),
        PROGRAMS=4, BLOCK_M=32, BLOCK_N=16, BLOCK_K=32, num_warps=2,
    )  # fmt: skip
    for (a, b), c in zip(pairs, results, strict=True):
        assert_product(c, a, b)
