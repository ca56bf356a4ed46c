"""The pictures of a trace show what the wave did, and say it in words."""

from dataclasses import replace

import matplotlib.style
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from matplotlib.colors import to_rgb

import labkit
from labkit.errors import LabkitError
from labkit.figures.stepping import draw


@triton.jit
def copy_kernel(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    tl.store(out_ptr + lane, tl.load(x_ptr + lane * stride, mask=lane < 24, other=0.0) + 1)


@triton.jit
def total_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK)), 0))


@pytest.fixture
def copy():
    """A load of x with 24 lanes on, 100 bytes apart."""
    labkit.start("MI300X", quiet=True)
    with triton.knobs.amd.scope():
        triton.knobs.amd.use_buffer_ops = False
        return labkit.trace(
            copy_kernel, (1,), (torch.arange(2000.0), torch.zeros(64), 25), {"BLOCK": 64, "num_warps": 1}
        )


@pytest.fixture
def total():
    labkit.start("MI300X", quiet=True)
    return labkit.trace(total_kernel, (1,), (torch.ones(256), torch.zeros(1)), {"BLOCK": 256, "num_warps": 4})


def load_of(trace):
    return next(step for step in trace.executed if step.instruction.kind == "VMEM load")


def hatched(axes):
    return [patch for patch in axes.patches if patch.get_hatch()]


def bars(axes):
    return [patch for patch in axes.patches if patch.get_facecolor()[:3] == to_rgb("#0072B2")]


def test_addresses_by_lane(copy):
    step = load_of(copy)
    picture = draw(copy, "addresses", step=step.number)
    axes = picture.axes[0]
    assert sorted(round(patch.get_x()) for patch in hatched(axes)) == list(range(24, 64))
    # Lane k reads bytes 100k to 100k + 3, so the 18 lines up to 2303 // 128 are met and none is left out.
    expected = [100 * lane / 128 for lane in range(24)]
    assert [bar.get_y() for bar in bars(axes)] == pytest.approx(expected)
    assert {round(bar.get_height() * 128) for bar in bars(axes)} == {4}
    assert "lanes: 24, bytes: 96, cache lines of 128 bytes: 18" in picture.alt
    assert axes.get_yticklabels()[0].get_text() == "x_ptr 0 to 127"


def test_a_lane_whose_bytes_lie_in_two_lines_has_two_bars(copy):
    step = load_of(copy)
    (access,) = step.accesses
    offsets = np.where(np.arange(64) == 0, 120, 0)  # lane 0 reads bytes 120 to 135
    step = replace(step, accesses=[replace(access, size=16, offsets=offsets)])
    axes = draw(replace(copy, executed=[step]), "addresses", step=step.number).axes[0]
    assert [(bar.get_y(), bar.get_height()) for bar in bars(axes)[:2]] == [
        (120 / 128, 8 / 128),
        (1.0, 8 / 128),
    ]
    assert len(bars(axes)) == 2 + 23


def test_exec_over_time(total):
    picture = draw(total)
    drawn = picture.axes[0].collections[0].get_array().reshape(-1, 64)
    masks = [step.exec_mask for step in total.executed]
    runs = 1 + sum(a != b for a, b in zip(masks, masks[1:], strict=False))
    assert len(drawn) == runs
    assert drawn.sum(axis=1).tolist()[:4] == [
        64,
        1,
        64,
        4,
    ]  # one lane a wave writes its sum, 4 lanes read them
    labels = [label.get_text() for label in picture.axes[0].get_yticklabels()]
    assert labels[0].startswith("steps 0-")
    assert labels[1].endswith("after s_and_saveexec_b64 s[0:1], vcc")
    assert "s_and_saveexec_b64 s[0:1], vcc: 1 lanes" in picture.alt


def test_a_register_lane_by_lane(copy):
    step = load_of(copy)
    name = step.writes[0].typed.name
    picture = draw(copy[step.number : step.number + 1], "registers", register=name)
    axes = picture.axes[0]
    assert [text.get_text() for text in axes.texts] == [
        "0",
        "200",
        "400",
    ]  # lanes 0, 8, 16; the others are off
    assert len(hatched(axes)) == 40
    shades = np.ma.filled(axes.collections[0].get_array().reshape(64), np.nan)
    assert shades[:24].tolist() == pytest.approx([lane / 23 for lane in range(24)])
    assert "0 in lane 0" in picture.alt


def test_a_register_of_halves_has_a_row_for_each():
    labkit.start("MI300X", quiet=True)
    x = torch.arange(128).half()
    trace = labkit.trace(copy_kernel, (1,), (x, torch.zeros(128).half(), 1), {"BLOCK": 128, "num_warps": 1})
    add = next(step for step in trace.executed if step.instruction.operation == "v_pk_add_f16")
    picture = draw(trace[add.number : add.number + 1], "registers", register=add.writes[0].typed.name)
    labels = [label.get_text() for label in picture.axes[0].get_yticklabels()]
    assert [label[-3:] for label in labels] == ["[0]", "[1]"]
    assert [text.get_text() for text in picture.axes[0].texts][:2] == ["1", "17"]  # elements 0 and 16, plus 1


def test_a_dark_notebook_gets_the_same_picture(copy):
    light = draw(copy, "exec").png()
    with matplotlib.style.context("dark_background"):
        dark = draw(copy, "exec")
        assert dark.png() == light
    assert to_rgb(dark.axes[0].title.get_color()) == (0, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("register",),
            "there is no figure 'register' of a trace: choose one of 'registers', 'exec', 'addresses'",
        ),
        (("registers",), "'' is not a vector register"),
        (("addresses",), "step None touches no memory; these do: "),
    ],
)
def test_what_cannot_be_drawn(copy, arguments, message):
    with pytest.raises(LabkitError, match=message):
        draw(copy, *arguments)


def test_too_many_rows_and_none(total):
    with pytest.raises(LabkitError, match="no steps"):
        draw(total[0:0])
    many = labkit.trace(
        copy_kernel, (1,), (torch.ones(64), torch.zeros(64), 1), {"BLOCK": 64, "num_warps": 1}
    )
    step = load_of(many)
    long = replace(many, executed=[step] * 61)
    with pytest.raises(LabkitError, match="61 times, more than the 60 rows"):
        draw(long, "registers", register=step.writes[0].typed.name)


def test_a_scalar_load_has_no_lanes():
    labkit.start("MI300X", quiet=True)
    arguments = tuple(torch.ones(64) for _ in range(9))
    trace = labkit.trace(many_kernel, (1,), arguments, {"num_warps": 1})
    scalar = next(step for step in trace.executed if step.accesses and step.accesses[0].lanes.size == 1)
    assert "kernel arguments + " in str(scalar.accesses[0])
    with pytest.raises(LabkitError, match="is a scalar load"):
        draw(trace, "addresses", step=scalar.number)


@triton.jit
def many_kernel(a, b, c, d, e, f, g, h, out):
    lane = tl.arange(0, 64)
    low = tl.load(a + lane) + tl.load(b + lane) + tl.load(c + lane) + tl.load(d + lane)
    tl.store(out + lane, low + tl.load(e + lane) + tl.load(f + lane) + tl.load(g + lane) + tl.load(h + lane))
