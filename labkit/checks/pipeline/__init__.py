"""Exercises of notebook 02: from Python to the bytes that a CU runs."""

from labkit.checks.pipeline.layout import wide_loads
from labkit.checks.task import Task

EXERCISES: tuple[Task, ...] = (wide_loads,)

__all__ = ["EXERCISES", "wide_loads"]
