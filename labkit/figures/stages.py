"""Pictures of a kernel on its way down: two roads from one source, syntax beside IR, dialects, rounding.

Plain data in, a Picture out; nothing is computed here but where to draw.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from labkit.figures.picture import Picture, on_white

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes

# Okabe-Ito, lightened so that black text stands out on each.
_TINTS = ("#a6d9f5", "#f7d08a", "#a3dbc7", "#efc3da", "#f4efa0", "#f0b48c")
_HATCHES = ("", "//", "..", "xx", "--", "\\\\", "++", "oo")
_SOLID = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#D55E00", "#56B4E9", "#999999")
_POINTS = 10


@on_white
def two_roads(sizes: dict[str, str], makers: list[str], *, title: str = "") -> Picture:
    """The road through the compiler and the one through the interpreter, from one source.

    sizes: what each stop of the compiled road holds, in order, the Python source first: name -> size in
    words ("26 lines"). makers: who leads from each stop to the next, one less than there are stops.
    """
    stops = list(sizes.items())
    road = ", ".join(f"{name} {size}" for name, size in stops)
    figure = Picture(
        11,
        4.0,
        f"Two roads from one kernel. JITFunction compiles it: {road}; then the chip runs it. "
        "InterpretedFunction runs each tl call in NumPy instead, and no compiler is involved.",
    )
    axes = figure.subplots()
    for column, (name, size) in enumerate(stops):
        _box(axes, column, 1.0, f"{name}\n{size}", _TINTS[0] if column else "#ffffff")
        if column:
            _arrow(axes, (column - 0.62, 1.0), (column - 0.38, 1.0))
            axes.text(column - 0.5, 1.44, makers[column - 1], ha="center", fontsize=_POINTS, rotation=20)
    end = len(stops)
    _box(axes, end, 1.0, "wave of\n64 lanes", _TINTS[2])
    _arrow(axes, (end - 0.62, 1.0), (end - 0.38, 1.0))
    _arrow(axes, (0.0, 0.68), (0.0, 0.32))
    _box(axes, 0, 0.0, "the same\nsource", "#ffffff")
    _arrow(axes, (0.38, 0.0), (0.62, 0.0))
    _box(
        axes,
        2,
        0.0,
        "Python calls each tl function; NumPy\ndoes the arithmetic on whole blocks",
        _TINTS[1],
        2.76,
    )
    _arrow(axes, (3.38, 0.0), (3.62, 0.0))
    _box(axes, 4, 0.0, "NumPy\narrays", _TINTS[2])
    axes.text(end + 0.38, 1.78, "JITFunction: compiled", ha="right", fontsize=_POINTS + 1, fontweight="bold")
    axes.text(
        end + 0.38,
        0.0,
        "InterpretedFunction\n(TRITON_INTERPRET=1)",
        ha="right",
        va="center",
        fontsize=_POINTS + 1,
        fontweight="bold",
    )
    axes.set(xlim=(-0.45, end + 0.45), ylim=(-0.4, 2.0))
    axes.set_axis_off()
    axes.set_title(title, fontsize=_POINTS + 2, loc="left")
    return figure


@on_white
def syntax_beside_ir(source: list[tuple[int, str]], nodes: pd.DataFrame, *, title: str = "") -> Picture:
    """Each line of a kernel, the syntax nodes in it, and the operations that each node became.

    source: (line number, text) of the lines to show, in order. nodes: columns source_line, node, code,
    operations (a list), as `labkit.compiler.front_end.node_by_operation` gives them.
    """
    total = sum(len(names) for names in nodes["operations"])
    code, became = nodes["code"].iloc[-1], ", ".join(nodes["operations"].iloc[-1])
    alt = (
        f"{len(source)} lines of a kernel, linked to {len(nodes)} syntax nodes, linked to {total} operations "
        f"of Triton IR; for example {code} became {became}."
    )
    figure = Picture(11.5, 0.36 * max(len(nodes), len(source)) + 1.2, alt)
    axes = figure.subplots()
    nodes = nodes.sort_values("source_line", kind="stable").reset_index(drop=True)
    centre = nodes.index.to_series().groupby(nodes["source_line"], sort=False).mean()
    ends: dict[int, float] = {}
    order = [line for line, _ in source]
    for number, (line, text) in enumerate(source):
        ends[line] = _code(axes, 0.0, centre.get(line, number), f"{line:>2} {text.strip()}", number)
    for row in nodes.itertuples():
        number = order.index(row.source_line)
        called = row.node.startswith("Call")
        text = row.node if called else f"{row.node}: {textwrap.shorten(row.code, 24, placeholder=' ...')}"
        end = _code(axes, 4.75, row.Index, text, number)
        _code(axes, 8.3, row.Index, "  ".join(row.operations), number)
        axes.plot([ends[row.source_line], 4.7], [centre[row.source_line], row.Index], color="#555555", lw=1)
        axes.plot([end, 8.25], [row.Index, row.Index], color="#555555", lw=1)
    for x, text in ((0.0, "your line"), (4.75, "syntax node"), (8.3, "operations of Triton IR")):
        axes.text(x, -1.0, text, fontsize=_POINTS + 1, fontweight="bold")
    axes.set(xlim=(-0.05, 10.8), ylim=(len(nodes) - 0.4, -1.4))
    axes.set_axis_off()
    axes.set_title(title, fontsize=_POINTS + 2, loc="left")
    return figure


@on_white
def dialect_bars(counts: pd.DataFrame, *, title: str = "") -> Picture:
    """Operations by dialect at several moments of one compile, a bar for each moment.

    counts: one row a moment (the index names it), one column a dialect, whole numbers.
    """
    parts = []
    for moment, row in counts.iterrows():
        parts.append(f"{moment}: " + ", ".join(f"{count} {name}" for name, count in row.items() if count))
    figure = Picture(9.5, 0.62 * len(counts) + 1.7, "Operations by dialect. " + "; ".join(parts) + ".")
    axes = figure.subplots()
    left = counts.sum(axis=1) * 0
    for number, dialect in enumerate(counts.columns):
        style = {"color": _SOLID[number % len(_SOLID)], "hatch": _HATCHES[number % len(_HATCHES)]}
        axes.barh(counts.index, counts[dialect], left=left, label=dialect, edgecolor="white", **style)
        left = left + counts[dialect]
    for position, total in enumerate(counts.sum(axis=1)):
        axes.text(total, position, f" {total}", va="center", fontsize=_POINTS)
    axes.invert_yaxis()
    axes.tick_params(labelsize=_POINTS)
    axes.set_xlabel("operations (counted in the IR)", fontsize=_POINTS)
    axes.set_xlim(0, counts.sum(axis=1).max() * 1.08)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=8, fontsize=_POINTS, frameon=False)
    axes.set_title(title, fontsize=_POINTS + 2, loc="left")
    return figure


@on_white
def rounding_picture(
    values: np.ndarray,
    results: dict[str, np.ndarray],
    *,
    smallest_normal: float,
    largest: float,
    title: str = "",
) -> Picture:
    """Rounded number over number, for two ways of rounding; of the second only what differs from the first.

    values: positive, ascending. results: two entries, name -> rounded values; NaN is drawn at 0.
    smallest_normal, largest: of the format that is rounded to, drawn as dashed lines.
    """
    import numpy as np

    (name, first), (other, second) = results.items()
    differs = first != second
    shares = (second / values)[differs]
    alt = (
        f"Rounded number over number, from {values[0]:g} to {values[-1]:g}. {name}: "
        f"{np.min(first / values):.2f} to {np.max(first / values):.2f}. {other} differs at {differs.sum()} "
        f"of {len(values)} numbers"
    )
    finite = shares[~np.isnan(shares)]
    alt += f", there it gives {finite.min():.2f} to {finite.max():.2f}, or NaN." if finite.size else "."
    figure = Picture(9.5, 4.4, alt)
    axes = figure.subplots()
    axes.scatter(values, first / values, s=7, c=_SOLID[0], label=f"{name}: all numbers")
    wrong = np.nan_to_num(shares, nan=0.0)
    label = f"{other}: where it differs (NaN drawn at 0)"
    axes.scatter(values[differs], wrong, s=40, c=_SOLID[5], marker="x", label=label)
    for limit, text, side in ((smallest_normal, "smallest normal", "left"), (largest, "largest", "right")):
        axes.axvline(limit, color="#555555", linestyle="--", linewidth=1)
        axes.text(limit, 1.42, f" {text} \n {limit:g} ", fontsize=_POINTS, va="top", ha=side)
    axes.set_xscale("log")
    axes.set_ylim(-0.08, 1.45)
    axes.set_xlabel("the FP32 number", fontsize=_POINTS)
    axes.set_ylabel("FP8 result / number", fontsize=_POINTS)
    axes.tick_params(labelsize=_POINTS)
    axes.grid(color="#dddddd")
    axes.set_axisbelow(True)
    figure.legend(loc="outside lower center", ncols=2, fontsize=_POINTS, frameon=False)
    axes.set_title(title, fontsize=_POINTS + 2, loc="left")
    return figure


def _box(axes: Axes, x: float, y: float, text: str, colour: str, width: float = 0.76) -> None:
    from matplotlib.patches import FancyBboxPatch

    patch = FancyBboxPatch(
        (x - width / 2, y - 0.3), width, 0.6, boxstyle="round,pad=0,rounding_size=0.06", fc=colour, ec="black"
    )
    axes.add_patch(patch)
    axes.text(x, y, text, ha="center", va="center", fontsize=_POINTS)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "black", "linewidth": 1.2})


def _code(axes: Axes, x: float, y: float, text: str, number: int) -> float:
    """Draw code in a frame; return where the frame ends. The axes are about as many inches wide as units."""
    tint = _TINTS[number % len(_TINTS)]
    frame = {"facecolor": tint, "edgecolor": "#666666", "boxstyle": "round,pad=0.2", "linewidth": 0.6}
    axes.text(x, y, text, va="center", family="DejaVu Sans Mono", fontsize=_POINTS, bbox=frame)
    return x + 0.08 * len(text) + 0.05
