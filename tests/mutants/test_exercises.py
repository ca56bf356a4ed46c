"""Every wrong answer is rejected with its cause named; every right one passes."""

import pytest

import labkit
from labkit.checks import fused, hierarchy, pipeline
from labkit.checks.feedback import GOAL_MISSED, TRY_AGAIN
from tests.mutants import masked_tail_kernels as tail
from tests.mutants import saturate_kernels as fp8
from tests.mutants import wide_loads_kernels as wide


@pytest.fixture(autouse=True)
def mi300x():
    labkit.start("MI300X")


def text_of(feedback):
    return " ".join(content for _, content in feedback.lines)


@pytest.mark.parametrize(
    "kernel", [tail.right, tail.right_with_other_and_moved_pointers], ids=lambda k: k.__name__
)
def test_masked_tail_is_solved(kernel):
    feedback = hierarchy.masked_tail.check(kernel)
    assert feedback.solved, repr(feedback)
    assert [goal.reached for goal in feedback.goals] == [True, True]


@pytest.mark.parametrize("kernel", [wide.right, wide.right_by_rounding], ids=lambda k: k.__name__)
def test_wide_loads_is_solved(kernel):
    feedback = pipeline.wide_loads.check(kernel)
    assert feedback.solved, repr(feedback)
    assert feedback.goals[0].came in ("1 buffer_load_dwordx4", "1 global_load_dwordx4")


@pytest.mark.parametrize(
    "kernel", [fp8.right, fp8.right_by_where, fp8.right_by_the_cast_alone], ids=lambda k: k.__name__
)
def test_saturate_is_solved(kernel):
    feedback = fused.saturate.check(kernel)
    assert feedback.solved, repr(feedback)


WRONG = [
    (hierarchy.masked_tail, tail.no_mask, "give both loads mask=offsets < n"),
    (hierarchy.masked_tail, tail.store_unmasked, "the store writes behind the end"),
    (hierarchy.masked_tail, tail.one_too_many, "write <, not <="),
    (hierarchy.masked_tail, tail.one_too_few, "leaves out elements at the end"),
    (hierarchy.masked_tail, tail.first_block_only, "only the first block was written"),
    (hierarchy.masked_tail, tail.one_input_twice, "look at what you add"),
    (pipeline.wide_loads, wide.no_mask_at_all, "is start + i masked with i < length"),
    (pipeline.wide_loads, wide.store_unmasked, "may not replace the mask"),
    (pipeline.wide_loads, wide.length_rounded_too_far, "the mask ends before length"),
    (pipeline.wide_loads, wide.start_rounded_too_far, "a row was read from the wrong place"),
    (fused.saturate, fp8.nan_lost, "the clamp swallowed NaN"),
    (fused.saturate, fp8.multiplied, "multiplied by scale"),
    (fused.saturate, fp8.clamped_first, "clamped before the division"),
    (fused.saturate, fp8.limit_of_the_other_chip, "240 is the limit of MI300X"),
    (fused.saturate, fp8.sign_by_division, "became NaN"),
    (fused.saturate, fp8.no_mask_on_the_store, "pass mask=offsets < n to the load"),
]
MISSED = [
    (hierarchy.masked_tail, tail.strided_lanes, "A modulo, a stride or n - 1"),
    (hierarchy.masked_tail, tail.mask_with_n_less_one, "A modulo, a stride or n - 1"),
    (pipeline.wide_loads, wide.no_hint, "the mask i < length may end between two elements"),
    (pipeline.wide_loads, wide.only_length_hinted, "but not that start is a multiple of 16"),
    (pipeline.wide_loads, wide.only_start_hinted, "the mask i < length may end between two elements"),
]


@pytest.mark.parametrize(("exercise", "kernel", "cause"), WRONG, ids=lambda v: getattr(v, "__name__", ""))
def test_a_wrong_answer_is_rejected_with_its_cause(exercise, kernel, cause):
    feedback = exercise.check(kernel)
    assert feedback.status == TRY_AGAIN, repr(feedback)
    assert cause in dict(feedback.lines).get("likely cause", ""), repr(feedback)


@pytest.mark.parametrize(("exercise", "kernel", "cause"), MISSED, ids=lambda v: getattr(v, "__name__", ""))
def test_a_right_answer_that_misses_the_goal_is_told_why(exercise, kernel, cause):
    feedback = exercise.check(kernel)
    assert feedback.status == GOAL_MISSED, repr(feedback)
    assert cause in dict(feedback.lines)["likely cause"], repr(feedback)
    assert not all(goal.reached for goal in feedback.goals)


def test_a_kernel_that_does_not_compile_shows_the_learners_line():
    lines = dict(hierarchy.masked_tail.check(tail.name_that_is_not_defined).lines)
    assert "msk is not defined" in lines["what came"]
    assert "mask=msk" in lines["your line"]


def test_other_parameters_become_a_sentence():
    feedback = hierarchy.masked_tail.check(tail.other_parameters)
    assert feedback.status == TRY_AGAIN
    said = dict(feedback.lines)["what came"]
    assert "takes (x_ptr, out_ptr, n, BLOCK), but it is launched with 4 arguments and BLOCK" in said


def test_an_endless_kernel_comes_back():
    feedback = hierarchy.masked_tail.check(tail.never_ends)
    assert feedback.status == TRY_AGAIN
    assert "EndlessKernel" in dict(feedback.lines)["what came"]
