"""The pictures of notebook 03 show what they were given, and say it in words."""

import numpy as np
import pandas as pd
import pytest

from labkit.figures import fused


def test_share_bars_stack_to_the_whole():
    shares = pd.DataFrame(
        {"norms": [2.0, 6.0], "GEMMs": [98.0, 94.0]}, index=pd.Index([1, 128], name="batch")
    )
    picture = fused.share_bars(shares)
    axes = picture.axes[0]
    bars = axes.patches
    assert [bar.get_width() for bar in bars] == [2, 6, 98, 94]
    assert [bar.get_x() + bar.get_width() for bar in bars][2:] == [100, 100]
    assert {bar.get_hatch() for bar in bars} == {"//", ""}  # told apart without colour
    assert [text.get_text() for text in axes.texts] == ["6", "98", "94"]  # 2 is too narrow for a number
    assert "batch 128: norms 6.0 %, GEMMs 94.0 %" in picture.alt
    assert "modelled" in axes.get_xlabel()


def test_number_lines_draw_each_value_once():
    picture = fused.number_lines({"a": np.array([1.0, 2.0, 3.0]), "b": np.array([0.5, 448.0])})
    segments = [len(lines.get_segments()) for lines in picture.axes[0].collections]
    assert segments == [3, 2]
    assert "a: 3 values from 1 to 3; b: 2 values from 0.5 to 448" in picture.alt


def test_round_trip_error_names_the_worst():
    x = np.array([1.0, 2.0, 4.0])
    picture = fused.round_trip_error(x, {"scale 1": np.array([0.0, 5.0, 40.0])})
    assert picture.axes[0].lines[0].get_ydata().tolist() == [0, 5, 40]
    assert "scale 1: at most 40.0 %" in picture.alt


@pytest.mark.parametrize("floor", [5, 7])
def test_bytes_an_element_stand_beside_the_floor(floor):
    picture = fused.bytes_an_element(["three", "one"], [10.5, 6.25], [5.0, 3.0], floor)
    axes = picture.axes[0]
    assert [text.get_text() for text in axes.texts] == [" 15.50", " 9.25"]
    assert axes.lines[0].get_xdata() == [floor, floor]
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert f"floor: {floor}" in labels and "loaded (counted)" in labels
    assert "three: 10.5 loaded, 5 stored" in picture.alt
