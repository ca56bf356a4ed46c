"""Answers to the exercises of labkit.checks.fused.number."""

from labkit.checks import fused
from tests.mutants.kernels import saturate as fp8

RIGHT = [
    (fused.saturate, fp8.right),
    (fused.saturate, fp8.right_by_where),
    (fused.saturate, fp8.right_by_the_cast_alone),
]
# Not right: a fault or a wrong result.
WRONG = [
    (fused.saturate, fp8.nan_lost, "the clamp swallowed NaN"),
    (fused.saturate, fp8.multiplied, "multiplied by scale"),
    (fused.saturate, fp8.clamped_first, "clamped before the division"),
    (fused.saturate, fp8.limit_of_the_other_chip, "240 is the limit of MI300X"),
    (fused.saturate, fp8.sign_by_division, "became NaN"),
    (fused.saturate, fp8.no_mask_on_the_store, "pass mask=offsets < n to the load"),
]
# Right, and the goal is missed.
MISSED = []
