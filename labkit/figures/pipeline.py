"""Pictures of the compiler at work: which passes changed something, and who owns which element.

Plain data in, a matplotlib figure (Picture) out; nothing is computed here but where to draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.figures.picture import Picture, on_white

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes

# Okabe-Ito, lightened so that black text stands out on each; hatches tell the waves apart without colour.
_WAVE_COLOURS = ("#a6d9f5", "#f7d08a", "#a3dbc7", "#efc3da", "#f4efa0", "#f0b48c", "#a9c9e8", "#d9d9d9")
_WAVE_HATCHES = ("", "//", "..", "xx", "--", "\\\\", "++", "oo")
_STAGE_COLOURS = {"ttir": "#0072B2", "ttgir": "#E69F00", "llir": "#009E73"}
_STAGE_HATCHES = {"ttir": "", "ttgir": "//", "llir": ".."}
_TEXT_POINTS = 10


@on_white
def layout_picture(
    wave: np.ndarray,
    lane: np.ndarray,
    register: np.ndarray,
    *,
    title: str = "",
    rows: int = 8,
    columns: int = 16,
) -> Picture:
    """The upper left corner of a tensor, each element with the lane and the register that keep it.

    wave, lane, register: integer arrays of one shape, of one or two dimensions, as `Blocked.owners` gives
    them. A tensor of one dimension is drawn in lines of `columns` elements. Colour and hatch tell the
    wave; a thick line stands where the lane changes.
    """
    alt = layout_alt_text(wave, lane, register, name=title or "tensor")
    per_line = 1 if lane.ndim == 2 else min(columns, lane.size)
    wave, lane, register = (_corner(values, rows, columns) for values in (wave, lane, register))
    height, width = lane.shape
    figure = Picture(0.58 * width + 1.0, 0.5 * height + 1.5, alt)
    axes = figure.subplots()
    for row in range(height):
        for column in range(width):
            _element(axes, row, column, wave[row, column])
            text = f"L{lane[row, column]}\nr{register[row, column]}"
            axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=_TEXT_POINTS)
    _lane_borders(axes, wave, lane)
    _frame(axes, height, width, title, per_line)
    _wave_legend(figure, sorted({int(number) for number in wave.flat}))
    return figure


def layout_alt_text(wave: np.ndarray, lane: np.ndarray, register: np.ndarray, *, name: str = "tensor") -> str:
    """A sentence or two that say what `layout_picture` shows, for readers who can't see it."""
    shape = " x ".join(str(size) for size in lane.shape)
    last = tuple(size - 1 for size in lane.shape)
    places = [
        f"element {list(index)} in wave {wave[index]}, lane {lane[index]}, register {register[index]}"
        for index in ((0,) * lane.ndim, last)
    ]
    return (
        f"Grid of the elements of {name}, {shape}, each with the lane and register that keep it: "
        f"{places[0]}; {places[1]}. In all {wave.max() + 1} waves, {lane.max() + 1} lanes and "
        f"{register.max() + 1} registers a lane."
    )


@on_white
def stage_timeline(passes: pd.DataFrame, *, title: str = "") -> Picture:
    """The passes that changed something, in order, with the lines each removed and added.

    passes: as `labkit.compiler.passes.pass_table` gives them (columns stage, number, name, changed,
    lines_added, lines_removed). The passes that changed nothing are counted in the legend.
    """
    changed = passes[passes["changed"]].reset_index(drop=True)
    figure = Picture(9, 0.27 * max(len(changed), 1) + 1.8, timeline_alt_text(passes))
    axes = figure.subplots()
    for stage, of_stage in changed.groupby("stage", sort=False):
        style = {
            "color": _STAGE_COLOURS.get(stage, "#999999"),
            "hatch": _STAGE_HATCHES.get(stage, "xx"),
            "edgecolor": "white",
        }
        total = int((passes["stage"] == stage).sum())
        label = f"{stage}: {len(of_stage)} of {total} passes changed something"
        axes.barh(of_stage.index, of_stage["lines_added"], label=label, **style)
        axes.barh(of_stage.index, -of_stage["lines_removed"], alpha=0.6, **style)
    axes.set_yticks(
        changed.index,
        [f"{number} {name}" for number, name in zip(changed["number"], changed["name"], strict=True)],
    )
    axes.invert_yaxis()
    _line_axis(axes)
    axes.set_title(title or "What each compiler pass changed", fontsize=_TEXT_POINTS + 2, loc="left")
    if len(changed):
        figure.legend(loc="outside lower center", fontsize=_TEXT_POINTS, ncols=1, frameon=False)
    return figure


