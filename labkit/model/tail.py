"""The tail effect: workgroups of equal length over a chip's slots, and the share of the machine that is busy.

Modelled: every workgroup takes one unit of time, a slot takes the next workgroup as soon as it is free, and
all slots are alike. Rounds, not seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from labkit.hardware import chip
from labkit.model import whole

if TYPE_CHECKING:
    import pandas as pd


def tail(workgroups: Sequence[int], workgroups_per_cu: int = 1, chip_name: str = "MI300X") -> pd.DataFrame:
    """A row a grid size: slots, rounds, workgroups in the last round, % of slots and of CUs busy.

    workgroups: grid sizes. A compute unit counts as busy in a round in which it has one workgroup at least;
    the last round is dealt one to each unit first.
    """
    import pandas as pd

    units = int(chip(chip_name)["compute_units"])
    slots = units * whole("workgroups_per_cu", workgroups_per_cu, 1)
    rows = []
    for size in workgroups:
        whole("workgroups", size, 1)
        rounds = -(-size // slots)
        last = size - (rounds - 1) * slots
        busy = (rounds - 1) * units + min(last, units)
        rows.append((size, slots, rounds, last, 100 * size / (rounds * slots), 100 * busy / (rounds * units)))
    columns = ["workgroups", "slots", "rounds", "in last round", "slots busy %", "compute units busy %"]
    return pd.DataFrame(rows, columns=columns)


def schedule(workgroups: int, workgroups_per_cu: int = 1, chip_name: str = "MI300X") -> pd.DataFrame:
    """A row a round: workgroups that run in it, and % of slots busy."""
    import pandas as pd

    row = tail([workgroups], workgroups_per_cu, chip_name).iloc[0]
    slots, rounds = int(row["slots"]), int(row["rounds"])
    running = [slots] * (rounds - 1) + [int(row["in last round"])]
    return pd.DataFrame(
        {"round": range(rounds), "workgroups": running, "slots busy %": [100 * n / slots for n in running]}
    )
