"""How well a Picture can be read: contrast of its text, and what tells its legend's entries apart."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from matplotlib import colors
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from PIL import Image

from labkit.figures.picture import Picture

TEXT_RATIO = 4.5  # WCAG 2.2, success criterion 1.4.3, level AA


def luminance(rgb: np.ndarray) -> np.ndarray:
    """Relative luminance (WCAG 2.2) of sRGB values from 0 to 1, shape [..., 3]."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


def low_contrasts(picture: Picture) -> list[tuple[str, float]]:
    """(text, WCAG ratio) of each text whose ratio to the ground that was drawn below it is under 4.5.

    The picture is drawn without its texts. The ground is the pixels in a text's box, but for the tenth
    with the lowest ratio, so that a grid line or a cell's edge that crosses a letter doesn't count.
    """
    canvas = FigureCanvasAgg(picture)
    canvas.draw()
    texts = [text for text in picture.findobj(Text) if text.get_visible() and text.get_text().strip()]
    boxes = [text.get_window_extent() for text in texts]
    picture.set_layout_engine("none")  # without texts it would move everything
    kept = [(text, text.get_color(), text.get_alpha()) for text in texts]
    for text in texts:
        text.set_color("none")
    drawn = BytesIO()
    picture.savefig(drawn, format="png", dpi=picture.dpi)
    ground = luminance(np.asarray(Image.open(drawn).convert("RGB")) / 255)
    found = []
    for (text, colour, alpha), box in zip(kept, boxes, strict=True):
        text.set_color(colour)
        top, bottom = ground.shape[0] - box.y1, ground.shape[0] - box.y0
        rows, columns = slice(max(0, int(top)), int(bottom) + 1), slice(max(0, int(box.x0)), int(box.x1) + 1)
        rgba = np.array(colors.to_rgba(colour, alpha))
        behind = ground[rows, columns].ravel()
        if not behind.size:  # a tick label outside of the picture, which matplotlib doesn't draw
            continue
        front = luminance(rgba[:3])
        ratios = (np.maximum(front, behind) + 0.05) / (np.minimum(front, behind) + 0.05)
        ratio = float(np.quantile(ratios, 0.1))
        if ratio < TEXT_RATIO:
            found.append((text.get_text(), round(ratio, 2)))
    return found


def entries_told_by_colour_alone(picture: Picture) -> list[str]:
    """The labels of legend entries that look like another one of their legend but for the colour."""
    legends = [*picture.legends, *(axes.get_legend() for axes in picture.axes if axes.get_legend())]
    found = []
    for legend in legends:
        looks = [_look(handle) for handle in legend.legend_handles]
        labels = [text.get_text() for text in legend.get_texts()]
        found += [label for label, look in zip(labels, looks, strict=True) if looks.count(look) > 1]
    return found


def _look(handle) -> tuple:
    """All that tells a legend's handle but its colour: the kind, hatch, line style, markers."""
    hatch = handle.get_hatch() if hasattr(handle, "get_hatch") else None
    line = str(handle.get_linestyle()) if hasattr(handle, "get_linestyle") else None
    marker = handle.get_marker() if hasattr(handle, "get_marker") else None
    paths = handle.get_paths() if hasattr(handle, "get_paths") else []
    shape = tuple(path.vertices.round(3).tobytes() for path in paths)
    return type(handle).__name__, hatch or None, line, marker, shape
