"""The compiler's pictures: what stands in them, their alt text, and that text is large enough to read."""

import base64
import io

import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image

from labkit.compiler.layouts import Blocked
from labkit.compiler.passes import pass_table
from labkit.figures.picture import Picture
from labkit.figures.pipeline import layout_picture, stage_timeline, timeline_alt_text
from tests.figures.conftest import drawn  # noqa: F401  each picture drawn here must be readable, too


def texts(picture):
    return [item for item in picture.findobj(Text) if item.get_text()]


@pytest.fixture
def layout():
    owners = Blocked((1, 8), (4, 16), (4, 1), (1, 0)).owners((64, 256))
    return layout_picture(owners.wave, owners.lane, owners.register, title="#blocked")


def test_layout_shows_the_corner(layout):
    cells = [item.get_text() for item in texts(layout) if item.get_text().startswith("L")]
    assert len(cells) == 8 * 16
    assert cells[0] == "L0\nr0"
    assert cells[15] == "L1\nr7"
    assert cells[7 * 16] == "L48\nr0"
    assert {item.get_text() for item in layout.legends[0].get_texts()} == {"wave 0", "wave 1"}


def test_layout_of_one_dimension_is_cut_into_lines():
    owners = Blocked((4,), (64,), (4,), (0,)).owners((1024,))
    picture = layout_picture(owners.wave, owners.lane, owners.register)
    labels = [item.get_text() for item in picture.axes[0].get_yticklabels()]
    assert labels == [str(16 * line) for line in range(8)]
    assert "element [1023] in wave 3, lane 63, register 3" in picture.alt


def test_layout_of_one_element():
    one = np.zeros((1, 1), dtype=int)
    assert "L0\nr0" in [item.get_text() for item in texts(layout_picture(one, one, one))]


def test_timeline(softmax):
    table = pass_table(softmax.passes())
    picture = stage_timeline(table)
    changed = table[table["changed"]]
    labels = [item.get_text() for item in picture.axes[0].get_yticklabels()]
    assert labels == [f"{row['number']} {row['name']}" for _, row in changed.iterrows()]
    assert sum(bar.get_width() for bar in picture.axes[0].patches if bar.get_width() > 0) == (
        changed["lines_added"].sum()
    )
    assert f"{len(changed)} of {len(table)} compiler passes" in picture.alt


def test_timeline_where_nothing_changed(softmax):
    table = pass_table(softmax.passes())
    quiet = table[~table["changed"]]
    assert "none changed anything" in timeline_alt_text(quiet)
    assert stage_timeline(quiet).png().startswith(b"\x89PNG")


def test_text_is_large_enough(layout, softmax):
    for picture in (layout, stage_timeline(pass_table(softmax.passes()))):
        assert min(item.get_fontsize() for item in texts(picture)) >= 10


def test_picture_carries_its_alt_text_and_a_white_ground(layout):
    bundle, metadata = layout._repr_mimebundle_()
    assert metadata["image/png"]["alt"] == layout.alt
    assert f'alt="{layout.alt}"' in bundle["text/html"]
    image = Image.open(io.BytesIO(base64.b64decode(bundle["image/png"]))).convert("RGBA")
    assert image.getpixel((0, 0)) == (255, 255, 255, 255)
    assert len(bundle["image/png"]) < 60_000


def test_alt_text_is_escaped():
    bundle, _ = Picture(1, 1, 'a "b" <c>')._repr_mimebundle_()
    assert 'alt="a &quot;b&quot; &lt;c&gt;"' in bundle["text/html"]
