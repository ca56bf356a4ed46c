"""Liger-Kernel's cross entropy, alone and fused with the last linear layer, against PyTorch in float64.

Liger starts 16 warps where torch is built for ROCm and 32 elsewhere. 32 waves of 64 lanes are more than a
workgroup of MI300X may have, so the tests let torch say that it is built for ROCm, as beside a real one.
"""

import pytest
import torch
import triton
from torch.nn import functional as F

import labkit

pytest.importorskip("liger_kernel", reason="tools/setup.sh installs it")

from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
from liger_kernel.ops.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyFunction

# Roundings to the type, relative to the largest value: a few, and some more where gradients are added up.
TOLERANCE = {torch.float32: 2e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}
ROWS, WIDTH, CLASSES, IGNORED = 7, 64, 1003, -100


@pytest.fixture
def rocm(monkeypatch):
    labkit.start("MI300X", quiet=True)
    monkeypatch.setattr(torch.version, "hip", "6.4")


def targets():
    target = torch.randint(0, CLASSES, (ROWS,), generator=torch.Generator().manual_seed(1))
    target[2] = IGNORED
    return target


def leaf(*shape, dtype, seed):
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
    return x.requires_grad_(), x.detach().double().requires_grad_()


def close(got, right, dtype):
    scale = max(right.abs().max().item(), 1e-3)
    torch.testing.assert_close(got.double(), right, rtol=0, atol=TOLERANCE[dtype] * scale)


def test_32_warps_do_not_fit_in_a_workgroup():
    labkit.start("MI300X", quiet=True)
    x, _ = leaf(ROWS, CLASSES, dtype=torch.float32, seed=2)
    with pytest.raises(triton.runtime.errors.OutOfResources, match="threads, Required: 2048.*limit: 1024"):
        LigerCrossEntropyFunction.apply(x, targets(), None)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_cross_entropy(dtype, reduction, rocm):
    x, exact = leaf(ROWS, CLASSES, dtype=dtype, seed=2)
    # Liger writes the gradient over its input: give it a copy, as a layer's output would be.
    with labkit.record() as launches:
        loss, *_ = LigerCrossEntropyFunction.apply(x * 1, targets(), None, IGNORED, 0.0, 0.0, reduction)
        (loss * 3).backward()
    right = F.cross_entropy(exact, targets(), ignore_index=IGNORED, reduction=reduction)
    (right * 3).backward()
    close(loss.detach(), right.detach(), dtype)
    close(x.grad, exact.grad, dtype)
    assert len(launches) == 2 and not any(launch.faults for launch in launches)


def test_options_of_cross_entropy(rocm):
    """Weights of classes, smoothed labels, capped scores and a penalty on the logarithm of the sum."""
    x, exact = leaf(ROWS, CLASSES, dtype=torch.float32, seed=3)
    weight = torch.rand(CLASSES, generator=torch.Generator().manual_seed(4)) + 0.5
    smoothing, cap, penalty = 0.1, 5.0, 0.01
    loss, z_loss, accuracy, predicted = LigerCrossEntropyFunction.apply(
        x * 1, targets(), weight, IGNORED, penalty, smoothing, "mean", cap, True, True, True
    )
    loss.backward()
    capped, kept = cap * torch.tanh(exact / cap), targets() != IGNORED
    z_right = penalty * (capped.logsumexp(-1)[kept] ** 2).mean()
    right = z_right + F.cross_entropy(
        capped, targets(), weight.double(), ignore_index=IGNORED, label_smoothing=smoothing
    )
    right.backward()
    close(loss.detach(), right.detach(), torch.float32)
    close(z_loss.detach(), z_right.detach(), torch.float32)
    close(x.grad, exact.grad, torch.float32)
    assert predicted[kept].tolist() == exact.argmax(-1)[kept].tolist()
    assert accuracy.item() == pytest.approx((exact.argmax(-1) == targets())[kept].double().mean().item())


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_fused_linear_cross_entropy(dtype, rocm):
    x, exact_x = leaf(ROWS, WIDTH, dtype=dtype, seed=5)
    weight, exact_weight = leaf(CLASSES, WIDTH, dtype=dtype, seed=6)
    bias, exact_bias = leaf(CLASSES, dtype=dtype, seed=7)
    with labkit.record() as launches:
        loss, *_ = LigerFusedLinearCrossEntropyFunction.apply(x, weight, targets(), bias)
        (loss * 2).backward()
    right = F.cross_entropy(exact_x @ exact_weight.T + exact_bias, targets(), ignore_index=IGNORED)
    (right * 2).backward()
    close(loss.detach(), right.detach(), dtype)
    for got, exact in ((x, exact_x), (weight, exact_weight), (bias, exact_bias)):
        close(got.grad, exact.grad, dtype)
    assert launches and not any(launch.faults for launch in launches)
