"""Exercises whose answer is a value or a Python function."""

import pytest
import torch

import labkit
from labkit.checks import Question, Verdict, task
from labkit.checks.feedback import GOAL_MISSED, SOLVED, TRY_AGAIN, GoalRow, Step
from labkit.checks.task import Mistake
from tests.mutants.kernels.masked_tail import right


def is_function(answer):
    return callable(answer)


def make(judge, **changes):
    settings = {
        "notebook": "00",
        "title": "Double it",
        "asked": "write a function that doubles",
        "hints": ("a", "b", "c"),
        "takes": "a function of a number, such as lambda x: x",
        "accepts": is_function,
        "judge": judge,
        "mistakes": (Mistake("it squares", lambda got: got == 9), Mistake("it is off", lambda got: True)),
        "goal_mistakes": (Mistake("too big", lambda got: got == 6),),
    }
    return Question(**{**settings, **changes})


def doubles(answer, random):
    came = answer(3)
    return Verdict(came == 6, (("expected", "6"), ("yours", str(came))), evidence=came)


def test_a_right_answer_is_solved():
    feedback = make(doubles).check(lambda x: 2 * x)
    assert feedback.status == SOLVED
    assert dict(feedback.lines)["yours"] == "6"


@pytest.mark.parametrize(("answer", "cause"), [(lambda x: x * x, "it squares"), (lambda x: x, "it is off")])
def test_a_wrong_answer_is_told_its_likely_cause(answer, cause):
    feedback = make(doubles).check(answer)
    assert (feedback.status, feedback.step, feedback.hint) == (TRY_AGAIN, Step.RIGHT, "a")
    assert dict(feedback.lines)["likely cause"] == cause


def test_a_missed_goal_is_told():
    def judge(answer, random):
        return Verdict(True, goals=(GoalRow("size", "below 6", "6", False),), evidence=answer(3))

    feedback = make(judge).check(lambda x: 2 * x)
    assert (feedback.status, feedback.step) == (GOAL_MISSED, Step.GOAL)
    assert dict(feedback.lines)["likely cause"] == "too big"


@pytest.mark.parametrize("answer", [3, "six", torch.arange(1000), [1] * 1000])
def test_another_form_is_told_in_one_line(answer):
    feedback = make(doubles).check(answer)
    came = dict(feedback.lines)["what came"]
    assert (feedback.status, feedback.step) == (TRY_AGAIN, Step.THERE)
    assert came.endswith("the answer is a function of a number, such as lambda x: x")
    assert len(came) < 140 and "\n" not in came


def test_an_error_in_the_answer_names_its_line():
    def answer(x):
        return x.nothing

    feedback = make(doubles).check(answer)
    lines = dict(feedback.lines)
    assert feedback.step == Step.RUNS
    assert "no attribute 'nothing'" in lines["what came"]
    assert lines["your line"].endswith("return x.nothing")


def test_an_answer_that_never_ends_comes_back(monkeypatch):
    monkeypatch.setattr(task, "SECONDS", 0.2)

    def answer(x):
        while True:
            x += 1

    feedback = make(doubles).check(answer)
    assert feedback.step == Step.RUNS
    assert "no answer within 0.2 s" in dict(feedback.lines)["what came"]


def test_launches_inside_run_on_the_emulated_chip():
    def judge(answer, random):
        out = torch.zeros(64)
        right[(1,)](torch.ones(64), torch.ones(64), out, 64, BLOCK=64)
        return Verdict(bool((out == 2).all()) and labkit.last_launch().counters is not None)

    assert make(judge).check(lambda x: x).solved
