"""residual_rms_norm against float64: widths of the model and ugly ones, every format, special values."""

import numpy as np
import pytest
import torch

from labkit.kernels.residual_rms_norm import residual_rms_norm, residual_rms_norm_reference
from tests.kernels import expected

# The sum over a row and the reciprocal root each lose a few bits of fp32's 24.
FP32 = 2.0**-20
DTYPES = [torch.float16, torch.bfloat16, torch.float32]
EPS = 1e-5


def make(rows, columns, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x, r = (torch.randn(rows, columns, generator=generator).to(dtype) for _ in range(2))
    weight = (1 + 0.1 * torch.randn(columns, generator=generator)).to(dtype)
    return x, r, weight


def run_and_compare(x, r, weight, scale):
    scale_value = torch.tensor([scale], dtype=torch.float32)
    xs, rs, ws = (expected.to_numpy(t.clone()) for t in (x, r, weight))
    total = expected.residual_sum(xs, rs, fp16_saturates=True)
    got = residual_rms_norm(x, r, weight, EPS, scale_value)
    assert got.dtype == torch.float8_e4m3fnuz
    assert expected.same(expected.to_numpy(r), total).all()
    exact = expected.rms_norm(total, ws, EPS) / np.float64(np.float32(scale))
    expected.assert_fp8(expected.to_numpy(got), exact, "e4m3fnuz", FP32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 7, 33])
def test_model_width(mi300x, rows, dtype):
    run_and_compare(*make(rows, 16384, dtype, seed=rows), scale=0.013)


@pytest.mark.parametrize("columns", [1, 63, 1000, 4095, 5003])
def test_tails(mi300x, columns):
    run_and_compare(*make(5, columns, torch.float16, seed=columns), scale=0.013)


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values(mi300x, dtype):
    x, r, weight = make(9, 520, dtype)
    r[0, 3] = float("nan")
    r[1, 5] = float("inf")
    r[2, 7] = -float("inf")
    x[3, 9] = 1e4
    x[4], r[4] = -0.0, -0.0
    x[5], r[5] = 0.0, 0.0
    # fp16's smallest steps are subnormal; the others take them as ordinary small numbers.
    x[6], r[6] = torch.arange(520) * 2.0**-24, torch.arange(520) * 2.0**-25
    x[7, 0], r[7, 0] = 60000.0, 60000.0
    x[8] = r[8] * 1e-3
    run_and_compare(x, r, weight, scale=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_without_scale_the_result_has_the_inputs_format(mi300x, dtype):
    x, r, weight = make(3, 1000, dtype)
    total = expected.residual_sum(expected.to_numpy(x), expected.to_numpy(r), fp16_saturates=False)
    got = residual_rms_norm(x, r, weight, EPS)
    assert got.dtype == dtype
    assert expected.same(expected.to_numpy(r), total).all()
    exact = expected.rms_norm(total, expected.to_numpy(weight), EPS)
    expected.assert_rounded(expected.to_numpy(got), exact, FP32)


def test_rows_may_lie_apart(mi300x):
    x, r, weight = make(4, 600, torch.float16)
    wide_x, wide_r = torch.zeros(4, 800, dtype=torch.float16), torch.full((4, 800), 9.0, dtype=torch.float16)
    wide_x[:, :600], wide_r[:, :600] = x, r
    run_and_compare(wide_x[:, :600], wide_r[:, :600], weight, scale=0.02)
    # Nothing beyond the row was touched.
    assert (wide_r[:, 600:] == 9.0).all()


def test_no_rows(mi300x):
    x, r, weight = make(0, 64, torch.float16)
    assert residual_rms_norm(x, r, weight).shape == (0, 64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reference_agrees_with_float64(dtype):
    x, r, weight = make(3, 777, dtype)
    x[0, 0], r[0, 0] = 60000.0, 60000.0
    got, total = residual_rms_norm_reference(x, r, weight, EPS, torch.tensor([0.02]), fp16_saturates=True)
    sums = expected.residual_sum(expected.to_numpy(x), expected.to_numpy(r), fp16_saturates=True)
    assert expected.same(expected.to_numpy(total), sums).all()
    exact = expected.rms_norm(sums, expected.to_numpy(weight), EPS) / np.float64(np.float32(0.02))
    expected.assert_fp8(expected.to_numpy(got), exact, "e4m3fnuz", FP32)


def test_wrong_use_names_the_argument():
    x, r, weight = make(4, 64, torch.float16)
    scale = torch.tensor([1.0])
    with pytest.raises(ValueError, match="input has 1 dimensions"):
        residual_rms_norm(x[0], r, weight)
    with pytest.raises(TypeError, match="input has dtype torch.int32"):
        residual_rms_norm(x.int(), r, weight)
    with pytest.raises(ValueError, match="residual is .*they must be alike"):
        residual_rms_norm(x, r[:, :63], weight)
    with pytest.raises(ValueError, match="residual is .*they must be alike"):
        residual_rms_norm(x, r.float(), weight)
    with pytest.raises(ValueError, match=r"weight has shape \(63,\)"):
        residual_rms_norm(x, r, weight[:63])
    with pytest.raises(ValueError, match="input is not contiguous"):
        residual_rms_norm(x.repeat(1, 2)[:, ::2], r, weight)
    with pytest.raises(ValueError, match="residual is not contiguous"):
        residual_rms_norm(x, r.T.contiguous().T, weight)
    with pytest.raises(ValueError, match="weight is on meta"):
        residual_rms_norm(x, r, weight.to("meta"))
    with pytest.raises(ValueError, match="at most 65536"):
        residual_rms_norm(*make(1, 65537, torch.float16))
    with pytest.raises(TypeError, match="scale has dtype torch.float64"):
        residual_rms_norm(x, r, weight, scale=scale.double())
    with pytest.raises(ValueError, match="scale has 4 elements"):
        residual_rms_norm(x, r, weight, scale=scale.repeat(4))
    with pytest.raises(ValueError, match="scale is on meta"):
        residual_rms_norm(x, r, weight, scale=scale.to("meta"))
