"""Exercises that judge a kernel by its result and by the machine code it became, one module a notebook."""

from labkit.checks import fused, hierarchy, pipeline
from labkit.checks.catalogue import EXERCISES, progress_table
from labkit.checks.exercise import Exercise
from labkit.checks.feedback import Feedback

__all__ = ["EXERCISES", "Exercise", "Feedback", "fused", "hierarchy", "pipeline", "progress_table"]
