"""An exercise whose answer is a kernel: a declaration, and the check that judges an answer to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from triton import JITFunction

from labkit.checks import task
from labkit.checks.deadline import Deadline, cpu_deadline
from labkit.checks.explain import Lines, explain_error, explain_fault, name_index
from labkit.checks.feedback import GOAL_MISSED, SOLVED, Feedback, GoalRow, Step
from labkit.checks.goals import Goal
from labkit.checks.task import Task, cause
from labkit.checks.trial import Outcome, Trial, emulated_chip, made_anew, run_trial


@dataclass(frozen=True, kw_only=True)
class Exercise(Task):
    """An exercise whose answer is a @triton.jit kernel.

    trials: makes the launches to try, for a device and a random generator. goals: judged once every result is
    right. The mistakes look at an Outcome.
    """

    trials: Callable[[torch.device, np.random.Generator], Sequence[Trial]]
    goals: tuple[Goal, ...] = ()

    def _judge(self, answer: Any) -> Feedback:
        if not isinstance(answer, JITFunction):
            what = f"a {type(answer).__name__}; the answer is a function under @triton.jit, and nothing else"
            return self._failed(Step.THERE, (("what came", what), self._back()))
        with emulated_chip(), cpu_deadline(task.SECONDS) as deadline:
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
            step = Step.COMPILES if outcome.launch is None else Step.RUNS
            lines = (("what came", task.too_late(deadline)), *explain_error(outcome.error, kernel)[1:])
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
        told = cause(self.mistakes, outcome) if outcome.error is None else ()
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
        head = (("task", self.asked), ("tried", missed.trial.label), *cause(self.goal_mistakes, missed))
        lines = (*head, *_remarks(missed), self._back(kernel))
        return Feedback(self.title, GOAL_MISSED, Step.GOAL, lines, tuple(rows))


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


def _remarks(outcome: Outcome) -> Lines:
    return tuple(("worth a look", finding.message) for finding in outcome.remarks)


def _in_words(value: float, outcome: Outcome) -> str:
    if value == outcome.trial.poison:
        return f"{value:g}, the filling from before the launch"
    return f"{value:.9g}"
