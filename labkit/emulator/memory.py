"""Global memory: the tensors of a launch, each its own checked range of addresses.

Addresses are the tensors' real ones, so that pointer arithmetic in the kernel needs no translation.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

_GPU_ALIGNMENT = 512  # bytes; what PyTorch gives on a GPU (kMinBlockSize of its caching allocator)


@dataclass
class Allocation:
    """One range of addresses [base, end) and its bytes."""

    name: str
    base: int
    bytes: np.ndarray  # uint8
    words: np.ndarray  # the same memory as uint32, the last word whole

    @functools.cached_property
    def touched(self) -> np.ndarray:
        """uint8 for each word: bits 0 to 3 tell which of its bytes were read, 4 to 7 which were written."""
        return np.zeros(self.words.size, np.uint8)

    def count_touched(self) -> tuple[int, int]:
        """How many different bytes were read, and written."""
        # A read of the last word may reach past the tensor's end; see end_for.
        halves = (np.bitwise_count(self.touched & np.uint8(bits)) for bits in (0x0F, 0xF0))
        return tuple(min(int(half.sum(dtype=np.int64)), self.bytes.size) for half in halves)

    @classmethod
    def at(cls, name: str, address: int, nbytes: int) -> Allocation:
        """The `nbytes` bytes of this process's memory that begin at `address`."""
        # Allocators hand out whole words, so the word that holds the last byte may be touched.
        whole = -(-nbytes // 4) * 4
        buffer = np.frombuffer((ctypes.c_uint8 * whole).from_address(address), np.uint8)
        return cls(name, address, buffer[:nbytes], buffer.view(np.uint32))

    @classmethod
    def of(cls, name: str, data: np.ndarray) -> Allocation:
        """The memory of a uint8 array whose size is a multiple of 4."""
        return cls(name, data.ctypes.data, data, data.view(np.uint32))

    @property
    def end(self) -> int:
        """The first address after the range."""
        return self.base + self.bytes.size

    def end_for(self, size: int) -> int:
        """Where an access of `size` bytes must end.

        Triton changes a 16-bit element atomically through the 32-bit word that holds it, which for the last
        element may reach past the tensor: that is the compiler's doing, not a fault of the kernel.
        """
        return self.base + 4 * self.words.size if size == 4 else self.end


# An atomic's work on one allocation: (allocation, byte offsets, flat lane numbers) -> old values.
Change = Callable[[Allocation, np.ndarray, np.ndarray], np.ndarray]


class OutOfRange(Exception):
    """Some active lanes hold addresses outside every allocation; `lanes` marks them, [W, 64] or [W, 1].

    size: bytes of an access; before_base: how many bytes each lies before the pointer that the kernel was
    given, where that is known.
    """

    def __init__(
        self, lanes: np.ndarray, addresses: np.ndarray, size: int, before_base: np.ndarray | None = None
    ) -> None:
        super().__init__("address outside every tensor")
        self.lanes, self.addresses, self.size, self.before_base = lanes, addresses, size, before_base


def first_active(values: np.ndarray, lanes: np.ndarray) -> int:
    """The value of the first of `lanes`, to which `values` broadcast."""
    return int(np.broadcast_to(values, lanes.shape)[lanes][0])


class Memory:
    """Reads and writes 1 to 16 bytes a lane at 64-bit addresses."""

    def __init__(self, allocations: list[Allocation]) -> None:
        """Ranges that overlap (two views of one storage) must have been merged before."""
        self.allocations: list[Allocation] = []
        self.changes = 0  # how often it has grown, for what keeps its ranges
        self.add(allocations)

    def add(self, allocations: list[Allocation]) -> None:
        """Let the kernel touch these ranges too."""
        self.changes += 1
        known = [*self.allocations, *(a for a in allocations if a.bytes.size)]
        self.allocations = sorted(known, key=lambda a: a.base)
        self._bases = np.array([a.base for a in self.allocations], np.uint64)

    def _groups(
        self, addresses: np.ndarray, size: int, lanes: np.ndarray | None
    ) -> Iterator[tuple[Allocation, np.ndarray | None]]:
        """Yield (allocation, lanes) so that each access lies in one allocation.

        `lanes` None in the answer means every lane. Raises OutOfRange before anything is touched.
        """
        considered = addresses if lanes is None else addresses[lanes]
        if considered.size == 0:
            return
        low, high = int(considered.min()), int(considered.max())
        found = self.find(low)
        if found is not None and high + size <= found.end_for(size):
            yield found, lanes
            return
        lanes = np.ones(addresses.shape, bool) if lanes is None else lanes
        which = np.searchsorted(self._bases, addresses, "right") - 1
        inside = np.zeros(addresses.shape, bool)
        parts = []
        for index in np.unique(which[lanes]):
            if index < 0:
                continue
            allocation = self.allocations[index]
            last = np.uint64(allocation.end_for(size) - size)
            here = lanes & (which == index) & (addresses <= last)
            inside |= here
            parts.append((allocation, here))
        if (lanes & ~inside).any():
            raise OutOfRange(lanes & ~inside, addresses, size)
        yield from parts

    def of(self, instruction: object) -> Memory:
        """The memory that one instruction may touch: here all of it."""
        return self

    def permitted(self, instruction: object) -> list[tuple[int, int]]:
        """The ranges that one instruction is held to: here none, it may touch everything."""
        return []

    def find(self, address: int) -> Allocation | None:
        """The allocation that holds `address`."""
        index = int(np.searchsorted(self._bases, np.uint64(address), "right")) - 1
        if index < 0 or address >= self.allocations[index].end:
            return None
        return self.allocations[index]

    def on_gpu_lines(self, addresses: np.ndarray, lanes: np.ndarray) -> np.ndarray:
        """The addresses as if each storage began on a 512-byte boundary, for counting cache lines.

        PyTorch aligns so on a GPU and to 64 bytes on a host, where line counts would change from
        one allocation to the next.
        """
        active = addresses[lanes]
        found = self.find(int(active[0])) if active.size else None
        if found is None:
            return addresses
        if int(active.min()) >= found.base and int(active.max()) < found.end:
            return addresses - np.uint64(found.base % _GPU_ALIGNMENT)
        which = np.maximum(np.searchsorted(self._bases, addresses, "right") - 1, 0)
        return addresses - (self._bases % np.uint64(_GPU_ALIGNMENT))[which]

    def touch(self, addresses: np.ndarray, size: int, lanes: np.ndarray, read: bool, write: bool) -> None:
        """Mark the bytes that the active lanes accessed; see Allocation.touched."""
        every = addresses[lanes][:, None] + np.arange(size, dtype=np.uint64)
        which = np.searchsorted(self._bases, every, "right") - 1
        for index in np.unique(which).tolist():
            allocation = self.allocations[index]
            offset = (every[which == index] - np.uint64(allocation.base)).astype(np.int64)
            for bits, wanted in ((1, read), (16, write)):
                if wanted:
                    np.bitwise_or.at(allocation.touched, offset >> 2, (bits << (offset & 3)).astype(np.uint8))

    def load(self, addresses: np.ndarray, size: int, lanes: np.ndarray | None) -> list[np.ndarray]:
        """ceil(size / 4) arrays of uint32 like `addresses`; lanes that are off read 0."""
        count = (size + 3) // 4
        result: list[np.ndarray] | None = None
        for allocation, here in self._groups(addresses, size, lanes):
            offset = addresses - np.uint64(allocation.base)
            if here is not None:
                offset = np.where(here, offset, np.uint64(0))
            part = _gather(allocation, offset, size)
            if here is None:
                return part
            part = [np.where(here, word, np.uint32(0)) for word in part]
            result = part if result is None else [a | b for a, b in zip(result, part, strict=True)]
        return result or [np.zeros(addresses.shape, np.uint32)] * count

    def store(
        self, addresses: np.ndarray, size: int, lanes: np.ndarray | None, values: list[np.ndarray]
    ) -> None:
        """Store the low `size` bytes of the words of `values`; of lanes with one address the last wins."""
        for allocation, here in list(self._groups(addresses, size, lanes)):
            offset = addresses - np.uint64(allocation.base)
            words = [np.broadcast_to(value, addresses.shape) for value in values]
            if here is not None:
                offset, words = offset[here], [word[here] for word in words]
            _scatter(allocation, offset, size, words)

    def update(
        self, addresses: np.ndarray, size: int, lanes: np.ndarray | None, change: Change
    ) -> np.ndarray:
        """Atomics: let `change` work on each allocation that the lanes touch.

        Returns what `change` returned for each lane, like `addresses` (uint32 or uint64), 0 elsewhere.
        """
        before = np.zeros(addresses.shape, np.uint64 if size == 8 else np.uint32)
        for allocation, here in list(self._groups(addresses, size, lanes)):
            chosen = np.ones(addresses.shape, bool) if here is None else here
            offsets = addresses[chosen] - np.uint64(allocation.base)
            before[chosen] = change(allocation, offsets, np.flatnonzero(chosen))
        return before


def _gather(allocation: Allocation, offset: np.ndarray, size: int) -> list[np.ndarray]:
    if size >= 4 and not (offset & np.uint64(3)).any():
        index = (offset >> np.uint64(2)).view(np.int64)
        return [np.take(allocation.words, index + k) for k in range(size // 4)]
    index = offset.view(np.int64)
    result = []
    for start in range(0, size, 4):
        word = np.zeros(offset.shape, np.uint32)
        for byte in range(start, min(start + 4, size)):
            word |= np.take(allocation.bytes, index + byte).astype(np.uint32) << np.uint32(8 * (byte - start))
        result.append(word)
    return result


def _scatter(allocation: Allocation, offset: np.ndarray, size: int, words: list[np.ndarray]) -> None:
    if size >= 4 and not (offset & np.uint64(3)).any():
        index = (offset >> np.uint64(2)).view(np.int64)
        for k, word in enumerate(words):
            allocation.words[index + k] = word
        return
    index = offset.view(np.int64)
    for byte in range(size):
        value = words[byte // 4] >> np.uint32(8 * (byte % 4))
        allocation.bytes[index + byte] = value.astype(np.uint8)
