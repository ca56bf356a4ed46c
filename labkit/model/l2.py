"""The L2 caches of the XCDs, the Infinity Cache and HBM, driven by the lines that a launch touched.

Modelled, not measured. From the CDNA 3 white paper: sizes and ways; L2 writes back and allocates on a write;
the Infinity Cache lies on the memory side and holds nothing dirty, so what L2 writes back goes on to HBM. The
rest is our reading: replacement is least recently used; the set is the line's number folded by XOR, since AMD
publishes no index; resident waves take turns, a line each; a store takes a line without reading it first; a
line written back does not enter the Infinity Cache, whose lines are as long as L2's. There is no vector L1
here, for no source gives its ways, so what it would catch counts as an L2 access.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from labkit.emulator.lines import Lines
from labkit.emulator.traffic import LINE_BYTES
from labkit.errors import LabkitError
from labkit.hardware import chip
from labkit.model import whole
from labkit.model.caches import Total, by_stream, play
from labkit.model.dispatch import Order, places, row_order

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class CacheTraffic:
    """What the caches did. totals: int64 [XCDs, caches.Total]; touched: different lines of each XCD.

    different_lines: over the whole chip. workgroups, recorded: of the grid, and of those simulated.
    by_workgroup: a row a workgroup in dispatch order: workgroup, xcd, compute_unit, accesses, hits,
    hit_percent.
    """

    totals: np.ndarray
    touched: np.ndarray
    different_lines: int
    workgroups: int
    recorded: int
    by_workgroup: pd.DataFrame

    @property
    def l2_hit_rate(self) -> float:
        """L2 hits of all accesses, 0 to 1; 0 where there was none."""
        return _share(self.totals[:, Total.HITS].sum(), self.totals[:, Total.ACCESSES].sum())

    @property
    def infinity_hit_rate(self) -> float:
        """Of the lines that L2 fetched, those that the Infinity Cache held, 0 to 1."""
        return _share(self.totals[:, Total.INFINITY_HITS].sum(), self.totals[:, Total.FETCHES].sum())

    @property
    def infinity_bytes(self) -> int:
        """Bytes that the L2 caches read from the Infinity Cache or, through it, from HBM."""
        return LINE_BYTES * int(self.totals[:, Total.FETCHES].sum())

    @property
    def hbm_read_bytes(self) -> int:
        """Bytes read from HBM."""
        missed = self.totals[:, Total.FETCHES] - self.totals[:, Total.INFINITY_HITS]
        return LINE_BYTES * int(missed.sum())

    @property
    def hbm_write_bytes(self) -> int:
        """Bytes written to HBM, with those that L2 writes back as the launch ends."""
        return LINE_BYTES * int(self.totals[:, Total.WRITE_BACKS].sum())

    @property
    def line_bytes(self) -> int:
        """Bytes of each XCD's different lines: what must leave its L2 at least once, or come to it."""
        return LINE_BYTES * int(self.touched.sum())

    @property
    def duplication(self) -> float:
        """On how many XCDs' L2 a touched line came to lie, on average: 1 to 8."""
        return _share(self.touched.sum(), self.different_lines)

    @property
    def by_xcd(self) -> pd.DataFrame:
        """A row an XCD: line accesses, L2 hits, lines fetched, lines written back, different lines."""
        import pandas as pd

        table = pd.DataFrame(
            self.totals[:, : Total.INFINITY_HITS],
            columns=["line_accesses", "l2_hits", "lines_fetched", "lines_written_back"],
        )
        table.insert(2, "l2_hit_percent", 100 * table["l2_hits"] / table["line_accesses"].clip(lower=1))
        return table.assign(different_lines=self.touched).rename_axis("xcd")

    def summary(self) -> pd.DataFrame:
        """The simulation in a few quantities with units. Modelled, from counted addresses."""
        import pandas as pd

        rows = [
            ("workgroups simulated", self.recorded, f"of {self.workgroups}"),
            ("line accesses", int(self.totals[:, Total.ACCESSES].sum()), "128-byte lines"),
            ("different lines", self.different_lines, "128-byte lines"),
            ("L2 hits", round(100 * self.l2_hit_rate, 2), "% of line accesses"),
            ("L2 copies of a line", round(self.duplication, 3), "XCDs, on average"),
            ("Infinity Cache hits", round(100 * self.infinity_hit_rate, 2), "% of lines fetched"),
            ("fetched by L2", self.infinity_bytes, "bytes"),
            ("HBM read", self.hbm_read_bytes, "bytes"),
            ("HBM written", self.hbm_write_bytes, "bytes"),
        ]
        # Object values keep counts integers beside percentages.
        return pd.DataFrame(rows, columns=["quantity", "value (modelled)", "unit"], dtype=object)


