"""Pictures of a thread and a wave: nested GPU, EXEC over time, reduction tree, cache lines by stride."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from labkit.figures.picture import Picture, on_white

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap

_BLUE, _ORANGE, _VERMILION = "#0072B2", "#E69F00", "#D55E00"  # Okabe-Ito
_PALE, _EDGE = "#e8f2f8", "#333333"
_POINTS = 10


@on_white
def nested_gpu(levels: Sequence[tuple[str, int, int, str]], *, title: str = "") -> Picture:
    """Zoom from the whole GPU to one lane: each panel's first cell is what the next panel shows.

    levels: (name, cells, columns to draw them in, what a cell is), the largest first.
    """
    words = "; ".join(f"{name}: {cells} {cell}" for name, cells, _, cell in levels)
    alt = f"{len(levels)} panels, each a zoom into the first cell of the one before. {words}."
    picture = Picture(12, 4.4, alt)
    panels = picture.subplots(1, len(levels))
    for number, (axes, (name, cells, columns, cell)) in enumerate(zip(panels, levels, strict=True)):
        _cells(axes, cells, columns, zooms=number + 1 < len(levels))
        axes.set_title(name, fontsize=_POINTS + 1, fontweight="bold")
        axes.set_xlabel(f"{cells} {cell}", fontsize=_POINTS)
    if title:
        picture.suptitle(title, fontsize=_POINTS + 2)
    return picture


def _cells(axes: Axes, count: int, columns: int, zooms: bool) -> None:
    from matplotlib.patches import Rectangle

    rows = -(-count // columns)
    for index in range(count):
        row, column = divmod(index, columns)
        first = zooms and index == 0
        axes.add_patch(
            Rectangle(
                (column + 0.06, row + 0.06),
                0.88,
                0.88,
                facecolor=_ORANGE if first else _PALE,
                edgecolor=_EDGE,
                hatch="//" if first else None,
                linewidth=0.6,
            )
        )
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    axes.set_box_aspect(1.3)
    axes.set_xticks([])
    axes.set_yticks([])


@on_white
def exec_over_time(lanes: np.ndarray, labels: Sequence[str], *, title: str = "") -> Picture:
    """EXEC lane by lane, one row a step. lanes: bool [steps, lanes]; labels: the instruction of each step."""
    steps, width = lanes.shape
    counts = [int(row.sum()) for row in lanes]
    picture = Picture(
        11,
        0.27 * steps + 1.3,
        f"Grid of {steps} instructions by {width} lanes, filled where EXEC has the lane on. "
        f"Lanes on, in order: {', '.join(map(str, counts))}.",
    )
    axes = picture.subplots()
    axes.pcolormesh(
        lanes.astype(float), cmap=_two_tones(_PALE, _BLUE), vmin=0, vmax=1, edgecolors="white", linewidth=0.4
    )
    _instruction_rows(axes, labels)
    axes.set_xticks(range(0, width + 1, 8))
    axes.tick_params(labelsize=_POINTS)
    axes.set_xlabel("lane (dark: on, pale: off)", fontsize=_POINTS)
    right = axes.secondary_yaxis("right")
    right.set_yticks(
        [step + 0.5 for step in range(steps)], [str(count) for count in counts], fontsize=_POINTS
    )
    right.set_ylabel("lanes on (counted)", fontsize=_POINTS)
    axes.set_title(title, fontsize=_POINTS + 2)
    return picture


@on_white
def reduction_tree(summed: np.ndarray, labels: Sequence[str], *, title: str = "") -> Picture:
    """How many inputs each lane's partial sum holds after each step. summed: int [steps, lanes]."""
    steps, width = summed.shape
    picture = Picture(
        12,
        0.5 * steps + 1.6,
        f"Grid of {steps} steps by {width} lanes, each cell the number of inputs in that lane's partial sum. "
        f"The largest after each step: {', '.join(str(int(row.max())) for row in summed)}. "
        f"In the end lane {width - 1} holds {int(summed[-1, -1])}.",
    )
    axes = picture.subplots()
    from matplotlib.colors import LogNorm

    axes.pcolormesh(summed, cmap="cividis", norm=LogNorm(1, width), edgecolors="white", linewidth=0.4)
    # A number is wider than its cell, so it gets a ground of its own.
    ground = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "boxstyle": "round,pad=0.1"}
    for step in range(steps):
        for lane in range(7, width, 8):
            _label(axes, lane, step, str(int(summed[step, lane])), bbox=ground)
    _instruction_rows(axes, labels)
    axes.set_xticks([lane + 0.5 for lane in range(7, width, 8)], range(7, width, 8), fontsize=_POINTS)
    axes.set_xlabel(
        "lane; the number is how many inputs its partial sum holds (read from the trace)", fontsize=_POINTS
    )
    axes.set_title(title, fontsize=_POINTS + 2)
    return picture


