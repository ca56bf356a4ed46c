"""A matplotlib figure that shows itself in any notebook front end, with text for who can't see it."""

from __future__ import annotations

import base64
import html
from io import BytesIO
from typing import Any

from matplotlib import style
from matplotlib.figure import Figure

# For functions that draw: black on white, also where the notebook's own style is dark.
on_white = style.context("default")


class Picture(Figure):
    """A figure on a white ground with `alt`, a description in words.

    Jupyter shows a plain Figure only after pyplot was set up. This one brings its own image: as HTML,
    since JupyterLab takes alt text from there only, and as a PNG for pages that drop such HTML.
    """

    def __init__(self, width: float, height: float, alt: str = "") -> None:
        """width, height: in inches. alt: may also be set later, when what it says is known."""
        super().__init__(figsize=(width, height), facecolor="white", layout="constrained")
        self.alt = alt

    @on_white
    def png(self, dots_per_inch: int = 80) -> bytes:
        """The picture as the content of a PNG file with a palette, a quarter of the size of full colour."""
        from PIL import Image

        full, small = BytesIO(), BytesIO()
        self.savefig(full, format="png", dpi=dots_per_inch)
        Image.open(full).convert("RGB").quantize(128).save(small, "png", optimize=True)
        return small.getvalue()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        data = base64.b64encode(self.png()).decode()
        alt = html.escape(self.alt)
        image = f'<img alt="{alt}" style="max-width:100%" src="data:image/png;base64,{data}">'
        bundle = {"image/png": data, "text/html": image, "text/plain": self.alt or repr(self)}
        return bundle, {"image/png": {"alt": self.alt}}
