"""Where workgroups go, and orders of tiles, against lists written down by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.errors import LabkitError
from labkit.model.dispatch import grouped_order, places, row_order, xcd_order


def test_places_go_round_the_xcds_then_round_their_units():
    table = places(8 * 38 + 9)
    assert table["xcd"].tolist()[:9] == [0, 1, 2, 3, 4, 5, 6, 7, 0]
    assert table["compute_unit"].tolist()[:9] == [0] * 8 + [1]
    # 304 workgroups fill 304 compute units; the next ones begin again.
    assert len(table[:304].groupby(["xcd", "compute_unit"])) == 304
    assert table[["xcd", "compute_unit"]].values.tolist()[304:306] == [[0, 0], [1, 0]]


def test_grouped_order_of_a_small_grid():
    # Tiles of 3 rows and 4 columns, in bands of two rows:
    #   0  2  4  6
    #   1  3  5  7
    #   8  9 10 11
    dealt = grouped_order(3, 4, 2)(np.arange(12)).tolist()
    assert dealt == [0, 4, 1, 5, 2, 6, 3, 7, 8, 9, 10, 11]


def test_xcd_order_gives_each_xcd_a_run():
    dealt = xcd_order(10, xcds=4)(np.arange(10))
    # Runs of 3, 3, 2 and 2 tiles.
    assert [dealt[xcd::4].tolist() for xcd in range(4)] == [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]


@settings(deadline=None, derandomize=True)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 25), st.integers(1, 9))
def test_every_order_is_a_permutation(rows, columns, group, xcds):
    count = rows * columns
    for order in (row_order, grouped_order(rows, columns, group),
                  xcd_order(count, grouped_order(rows, columns, group), xcds)):  # fmt: skip
        assert sorted(order(np.arange(count)).tolist()) == list(range(count))


@pytest.mark.parametrize("sizes", [(0, 4, 2), (3, 0, 2), (3, 4, 0), (3, 4, 1.5)])
def test_sizes_must_be_counts(sizes):
    with pytest.raises(LabkitError, match="whole number, 1 or more"):
        grouped_order(*sizes)
