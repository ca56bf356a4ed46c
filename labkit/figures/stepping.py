"""Pictures of a trace: one register by lane, EXEC over time, and the addresses of one memory access by lane.

`draw` takes what it shows from a trace (labkit.trace). Nothing is computed here but where to draw.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Rectangle

from labkit.errors import LabkitError
from labkit.figures import hierarchy
from labkit.figures.picture import Picture, on_white

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from labkit.emulator.steps import Access, Step, Value
    from labkit.emulator.trace import Trace

FIGURES = ("registers", "exec", "addresses")
LINE_BYTES = 128  # a cache line of the vector L1 and of L2 (CDNA 3 white paper)
_BLUE, _OFF, _BAND = "#0072B2", "#e4e4e4", "#f4ecd8"  # Okabe-Ito's blue; grey; a pale ground
_POINTS = 10
_MOST_ROWS = 60
_WRITTEN_OUT = (*range(0, 64, 8), 63)  # lanes whose values stand in the cells


@on_white
def draw(
    trace: Trace, figure: str = "exec", *, register: str = "", step: int | None = None, title: str = ""
) -> Picture:
    """One of the FIGURES of a trace.

    "registers": the vector register `register` lane by lane, a row for each step that wrote it.
    "exec": which lanes were on, a row for each run of steps with the same EXEC.
    "addresses": where in memory the lanes of step number `step` reached.
    Raises LabkitError for another name, and where the trace doesn't have what is asked for.
    """
    if figure not in FIGURES:
        names = ", ".join(map(repr, FIGURES))
        raise LabkitError(f"there is no figure {figure!r} of a trace: choose one of {names}")
    if figure == "registers":
        return _registers(trace.register(register), title or f"{register}, lane by lane, in {trace.name}")
    if figure == "addresses":
        found = trace.memory_step(step)
        return _addresses(found, title or f"step {found.number}: {found.instruction.line.text}")
    return _exec(trace.executed, title or f"EXEC, lane by lane, in {trace.name}, wave {trace.wave}")


def _exec(steps: list[Step], title: str) -> Picture:
    runs = [list(run) for _, run in itertools.groupby(steps, key=lambda step: step.exec_mask)]
    _check_rows(len(runs), "EXEC changes", "exec")
    causes = ["", *(f"  after {run[-1].instruction.line.text}" for run in runs[:-1])]
    labels = [f"steps {_span(run)}{cause}" for run, cause in zip(runs, causes, strict=True)]
    picture = hierarchy.exec_over_time(np.array([run[0].lanes for run in runs]), labels, title=title)
    counts = "; ".join(
        f"{label}: {run[0].exec_mask.bit_count()} lanes" for label, run in zip(labels, runs, strict=True)
    )
    picture.alt = f"Grid of {len(runs)} runs of steps by 64 lanes, dark where EXEC has the lane on. {counts}."
    return picture


def _span(run: list[Step]) -> str:
    first, last = run[0].number, run[-1].number
    return str(first) if first == last else f"{first}-{last}"


def _registers(written: list[tuple[Step, Value]], title: str) -> Picture:
    rows = [row for step, value in written for row in _elements(step, value)]
    _check_rows(len(rows), "this register has values", "registers")
    told = [
        f"{label}: {_cell(values[0])} in lane 0, {_cell(values[63])} in lane 63"
        for label, _, values, _ in rows
    ]
    alt = f"Grid of {len(rows)} values of one register by 64 lanes, from dark, low, to bright, high. "
    picture = Picture(13, 0.36 * len(rows) + 1.5, alt + "; ".join(told) + ".")
    axes = picture.subplots()
    shades = np.array([_shades(values, lanes) for _, _, values, lanes in rows])
    axes.pcolormesh(np.ma.masked_invalid(shades), cmap="cividis", vmin=0, vmax=1)
    for place, (_, _, values, lanes) in enumerate(rows):
        for lane in np.flatnonzero(~lanes):
            axes.add_patch(
                Rectangle((lane, place), 1, 1, facecolor=_OFF, hatch="////", edgecolor="#9a9a9a", lw=0)
            )
        for lane in (lane for lane in _WRITTEN_OUT if lanes[lane]):
            _write(axes, lane, place, _cell(values[lane]))
    axes.hlines(range(1, len(rows)), 0, 64, color="white", linewidth=2)
    _rows_named(axes, [label for label, *_ in rows])
    right = axes.secondary_yaxis("right")
    right.set_yticks([k + 0.5 for k in range(len(rows))], [kind for _, kind, *_ in rows], fontsize=_POINTS)
    axes.set_xticks([lane + 0.5 for lane in _WRITTEN_OUT], _WRITTEN_OUT, fontsize=_POINTS)
    low_high = "in each row from dark, its lowest value, to bright, its highest"
    axes.set_xlabel(f"lane ({low_high}; hatched: off, the lane keeps its value)", fontsize=_POINTS)
    axes.set_title(title, fontsize=_POINTS + 2, loc="left")
    return picture


def _write(axes: Axes, lane: int, row: int, text: str) -> None:
    """A value on its lane; those of the outer lanes keep inside the picture."""
    x, side = {0: (0.2, "left"), 63: (63.8, "right")}.get(lane, (lane + 0.5, "center"))
    ground = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "boxstyle": "round,pad=0.1"}
    axes.text(x, row + 0.5, text, ha=side, va="center", fontsize=_POINTS, bbox=ground)


def _elements(step: Step, value: Value) -> list[tuple[str, str, np.ndarray, np.ndarray]]:
    """(label, type, values by lane, lanes written) for each of the values that the register holds."""
    values = value.values.reshape(64, -1)
    label = f"{step.number}: {step.instruction.line.text.split(' row_mask')[0]}"
    several = values.shape[1] > 1
    return [
        (
            f"{label} [{k}]" if several else label,
            value.typed.element,
            values[:, k] if values.dtype.kind in "iu" else values[:, k].astype(float),
            step.lanes_written,
        )
        for k in range(values.shape[1])
    ]


def _shades(values: np.ndarray, lanes: np.ndarray) -> np.ndarray:
    """0 for the lowest and 1 for the highest finite value of the lanes; NaN, drawn white, for the rest."""
    numbers = np.where(np.isfinite(values), values, np.nan).astype(float)
    if not np.isfinite(numbers[lanes]).any():
        return np.full(len(numbers), np.nan)
    low, high = np.nanmin(numbers[lanes]), np.nanmax(numbers[lanes])
    return np.clip((numbers - low) / (high - low), 0, 1) if high > low else numbers * 0 + 0.5


def _cell(value: Any) -> str:
    if float(value).is_integer() and abs(value) < 1e7:
        return str(int(value))
    return f"{value:.3g}"


def _addresses(step: Step, title: str) -> Picture:
    accesses, lanes = step.accesses, np.logical_or.reduce([access.lanes for access in step.accesses])
    if lanes.size == 1:
        raise LabkitError(
            f"step {step.number} is a scalar load, one address for the whole wave: see trace.table"
        )
    if not lanes.any():
        raise LabkitError(f"no lane of step {step.number} reaches memory, so there are no addresses to draw")
    lines = sorted({line for access in accesses for line in access.lines})
    total = sum(access.size * int(access.lanes.sum()) for access in accesses)
    noun = "cache line" if accesses[0].space == "global" else "row"
    facts = f"lanes: {lanes.sum()}, bytes: {total:,}, {noun}s of {LINE_BYTES} bytes: {len(lines)}"
    picture = Picture(
        10, 1.5 + min(7.0, max(2.0, 0.22 * len(lines))), f"Addresses by lane: {facts}. {title}."
    )
    axes = picture.subplots()
    place = {line: number for number, line in enumerate(lines)}
    for line, number in place.items():
        axes.axhspan(number, number + 1, color=(_BAND, "white")[number % 2], zorder=0)
        if number and (line[0], line[1] - 1) not in place:
            axes.axhline(number, color="#555555", linestyle=(0, (2, 3)), linewidth=1)
    for lane in np.flatnonzero(~lanes):
        axes.add_patch(
            Rectangle((lane, 0), 1, len(lines), fc=_OFF, hatch="////", ec="#9a9a9a", lw=0, zorder=1)
        )
    for access in accesses:
        _bars(axes, access, place)
    _lines_named(axes, lines)
    axes.set(xlim=(0, 64), ylim=(0, len(lines)))
    axes.set_xticks([lane + 0.5 for lane in _WRITTEN_OUT], _WRITTEN_OUT, fontsize=_POINTS)
    off = "" if lanes.all() else "; hatched: the lane does not reach memory"
    axes.set_xlabel(f"lane ({facts}; counted{off})", fontsize=_POINTS)
    axes.set_title(title, fontsize=_POINTS + 2, loc="left")
    return picture


def _bars(axes: Axes, access: Access, place: dict[tuple[str, int], int]) -> None:
    """A bar for the bytes of each lane, in the band of its line; two where they reach into the next one."""
    for lane in np.flatnonzero(access.lanes):
        start, tensor = int(access.offsets[lane]), access.tensors[lane]
        end = start + access.size
        for line in range(start // LINE_BYTES, (end - 1) // LINE_BYTES + 1):
            low, high = max(start, line * LINE_BYTES), min(end, (line + 1) * LINE_BYTES)
            bottom = place[tensor, line] + low / LINE_BYTES - line
            size = (0.8, (high - low) / LINE_BYTES)
            axes.add_patch(Rectangle((lane + 0.1, bottom), *size, fc=_BLUE, ec=_BLUE, lw=1, zorder=2))


def _lines_named(axes: Axes, lines: list[tuple[str, int]]) -> None:
    every = -(-len(lines) // 16)
    shown = range(0, len(lines), every)
    names = [
        f"{lines[k][0]} {lines[k][1] * LINE_BYTES:,} to {(lines[k][1] + 1) * LINE_BYTES - 1:,}" for k in shown
    ]
    axes.set_yticks([k + 0.5 for k in shown], [name.strip() for name in names], fontsize=_POINTS)
    axes.set_ylabel("bytes from the start; dotted: a gap", fontsize=_POINTS)


def _rows_named(axes: Axes, labels: list[str]) -> None:
    axes.set_yticks([k + 0.5 for k in range(len(labels))], labels, fontsize=_POINTS, family="monospace")
    axes.set_ylim(len(labels), 0)


def _check_rows(count: int, what: str, figure: str) -> None:
    if count == 0:
        raise LabkitError("this part of the trace has no steps: choose another, trace[first:last]")
    if count > _MOST_ROWS:
        raise LabkitError(
            f"{what} {count:,} times, more than the {_MOST_ROWS} rows of a readable picture: draw a part, "
            f"draw(trace[first:last], {figure!r})"
        )
