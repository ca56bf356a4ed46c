"""An exercise as a declaration, and the check that judges an answer to it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from triton import JITFunction

from labkit.checks import progress
from labkit.checks.deadline import Deadline, cpu_deadline
from labkit.checks.explain import Lines, cell_of, explain_error, explain_fault, name_index
from labkit.checks.feedback import GOAL_MISSED, NOT_SOLVED, SOLVED, TRY_AGAIN, Feedback, GoalRow, Step
from labkit.checks.goals import Goal
from labkit.checks.trial import Outcome, Trial, emulated_chip, made_anew, run_trial
from labkit.errors import LabkitError

# Of processor time; the rest of five seconds is for making the panel.
_SECONDS = 4.0


class NotSolved(LabkitError):
    """Raised by a check only where nbgrader grades, which goes by errors."""


@dataclass(frozen=True)
class Mistake:
    """A known mistake: how it shows in an outcome, and its cause in a sentence."""

    cause: str
    shows: Callable[[Outcome], bool]


@dataclass(frozen=True)
class Exercise:
    """One exercise of a notebook.

    notebook: its file's name without ending. title: as in the heading "Exercise: ...". asked: the task in a
    sentence. trials: makes the launches to try, for a device and a random generator. goals: judged once every
    result is right. mistakes: in the order in which they are looked for; those for a fault, an error or a
    wrong result, and apart from them those for a goal that was missed.
    """

    notebook: str
    title: str
    asked: str
    trials: Callable[[torch.device, np.random.Generator], Sequence[Trial]]
    hints: tuple[str, str, str]
    goals: tuple[Goal, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    goal_mistakes: tuple[Mistake, ...] = ()

    def check(self, answer: Any) -> Feedback:
        """Judge `answer`, a @triton.jit kernel, or None where it isn't written yet.

        It is judged on an emulated MI300X, whatever chip is here. Raises nothing, but for NotSolved under
        nbgrader's autograder.
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
        if not isinstance(answer, JITFunction):
            what = f"a {type(answer).__name__}; the answer is a function under @triton.jit, and nothing else"
            return self._failed(Step.THERE, (("what came", what), self._back()))
        with emulated_chip(), cpu_deadline(_SECONDS) as deadline:
            # The launch is Triton's own, whatever the learner's object does when it is launched.
            kernel = made_anew(answer)
            outcomes = []
            for trial in self.trials(torch.device("cpu"), np.random.default_rng()):
                outcome = run_trial(kernel, trial)
                problem = self._problem(kernel, outcome, deadline)
                if problem is not None:
                    return problem
                outcomes.append(outcome)
            return self._goals(kernel, outcomes)

    def _problem(self, kernel: JITFunction, outcome: Outcome, deadline: Deadline) -> Feedback | None:
        """What is wrong with one launch, in the order of the steps, or None."""
        if deadline.expired and outcome.error is not None:
            late = f"no answer within {deadline.seconds:g} s: does a loop unroll too far, or never end?"
            step = Step.COMPILES if outcome.launch is None else Step.RUNS
            lines = (("what came", late), *explain_error(outcome.error, kernel)[1:])
        elif outcome.launch is None:
            step, lines = Step.COMPILES, explain_error(outcome.error, kernel)
        elif outcome.borrowed():
            own = "a kernel that calls labkit's own; write that part yourself"
            step, lines = Step.THERE, (("what came", own),)
        elif outcome.fault is not None:
            step, lines = Step.RUNS, explain_fault(outcome.fault, kernel)
        elif outcome.error is not None:
            step, lines = Step.RUNS, explain_error(outcome.error, kernel)
        elif outcome.wrong.any():
            step, lines = Step.RIGHT, _difference(outcome)
        elif strange := _strange_writes(kernel, outcome):
            step, lines = Step.RIGHT, strange
        else:
            return None
        # A kernel that did not run to its end left a result that tells nothing.
        told = _cause(self.mistakes, outcome) if outcome.error is None else ()
        head = (("task", self.asked), ("tried", outcome.trial.label))
        return self._failed(step, (*head, *lines, *told, *_remarks(outcome), self._back(kernel)))

    def _goals(self, kernel: JITFunction, outcomes: list[Outcome]) -> Feedback:
        rows, missed = [], None
        judged = [outcome for outcome in outcomes if outcome.trial.judged]
        for goal in self.goals:
            verdicts = [(outcome, *goal.judge(outcome)) for outcome in judged]
            # The trial that fails is the one to show; else the last.
            outcome, came, reached = next((v for v in verdicts if not v[2]), verdicts[-1])
            rows.append(GoalRow(goal.quantity, goal.wanted, came, reached))
            missed = missed or (None if reached else outcome)
        remarks = [line for outcome in outcomes for line in _remarks(outcome)]
        if missed is None:
            tried = ("tried", "; ".join(outcome.trial.label for outcome in outcomes))
            return Feedback(self.title, SOLVED, lines=(tried, *dict.fromkeys(remarks)), goals=tuple(rows))
        head = (("task", self.asked), ("tried", missed.trial.label), *_cause(self.goal_mistakes, missed))
        lines = (*head, *_remarks(missed), self._back(kernel))
        return Feedback(self.title, GOAL_MISSED, Step.GOAL, lines, tuple(rows))

    def _failed(self, step: Step | None, lines: Lines) -> Feedback:
        return Feedback(self.title, TRY_AGAIN, step, lines)

    def _back(self, kernel: JITFunction | None = None) -> tuple[str, str]:
        """Which cell to go back to."""
        heading = f'the cell below "Exercise: {self.title[0].lower()}{self.title[1:]}"'
        number = cell_of(kernel) if kernel is not None else ""
        return ("go back to", f"{heading}, {number}" if number else heading)


def _difference(outcome: Outcome) -> Lines:
    index = outcome.first
    count = int(outcome.wrong.sum())
    return (
        ("first at", f"{name_index(outcome, index)}; elements that are wrong: {count:,}"),
        ("expected", _in_words(outcome.expected[index], outcome)),
        ("yours", _in_words(outcome.got[index], outcome)),
    )


def _strange_writes(kernel: JITFunction, outcome: Outcome) -> Lines:
    """A right result that the kernel did not write itself, or an input that it changed."""
    written, arguments = outcome.written(), outcome.trial.arguments
    at = next(number for number, argument in enumerate(arguments) if argument is outcome.trial.output)
    result = kernel.arg_names[at]
    wanted = int((outcome.expected != outcome.trial.poison).sum()) * outcome.trial.output.element_size()
    if written.get(result, 0) < wanted:
        what = f"{written.get(result, 0):,} of the {wanted:,} bytes of {result}; the rest came by another way"
        return (("what came", f"your kernel's machine code wrote {what}"),)
    changed = [name for name, count in written.items() if count and name != result]
    if changed:
        return (("what came", f"your kernel writes to {changed[0]}, which it may only read"),)
    return ()


def _cause(mistakes: tuple[Mistake, ...], outcome: Outcome) -> Lines:
    for mistake in mistakes:
        if mistake.shows(outcome):
            return (("likely cause", mistake.cause),)
    return ()


def _remarks(outcome: Outcome) -> Lines:
    return tuple(("worth a look", finding.message) for finding in outcome.remarks)


def _in_words(value: float, outcome: Outcome) -> str:
    if value == outcome.trial.poison:
        return f"{value:g}, the filling from before the launch"
    return f"{value:.9g}"
