"""Liger-Kernel as it comes from PyPI, forward and backward, against PyTorch; with no finding of a fault.

Inputs are rounded to the type first, the reference is computed in float64 from them, and the tolerance is a
few roundings of the type.
"""

import pytest
import torch
from torch.nn import functional as F

import labkit

pytest.importorskip("liger_kernel", reason="tools/setup.sh installs it")

# Roundings to the type that a result may be off by, relative to its largest value.
TOLERANCE = {torch.float32: 2e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}


def rms_norm(x, weight):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


def layer_norm(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias, 1e-6)


def group_norm(x, weight, bias):
    return F.group_norm(x, 4, weight, bias, 1e-6)


def rope(q, k):
    """Rotate halves by the angle of their position, as Llama does."""
    cos, sin = angles(q.shape[2], q.shape[3], q.dtype)

    def turn(x):
        half = x.shape[-1] // 2
        return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin

    return turn(q), turn(k)


def angles(length, width, dtype):
    frequency = 10000.0 ** -(torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency
    both = torch.cat((angle, angle), -1)
    return both.cos()[None].to(dtype), both.sin()[None].to(dtype)


def liger(name):
    """(Liger's function, the reference, the shapes of the inputs) of one operation."""
    if name == "rms_norm":
        from liger_kernel.ops.rms_norm import LigerRMSNormFunction as op

        return lambda x, w: op.apply(x, w, 1e-6), rms_norm, [(5, 123), (123,)]
    if name == "fused_add_rms_norm":
        from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction as op

        def reference(x, residual, weight):
            return rms_norm(x + residual, weight), x + residual

        return lambda x, r, w: op.apply(x, r, w, 1e-6), reference, [(5, 123), (5, 123), (123,)]
    if name == "layer_norm":
        from liger_kernel.ops.layer_norm import LigerLayerNormFunction as op

        return lambda x, w, b: op.apply(x, w, b, 1e-6), layer_norm, [(5, 123), (123,), (123,)]
    if name == "group_norm":
        from liger_kernel.ops.group_norm import LigerGroupNormFunction as op

        return lambda x, w, b: op.apply(x, w, b, 12, 4, 1e-6), group_norm, [(3, 12, 40), (12,), (12,)]
    if name == "swiglu":
        from liger_kernel.ops.swiglu import LigerSiLUMulFunction as op

        return op.apply, lambda a, b: F.silu(a) * b, [(5, 123), (5, 123)]
    if name == "geglu":
        from liger_kernel.ops.geglu import LigerGELUMulFunction as op

        return op.apply, lambda a, b: F.gelu(a, approximate="tanh") * b, [(5, 123), (5, 123)]
    if name == "softmax":
        from liger_kernel.ops.softmax import LigerSoftmaxFunction as op

        return op.apply, lambda x: x.softmax(-1), [(5, 1023)]
    from liger_kernel.ops.rope import LigerRopeFunction as op

    def apply(q, k):
        return op.apply(q, k, *angles(q.shape[2], q.shape[3], q.dtype))

    return apply, rope, [(1, 4, 9, 64), (1, 2, 9, 64)]


OPERATIONS = (
    "rms_norm",
    "fused_add_rms_norm",
    "layer_norm",
    "group_norm",
    "swiglu",
    "geglu",
    "softmax",
    "rope",
)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_forward_and_backward(name, dtype):
    labkit.start("MI300X", quiet=True)
    operation, reference, shapes = liger(name)
    torch.manual_seed(0)
    inputs = [torch.randn(shape).to(dtype) for shape in shapes]
    mine = [x.clone().requires_grad_() for x in inputs]
    exact = [x.double().requires_grad_() for x in inputs]
    with labkit.record() as launches:
        got = as_tuple(operation(*mine))
        expected = as_tuple(reference(*exact))
        for value, right in zip(got, expected, strict=True):
            compare(value.detach(), right.detach(), dtype)
        # A gradient of its own for each output, rounded to the type like an input.
        seeds = [torch.randn(y.shape).to(dtype) for y in got]
        # Liger's backward pass writes into the gradients that it is given.
        torch.autograd.backward(got, [seed.clone() for seed in seeds])
    torch.autograd.backward(expected, [seed.double() for seed in seeds])
    for x, right in zip(mine, exact, strict=True):
        compare(x.grad, right.grad, dtype)
    assert len(launches) >= 2 and not any(launch.faults for launch in launches)


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def compare(value, right, dtype):
    scale = right.abs().max().item()
    torch.testing.assert_close(value.double(), right, rtol=0, atol=TOLERANCE[dtype] * max(scale, 1))