def simulate(
    lines: Lines, *, workgroups_per_cu: int, order: Order = row_order, chip_name: str = "MI300X"
) -> CacheTraffic:
    """Run the lines of a launch through the L2 caches and the Infinity Cache, which begin empty.

    workgroups_per_cu: how many a compute unit holds at a time, as occupancy.workgroups_per_cu says.
    order: dispatch numbers, int64 [n] -> the recorded workgroup whose work each does; a launch recorded once
    can so be tried in another order of its tiles. Of a launch recorded in part, that part is the grid.
    Raises LabkitError where `order` is no permutation; UnknownChip where the chip's caches have no source.
    """
    figures, count = chip(chip_name), lines.recorded_workgroups
    xcds = int(figures["xcds"])
    resident = whole("workgroups_per_cu", workgroups_per_cu, 1) * int(figures["compute_units_per_xcd"])
    caches = _empty(figures["l2_capacity"], figures["l2_ways"], xcds)
    infinity = _empty(figures["infinity_cache_capacity"], figures["infinity_cache_ways"])[0]
    dealt = _permutation(order, count)
    waves = int(lines.wave.max(initial=0)) + 1
    stream = lines.workgroup.astype(np.int64) * waves + lines.wave
    begin, records = by_stream(stream, count * waves, lines.line, lines.kind)
    totals, hits = np.zeros((xcds, len(Total)), np.int64), np.zeros(count, np.int64)
    play(begin, records, waves, dealt, resident, caches, infinity, totals, hits)
    touched, different = _different(lines, dealt, xcds)
    table = places(count, chip_name).assign(workgroup=dealt)
    accesses = np.diff(begin[::waves])[dealt]
    table = table.assign(accesses=accesses, hits=hits, hit_percent=100 * hits / np.maximum(accesses, 1))
    _write_back(caches, totals)
    return CacheTraffic(totals, touched, different, lines.workgroups, count, table)


def _empty(mebibytes: float, ways: float, number: int = 1) -> np.ndarray:
    """That many empty caches: int64 [number, sets, ways]."""
    sets = int(mebibytes * 2**20) // LINE_BYTES // int(ways)
    return np.full((number, sets, int(ways)), -1, np.int64)


def _write_back(caches: np.ndarray, totals: np.ndarray) -> None:
    """The launch is over: L2 gives up its dirty lines."""
    totals[:, Total.WRITE_BACKS] += ((caches >= 0) & (caches & 1 == 1)).sum(axis=(1, 2))


def _permutation(order: Order, count: int) -> np.ndarray:
    dealt = np.asarray(order(np.arange(count)), np.int64)
    if dealt.shape != (count,) or not np.array_equal(np.sort(dealt), np.arange(count)):
        raise LabkitError(
            f"order does not deal each of the {count} workgroups once: "
            f"make it a permutation of 0 to {count - 1}"
        )
    return dealt


def _different(lines: Lines, dealt: np.ndarray, xcds: int) -> tuple[np.ndarray, int]:
    """How many different lines each XCD touched, int64 [xcds], and all of them together."""
    last = int(lines.line.max(initial=0)) + 1
    number = np.empty_like(dealt)
    number[dealt] = np.arange(dealt.size)
    seen = np.zeros((xcds, last), bool)
    seen[number[lines.workgroup] % xcds, lines.line] = True
    return np.count_nonzero(seen, axis=1), int(np.count_nonzero(seen.any(axis=0)))


def _share(part: float, of: float) -> float:
    return float(part) / float(of) if of else 0.0
