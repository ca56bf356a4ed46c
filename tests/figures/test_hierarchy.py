"""The pictures of notebook 01 show what they were given, and say it in words."""

import numpy as np
import pytest

from labkit.figures import hierarchy
from labkit.figures.picture import Picture


def texts(picture: Picture) -> list[str]:
    return [text.get_text() for axes in picture.axes for text in axes.texts]


def test_nested_gpu_draws_every_cell_and_marks_the_one_that_the_next_panel_shows():
    picture = hierarchy.nested_gpu([("GPU", 8, 4, "XCDs"), ("XCD", 38, 6, "CUs"), ("CU", 32, 4, "waves")])
    assert [len(axes.patches) for axes in picture.axes] == [8, 38, 32]
    hatched = [sum(patch.get_hatch() is not None for patch in axes.patches) for axes in picture.axes]
    assert hatched == [1, 1, 0]  # the last panel has nothing to zoom into
    assert "GPU: 8 XCDs; XCD: 38 CUs; CU: 32 waves" in picture.alt


def test_exec_over_time_has_a_row_a_step():
    lanes = np.zeros((3, 64), bool)
    lanes[0], lanes[1, :24], lanes[2, 24:] = True, True, True
    picture = hierarchy.exec_over_time(lanes, ["a", "b", "c"])
    drawn = picture.axes[0].collections[0].get_array().reshape(3, 64)
    assert (drawn == lanes).all()
    assert "3 instructions by 64 lanes" in picture.alt and "64, 24, 40" in picture.alt


def test_reduction_tree_names_what_the_last_lane_holds():
    summed = np.minimum(np.arange(64)[None, :] + 1, np.array([[1], [8], [64]]))
    picture = hierarchy.reduction_tree(summed, ["input", "one", "two"])
    assert texts(picture)[-1] == "64"
    assert "largest after each step: 1, 8, 64" in picture.alt
    assert "In the end lane 63 holds 64." in picture.alt


def test_reduction_tree_of_lanes_beside_lanes_with_less():
    held = np.array([np.ones(64), *(np.minimum(np.arange(64) % 16 + 1, 2.0**k) for k in range(5))])
    picture = hierarchy.reduction_tree(held.astype(int), ["step"] * 6)  # the fixture judges its contrasts
    assert texts(picture)[-1] == "16"


def test_lines_against_stride_writes_each_value():
    picture = hierarchy.lines_against_stride([1, 2, 4], [2.0, 4.0, 8.0], [2.0, 2.0, 2.0])
    assert texts(picture) == ["2", "4", "8"]
    assert "1: 2, 2: 4, 4: 8" in picture.alt
    labels = [text.get_text() for text in picture.axes[0].get_legend().get_texts()]
    assert all("counted" in label for label in labels)


def test_registers_over_time_marks_what_was_written():
    picture = hierarchy.registers_over_time(
        [["1", ""], ["1", "2"], ["3", "2"]], ["a", "b", "c"], ["v0", "v1"]
    )
    marked = picture.axes[0].collections[0].get_array().reshape(3, 2)
    assert marked.tolist() == [[1, 0], [0, 1], [1, 0]]
    assert "At the end v0 = 3, v1 = 2." in picture.alt


@pytest.mark.parametrize("dots", [40, 80])
def test_a_picture_becomes_a_png(dots):
    png = hierarchy.lines_against_stride([1, 2], [2.0, 4.0], [2.0, 2.0]).png(dots)
    assert png.startswith(b"\x89PNG")
