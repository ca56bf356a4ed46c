"""Exercises of notebook 01: from one thread to the whole GPU, one module a part of the machine."""

from labkit.checks.exercise import Exercise
from labkit.checks.hierarchy.wave import masked_tail

EXERCISES: tuple[Exercise, ...] = (masked_tail,)

__all__ = ["EXERCISES", "masked_tail"]
