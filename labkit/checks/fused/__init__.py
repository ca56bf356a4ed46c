"""Exercises of notebook 03: kernels that serve a model in FP8."""

from labkit.checks.exercise import Exercise
from labkit.checks.fused.number import saturate

EXERCISES: tuple[Exercise, ...] = (saturate,)

__all__ = ["EXERCISES", "saturate"]
