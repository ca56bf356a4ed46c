"""skinny_gemm against float64: ragged M, N and K; what it compiles to for each chip; wrong use."""

import numpy as np
import pytest
import torch

import labkit
from labkit.kernels.skinny_gemm import skinny_gemm, skinny_gemm_kernel, skinny_gemm_reference
from tests.kernels import expected

FNUZ = torch.float8_e4m3fnuz
SCALE = torch.tensor([0.0078125])


def make(rows, columns, inner, seed=0, dtype=FNUZ):
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(n, inner, generator=generator).to(dtype) for n in (rows, columns))


def exact(a, weight):
    values = [expected.to_numpy(t).astype(np.float64) for t in (a, weight)]
    return values[0] @ values[1].T * SCALE.item(), np.abs(values[0]) @ np.abs(values[1]).T * SCALE.item()


@pytest.mark.parametrize(
    ("rows", "columns", "inner"), [(1, 16, 256), (5, 37, 300), (16, 64, 512), (17, 33, 1040), (32, 16, 64)]
)
def test_against_float64(mi300x, rows, columns, inner):
    a, weight = make(rows, columns, inner, seed=inner)
    got = skinny_gemm(a, weight, SCALE)
    wanted, magnitude = exact(a, weight)
    assert got.dtype == torch.float16 and got.shape == (rows, columns)
    # fp32 sums of `inner` products, in any order, then one rounding to fp16.
    bound = inner * 2.0**-24 * magnitude + 2.0**-11 * np.abs(wanted) + 2.0**-25
    assert (np.abs(got.double().numpy() - wanted) <= bound).all()


def test_reference_agrees_with_float64():
    a, weight = make(3, 20, 300)
    wanted, magnitude = exact(a, weight)
    got = skinny_gemm_reference(a, weight, SCALE).double().numpy()
    assert (np.abs(got - wanted) <= 300 * 2.0**-24 * magnitude + 2.0**-11 * np.abs(wanted) + 2.0**-25).all()


@pytest.mark.parametrize(
    ("target", "dtype", "instruction"),
    [
        ("gfx942", FNUZ, "v_mfma_f32_16x16x32_fp8_fp8"),
        ("gfx950", torch.float8_e4m3fn, "v_mfma_f32_16x16x128_f8f6f4"),
    ],
)
def test_the_chips_matrix_instruction_is_used(target, dtype, instruction):
    a, weight = make(16, 64, 512, dtype=dtype)
    out = torch.empty(16, 64, dtype=torch.float16)
    sizes = {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 256, "num_warps": 1}
    compiled = labkit.compile(
        skinny_gemm_kernel, a, 512, weight, 512, SCALE, out, 64, 16, 64, 512, target=target, **sizes
    )
    mnemonics = compiled.listing()["mnemonic"]
    assert (mnemonics == instruction).sum() > 0
    # Each lane fetches its share of the weight 16 bytes at a time.
    loads = mnemonics[mnemonics.str.contains("_load_dword") & ~mnemonics.str.startswith("s_")]
    assert set(loads) >= {"global_load_dwordx4"} or set(loads) >= {"buffer_load_dwordx4"}
    assert compiled.registers.scratch_bytes == 0


def test_nothing_to_do(mi300x):
    a, weight = make(0, 16, 64)
    assert skinny_gemm(a, weight, SCALE).shape == (0, 16)


def test_wrong_use_names_the_argument(mi300x):
    a, weight = make(4, 16, 64)
    with pytest.raises(ValueError, match=r"a is \(4, 64\) and weight \(16, 63\)"):
        skinny_gemm(a, weight[:, :63], SCALE)
    with pytest.raises(ValueError, match="a has 33 rows"):
        skinny_gemm(make(33, 16, 64)[0], weight, SCALE)
    with pytest.raises(TypeError, match="weight has dtype torch.float8_e4m3fn;"):
        skinny_gemm(a, weight.float().to(torch.float8_e4m3fn), SCALE)
    with pytest.raises(ValueError, match="a is not contiguous along K"):
        skinny_gemm(a.view(torch.uint8).T.contiguous().T.view(FNUZ), weight, SCALE)
    with pytest.raises(ValueError, match="weight is on meta"):
        skinny_gemm(a, weight.to("meta"), SCALE)
    with pytest.raises(ValueError, match="scale has 2 elements"):
        skinny_gemm(a, weight, SCALE.repeat(2))
