"""labkit bench model: how long the cache model takes for 20 million line accesses.

These are times of this CPU at modelling. They say nothing about the chip.
"""

from __future__ import annotations

import platform
import resource
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from labkit.emulator.lines import Lines
from labkit.model.dispatch import grouped_order, row_order
from labkit.model.l2 import CacheTraffic, simulate

BOUND_SECONDS = 30
TILES, STEPS, TILE_LINES = 64, 20, 128  # 64 x 64 workgroups, 20 steps of two tiles of 128 lines, one store


def gemm_lines() -> Lines:
    """The lines of a product of two 8192 x 1280 half-precision matrices in tiles of 128 x 128, K by 64.

    One stream a workgroup: each step reads 128 rows of A and of B, a line of each; then the tile is stored.
    """
    rows, columns = np.divmod(np.arange(TILES * TILES), TILES)
    step, line = np.arange(STEPS)[:, None], np.arange(TILE_LINES)[None, :]
    tile = (line * STEPS + step).ravel()  # of a matrix with STEPS lines a row
    a = rows[:, None] * TILE_LINES * STEPS + tile
    b = (TILES + columns)[:, None] * TILE_LINES * STEPS + tile
    loads = np.stack([a.reshape(-1, STEPS, TILE_LINES), b.reshape(-1, STEPS, TILE_LINES)], axis=2)
    loads = loads.reshape(TILES * TILES, -1)
    stored = 2 * TILES * TILE_LINES * STEPS + np.arange(TILES * TILES * 2 * TILE_LINES).reshape(len(rows), -1)
    each = np.concatenate([loads, stored], axis=1)
    kind = np.zeros(each.shape, np.int8)
    kind[:, loads.shape[1] :] = 1
    group = np.repeat(np.arange(len(rows), dtype=np.int32), each.shape[1])
    nothing = np.zeros(each.size, np.int8)
    return Lines(
        "gemm", (len(rows), 1, 1), len(rows), group, nothing, nothing, each.ravel(), kind.ravel(), []
    )


def bench_model() -> None:
    """Measure and print; the first run of a machine compiles for some seconds before the clock starts."""
    console = Console(width=110)
    lines = gemm_lines()
    simulate(_few(lines), workgroups_per_cu=1)
    table = Table(title=f"Cache model, {len(lines):,} line accesses of {lines.workgroups:,} workgroups")
    for heading in ("order of tiles", "seconds", "ns an access", "L2 hits, %", "HBM read, MB"):
        table.add_column(heading, justify="right")
    slowest = 0.0
    for name, order in (("row by row", row_order), ("groups of 8", grouped_order(TILES, TILES, 8))):
        start = time.perf_counter()
        traffic = simulate(lines, workgroups_per_cu=1, order=order)
        seconds = time.perf_counter() - start
        slowest = max(slowest, seconds)
        table.add_row(name, f"{seconds:.1f}", f"{seconds / len(lines) * 1e9:.0f}", *_modelled(traffic))
    console.print(table)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    console.print(
        f"Slowest {slowest:.1f} s of {BOUND_SECONDS} s allowed. Peak memory of the process {peak:.0f} MiB. "
        f"{platform.machine()}, one core. "
        "Seconds are this CPU's at modelling; hits and bytes are modelled for an MI300X."
    )


def _modelled(traffic: CacheTraffic) -> tuple[str, str]:
    return f"{100 * traffic.l2_hit_rate:.1f}", f"{traffic.hbm_read_bytes / 1e6:.1f}"


def _few(lines: Lines) -> Lines:
    """The first workgroup's."""
    here = lines.workgroup == 0
    columns = [getattr(lines, name)[here] for name in ("workgroup", "wave", "instruction", "line", "kind")]
    return Lines(lines.name, (1, 1, 1), 1, *columns, [])
