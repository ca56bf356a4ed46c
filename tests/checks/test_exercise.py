"""The machinery of the checks, without any launch: states, hints, wording, and that nothing is raised."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

import labkit
from labkit.checks import EXERCISES, fused, hierarchy
from labkit.checks.exercise import Exercise
from labkit.checks.explain import explain_error, name_index
from labkit.checks.feedback import GOAL_MISSED, NOT_SOLVED, SOLVED, TRY_AGAIN, Feedback, GoalRow, Step
from labkit.checks.goals import Goal
from labkit.checks.task import NotSolved
from labkit.checks.trial import Outcome, Trial
from labkit.emulator.faults import Finding

LESSONS = Path(__file__).parents[2] / "lessons"


def make(**changes):
    settings = {
        "notebook": "00",
        "title": "T",
        "asked": "do it",
        "trials": lambda device, random: [],
        "hints": ("a", "b", "c"),
    }
    return Exercise(**{**settings, **changes})


def outcome(expected, got, poison=-7.0, **changes):
    trial = Trial("n = 3", (1,), (), torch.zeros(1), expected, poison)
    return Outcome(dataclasses.replace(trial, **changes), None, got, got != expected.ravel())


def test_nothing_written_yet_costs_no_hint():
    exercise = make()
    feedback = exercise.check(None)
    assert feedback.status == NOT_SOLVED
    assert feedback.hint == ""
    assert exercise.check(3).hint == "a"


def test_each_failure_shows_a_further_hint_and_the_last_stays():
    assert [make().check(torch.add).hint for _ in range(5)] == ["a", "b", "c", "c", "c"]


@pytest.mark.parametrize("answer", [3, "kernel", torch.zeros(3), lambda x: x, torch.add, object()])
def test_what_is_no_kernel_is_said(answer):
    feedback = make().check(answer)
    assert (feedback.status, feedback.step) == (TRY_AGAIN, Step.THERE)
    assert "@triton.jit" in repr(feedback)


def test_a_check_that_breaks_is_feedback():
    class Broken:
        @property
        def __class__(self):
            raise RuntimeError("boom")

    assert "boom" in repr(make().check(Broken()))


def test_the_shipped_exercises_start_unsolved():
    assert {exercise.check(None).status for exercise in EXERCISES} == {NOT_SOLVED}


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.title)
def test_the_cell_to_go_back_to_is_there(exercise):
    heading = dict(exercise.check(None).lines)["go back to"].split('"')[1]
    assert f"# ## {heading}\n" in (LESSONS / f"{exercise.notebook}.py").read_text()


def test_nbgrader_is_told_by_an_error(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    with pytest.raises(NotSolved, match="not solved yet"):
        make().check(None)


def test_a_goal_missed_in_one_trial_is_missed():
    verdicts = iter([("16", True), ("4", False), ("16", True)])
    exercise = make(goals=(Goal("width", "16 bytes", lambda one: next(verdicts)),))
    feedback = exercise._goals(None, [outcome(np.zeros(3), np.zeros(3))] * 3)
    assert (feedback.status, feedback.step) == (GOAL_MISSED, Step.GOAL)
    assert feedback.goals == (GoalRow("width", "16 bytes", "4", False),)


def test_a_trial_that_is_not_judged_cannot_miss_a_goal():
    verdicts = {"n = 3": ("16", True), "n = 5": ("4", False)}
    exercise = make(goals=(Goal("width", "16 bytes", lambda one: verdicts[one.trial.label]),))
    right = outcome(np.zeros(3), np.zeros(3))
    ragged = outcome(np.zeros(5), np.zeros(5), label="n = 5", judged=False)
    assert exercise._goals(None, [right, ragged]).solved


def finding(soft):
    message = "k.py:3: `buffer_load_dword v0` touches address 0x10. First: workgroup (0, 0, 0)"
    where = ("k.py:3", 3, 40, "buffer_load_dword v0", (0, 0, 0), 0, 0, 1, 16, "x_ptr")
    return Finding("global access outside its view", message, *where, soft)


def test_a_soft_finding_is_told_and_does_not_fail():
    class Found:
        faults = [finding(soft=True)]

    one = dataclasses.replace(outcome(np.zeros(3), np.zeros(3)), launch=Found())
    assert one.fault is None
    feedback = make()._goals(None, [one])
    assert feedback.solved
    assert "touches address 0x10" in dict(feedback.lines)["worth a look"]


def test_the_first_hard_finding_counts():
    class Found:
        faults = [finding(soft=True), finding(soft=False)]

    one = dataclasses.replace(outcome(np.zeros(3), np.zeros(3)), launch=Found())
    assert one.fault is Found.faults[1] and one.remarks == [Found.faults[0]]


def test_places_in_words():
    assert name_index(outcome(np.zeros((2, 3)), np.zeros(6)), 4) == "index (1, 1)"
    assert name_index(outcome(np.zeros(3), np.zeros(3)), 2) == "index 2"


def test_untouched_and_overwritten():
    one = outcome(np.array([1.0, 2.0, -7.0]), np.array([1.0, -7.0, 5.0]))
    assert one.untouched.tolist() == [False, True, False]
    assert one.overwritten.tolist() == [False, False, True]
    assert one.first == 1


def test_a_wrong_value_that_is_the_poison_by_chance_is_not_called_unwritten():
    cause = next(m for m in fused.saturate.mistakes if "never written" in m.cause)
    mixed = outcome(np.array([1.0, 2.0, 3.0]), np.array([1.0, -7.0, 5.0]))
    assert mixed.untouched.any() and not cause.shows(mixed)
    assert cause.shows(outcome(np.array([1.0, 2.0, 3.0]), np.array([1.0, -7.0, -7.0])))


@pytest.mark.parametrize("seed", range(20))
def test_each_format_is_tried_with_a_scale_above_and_below_one(seed):
    """Below 1 a clamp before the division gives the right result; a check that tries only such is by luck."""
    labkit.start("MI300X", quiet=True)
    trials = fused.saturate.trials(torch.device("cpu"), np.random.default_rng(seed))
    for largest in (240.0, 448.0):
        scales = [float(t.arguments[1]) for t in trials if t.options["LARGEST"] == largest]
        assert len(scales) == 3 and min(scales) < 1 < max(scales)


@pytest.mark.parametrize("seed", range(20))
def test_the_lengths_tried_have_every_kind_of_tail(seed):
    trials = hierarchy.masked_tail.trials(torch.device("cpu"), np.random.default_rng(seed))
    sizes = [trial.expected.size for trial in trials]
    assert sizes[:2] == [5, 1024]
    assert sizes[2] % 2 == 1 and sizes[2] > 2 * 1024
    assert sizes[3] % 16 == 0 and sizes[3] % 1024 != 0


def test_an_error_without_a_line_is_one_sentence():
    assert explain_error(ValueError("first\nsecond")) == (("what came", "ValueError: first"),)
    assert explain_error(ValueError()) == (("what came", "ValueError: no message"),)


@pytest.mark.parametrize("status", [NOT_SOLVED, TRY_AGAIN, GOAL_MISSED, SOLVED])
def test_panel_says_the_same_in_text_and_html(status):
    goals = (GoalRow("width", "16 bytes", "4 bytes <b>", False),)
    feedback = Feedback("Mask & tail", status, Step.RIGHT, (("yours", "<1>"),), goals, "look < there", 2)
    text, html = repr(feedback), feedback._repr_html_()
    assert status in text and status in html
    for shown in (text, html):
        assert "✓ it is there; ✓ it compiles; ✓ it runs without a fault; ✗ its result is right" in shown
    assert "hint 2 of 3: look < there" in text and "Hint 2 of 3" in html
    assert "&lt;1&gt;" in html and "4 bytes &lt;b&gt;" in html and "Mask &amp; tail" in html
    assert "not reached" in text and "not reached" in html
    assert feedback.solved == (status == SOLVED)
