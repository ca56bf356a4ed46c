"""Exercises of notebook 03: kernels that serve a model in FP8."""

from labkit.checks.fused.number import saturate
from labkit.checks.task import Task

EXERCISES: tuple[Task, ...] = (saturate,)

__all__ = ["EXERCISES", "saturate"]
