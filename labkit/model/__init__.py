"""What counts would cost: counts and datasheet figures in, tables out. Floors, never forecasts."""

from __future__ import annotations

import operator
from typing import Any

from labkit.errors import LabkitError


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """`value` as an int. Raises LabkitError where it is no whole number from `least` to `most`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or (most is not None and number > most):
        upper = "or more" if most is None else f"to {most}"
        raise LabkitError(f"{name}={value!r}: pass a whole number, {least} {upper}")
    return number
