"""What is known of each LDS byte beside its value: was it written, which waves touched it since a barrier.

Two waves that touch one byte with no barrier between, one of them writing, race. A wave that writes what the
byte already holds does not: Triton lets waves with copies of one value all store it.
"""

from __future__ import annotations

import numpy as np

SEVERAL = 255  # more than one wave; a workgroup has 16 at most
_WHOLE = np.uint32(0x01010101)  # one byte's number in all four bytes of a word


class LdsShadow:
    """Marks for `size` bytes of LDS: those of all workgroups, one after the other."""

    def __init__(self, size: int) -> None:
        self.written = np.zeros(size, np.uint8)
        self.writer = np.zeros(size, np.uint8)  # wave + 1 since the last barrier, 0 for none
        self.reader = np.zeros(size, np.uint8)

    def reset(self) -> None:
        """A new batch: nothing is written."""
        self.written.fill(0)
        self.pass_barrier(slice(None))

    def pass_barrier(self, part: slice) -> None:
        """What these bytes' waves did lies behind a barrier now."""
        self.writer[part] = 0
        self.reader[part] = 0

    def read(self, offsets: np.ndarray, size: int, waves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mark reads of `size` bytes at `offsets` by `waves`, all [n].

        Returns, both [n]: which of them read a byte that nothing has written, and the wave (+ 1, else 0)
        that wrote one of the bytes since the last barrier.
        """
        unwritten, rival = np.zeros(offsets.shape, bool), np.zeros(offsets.shape, np.uint8)
        for written, writer, reader, at, own in self._units(offsets, size, waves):
            unwritten |= written[at] != ~written.dtype.type(0)
            # Where several wrote, they wrote one value.
            rival = np.maximum(rival, _others(writer[at], own, 0))
            _mark(reader, at, own)
        return unwritten, rival

    def write(
        self, offsets: np.ndarray, size: int, waves: np.ndarray, changed: np.ndarray, lost: np.ndarray
    ) -> np.ndarray:
        """Mark writes, all arrays [n]. changed: another value stood there before; lost: one stands there now.

        Returns the wave (+ 1, SEVERAL or else 0) whose access each write races with, [n].
        """
        rival = np.zeros(offsets.shape, np.uint8)
        for written, writer, reader, at, own in self._units(offsets, size, waves):
            earlier = np.maximum(_others(reader[at], own, SEVERAL), _others(writer[at], own, SEVERAL))
            rival = np.maximum(rival, np.where(changed, earlier, 0))
            _mark(writer, at, own)
            if lost.any():
                rival = np.maximum(rival, np.where(lost & (writer[at] != own), SEVERAL, 0))
            written[at] = ~written.dtype.type(0)
        return rival

    def mark_written(self, offsets: np.ndarray, size: int) -> None:
        """Bytes that an atomic changed: atomics of several waves don't race with each other."""
        for written, _, _, at, _ in self._units(offsets, size, np.zeros(offsets.shape, np.uint8)):
            written[at] = ~written.dtype.type(0)

    def _units(self, offsets: np.ndarray, size: int, waves: np.ndarray):
        """(written, writer, reader, index, own mark) for each word of the access, or for each byte."""
        own = waves.astype(np.uint8) + np.uint8(1)
        arrays = (self.written, self.writer, self.reader)
        if size >= 4 and not (offsets & 3).any():
            words = [array.view(np.uint32) for array in arrays]
            for k in range(size // 4):
                yield (*words, (offsets >> 2) + k, own * _WHOLE)
        else:
            for k in range(size):
                yield (*arrays, offsets + k, own)


def _others(marks: np.ndarray, own: np.ndarray, several: int) -> np.ndarray:
    """A wave in `marks` other than the access's own, + 1, else 0; `several` where more than one was there."""
    foreign = (marks != 0) & (marks != own)
    if not foreign.any():
        return np.zeros(marks.shape, np.uint8)
    marks, own = (np.ascontiguousarray(x).view(np.uint8).reshape(len(x), -1) for x in (marks, own))
    return np.where(marks == own, 0, np.where(marks == SEVERAL, several, marks)).max(axis=1)


def _mark(marks: np.ndarray, at: np.ndarray, own: np.ndarray) -> None:
    """Put `own` where nobody else has been, else "several"."""
    before = marks[at]
    marks[at] = own
    shared = (before != 0) & (before != own)
    if shared.any():
        marks[at[shared]] = _several(before[shared], own[shared])
    crowded = marks[at] != own
    crowded &= ~shared
    if crowded.any():
        marks[at[crowded]] = ~marks.dtype.type(0)


def _several(before: np.ndarray, own: np.ndarray) -> np.ndarray:
    before, mine = (np.ascontiguousarray(x).view(np.uint8) for x in (before, own))
    return np.where((before != 0) & (before != mine), np.uint8(SEVERAL), mine).view(own.dtype)
