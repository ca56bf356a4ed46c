"""A slider on top of a picture: moving it draws anew. A batch run has only the picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from labkit.figures.picture import Picture


def with_slider(
    draw: Callable[[Any], Picture], label: str, choices: Sequence[Any], start: Any
) -> Picture | None:
    """Show `draw(start)`, and above it a slider over `choices` where somebody is there to move it.

    The picture is an output like any other: it stays in the saved file, with its alt text, and only its
    content changes. Returns the picture where nobody can move a slider, as in a batch run, so that a cell
    ends on it; else displays both and returns None. Raises ValueError if `start` isn't among `choices`.
    """
    if start not in choices:
        raise ValueError(f"{label} is {start!r}, not one of the {len(choices)} choices of its slider")
    if not _somebody_is_there():
        return draw(start)
    from IPython.display import display
    from ipywidgets import Layout, SelectionSlider

    slider = SelectionSlider(
        options=list(choices),
        value=start,
        description=label,
        continuous_update=False,  # a drawing for each place where it stops, not for each that it passes
        style={"description_width": "initial"},
        layout=Layout(width="28em"),
    )
    display(slider)
    shown = display(draw(start), display_id=True)
    slider.observe(lambda change: shown.update(draw(change["new"])), names="value")
    return None


def _somebody_is_there() -> bool:
    """Whether this cell's front end takes input. nbclient, below papermill and nbconvert, doesn't."""
    from IPython import get_ipython

    kernel = getattr(get_ipython(), "kernel", None)
    return bool(getattr(kernel, "_allow_stdin", False))
