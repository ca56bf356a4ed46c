"""Cache lines and LDS banks of one access, against sets and loops in plain Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.errors import LabkitError
from labkit.model.banks import bank_map, conflicts
from labkit.model.coalescing import coalescing, lines_of_lanes

LANE = np.arange(64)
quick = settings(deadline=None, derandomize=True, max_examples=40)


@pytest.mark.parametrize(
    "addresses,size,lines,least,segments",
    [
        (LANE * 4, 4, 2, 2, 4),
        (LANE * 16, 16, 8, 8, 16),
        (LANE * 4 + 64, 4, 3, 2, 4),
        (LANE * 128, 4, 64, 2, 64),
        (LANE * 0, 4, 1, 1, 1),
        (LANE * 256 + 120, 16, 128, 8, 128),  # each across the end of a line
    ],
)
def test_lines_by_hand(addresses, size, lines, least, segments):
    table = coalescing(addresses, size)
    assert table["touched"].tolist() == [lines, segments] and table["least"][0] == least
    assert table["bytes moved"].tolist() == [lines * 128, segments * 64]
    assert table["used %"][0] == pytest.approx(100 * 64 * size / (lines * 128))


waves = st.lists(st.integers(0, 3000), min_size=64, max_size=64)
masks = st.lists(st.booleans(), min_size=64, max_size=64)


@quick
@given(waves, st.sampled_from([1, 2, 4, 8, 12, 16]), masks)
def test_lines_against_sets_of_bytes(addresses, size, active):
    touched = {at + byte for at, on in zip(addresses, active, strict=True) if on for byte in range(size)}
    table = coalescing(addresses, size, active)
    assert table["touched"].tolist() == [len({byte // unit for byte in touched}) for unit in (128, 64)]
    assert table["bytes asked for"][0] == size * sum(active)


def test_lines_of_lanes():
    found = lines_of_lanes(LANE * 4 + 126, 4)
    assert found[0].tolist() == [0, 1] and found[1].tolist() == [1, 1]


def phases_in_words(size, write):
    """Lanes that meet: 32, 16 or 8 in a row, but for reads of 12 and 16 bytes Composable Kernel's table."""
    if size in (12, 16) and not write:
        table = [[0, 20], [4, 16], [8, 28], [12, 24]]
        return [[start + at + k for at in pair for k in range(4)] for start in (0, 32) for pair in table]
    width = 32 if size <= 4 else 16 if size == 8 else 8
    return [list(range(first, first + width)) for first in range(0, 64, width)]


@quick
@given(waves, st.sampled_from([1, 4, 8, 12, 16]), st.booleans(), masks)
def test_banks_against_plain_python(addresses, size, write, active):
    unit = min(size, 4)
    addresses = [at // unit * unit for at in addresses]
    table, asked = conflicts(addresses, size, write, active), bank_map(addresses, size, write, active)
    expected = []
    for lanes in phases_in_words(size, write):
        words = {addresses[lane] // 4 + k for lane in lanes if active[lane] for k in range(max(1, size // 4))}
        expected.append([sum(word % 32 == bank for word in words) for bank in range(32)])
    assert asked.tolist() == expected
    assert table["cycles"].tolist() == [max(row) for row in expected]
    assert table["lanes"].tolist() == phases_in_words(size, write)
    assert (table["conflict_cycles"] == table["cycles"] - (table["cycles"] > 0)).all()


@pytest.mark.parametrize("stride,cycles", [(1, 1), (2, 2), (8, 8), (32, 32), (33, 1)])
def test_a_column_of_a_matrix_in_lds(stride, cycles):
    """32 lanes read words `stride` apart: they meet in 32 / gcd(32, stride) banks; padding to 33 mends it."""
    assert conflicts(LANE * 4 * stride, 4)["cycles"].tolist() == [cycles, cycles]


def test_lanes_that_read_one_word_do_not_conflict():
    assert conflicts(LANE * 0, 4)["conflict_cycles"].sum() == 0


@pytest.mark.parametrize("call", [
    lambda: coalescing([0] * 63, 4),
    lambda: coalescing([0.5] * 64, 4),
    lambda: coalescing([-4] * 64, 4),
    lambda: coalescing([0] * 64, 3),
    lambda: coalescing([0] * 64, 4, [True]),
    lambda: conflicts([2] * 64, 4),
])  # fmt: skip
def test_what_is_no_wave_is_refused(call):
    with pytest.raises(LabkitError):
        call()
