"""What judges the pictures of the other tests finds what it looks for."""

import pytest

from labkit.figures.picture import Picture
from tests.figures.reading import entries_told_by_colour_alone, low_contrasts


@pytest.fixture
def drawn():
    """In place of the folder's own: pictures that are hard to read are the point here."""


# The lightest grey that passes on white is #767676 (WebAIM's and W3C's worked example).
@pytest.mark.parametrize(("colour", "found"), [("#767676", False), ("#777777", True), ("white", True)])
def test_pale_text_is_found(colour, found):
    picture = Picture(4, 2)
    picture.text(0.5, 0.5, "some words", color=colour)
    assert [text for text, _ in low_contrasts(picture)] == ["some words"] * found


@pytest.mark.parametrize(("ground", "found"), [("#0072B2", True), ("#f7d08a", False)])
def test_black_text_is_judged_by_the_patch_below_it(ground, found):
    picture = Picture(4, 2)
    axes = picture.subplots()
    axes.axis("off")
    axes.axhspan(0, 1, color=ground)
    axes.text(0.5, 0.5, "words", color="#333333")
    assert bool(low_contrasts(picture)) is found


@pytest.mark.parametrize(("style", "found"), [("-", ["a", "b"]), ("--", [])])
def test_lines_that_differ_in_colour_alone_are_found(style, found):
    picture = Picture(4, 2)
    axes = picture.subplots()
    axes.plot([0, 1], "-", color="#0072B2", label="a")
    axes.plot([1, 0], style, color="#D55E00", label="b")
    axes.legend()
    assert entries_told_by_colour_alone(picture) == found


def test_bars_that_differ_in_hatch_are_told_apart():
    picture = Picture(4, 2)
    axes = picture.subplots()
    axes.barh([0], [1], color="#0072B2", label="a")
    axes.barh([1], [1], color="#D55E00", hatch="//", label="b")
    axes.legend()
    assert entries_told_by_colour_alone(picture) == []
