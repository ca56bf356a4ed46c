"""Every wrong answer is rejected with its cause named; every right one passes; all else is answered, too."""

from collections import Counter

import pytest

from labkit.checks import EXERCISES, Task, hierarchy, task
from labkit.checks.feedback import GOAL_MISSED, TRY_AGAIN, Step
from tests.mutants.answers import MISSED, RIGHT, WRONG
from tests.mutants.kernels import masked_tail as tail


def name_of(value):
    """None leaves strings to pytest."""
    return value.title if isinstance(value, Task) else getattr(value, "__name__", None)


@pytest.mark.parametrize(("exercise", "kernel"), RIGHT, ids=name_of)
def test_a_right_answer_passes(exercise, kernel):
    feedback = exercise.check(kernel)
    assert feedback.solved, repr(feedback)
    assert all(goal.reached for goal in feedback.goals)
    assert len(feedback.goals) == len(getattr(exercise, "goals", feedback.goals))


@pytest.mark.parametrize(
    ("exercise", "kernel", "cause", "status"),
    [(*row, TRY_AGAIN) for row in WRONG] + [(*row, GOAL_MISSED) for row in MISSED],
    ids=name_of,
)
def test_a_mutant_is_rejected(exercise, kernel, cause, status):
    feedback = exercise.check(kernel)
    assert feedback.status == status, repr(feedback)
    lines = dict(feedback.lines)
    assert cause in lines.get("likely cause", ""), repr(feedback)
    assert feedback.hint and exercise.title.lower() in lines["go back to"].lower()
    assert (status == GOAL_MISSED) == any(not goal.reached for goal in feedback.goals)


def test_each_exercise_has_enough_answers():
    right, wrong = Counter(row[0].title for row in RIGHT), Counter(row[0].title for row in WRONG + MISSED)
    for one in EXERCISES:
        assert right[one.title] >= 2 and wrong[one.title] >= 4, one.title


def test_a_fault_names_the_line_the_lane_and_the_tensor():
    feedback = hierarchy.masked_tail.check(tail.no_mask)
    lines = dict(feedback.lines)
    assert feedback.step == Step.RUNS
    assert "past the end of `x_ptr` (20 bytes)" in lines["what came"]
    assert lines["your line"].endswith("tl.load(x_ptr + offsets) + tl.load(y_ptr + offsets))")
    # The first lane has elements 0 to 3, the second 4 to 7 of 5; 256 lanes have four each.
    assert lines["first at"] == "program (0, 0, 0), wave 0, lane 1; 255 lanes at once"


def test_a_wrong_result_names_the_place_and_both_values():
    lines = dict(hierarchy.masked_tail.check(tail.one_too_few).lines)
    assert lines["tried"] == "n = 5"
    assert lines["first at"] == "index 4; elements that are wrong: 1"
    assert lines["yours"] == "-777, the filling from before the launch"


def test_a_kernel_that_does_not_compile_shows_the_learners_line():
    feedback = hierarchy.masked_tail.check(tail.name_that_is_not_defined)
    lines = dict(feedback.lines)
    assert feedback.step == Step.COMPILES
    assert lines["what came"] == "the kernel does not compile: msk is not defined"
    source, first = tail.name_that_is_not_defined.raw_src, tail.name_that_is_not_defined.starting_line_number
    at = next(number for number, text in enumerate(source) if "mask=msk" in text)
    assert lines["your line"] == f"line {first + at}: {source[at].strip()}"
    assert "likely cause" not in lines


def test_other_parameters_become_a_sentence():
    feedback = hierarchy.masked_tail.check(tail.other_parameters)
    assert feedback.status == TRY_AGAIN
    said = dict(feedback.lines)["what came"]
    assert "takes (x_ptr, out_ptr, n, BLOCK), but it is launched with 4 arguments and BLOCK" in said


def test_an_endless_kernel_comes_back():
    feedback = hierarchy.masked_tail.check(tail.never_ends)
    lines = dict(feedback.lines)
    assert feedback.step == Step.RUNS
    assert "EndlessKernel" in lines["what came"] and lines["your line"].startswith("line ")


def test_a_wait_that_never_ends_comes_back():
    feedback = hierarchy.masked_tail.check(tail.waits_for_ever)
    assert feedback.step == Step.RUNS
    what = dict(feedback.lines)["what came"]
    assert "EndlessKernel" in what or "no answer within 4 s" in what


def test_an_endless_compile_comes_back(monkeypatch):
    monkeypatch.setattr(task, "SECONDS", 0.5)
    feedback = hierarchy.masked_tail.check(tail.unrolls_for_ever)
    lines = dict(feedback.lines)
    assert feedback.step == Step.COMPILES
    assert "no answer within 0.5 s" in lines["what came"]
    assert "static_range" in lines["your line"] or "total += step" in lines["your line"]
    assert hierarchy.masked_tail.check(tail.right).solved


def test_an_input_may_not_change():
    feedback = hierarchy.masked_tail.check(tail.changes_an_input)
    assert feedback.step == Step.RIGHT
    assert dict(feedback.lines)["what came"] == "your kernel writes to x_ptr, which it may only read"