@on_white
def lines_against_stride(
    strides: Sequence[int], touched: Sequence[float], least: Sequence[float], *, title: str = ""
) -> Picture:
    """Cache lines that one load of a wave touches, against the stride between lanes, both axes log 2."""
    pairs = ", ".join(f"{stride}: {lines:g}" for stride, lines in zip(strides, touched, strict=True))
    picture = Picture(
        8,
        4.2,
        f"Line chart, log axes: 128-byte cache lines that one load of a wave touches, by stride: {pairs}. "
        f"The bytes asked for would fit in {least[0]:g}.",
    )
    axes = picture.subplots()
    axes.plot(strides, touched, "o-", color=_BLUE, linewidth=2, label="touched (counted)")
    axes.plot(
        strides,
        least,
        "s--",
        color=_VERMILION,
        linewidth=2,
        label="least that could hold the bytes (counted)",
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(strides, [str(stride) for stride in strides], fontsize=_POINTS)
    axes.set_yticks([2, 4, 8, 16, 32, 64], ["2", "4", "8", "16", "32", "64"], fontsize=_POINTS)
    for stride, lines in zip(strides, touched, strict=True):
        axes.annotate(
            f"{lines:g}",
            (stride, lines),
            xytext=(0, 8),
            textcoords="offset points",
            ha="center",
            fontsize=_POINTS,
        )
    axes.set_ylim(1.5, 110)
    axes.set_xlabel("stride between neighbouring lanes, in elements of 4 bytes", fontsize=_POINTS)
    axes.set_ylabel("128-byte cache lines a load", fontsize=_POINTS)
    axes.legend(fontsize=_POINTS, loc="upper left")
    axes.grid(True, which="major", linewidth=0.4)
    axes.set_title(title, fontsize=_POINTS + 2)
    return picture


@on_white
def registers_over_time(
    cells: Sequence[Sequence[str]], labels: Sequence[str], registers: Sequence[str], *, title: str = ""
) -> Picture:
    """One lane's registers after each step; a cell that differs from the one above it was just written.

    cells: what each register holds after each step, decoded, "" before its first write.
    """
    steps, count = len(cells), len(registers)
    final = ", ".join(f"{name} = {text}" for name, text in zip(registers, cells[-1], strict=True))
    alt = f"Table of {count} registers of one lane after each of {steps} instructions. At the end {final}."
    picture = Picture(9, 0.36 * steps + 1.4, alt)
    axes = picture.subplots()
    before = [[""] * count, *cells[:-1]]
    changed = [
        [a != b for a, b in zip(now, then, strict=True)] for now, then in zip(cells, before, strict=True)
    ]
    tones = _two_tones("#f5f5f5", "#f7d08a")
    axes.pcolormesh(
        [[float(c) for c in row] for row in changed], cmap=tones, vmin=0, vmax=1, edgecolors="white"
    )
    for step, row in enumerate(cells):
        for column, text in enumerate(row):
            weight = "bold" if changed[step][column] else "normal"
            _label(axes, column, step, text, fontweight=weight)
    _instruction_rows(axes, labels)
    axes.set_xticks([column + 0.5 for column in range(count)], registers, fontsize=_POINTS)
    axes.xaxis.tick_top()
    axes.set_xlabel("bold: this instruction wrote it", fontsize=_POINTS)
    axes.set_title(title, fontsize=_POINTS + 2)
    return picture


def _label(axes: Axes, column: int, row: int, text: str, **style: str | dict) -> None:
    axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=_POINTS, **style)


def _instruction_rows(axes: Axes, labels: Sequence[str]) -> None:
    places = [step + 0.5 for step in range(len(labels))]
    axes.set_yticks(places, labels, fontsize=_POINTS, family="monospace")
    axes.invert_yaxis()


def _two_tones(off: str, on: str) -> ListedColormap:
    from matplotlib.colors import ListedColormap

    return ListedColormap([off, on])
