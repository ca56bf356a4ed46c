"""The machinery of the checks, without any launch: states, hints, wording, and that nothing is raised."""

import numpy as np
import pytest
import torch

import labkit
from labkit.checks import fused, hierarchy
from labkit.checks.exercise import Exercise, Goal
from labkit.checks.feedback import GOAL_MISSED, NOT_SOLVED, SOLVED, TRY_AGAIN, Feedback, GoalRow
from labkit.checks.trial import Outcome, Trial, explain_error, name_index


def make(**changes):
    settings = {"title": "T", "asked": "do it", "trials": lambda device, random: [], "hints": ("a", "b", "c")}
    return Exercise(**{**settings, **changes})


def outcome(expected, got, poison=-7.0):
    trial = Trial("n = 3", (1,), (), torch.zeros(1), expected, poison)
    padded = np.concatenate([expected.ravel(), np.full(got.size - expected.size, poison)])
    return Outcome(trial, None, got, padded, got != padded)


def test_nothing_written_yet_costs_no_hint():
    exercise = make()
    feedback = exercise.check(None)
    assert feedback.status == NOT_SOLVED
    assert feedback.hint == ""
    assert exercise.check(3).hint == "a"


def test_each_failure_shows_a_further_hint_and_the_last_stays():
    exercise = make()
    assert [exercise.check(torch.add).hint for _ in range(5)] == ["a", "b", "c", "c", "c"]


@pytest.mark.parametrize("answer", [3, "kernel", torch.zeros(3), lambda x: x, torch.add, object()])
def test_what_is_no_kernel_is_said(answer):
    feedback = make().check(answer)
    assert feedback.status == TRY_AGAIN
    assert "@triton.jit" in repr(feedback)


def test_a_check_that_breaks_is_feedback():
    class Broken:
        @property
        def __class__(self):
            raise RuntimeError("boom")

    assert "boom" in repr(make().check(Broken()))


def test_the_shipped_exercise_starts_unsolved():
    assert hierarchy.masked_tail.check(None).status == NOT_SOLVED


def test_goals_that_cannot_be_judged_are_told():
    exercise = make(goals=(Goal("width", "16 bytes", lambda kernel, one: None),))
    right = outcome(np.zeros(3), np.zeros(3))
    feedback = exercise._goals(None, [right])
    assert feedback.solved
    assert "the counted goals" in repr(feedback)


def test_a_goal_missed_in_one_trial_is_missed():
    verdicts = iter([("16", True), ("4", False), ("16", True)])
    exercise = make(goals=(Goal("width", "16 bytes", lambda kernel, one: next(verdicts)),))
    feedback = exercise._goals(None, [outcome(np.zeros(3), np.zeros(3))] * 3)
    assert feedback.status == GOAL_MISSED
    assert feedback.goals == (GoalRow("width", "16 bytes", "4", False),)


def test_places_in_words():
    two = outcome(np.zeros((2, 3)), np.zeros(8))
    assert name_index(two, 4) == "index (1, 1)"
    assert name_index(two, 6) == "1 past the end of the result"
    assert name_index(outcome(np.zeros(3), np.zeros(4)), 2) == "index 2"


def test_untouched_and_overwritten():
    one = outcome(np.array([1.0, 2.0, -7.0]), np.array([1.0, -7.0, 5.0, 6.0]))
    assert one.untouched.tolist() == [False, True, False, False]
    assert one.overwritten.tolist() == [False, False, True, True]
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


def test_an_error_without_a_line_is_one_sentence():
    assert explain_error(ValueError("first\nsecond")) == (("what came", "ValueError: first"),)
    assert explain_error(ValueError()) == (("what came", "ValueError: no message"),)


@pytest.mark.parametrize("status", [NOT_SOLVED, TRY_AGAIN, GOAL_MISSED, SOLVED])
def test_panel_says_the_same_in_text_and_html(status):
    goals = (GoalRow("width", "16 bytes", "4 bytes <b>", False),)
    feedback = Feedback("Mask & tail", status, (("yours", "<1>"),), goals, "look < there", 2)
    text, html = repr(feedback), feedback._repr_html_()
    assert status in text and status in html
    assert "hint 2 of 3: look < there" in text and "Hint 2 of 3" in html
    assert "&lt;1&gt;" in html and "4 bytes &lt;b&gt;" in html and "Mask &amp; tail" in html
    assert "not reached" in text and "not reached" in html
    assert feedback.solved == (status == SOLVED)
