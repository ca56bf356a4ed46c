"""Exercises of notebook 01: from one thread to the whole GPU, one module a part of the machine."""

from labkit.checks.hierarchy.wave import masked_tail
from labkit.checks.task import Task

EXERCISES: tuple[Task, ...] = (masked_tail,)

__all__ = ["EXERCISES", "masked_tail"]
