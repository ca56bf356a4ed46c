"""LDS bank conflicts of one access of a wave, phase by phase, from its lanes' addresses.

Which lanes meet in a phase, and its sources, stand in `emulator.traffic`, which counts launches by the same
rule: 32 banks of 4 bytes; in a cycle a bank serves one word, to all lanes that ask for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from labkit.emulator.traffic import (
    LANES_PER_PHASE,
    LDS_BANKS,
    LDS_PHASES,
    LdsCount,
    count_banks,
    phase_kind,
)
from labkit.errors import LabkitError
from labkit.model.coalescing import wave_of

if TYPE_CHECKING:
    import pandas as pd


def conflicts(
    addresses: Sequence[int] | np.ndarray,
    size: int,
    write: bool = False,
    active: Sequence[bool] | np.ndarray | None = None,
) -> pd.DataFrame:
    """A row a phase: its lanes, cycles, minimum cycles (1, or 0 where no lane is on), conflict cycles.

    addresses: byte address in LDS of each of the 64 lanes; size: bytes a lane, 1 to 16. Raises LabkitError
    as coalescing does, and for an address that is not a multiple of min(size, 4).
    """
    import pandas as pd

    at, lanes = _wave(addresses, size, active)
    rows = []
    for phase, members in enumerate(_phases(size, write)):
        here = np.zeros((1, 64), bool)
        here[0, members] = lanes[0, members]
        total = np.zeros(len(LdsCount), np.int64)
        count_banks(total, at, size, here, write)
        cycles, least = int(total[LdsCount.CYCLES]), int(total[LdsCount.LEAST_CYCLES])
        rows.append((phase, members.tolist(), cycles, least, cycles - least))
    columns = ["phase", "lanes", "cycles", "minimum_cycles", "conflict_cycles"]
    return pd.DataFrame(rows, columns=columns)


def bank_map(
    addresses: Sequence[int] | np.ndarray,
    size: int,
    write: bool = False,
    active: Sequence[bool] | np.ndarray | None = None,
) -> np.ndarray:
    """How many different words each phase asks of each bank: int64 [phases, 32]; above 1 is a conflict."""
    at, lanes = _wave(addresses, size, active)
    phases = _phases(size, write)
    asked = np.zeros((len(phases), LDS_BANKS), np.int64)
    for phase, members in enumerate(phases):
        first = at[0, members[lanes[0, members]]].astype(np.int64) // 4
        words = np.unique(first[:, None] + np.arange(max(size // 4, 1)))
        np.add.at(asked[phase], words % LDS_BANKS, 1)
    return asked


def _phases(size: int, write: bool) -> np.ndarray:
    """The lanes of each phase: int64 [phases, lanes]."""
    kind = phase_kind(size, write)
    return LDS_PHASES[kind].reshape(-1, LANES_PER_PHASE[kind])


def _wave(addresses: Sequence[int] | np.ndarray, size: int, active: object) -> tuple[np.ndarray, np.ndarray]:
    at, lanes = wave_of(addresses, size, active)
    if (at % np.uint64(min(size, 4))).any():
        raise LabkitError(f"an address is not a multiple of {min(size, 4)}: the phases of such are unknown")
    return at, lanes
