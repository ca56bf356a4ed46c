"""The pictures of notebook 02: what stands in them, their alt text, and that text is large enough to read."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from labkit.compiler.layouts import Blocked
from labkit.figures.ownership import lines_by_lane, owner_maps
from labkit.figures.stages import dialect_bars, rounding_picture, syntax_beside_ir, two_roads

NODES = pd.DataFrame(
    [
        (8, "BinOp Add", "x_ptr + offsets", ["tt.splat", "tt.addptr"]),
        (8, "Call tl.load", "tl.load(x_ptr + offsets)", ["tt.load"]),
        (7, "Compare Lt", "offsets < n", ["tt.splat", "arith.cmpi"]),
    ],
    columns=["source_line", "node", "code", "operations"],
)
COUNTS = pd.DataFrame({"arith": [24, 5], "tt": [15, 0], "llvm": [0, 58]}, index=["first", "last"])


def texts(picture):
    return [item.get_text() for item in picture.findobj(Text) if item.get_text()]


@pytest.fixture
def rounding():
    values = np.array([0.5, 1.0, 1.99, 500.0])
    results = {"right": np.array([0.5, 1.0, 2.0, 448.0]), "wrong": np.array([0.5, 1.0, 1.0, np.nan])}
    return rounding_picture(values, results, smallest_normal=2.0**-6, largest=448.0)


@pytest.fixture
def owners():
    layout = Blocked((4, 1), (16, 4), (1, 4), (0, 1)).owners((64, 64))
    return owner_maps({"a": (layout.wave, layout.lane), "b": (layout.lane * 0, layout.lane)})


def test_roads_name_each_stop_and_who_leads_there():
    picture = two_roads({"Python": "8 lines", "ttir": "51 lines", "ttgir": "41 lines"}, ["one", "two"])
    assert {"Python\n8 lines", "ttir\n51 lines", "ttgir\n41 lines", "one", "two"} <= set(texts(picture))
    assert "ttir 51 lines, ttgir 41 lines" in picture.alt


def test_syntax_has_a_frame_for_each_line_node_and_result():
    picture = syntax_beside_ir([(7, "    mask = offsets < n"), (8, "    x = tl.load(...)")], NODES)
    shown = texts(picture)
    assert {
        " 7 mask = offsets < n",
        "Compare Lt: offsets < n",
        "tt.splat  arith.cmpi",
        "Call tl.load",
    } <= set(shown)
    # A link from the line to the node, and one on to the operations.
    assert len(picture.axes[0].lines) == 2 * len(NODES)
    assert "2 lines of a kernel, linked to 3 syntax nodes, linked to 5 operations" in picture.alt


def test_dialects_are_stacked_to_their_total():
    picture = dialect_bars(COUNTS)
    assert sum(bar.get_width() for bar in picture.axes[0].patches) == COUNTS.to_numpy().sum()
    assert max(bar.get_x() + bar.get_width() for bar in picture.axes[0].patches) == 5 + 58
    assert "first: 24 arith, 15 tt; last: 5 arith, 58 llvm" in picture.alt


def test_rounding_marks_only_what_differs(rounding):
    everything, differing = (np.asarray(points.get_offsets()) for points in rounding.axes[0].collections)
    assert len(everything) == 4
    assert differing == pytest.approx(np.array([[1.99, 1 / 1.99], [500.0, 0.0]]))
    assert "differs at 2 of 4 numbers" in rounding.alt


def test_rounding_where_nothing_differs():
    values = np.array([0.5, 1.0])
    picture = rounding_picture(values, {"a": values, "b": values}, smallest_normal=0.5, largest=1.0)
    assert picture.alt.endswith("b differs at 0 of 2 numbers.")
    assert picture.png().startswith(b"\x89PNG")


def test_owner_maps_number_the_lanes(owners):
    left = [item.get_text() for item in owners.axes[0].texts]
    assert len(left) == 8 * 16
    # Four rows a lane, then the next lane; a column further is sixteen lanes on.
    assert left[:5] == ["0", "16", "32", "48", "0"]
    assert left[4 * 16] == "1"
    assert [item.get_text() for item in owners.legends[0].get_texts()] == [f"wave {n}" for n in range(4)]
    assert "row 0, column 1 in lane 16 of wave 0" in owners.alt


def test_lines_are_counted_once():
    picture = lines_by_lane({"wide": [np.array([0])] * 32 + [np.array([0, 1])] * 32, "far": [np.array([9])]})
    assert "wide: 2 lines; far: 1 lines" in picture.alt
    assert [len(axes.collections[0].get_offsets()) for axes in picture.axes] == [96, 1]


def test_text_is_large_enough(rounding, owners):
    pictures = [rounding, owners, syntax_beside_ir([(7, "a"), (8, "b")], NODES), dialect_bars(COUNTS)]
    pictures += [two_roads({"Python": "1", "ttir": "2"}, ["x"]), lines_by_lane({"a": [np.array([0])]})]
    for picture in pictures:
        assert min(item.get_fontsize() for item in picture.findobj(Text) if item.get_text()) >= 10
        assert picture.alt
