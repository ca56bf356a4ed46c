"""Exercises of notebook 02: from Python to the bytes that a CU runs."""

from labkit.checks.exercise import Exercise
from labkit.checks.pipeline.layout import wide_loads

EXERCISES: tuple[Exercise, ...] = (wide_loads,)

__all__ = ["EXERCISES", "wide_loads"]
