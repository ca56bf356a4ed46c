"""The tail effect around multiples of 304, worked by hand and against a queue in plain Python."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.errors import LabkitError
from labkit.model.tail import schedule, tail


def test_one_workgroup_too_many_halves_the_machine():
    table = tail([304, 305, 608, 1])
    assert table["rounds"].tolist() == [1, 2, 2, 1]
    assert table["slots busy %"].tolist() == pytest.approx([100, 100 * 305 / 608, 100, 100 / 304])
    assert table["in last round"].tolist() == [304, 1, 304, 1]


def test_a_last_round_spreads_over_the_units_first():
    row = tail([304], workgroups_per_cu=2).iloc[0]
    assert row["slots busy %"] == 50 and row["compute units busy %"] == 100


@settings(deadline=None, derandomize=True, max_examples=30)
@given(st.integers(1, 4000), st.integers(1, 8))
def test_against_a_queue(workgroups, per_unit):
    left, running = workgroups, []
    while left:
        running.append(min(left, 304 * per_unit))
        left -= running[-1]
    table = schedule(workgroups, per_unit)
    assert table["workgroups"].tolist() == running
    assert tail([workgroups], per_unit)["slots busy %"][0] == pytest.approx(table["slots busy %"].mean())


@pytest.mark.parametrize("sizes,per_unit", [([0], 1), ([2.5], 1), ([4], 0)])
def test_sizes_must_be_counts(sizes, per_unit):
    with pytest.raises(LabkitError, match="whole number"):
        tail(sizes, per_unit)
