"""Where workgroups go: round-robin over the XCDs, and the order in which a grid's tiles are dealt.

Workgroup d in dispatch order goes to XCD d % 8 (ROCm blog on partition modes; HipKittens), up to a rotation
that no kernel can know. Which compute unit of the XCD takes it is published nowhere; the model deals them
round-robin too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from labkit.hardware import chip
from labkit.model import whole

if TYPE_CHECKING:
    import pandas as pd

# Dispatch numbers, int64 [n] -> the workgroup whose work each does, a permutation of them.
Order = Callable[[np.ndarray], np.ndarray]


def places(workgroups: int, chip_name: str = "MI300X") -> pd.DataFrame:
    """A row a workgroup in dispatch order: its XCD, and the compute unit of that XCD."""
    import pandas as pd

    figures = chip(chip_name)
    number = np.arange(whole("workgroups", workgroups, 1))
    xcds = int(figures["xcds"])
    unit = number // xcds % int(figures["compute_units_per_xcd"])
    return pd.DataFrame({"workgroup": number, "xcd": number % xcds, "compute_unit": unit})


def row_order(dispatch: np.ndarray) -> np.ndarray:
    """Tiles as they are numbered: row by row."""
    return dispatch


def grouped_order(rows: int, columns: int, group: int) -> Order:
    """Tiles of a rows x columns grid in bands of `group` rows, down each column of a band in turn.

    The tile in row r and column c has the number r * columns + c; the last band may be lower. It is the
    order of Triton's matrix multiplication tutorial (GROUP_SIZE_M).
    """
    for name, size in (("rows", rows), ("columns", columns), ("group", group)):
        whole(name, size, 1)

    def order(dispatch: np.ndarray) -> np.ndarray:
        band, place = dispatch // (group * columns), dispatch % (group * columns)
        height = np.minimum(rows - band * group, group)
        return (band * group + place % height) * columns + place // height

    return order


def xcd_order(workgroups: int, inner: Order = row_order, xcds: int = 8) -> Order:
    """Give each XCD neighbours: the tiles of `inner` are cut in `xcds` runs, one for each XCD.

    Where the XCDs do not divide the workgroups, the first runs are one tile longer.
    """
    whole("workgroups", workgroups, 1)
    whole("xcds", xcds, 1)

    def order(dispatch: np.ndarray) -> np.ndarray:
        xcd, turn = dispatch % xcds, dispatch // xcds
        shorter, longer = divmod(workgroups, xcds)
        return inner(xcd * shorter + np.minimum(xcd, longer) + turn)

    return order
