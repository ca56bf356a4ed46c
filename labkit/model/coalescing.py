"""How many cache lines and 64-byte segments one load or store of a wave touches, from its lanes' addresses.

The counting is `emulator.traffic`'s; here it is asked of addresses that one writes down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from labkit.emulator.traffic import LINE_BYTES, SEGMENT_BYTES, Count, count_access
from labkit.errors import LabkitError

if TYPE_CHECKING:
    import pandas as pd

SIZES = (1, 2, 4, 8, 12, 16)  # bytes a lane that one instruction can move


def coalescing(
    addresses: Sequence[int] | np.ndarray, size: int, active: Sequence[bool] | np.ndarray | None = None
) -> pd.DataFrame:
    """A row each for 128-byte lines and 64-byte segments: touched, least, bytes, % of them asked for.

    addresses: byte address of each of the 64 lanes; size: bytes a lane; active: which lanes access memory,
    all where it is None. The least is what the same bytes would touch side by side, from a line's start.
    Raises LabkitError for other shapes, sizes or negative addresses.
    """
    import pandas as pd

    at, lanes = wave_of(addresses, size, active)
    total = np.zeros(len(Count), np.int64)
    count_access(total, at, size, lanes)
    asked = int(total[Count.LANES]) * size
    least_segments = min(int(total[Count.SEGMENTS]), -(-asked // SEGMENT_BYTES))
    rows = [
        _row("128-byte lines", LINE_BYTES, total[Count.LINES], total[Count.LEAST_LINES], asked),
        _row("64-byte segments", SEGMENT_BYTES, total[Count.SEGMENTS], least_segments, asked),
    ]
    return pd.DataFrame(
        rows, columns=["unit", "touched", "least", "bytes moved", "bytes asked for", "used %"]
    )


def lines_of_lanes(addresses: Sequence[int] | np.ndarray, size: int) -> np.ndarray:
    """The first and the last 128-byte line of each lane's access: int64 [64, 2]."""
    at, _ = wave_of(addresses, size, None)
    first = at[0].astype(np.int64)
    return np.stack([first, first + size - 1], axis=1) // LINE_BYTES


def wave_of(
    addresses: Sequence[int] | np.ndarray, size: int, active: Sequence[bool] | np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Addresses, uint64, and active lanes, bool, both [1, 64]. Raises LabkitError for what is no wave's."""
    at = np.asarray(addresses)
    lanes = np.ones(64, bool) if active is None else np.asarray(active, bool)
    if at.shape != (64,) or lanes.shape != (64,) or at.dtype.kind not in "iu":
        raise LabkitError("a wave has 64 lanes: pass 64 whole addresses, and 64 booleans for `active`")
    if (at < 0).any():
        raise LabkitError("an address is negative: pass byte addresses from 0 up")
    if size not in SIZES:
        raise LabkitError(f"size={size!r}: one instruction moves {', '.join(map(str, SIZES))} bytes a lane")
    return at.astype(np.uint64)[None, :], lanes[None, :]


def _row(unit: str, size: int, touched: int, least: int, asked: int) -> tuple:
    moved = int(touched) * size
    return unit, int(touched), int(least), moved, asked, 100 * asked / moved if moved else 0.0
