"""Exercises that judge a kernel by its result and by the machine code it became, one module a notebook."""

from labkit.checks import fused, hierarchy, pipeline
from labkit.checks.catalogue import EXERCISES, progress_table
from labkit.checks.exercise import Exercise
from labkit.checks.feedback import Feedback
from labkit.checks.question import Question, Verdict
from labkit.checks.task import Task

__all__ = [
    "EXERCISES",
    "Exercise",
    "Feedback",
    "Question",
    "Task",
    "Verdict",
    "fused",
    "hierarchy",
    "pipeline",
    "progress_table",
]