def timeline_alt_text(passes: pd.DataFrame) -> str:
    """A sentence that says what `stage_timeline` shows, for readers who can't see it."""
    changed = passes[passes["changed"]]
    if changed.empty:
        return f"Bar chart of {len(passes)} compiler passes; none changed anything."
    largest = changed.loc[(changed["lines_added"] + changed["lines_removed"]).idxmax()]
    return (
        f"Bar chart: {len(changed)} of {len(passes)} compiler passes changed the program. The largest "
        f"change is {largest['name']} in {largest['stage']}: {largest['lines_added']} lines added, "
        f"{largest['lines_removed']} removed."
    )


def _corner(values: np.ndarray, rows: int, columns: int) -> np.ndarray:
    if values.ndim == 1:
        columns = min(columns, values.size)
        values = values.reshape(-1, columns)  # sizes are powers of two, so the lines come out even
    return values[:rows, :columns]


def _element(axes: Axes, row: int, column: int, wave: int) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(
        Rectangle(
            (column, row),
            1,
            1,
            facecolor=_WAVE_COLOURS[wave % len(_WAVE_COLOURS)],
            hatch=_WAVE_HATCHES[wave % len(_WAVE_HATCHES)],
            edgecolor="#00000026",
            linewidth=0.5,
        )
    )


def _lane_borders(axes: Axes, wave: np.ndarray, lane: np.ndarray) -> None:
    height, width = lane.shape
    owner = wave * 64 + lane
    for row in range(height):
        for column in range(1, width):
            if owner[row, column] != owner[row, column - 1]:
                axes.plot([column, column], [row, row + 1], color="black", linewidth=1.8)
    for row in range(1, height):
        for column in range(width):
            if owner[row, column] != owner[row - 1, column]:
                axes.plot([column, column + 1], [row, row], color="black", linewidth=1.8)


def _frame(axes: Axes, height: int, width: int, title: str, per_line: int) -> None:
    axes.set(xlim=(0, width), ylim=(height, 0), aspect="auto")
    axes.set_xticks([column + 0.5 for column in range(width)], [str(column) for column in range(width)])
    axes.set_yticks([row + 0.5 for row in range(height)], [str(row * per_line) for row in range(height)])
    axes.tick_params(length=0, labelsize=_TEXT_POINTS)
    axes.set_xlabel(
        ("column" if per_line == 1 else "plus") + "   (L: lane, r: register)", fontsize=_TEXT_POINTS
    )
    axes.set_ylabel("row" if per_line == 1 else "element", fontsize=_TEXT_POINTS)
    axes.set_title(title, fontsize=_TEXT_POINTS + 2, loc="left")


def _wave_legend(figure: Picture, waves: list[int]) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(
            facecolor=_WAVE_COLOURS[wave % len(_WAVE_COLOURS)],
            hatch=_WAVE_HATCHES[wave % len(_WAVE_HATCHES)],
            edgecolor="#00000066",
            label=f"wave {wave}",
        )
        for wave in waves
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=8, fontsize=_TEXT_POINTS, frameon=False)


def _line_axis(axes: Axes) -> None:
    """Lines removed to the left, added to the right; logarithmic, since they range from 1 to thousands."""
    axes.set_xscale("symlog", linthresh=1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):,.0f}")
    axes.axvline(0, color="black", linewidth=0.8)
    axes.tick_params(labelsize=_TEXT_POINTS)
    axes.set_xlabel("lines of IR: removed (left, paler), added (right)", fontsize=_TEXT_POINTS)
    axes.grid(axis="x", color="#dddddd")
    axes.set_axisbelow(True)
