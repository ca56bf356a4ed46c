"""What every exercise has: a task, hints, known mistakes, and one panel as the answer to a check."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labkit.checks import progress
from labkit.checks.deadline import Deadline
from labkit.checks.explain import Lines, cell_of
from labkit.checks.feedback import NOT_SOLVED, TRY_AGAIN, Feedback, Step
from labkit.errors import LabkitError

# Of processor time; the rest of five seconds is for making the panel.
SECONDS = 4.0


class NotSolved(LabkitError):
    """Raised by a check only where nbgrader grades, which goes by errors."""


@dataclass(frozen=True)
class Mistake:
    """A known mistake: its cause in a sentence, and how it shows in what an answer gave."""

    cause: str
    shows: Callable[[Any], bool]


@dataclass(frozen=True, kw_only=True)
class Task:
    """One exercise of a notebook, whatever the form of its answer.

    notebook: its file's name without ending. title: as in the heading "Exercise: ...". asked: the task in a
    sentence. mistakes: in the order in which they are looked for; those for a fault, an error or a wrong
    result, and apart from them those for a goal that was missed.
    """

    notebook: str
    title: str
    asked: str
    hints: tuple[str, str, str]
    mistakes: tuple[Mistake, ...] = ()
    goal_mistakes: tuple[Mistake, ...] = ()

    def check(self, answer: Any) -> Feedback:
        """Judge `answer`, or None where it isn't written yet, on an emulated MI300X whatever chip is here.

        Raises nothing, but for NotSolved under nbgrader's autograder.
        """
        feedback = self._feedback(answer)
        if os.environ.get("NBGRADER_EXECUTION") and not feedback.solved:
            raise NotSolved(repr(feedback))
        return feedback

    def _feedback(self, answer: Any) -> Feedback:
        if answer is None:
            return Feedback(self.title, NOT_SOLVED, lines=(("task", self.asked), self._back()))
        try:
            feedback = self._judge(answer)
        except Exception as error:  # a check that breaks must not stop the notebook
            feedback = self._failed(None, (("the check failed", f"{type(error).__name__}: {error}"),))
        entry, trouble = progress.note(self.notebook, self.title, feedback.solved)
        lines = feedback.lines + ((("progress", trouble),) if trouble else ())
        if feedback.solved:
            return dataclasses.replace(feedback, lines=lines)
        number = min(entry.failed, len(self.hints))
        return dataclasses.replace(feedback, lines=lines, hint=self.hints[number - 1], hint_number=number)

    def _judge(self, answer: Any) -> Feedback:
        raise NotImplementedError

    def _failed(self, step: Step | None, lines: Lines) -> Feedback:
        return Feedback(self.title, TRY_AGAIN, step, lines)

    def _back(self, function: Any = None) -> tuple[str, str]:
        """Which cell to go back to; its number is known where the answer is a function."""
        heading = f'the cell below "Exercise: {self.title[0].lower()}{self.title[1:]}"'
        number = cell_of(function) if function is not None else ""
        return ("go back to", f"{heading}, {number}" if number else heading)


def cause(mistakes: tuple[Mistake, ...], evidence: Any) -> Lines:
    """The first of the known mistakes that shows in `evidence`, as a line of the panel."""
    for mistake in mistakes:
        if mistake.shows(evidence):
            return (("likely cause", mistake.cause),)
    return ()


def too_late(deadline: Deadline) -> str:
    """The sentence for an answer that was stopped at its deadline."""
    return f"no answer within {deadline.seconds:g} s: does a loop unroll too far, or never end?"
