"""An exercise whose answer is not a kernel: a value, launch settings, an order as a Python function."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from labkit.checks import task
from labkit.checks.deadline import cpu_deadline
from labkit.checks.explain import Lines, explain_error
from labkit.checks.feedback import GOAL_MISSED, SOLVED, Feedback, GoalRow, Step
from labkit.checks.task import Task, cause
from labkit.checks.trial import emulated_chip


@dataclass(frozen=True)
class Verdict:
    """What an answer gave. right: whether it is one at all; then the goals decide.

    lines: (label, text) pairs for the panel: tried, expected, yours, ... evidence: what the known mistakes
    look at.
    """

    right: bool
    lines: Lines = ()
    goals: tuple[GoalRow, ...] = ()
    evidence: Any = None


@dataclass(frozen=True, kw_only=True)
class Question(Task):
    """An exercise whose answer is a value or a Python function.

    takes: the form of an answer in words, as "a list of lanes, such as [0, 5]". accepts: whether it has that
    form. judge: tries it, with a random generator. Inside, launches run on the emulated chip, and what the
    answer raises becomes feedback. The mistakes look at the verdict's evidence.
    """

    takes: str
    accepts: Callable[[Any], bool]
    judge: Callable[[Any, np.random.Generator], Verdict]

    def _judge(self, answer: Any) -> Feedback:
        function = answer if isinstance(answer, FunctionType) else None
        head = (("task", self.asked),)
        if not self.accepts(answer):
            came = f"{_shortened(answer)}; the answer is {self.takes}"
            return self._failed(Step.THERE, (*head, ("what came", came), self._back(function)))
        with emulated_chip(), cpu_deadline(task.SECONDS) as deadline:
            try:
                verdict = self.judge(answer, np.random.default_rng())
            except Exception as error:  # what the learner's function raises is an answer to explain
                came = (("what came", task.too_late(deadline)),) if deadline.expired else explain_error(error)
                lines = (*head, *came, *_line_of(error, function), self._back(function))
                return self._failed(Step.RUNS, lines)
        if not verdict.right:
            lines = (*head, *verdict.lines, *cause(self.mistakes, verdict.evidence), self._back(function))
            return self._failed(Step.RIGHT, lines)
        if all(goal.reached for goal in verdict.goals):
            return Feedback(self.title, SOLVED, lines=verdict.lines, goals=verdict.goals)
        told = cause(self.goal_mistakes, verdict.evidence)
        lines = (*head, *verdict.lines, *told, self._back(function))
        return Feedback(self.title, GOAL_MISSED, Step.GOAL, lines, verdict.goals)


def _shortened(answer: Any) -> str:
    text = " ".join(repr(answer).split())
    return f"a {type(answer).__name__}, {text if len(text) <= 60 else text[:57] + '...'}"


def _line_of(error: Exception, function: FunctionType | None) -> Lines:
    """The last line of the learner's own function that the error passed through."""
    if function is None:
        return ()
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == function.__code__.co_filename]
    return (("your line", f"line {own[-1].lineno}: {own[-1].line}"),) if own else ()
