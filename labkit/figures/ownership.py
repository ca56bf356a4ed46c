"""Pictures of who owns what: lanes and waves over a tile, and the cache lines that the lanes of a wave touch.

Plain data in, a Picture out; nothing is computed here but where to draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.figures.picture import Picture, on_white

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes

# Okabe-Ito, lightened so that black text stands out on each; hatches tell the waves apart without colour.
_COLOURS = ("#a6d9f5", "#f7d08a", "#a3dbc7", "#efc3da", "#f4efa0", "#f0b48c", "#a9c9e8", "#d9d9d9")
_HATCHES = ("", "//", "..", "xx", "--", "\\\\", "++", "oo")
_POINTS = 10


@on_white
def owner_maps(
    panels: dict[str, tuple[np.ndarray, np.ndarray]], *, title: str = "", rows: int = 8, columns: int = 16
) -> Picture:
    """The upper left corner of tiles side by side: colour and hatch tell the wave, the number is the lane.

    panels: name -> (wave, lane), integer arrays [rows, columns] of one shape.
    """
    figure = Picture(0.33 * columns * len(panels) + 0.9, 0.31 * rows + 1.5, _alt_text(panels))
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    waves = set()
    for axes, (name, (wave, lane)) in zip(all_axes, panels.items(), strict=True):
        wave, lane = wave[:rows, :columns], lane[:rows, :columns]
        waves |= {int(number) for number in wave.flat}
        _cells(axes, wave, lane)
        axes.set_title(name, fontsize=_POINTS + 1)
        axes.set_xlabel("column", fontsize=_POINTS)
        axes.set_ylabel("row", fontsize=_POINTS)
        axes.tick_params(length=0, labelsize=_POINTS)
    _wave_legend(figure, sorted(waves))
    figure.suptitle(title, fontsize=_POINTS + 2, ha="left", x=0.01)
    return figure


@on_white
def lines_by_lane(panels: dict[str, list[np.ndarray]], *, title: str = "") -> Picture:
    """The cache lines that each lane of one wave touches by one load instruction, a panel for each program.

    panels: name -> for each lane in order the numbers of the 128-byte lines that it touches, counted from
    the start of the tensor.
    """
    touched = {name: {int(line) for lines in lanes for line in lines} for name, lanes in panels.items()}
    counts = "; ".join(f"{name}: {len(lines)} lines" for name, lines in touched.items())
    alt = f"Cache lines that the lanes of one wave touch by one load. {counts}."
    figure = Picture(4.6 * len(panels) + 0.4, 3.9, alt)
    all_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (name, lanes) in zip(all_axes, panels.items(), strict=True):
        pairs = [(lane, int(line)) for lane, lines in enumerate(lanes) for line in lines]
        axes.scatter(*zip(*pairs, strict=True), s=14, c="#0072B2", marker="s")
        axes.set_title(f"{name}\n{len(touched[name])} lines", fontsize=_POINTS + 1)
        axes.set_xlabel("lane", fontsize=_POINTS)
        axes.set_xticks([0, 16, 32, 48, 63])
        axes.tick_params(labelsize=_POINTS)
        axes.grid(color="#dddddd")
        axes.set_axisbelow(True)
    all_axes[0].set_ylabel("128-byte line of the tensor", fontsize=_POINTS)
    figure.suptitle(title, fontsize=_POINTS + 2, ha="left", x=0.01)
    return figure


def _alt_text(panels: dict[str, tuple[np.ndarray, np.ndarray]]) -> str:
    parts = []
    for name, (wave, lane) in panels.items():
        corners = [f"row {row}, column {column}" for row, column in ((0, 0), (0, 1), (1, 0))]
        owned = [(lane[index], wave[index]) for index in ((0, 0), (0, 1), (1, 0))]
        places = [
            f"{where} in lane {who[0]} of wave {who[1]}" for where, who in zip(corners, owned, strict=True)
        ]
        parts.append(f"{name}: " + ", ".join(places))
    return "The lane that owns each element, in the upper left corner of a tile. " + "; ".join(parts) + "."


def _cells(axes: Axes, wave: np.ndarray, lane: np.ndarray) -> None:
    from matplotlib.patches import Rectangle

    rows, columns = lane.shape
    for row in range(rows):
        for column in range(columns):
            axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **_style(wave[row, column])))
            axes.text(column, row, str(lane[row, column]), ha="center", va="center", fontsize=_POINTS)
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))


def _style(wave: int) -> dict:
    colour, hatch = _COLOURS[wave % len(_COLOURS)], _HATCHES[wave % len(_HATCHES)]
    return {"facecolor": colour, "hatch": hatch, "edgecolor": "#00000030", "linewidth": 0.5}


def _wave_legend(figure: Picture, waves: list[int]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(label=f"wave {wave}", **_style(wave)) for wave in waves]
    figure.legend(handles=handles, loc="outside lower center", ncols=8, fontsize=_POINTS, frameon=False)
