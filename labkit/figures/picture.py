"""A matplotlib figure that shows itself in any notebook front end, with text for who can't see it."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Any

from matplotlib.figure import Figure


class Picture(Figure):
    """A figure on a white ground with `alt`, a description in words.

    Jupyter shows a plain Figure only after pyplot was set up. This one brings its own PNG, and its alt
    text as the image's metadata, which JupyterLab and nbconvert pass on to the page.
    """

    def __init__(self, width: float, height: float, alt: str = "") -> None:
        """width, height: in inches. alt: may also be set later, when what it says is known."""
        super().__init__(figsize=(width, height), facecolor="white", layout="constrained")
        self.alt = alt

    def png(self, dots_per_inch: int = 80) -> bytes:
        """The picture as a PNG file's content."""
        buffer = BytesIO()
        # No software name in the file: the same picture gives the same bytes.
        self.savefig(buffer, format="png", dpi=dots_per_inch, metadata={"Software": None})
        return buffer.getvalue()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        data = base64.b64encode(self.png()).decode()
        text = {"text/plain": self.alt or repr(self)}
        return {"image/png": data, **text}, {"image/png": {"alt": self.alt}}
