"""Layouts of TritonGPU IR: which lane of which wave keeps which element of a tensor, in which register.

So far the blocked layout, in which loads, stores and elementwise work happen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from labkit.errors import LabkitError

if TYPE_CHECKING:
    import numpy as np

_BLOCKED = re.compile(r"^(#\w+) = #ttg\.blocked<\{(.*)\}>$", re.MULTILINE)
_NUMBERS = r" = \[([\d, ]+)\]"


@dataclass(frozen=True, slots=True)
class Blocked:
    """Triton's blocked layout, with the numbers as the IR prints them, one for each dimension.

    size_per_thread: the block of elements that one lane keeps. threads_per_warp: how the lanes of a wave
    lie side by side. warps_per_cta: how the waves of the workgroup do. order: the dimensions, the one
    that runs fastest first. Where the tensor is larger than the tile that these make, the tile repeats and
    each lane keeps more registers; where it is smaller, several lanes keep the same element.
    """

    size_per_thread: tuple[int, ...]
    threads_per_warp: tuple[int, ...]
    warps_per_cta: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def tile(self) -> tuple[int, ...]:
        """Elements in each dimension that all waves hold together before the pattern repeats."""
        sizes = zip(self.size_per_thread, self.threads_per_warp, self.warps_per_cta, strict=True)
        return tuple(prod(size) for size in sizes)

    def copies(self, shape: tuple[int, ...]) -> int:
        """How many lanes keep each element of a tensor of this shape."""
        self._check(shape)
        places = zip(self.size_per_thread, self.tile, shape, strict=True)
        return prod(max(1, tile // max(size, length)) for size, tile, length in places)

    def owners(self, shape: tuple[int, ...]) -> Owners:
        """The owner of each element of a tensor of this shape; the lowest one where there are several.

        shape: powers of two, as Triton's tensors have. Raises LabkitError for one that doesn't fit.
        """
        import numpy as np

        self._check(shape)
        register, lane, wave, repeat = [], [], [], []
        for position, (size, lanes, waves) in zip(
            np.indices(shape),
            zip(self.size_per_thread, self.threads_per_warp, self.warps_per_cta, strict=True),
            strict=True,
        ):
            register.append(position % size)
            lane.append(position // size % lanes)
            wave.append(position // (size * lanes) % waves)
            repeat.append(position // (size * lanes * waves))
        repeats = [-(-size // tile) for size, tile in zip(shape, self.tile, strict=True)]
        # Registers that would only hold copies are not there in the machine code.
        kept = [min(pair) for pair in zip(self.size_per_thread, shape, strict=True)]
        return Owners(
            wave=self._number(wave, self.warps_per_cta),
            lane=self._number(lane, self.threads_per_warp),
            register=self._number(register, kept) + prod(kept) * self._number(repeat, repeats),
        )

    def owner(self, *index: int, shape: tuple[int, ...]) -> tuple[int, int, int]:
        """(wave, lane, register) that keeps the element at `index` of a tensor of this shape."""
        owners = self.owners(shape)
        return int(owners.wave[index]), int(owners.lane[index]), int(owners.register[index])

    def _number(self, digits: list, sizes: list[int] | tuple[int, ...]) -> np.ndarray:
        """One number from a digit for each dimension, the first dimension of `order` counting fastest."""
        number, weight = 0, 1
        for dimension in self.order:
            number = number + digits[dimension] * weight
            weight *= sizes[dimension]
        return number

    def _check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != len(self.order) or any(size < 1 or size & (size - 1) for size in shape):
            raise LabkitError(
                f"This layout has {len(self.order)} dimensions, and a tensor's sizes are powers of two: "
                f"the shape {shape} doesn't fit."
            )


@dataclass(frozen=True, slots=True)
class Owners:
    """For each element of a tensor the wave of the workgroup, the lane (0 to 63) and the register of that
    lane that keep it: three integer arrays of the tensor's shape. Registers count the tensor's elements
    in the lane, not VGPRs: two FP16 elements share one VGPR.
    """

    wave: np.ndarray
    lane: np.ndarray
    register: np.ndarray


def parse_layouts(ttgir: str) -> dict[str, Blocked]:
    """The blocked layouts that a TTGIR module defines, by name ("#blocked"); other kinds are left out."""
    return {name: _blocked(body) for name, body in _BLOCKED.findall(ttgir)}


def tensor_shapes(ttgir: str, name: str) -> list[tuple[int, ...]]:
    """The shapes of the tensors that have the layout `name`, in order of appearance, each once."""
    pattern = rf"tensor<((?:\d+x)+)[^,<>]+(?:<[^<>]*>)?, {re.escape(name)}>"
    found = re.findall(pattern, ttgir)
    return list(dict.fromkeys(tuple(int(size) for size in text[:-1].split("x")) for text in found))


def _blocked(body: str) -> Blocked:
    fields = []
    for field in ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order"):
        match = re.search(field + _NUMBERS, body)
        if match is None:
            raise LabkitError(f"This Triton prints a blocked layout without {field}: {body}")
        fields.append(tuple(int(number) for number in match[1].split(",")))
    return Blocked(*fields)
