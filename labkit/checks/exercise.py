"""An exercise as a declaration, and the check that judges an answer to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import triton

from labkit.checks.feedback import GOAL_MISSED, NOT_SOLVED, SOLVED, TRY_AGAIN, Feedback, GoalRow
from labkit.checks.trial import Outcome, Trial, explain_error, name_index, run_trial


@dataclass(frozen=True)
class Goal:
    """Something that the machine code must reach. `judge` gives (what came, reached), or None where it can't.

    `judge` is called with the kernel and the outcome of a right launch.
    """

    quantity: str
    wanted: str
    judge: Callable[[Any, Outcome], tuple[str, bool] | None]


@dataclass(frozen=True)
class Mistake:
    """A known mistake: how it shows in an outcome, and its cause in a sentence."""

    cause: str
    shows: Callable[[Outcome], bool]


@dataclass
class Exercise:
    """One exercise of a notebook.

    asked: the task in a sentence. trials: makes the launches to try, for a device and a random generator.
    goals: judged once every result is right. mistakes: in the order in which they are looked for; those
    for a wrong result or an error, and apart from them those for a goal that was missed.
    """

    title: str
    asked: str
    trials: Callable[[torch.device, np.random.Generator], Sequence[Trial]]
    hints: tuple[str, str, str]
    goals: tuple[Goal, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    goal_mistakes: tuple[Mistake, ...] = ()
    _failures: int = field(default=0, repr=False)

    def check(self, answer: Any) -> Feedback:
        """Judge `answer`, a @triton.jit kernel, or None where it isn't written yet. Never raises."""
        if answer is None:
            return Feedback(self.title, NOT_SOLVED, (("task", self.asked),))
        try:
            return self._judge(answer)
        except Exception as error:  # a check that breaks must not stop the notebook
            return self._retry((("the check failed", f"{type(error).__name__}: {error}"),))

    def _judge(self, answer: Any) -> Feedback:
        if not isinstance(answer, triton.runtime.KernelInterface):
            kind = type(answer).__name__
            return self._retry((("what came", f"a {kind}; the answer is a function under @triton.jit"),))
        try:
            device = triton.runtime.driver.active.get_active_torch_device()
        except RuntimeError:
            return self._retry((("what came", "no device; run the cell with labkit.start() first"),))
        outcomes = []
        for trial in self.trials(device, np.random.default_rng()):
            outcome = run_trial(answer, trial)
            if outcome.error is not None or outcome.wrong.any():
                return self._wrong(outcome)
            outcomes.append(outcome)
        return self._goals(answer, outcomes)

    def _wrong(self, outcome: Outcome) -> Feedback:
        lines = [("task", self.asked), ("tried", outcome.trial.label)]
        if outcome.error is not None:
            lines += explain_error(outcome.error)
        else:
            index = outcome.first
            lines += [
                ("expected", _in_words(outcome.expected[index], outcome)),
                ("yours", _in_words(outcome.got[index], outcome)),
                ("first at", f"{name_index(outcome, index)}; elements that are wrong: {outcome.wrong.sum()}"),
            ]
        return self._retry(tuple(lines) + _cause(self.mistakes, outcome))

    def _goals(self, answer: Any, outcomes: list[Outcome]) -> Feedback:
        rows, missed = [], None
        for goal in self.goals:
            judged = [(outcome, goal.judge(answer, outcome)) for outcome in outcomes]
            judged = [(outcome, verdict) for outcome, verdict in judged if verdict is not None]
            # The trial that fails is the one to show; else the last.
            judged.sort(key=lambda pair: pair[1][1])
            if judged:
                outcome, (came, reached) = judged[0]
                rows.append(GoalRow(goal.quantity, goal.wanted, came, reached))
                missed = missed or (None if reached else outcome)
        if missed is None:
            tried = "; ".join(outcome.trial.label for outcome in outcomes)
            lines = [("tried", tried)]
            if len(rows) < len(self.goals):
                # A real GPU runs the answer, but counts nothing.
                lines.append(("not judged", 'the counted goals; labkit.start("MI300X") counts them'))
            return Feedback(self.title, SOLVED, tuple(lines), tuple(rows))
        lines = (("task", self.asked), ("tried", missed.trial.label), *_cause(self.goal_mistakes, missed))
        return self._retry(lines, GOAL_MISSED, tuple(rows))

    def _retry(
        self, lines: tuple[tuple[str, str], ...], status: str = TRY_AGAIN, goals: tuple[GoalRow, ...] = ()
    ) -> Feedback:
        """Feedback with the next hint: a further one at each failed check."""
        number = min(self._failures, len(self.hints) - 1)
        self._failures += 1
        return Feedback(self.title, status, lines, goals, self.hints[number], number + 1)


def _cause(mistakes: tuple[Mistake, ...], outcome: Outcome) -> tuple[tuple[str, str], ...]:
    for mistake in mistakes:
        if mistake.shows(outcome):
            return (("likely cause", mistake.cause),)
    return ()


def _in_words(value: float, outcome: Outcome) -> str:
    if value == outcome.trial.poison:
        return f"{value:g}, the filling from before the launch"
    return f"{value:.9g}"
