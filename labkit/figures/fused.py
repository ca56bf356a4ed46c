"""Pictures of notebook 03: shares of a token's time, FP8 number lines, rounding error, bytes an element.

Plain data in, a Picture out; nothing is computed here but where to draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from labkit.figures.picture import Picture, on_white

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

# Okabe-Ito, lightened so that black text stands out on each; hatches tell them apart without colour.
_TINTS = ("#f7d08a", "#a6d9f5", "#a3dbc7", "#efc3da", "#f4efa0")
_HATCHES = ("//", "", "..", "xx", "--")
_SOLID = ("#0072B2", "#D55E00", "#009E73", "#E69F00")
_POINTS = 10


@on_white
def share_bars(shares: pd.DataFrame, *, title: str = "") -> Picture:
    """Stacked bars of shares in percent: one bar a row, one part a column."""
    parts = "; ".join(
        f"batch {batch}: " + ", ".join(f"{name} {value:.1f} %" for name, value in row.items())
        for batch, row in shares.iterrows()
    )
    picture = Picture(10, 0.75 * len(shares) + 1.6, f"Stacked bars, one a batch size. {parts}.")
    axes = picture.subplots()
    rows = range(len(shares))
    left = [0.0] * len(shares)
    for number, (name, values) in enumerate(shares.items()):
        style = {"color": _TINTS[number % 5], "hatch": _HATCHES[number % 5], "edgecolor": "#333333"}
        axes.barh(rows, values, left=left, height=0.7, label=name, **style)
        for row, (start, value) in enumerate(zip(left, values, strict=True)):
            if value >= 4:
                spot = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
                axes.text(
                    start + value / 2,
                    row,
                    f"{value:.0f}",
                    ha="center",
                    va="center",
                    fontsize=_POINTS,
                    bbox=spot,
                )
        left = [start + value for start, value in zip(left, values, strict=True)]
    axes.set_yticks(rows, [str(batch) for batch in shares.index], fontsize=_POINTS)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_ylabel(shares.index.name or "", fontsize=_POINTS)
    axes.set_xlabel("share of the layer's floor time, % (modelled)", fontsize=_POINTS)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=len(shares.columns), fontsize=_POINTS)
    axes.set_title(title, fontsize=_POINTS + 2)
    return picture


@on_white
def number_lines(values: Mapping[str, np.ndarray], *, title: str = "") -> Picture:
    """The positive values of number formats as ticks on one log axis, a line a format.

    values: name -> positive finite values.
    """
    words = "; ".join(
        f"{name}: {len(v)} values from {v.min():.3g} to {v.max():g}" for name, v in values.items()
    )
    picture = Picture(11, 1.0 * len(values) + 1.4, f"Number lines on a log axis. {words}.")
    axes = picture.subplots()
    for row, points in enumerate(values.values()):
        axes.vlines(points, row - 0.3, row + 0.3, color=_SOLID[row % 4], linewidth=1.3)
        for point, side in ((points.min(), "left"), (points.max(), "right")):
            axes.text(point, row - 0.36, f"{point:.3g}", ha=side, va="bottom", fontsize=_POINTS)
    axes.set_xscale("log", base=2)
    axes.set_yticks(range(len(values)), list(values), fontsize=_POINTS)
    axes.set_ylim(len(values) - 0.4, -0.75)
    axes.tick_params(axis="x", labelsize=_POINTS)
    axes.set_xlabel("positive values that the format holds", fontsize=_POINTS)
    axes.set_title(title, fontsize=_POINTS + 2)
    return picture


@on_white
def round_trip_error(x: np.ndarray, errors: Mapping[str, np.ndarray], *, title: str = "") -> Picture:
    """Relative error of a cast and back, in percent, against the value, a line a format; log axes."""
    import numpy as np

    worst = "; ".join(f"{name}: at most {np.nanmax(e):.1f} %" for name, e in errors.items())
    picture = Picture(
        10, 4.0, f"Line chart of the relative error of a round trip against the value. {worst}."
    )
    axes = picture.subplots()
    styles = ("-", "--", ":", "-.")
    for number, (name, error) in enumerate(errors.items()):
        axes.plot(x, error, styles[number % 4], color=_SOLID[number % 4], linewidth=1.6, label=name)
    axes.set_xscale("log", base=2)
    axes.tick_params(labelsize=_POINTS)
    axes.set_xlabel("value", fontsize=_POINTS)
    axes.set_ylabel("relative error, %", fontsize=_POINTS)
    axes.grid(True, linewidth=0.4)
    axes.legend(fontsize=_POINTS)
    axes.set_title(title, fontsize=_POINTS + 2)
    return picture


@on_white
def bytes_an_element(
    versions: Sequence[str],
    loaded: Sequence[float],
    stored: Sequence[float],
    floor: float,
    *,
    title: str = "",
) -> Picture:
    """Bars of bytes loaded and stored an element, one bar a version, against the least possible."""
    words = "; ".join(
        f"{name}: {in_:g} loaded, {out:g} stored"
        for name, in_, out in zip(versions, loaded, stored, strict=True)
    )
    picture = Picture(
        9, 0.7 * len(versions) + 1.7, f"Bars of bytes an element. {words}. The floor is {floor:g}."
    )
    axes = picture.subplots()
    rows = range(len(versions))
    axes.barh(rows, loaded, color=_TINTS[1], edgecolor="#333333", height=0.6, label="loaded (counted)")
    axes.barh(
        rows,
        stored,
        left=loaded,
        color=_TINTS[0],
        hatch="//",
        edgecolor="#333333",
        height=0.6,
        label="stored (counted)",
    )
    for row, total in enumerate(a + b for a, b in zip(loaded, stored, strict=True)):
        axes.text(total, row, f" {total:.2f}", va="center", fontsize=_POINTS)
    axes.axvline(floor, color="#000000", linestyle="--", linewidth=1.5, label=f"floor: {floor:g}")
    axes.set_yticks(rows, versions, fontsize=_POINTS)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.18 * max(a + b for a, b in zip(loaded, stored, strict=True)))
    axes.tick_params(axis="x", labelsize=_POINTS)
    axes.set_xlabel("bytes an element", fontsize=_POINTS)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.3), ncols=3, fontsize=_POINTS)
    axes.set_title(title, fontsize=_POINTS + 2)
    return picture
