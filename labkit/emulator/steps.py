"""One executed instruction of a traced wave: registers read and written, memory touched, also in words.

Lanes are numbered 0 to 63. A scalar register has one value for the whole wave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.emulator.counters import LINE_BYTES
from labkit.emulator.memory import Memory
from labkit.emulator.program import Instruction
from labkit.emulator.typed import MASK, Typed, register_name


@dataclass(frozen=True, slots=True)
class Access:
    """One access to memory, lane by lane: arrays [64], or [1] of a scalar load.

    space: "global" or "LDS". size: bytes a lane. addresses: uint64, in LDS the byte in the workgroup's part.
    lanes: which of them reached memory. tensors, offsets: the argument whose storage a lane touched, and the
    byte in it; "" and the address where it is no argument's.
    """

    space: str
    size: int
    addresses: np.ndarray
    lanes: np.ndarray
    tensors: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, memory: Memory | None, addresses: np.ndarray, size: int, lanes: np.ndarray) -> Access:
        """An access as a machine tells it. memory: None for LDS."""
        tensors = np.full(addresses.shape, "" if memory else "LDS", object)
        offsets = addresses.astype(np.int64)
        for allocation in memory.allocations if memory else ():
            here = lanes & (addresses >= allocation.base) & (addresses < allocation.end)
            tensors[here] = allocation.name
            offsets[here] -= allocation.base
        return cls("global" if memory else "LDS", size, addresses.copy(), lanes.copy(), tensors, offsets)

    @property
    def lines(self) -> list[tuple[str, int]]:
        """The 128-byte lines that the lanes touch, each once: (tensor, number from its storage's start).

        On a GPU a storage starts at the start of a cache line, so these are the cache lines there.
        """
        last = self.offsets + self.size - 1
        return sorted(
            {
                (self.tensors[lane], line)
                for lane in np.flatnonzero(self.lanes)
                for line in range(self.offsets[lane] // LINE_BYTES, last[lane] // LINE_BYTES + 1)
            }
        )

    def __str__(self) -> str:
        if not self.lanes.any():
            return "no lane reaches memory"
        places = []
        for tensor in dict.fromkeys(self.tensors[self.lanes]):
            offsets = self.offsets[self.lanes & (self.tensors == tensor)]
            listed = _several(len(offsets), lambda k, offsets=offsets: str(offsets[k]))
            places.append(f"{tensor} + {listed}" if tensor else f"address {listed}")
        what = f"{'; '.join(places)}: {_plural(self.size, 'byte')}"
        if self.lanes.size == 1:
            return what
        what += f" in {_plural(int(self.lanes.sum()), 'lane')}"
        return what if self.space == "LDS" else f"{what}, {_plural(len(self.lines), 'cache line')}"


@dataclass(frozen=True, slots=True)
class Value:
    """What a step read or wrote: registers with their type, and their bits, uint32 [registers, lanes]."""

    typed: Typed
    bits: np.ndarray

    @property
    def values(self) -> np.ndarray:
        """Decoded: [lanes], or [lanes, count] where a lane holds several; one lane for a scalar register."""
        return self.typed.values(self.bits)

    def in_lane(self, lane: int) -> Any:
        """What one lane sees: a number, a bool, or a tuple of numbers."""
        values = self.values
        found = values[lane if len(values) > 1 else 0]
        return tuple(map(_plain, found)) if found.ndim else _plain(found)

    def text_in_lane(self, lane: int) -> str:
        """The same as text, of a float 6 digits; bits that have no type in hexadecimal."""
        found = self.in_lane(lane)
        if isinstance(found, tuple):
            return f"({_several(len(found), lambda k: _number(found[k], self.typed.element))})"
        return _number(found, self.typed.element)

    def text(self, lanes: np.ndarray) -> str:
        """Name, value and type in a line; of a vector register some of the `lanes`, bool [64]."""
        if self.typed.element == MASK:
            mask = sum(1 << int(lane) for lane in np.flatnonzero(self.values))
            return f"{self.typed.name} = {mask:#018x} (mask of {_plural(mask.bit_count(), 'lane')})"
        return f"{self.typed.name} = {self._listed(np.flatnonzero(lanes))} ({self.typed.type})"

    def _listed(self, lanes: np.ndarray) -> str:
        if self.bits.shape[1] == 1:
            return self.text_in_lane(0)
        if lanes.size == 0:
            return "nothing, as every lane is off"
        bits = self.bits[:, lanes]
        if lanes.size > 1 and (bits == bits[:, :1]).all():
            return f"{self.text_in_lane(lanes[0])} in each lane"
        return _several(lanes.size, lambda k: self.text_in_lane(lanes[k]))


@dataclass(frozen=True, slots=True)
class Step:
    """One executed instruction.

    number: its place in the trace. exec_mask: EXEC before it, bit i is lane i. reads, writes: its operands in
    the order of the text, then what it uses without naming it (SCC, VCC, EXEC). accesses: of memory; an
    instruction with two offsets makes two.
    """

    number: int
    instruction: Instruction
    exec_mask: int
    reads: list[Value]
    writes: list[Value]
    accesses: list[Access]

    @property
    def lanes(self) -> np.ndarray:
        """EXEC as bools [64]."""
        return np.array([self.exec_mask >> lane & 1 for lane in range(64)], bool)

    @property
    def lanes_written(self) -> np.ndarray:
        """The lanes that a vector result reaches, bool [64]: a matrix instruction ignores EXEC."""
        return np.ones(64, bool) if self.instruction.kind == "MFMA" else self.lanes

    @property
    def written(self) -> dict[str, np.ndarray]:
        """Register name -> its new bits, uint32 [64], or [1] of a scalar register."""
        return {
            register_name(*part): bits
            for value in self.writes
            for part, bits in zip(value.typed.register.parts, value.bits, strict=True)
        }

    def texts(self) -> tuple[str, str, str]:
        """What it read, what it wrote and which memory it touched, in words."""
        lanes = self.lanes
        reads, writes = (
            "; ".join(dict.fromkeys(value.text(lanes) for value in side))
            for side in (self.reads, self.writes)
        )
        return reads, writes, "; ".join(map(str, self.accesses))


def _plain(value: Any) -> Any:
    """A NumPy number as Python's; FP8 and bfloat16 as float."""
    return value.item() if value.dtype.kind in "biuf" and value.dtype.isbuiltin else float(value)


def _number(value: Any, element: str) -> str:
    if element in ("b8", "b16", "b32"):
        return f"{value:#0{2 + int(element[1:]) // 4}x}"
    return f"{value:.6g}" if isinstance(value, float) else str(int(value))


def _several(count: int, text: Callable[[int], str]) -> str:
    """The texts of 0 to count - 1, of many only the first three and the last."""
    if count <= 4:
        return ", ".join(map(text, range(count)))
    return f"{', '.join(map(text, range(3)))}, ... {text(count - 1)}"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
