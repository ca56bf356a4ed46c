"""swiglu against float64: the model's width and ugly ones, every format, special values."""

import itertools

import numpy as np
import pytest
import torch

from labkit.kernels.swiglu import swiglu, swiglu_reference
from tests.kernels import expected

DTYPES = [torch.float16, torch.bfloat16, torch.float32]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 1e4, -1e4, 2.0**-24, -(2.0**-20), np.inf, -np.inf, np.nan, 15.5]


def make(rows, columns, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (3 * torch.randn(rows, 2 * columns, generator=generator)).to(dtype)


def tolerance(x):
    """Rounding gate * log2(e) to fp32 moves 2^that by |gate| units of 2^-24; the rest loses a few bits."""
    gate = np.abs(np.split(expected.to_numpy(x).astype(np.float64), 2, axis=-1)[0])
    return (8 + 2 * np.nan_to_num(gate, posinf=0.0)) * 2.0**-24


def run_and_compare(x, scale):
    got = swiglu(x, torch.tensor([scale], dtype=torch.float32))
    assert got.dtype == torch.float8_e4m3fnuz
    exact = expected.swiglu(expected.to_numpy(x)) / np.float64(np.float32(scale))
    expected.assert_fp8(expected.to_numpy(got), exact, "e4m3fnuz", tolerance(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 7, 33])
def test_model_width(mi300x, rows, dtype):
    run_and_compare(make(rows, 6656, dtype, seed=rows), scale=0.07)


@pytest.mark.parametrize("columns", [1, 63, 511, 513, 1031])
def test_tails(mi300x, columns):
    run_and_compare(make(5, columns, torch.float16, seed=columns), scale=0.07)


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values(mi300x, dtype):
    pairs = torch.tensor(list(itertools.product(SPECIAL, SPECIAL)), dtype=torch.float32)
    run_and_compare(pairs.T.reshape(1, -1).to(dtype).contiguous(), scale=0.5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_small_results_are_fp8_subnormals(mi300x, dtype):
    x = torch.stack([torch.linspace(-1, 1, 256), torch.full((256,), 2.0**-8)]).reshape(1, -1).to(dtype)
    run_and_compare(x, scale=1.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_without_scale_the_result_has_the_inputs_format(mi300x, dtype):
    x = make(3, 700, dtype)
    got = swiglu(x)
    assert got.dtype == dtype
    expected.assert_rounded(expected.to_numpy(got), expected.swiglu(expected.to_numpy(x)), tolerance(x))


def test_rows_may_lie_apart(mi300x):
    wide = torch.zeros(4, 1500, dtype=torch.float16)
    wide[:, :1200] = make(4, 600, torch.float16)
    run_and_compare(wide[:, :1200], scale=0.05)


def test_nothing_to_do(mi300x):
    assert swiglu(torch.empty(0, 64)).shape == (0, 32)
    assert swiglu(torch.empty(3, 0)).shape == (3, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reference_agrees_with_float64(dtype):
    x = make(3, 777, dtype)
    got = swiglu_reference(x, torch.tensor([0.05]))
    exact = expected.swiglu(expected.to_numpy(x)) / np.float64(np.float32(0.05))
    expected.assert_fp8(expected.to_numpy(got), exact, "e4m3fnuz", tolerance(x))


def test_wrong_use_names_the_argument():
    x = make(4, 64, torch.float16)
    with pytest.raises(ValueError, match="input has 1 dimensions"):
        swiglu(x[0])
    with pytest.raises(ValueError, match="input has 127 columns"):
        swiglu(x[:, :127])
    with pytest.raises(TypeError, match="input has dtype torch.int64"):
        swiglu(x.long())
    with pytest.raises(ValueError, match="input is not contiguous"):
        swiglu(x[:, ::2])
    with pytest.raises(ValueError, match="scale has 2 elements"):
        swiglu(x, torch.ones(2))
