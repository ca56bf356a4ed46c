"""Ways to pass without a right kernel, each of which must fail."""

import dataclasses

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton import knobs

import labkit
from labkit.checks import Feedback, fused, hierarchy, progress_table
from labkit.checks.feedback import TRY_AGAIN, Step
from labkit.kernels.fp8 import saturating_cast, saturating_cast_reference
from tests.mutants.kernels import masked_tail as tail

EXERCISE = hierarchy.masked_tail


def add_in_torch(x, y, out, n, **options):
    out.copy_(x + y)


@triton.jit
def does_nothing(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    return


@triton.jit
def returns_early(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    if n > 1024:
        return
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x + tl.load(y_ptr + offsets, mask=offsets < n), mask=offsets < n)


@triton.jit
def torch_inside(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    torch.add(x_ptr, y_ptr, out=out_ptr)


class FakeLaunch(triton.runtime.KernelInterface):
    """Launches nothing and writes the sum."""

    def run(self, *arguments, grid, warmup, **options):
        add_in_torch(*arguments)


class FakeJit(triton.JITFunction):
    """A real kernel, and a launch of its own."""

    def run(self, *arguments, grid, warmup, **options):
        add_in_torch(*arguments)


def with_its_own_run():
    kernel = triton.jit(does_nothing.fn)
    kernel.run = lambda *arguments, grid, warmup, **options: add_in_torch(*arguments)
    return kernel


def with_a_hook():
    kernel = triton.jit(does_nothing.fn)
    kernel.add_pre_run_hook(lambda *arguments, **options: add_in_torch(*arguments))
    return kernel


def the_expected_tensor():
    (trial, *_) = EXERCISE.trials(torch.device("cpu"), np.random.default_rng())
    return torch.from_numpy(trial.expected)


CHEATS = {
    "a Python function": lambda: lambda *arguments, **options: add_in_torch(*arguments),
    "PyTorch": lambda: torch.add,
    "the expected tensor": the_expected_tensor,
    "the exercise": lambda: EXERCISE,
    "a panel that says solved": lambda: Feedback(EXERCISE.title, "solved"),
    "PyTorch inside": lambda: torch_inside,
    "nothing at all": lambda: does_nothing,
    "an early return": lambda: returns_early,
    "a fake launch": FakeLaunch,
    "a fake jit": lambda: FakeJit(does_nothing.fn),
    "its own run": with_its_own_run,
    "a hook": with_a_hook,
}


@pytest.mark.parametrize("cheat", CHEATS.values(), ids=CHEATS)
def test_a_cheat_fails(cheat):
    feedback = EXERCISE.check(cheat())
    assert feedback.status == TRY_AGAIN, repr(feedback)
    assert progress_table(EXERCISE.notebook)["state"].tolist() == ["not solved yet"]


def test_a_hook_of_triton_cannot_write_the_result():
    tensors = []
    knobs.runtime.launch_exit_hook.add(tensors.append)
    try:
        assert not EXERCISE.check(does_nothing).solved
    finally:
        knobs.runtime.launch_exit_hook.remove(tensors.append)
    assert tensors == []


def test_a_result_that_the_machine_code_did_not_write_fails(monkeypatch):
    """Whoever writes it, here another memory after the launch, it isn't the kernel."""
    from labkit.emulator import driver

    def write_behind_its_back(launch):
        (trial,) = trials
        trial.output.copy_(torch.from_numpy(trial.expected))
        remember(launch)

    remember, trials = driver.remember, []
    monkeypatch.setattr(driver, "remember", write_behind_its_back)
    real = EXERCISE.trials
    chosen = dataclasses.replace(EXERCISE, trials=lambda *a: trials.extend(real(*a)[:1]) or trials)
    feedback = chosen.check(does_nothing)
    assert feedback.step == Step.RIGHT
    assert "wrote 0 of the 20 bytes of out_ptr" in dict(feedback.lines)["what came"]


@triton.jit
def calls_labkits_cast(x_ptr, scale_ptr, out_ptr, n, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i, mask=i < n) / tl.load(scale_ptr)
    tl.store(out_ptr + i, saturating_cast(y, out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def calls_the_reference(x_ptr, scale_ptr, out_ptr, n, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = saturating_cast_reference(tl.load(x_ptr + i, mask=i < n), out_ptr.dtype.element_ty)
    tl.store(out_ptr + i, y, mask=i < n)


@pytest.mark.parametrize(
    ("kernel", "step"), [(calls_labkits_cast, Step.THERE), (calls_the_reference, Step.COMPILES)]
)
def test_calling_the_reference_fails(kernel, step):
    assert fused.saturate.check(kernel).step == step


def faults_off():
    labkit.start("MI300X", faults="off", quiet=True)


def nothing_counted():
    labkit.start("MI300X", counters=False, quiet=True)


def another_chip():
    labkit.start("MI355X", quiet=True)


@pytest.mark.parametrize("tamper", [faults_off, nothing_counted, another_chip])
def test_what_was_started_changes_no_verdict(tamper):
    tamper()
    before = triton.runtime.driver.active
    assert EXERCISE.check(tail.no_mask).step == Step.RUNS
    assert EXERCISE.check(tail.strided_lanes).step == Step.GOAL
    assert EXERCISE.check(tail.right).solved
    assert triton.runtime.driver.active is before


@pytest.mark.parametrize("name", ["goals", "trials", "mistakes", "hints", "title"])
def test_an_exercise_cannot_be_changed(name):
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(EXERCISE, name, ())


def test_seeds_fix_nothing():
    def first_input():
        np.random.seed(1)  # noqa: NPY002
        torch.manual_seed(1)
        (trial, *_) = EXERCISE.trials(torch.device("cpu"), np.random.default_rng())
        return trial.arguments[0]

    assert not torch.equal(first_input(), first_input())
