"""The FP8 format follows the target, and the reference cast saturates with NaN kept."""

import ml_dtypes
import numpy as np
import pytest
import torch
from triton.backends.compiler import GPUTarget

from labkit.kernels.fp8 import E4M3FN, E4M3FNUZ, fp8_format, saturating_cast_reference
from tests.kernels import expected


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        (GPUTarget("hip", "gfx942", 64), E4M3FNUZ),
        (GPUTarget("hip", "gfx942:sramecc+:xnack-", 64), E4M3FNUZ),
        (GPUTarget("hip", "gfx950", 64), E4M3FN),
        (GPUTarget("cuda", 90, 32), E4M3FN),
        (GPUTarget("cuda", 89, 32), E4M3FN),
    ],
)
def test_format_of_target(target, wanted):
    assert fp8_format(target) is wanted


@pytest.mark.parametrize("target", [GPUTarget("hip", "gfx90a", 64), GPUTarget("cuda", 80, 32)])
def test_a_chip_without_fp8_is_refused(target):
    with pytest.raises(ValueError, match=f"{target.arch} has no FP8 conversion. Leave out `scale`"):
        fp8_format(target)


def test_current_target_decides(mi300x):
    assert fp8_format() is E4M3FNUZ


@pytest.mark.parametrize("format", [E4M3FNUZ, E4M3FN])
def test_largest_value_is_the_formats(format):
    assert format.largest == float(ml_dtypes.finfo(expected.FP8[format.name][0]).max)


@pytest.mark.parametrize("format", [E4M3FNUZ, E4M3FN])
def test_reference_cast(format):
    steps = np.linspace(-500, 500, 4001, dtype=np.float32)
    values = np.concatenate([steps, steps * 2.0**-12, np.array([np.inf, -np.inf, np.nan, -0.0], np.float32)])
    got = expected.to_numpy(saturating_cast_reference(torch.from_numpy(values), format.torch_dtype))
    assert expected.same(got, expected.cast_fp8(values.astype(np.float64), format.name)).all()
