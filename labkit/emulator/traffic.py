"""Count memory accesses: cache lines of global ones, bank conflicts of those to LDS.

The fast path (`native.memory`, `native.lds`) counts the same; here is the definition.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

LINE_BYTES = 128  # a cache line of the vector L1 and of L2 (CDNA 3 white paper)
SEGMENT_BYTES = 64  # the least that HBM is read by
LDS_BANKS = 32  # each 4 bytes wide (CDNA 3 ISA guide, "Local Data Share")


class Count(IntEnum):
    """The columns of a launch's global memory totals, one row an instruction."""

    BYTES_PER_LANE = 0
    LANES = 1
    LINES = 2
    LEAST_LINES = 3  # what the same bytes would touch if they lay side by side
    SEGMENTS = 4


class LdsCount(IntEnum):
    """The columns of a launch's LDS totals, one row an instruction."""

    BYTES = 0
    CYCLES = 1
    LEAST_CYCLES = 2  # without bank conflicts


def _phases() -> np.ndarray:
    """Lanes in the order in which LDS serves them: [kind of access, 64].

    Up to 4 bytes a lane go 32 lanes a phase, 8 bytes 16, wider ones 8, which is what 32 banks can give. The
    lanes of a phase follow each other, except in a read of 16 bytes (Composable Kernel, "Understanding AMD
    GPU LDS and Bank Conflicts", gives the groups for 16 bytes; for narrower ones the order is our reading).
    """
    wide = [lane for start in (0, 32) for pair in ((0, 20), (4, 16), (8, 28), (12, 24))
            for at in pair for lane in range(start + at, start + at + 4)]  # fmt: skip
    plain = list(range(64))
    return np.array([plain, plain, wide, plain])


LDS_PHASES = _phases()
LANES_PER_PHASE = (32, 16, 8, 8)


def phase_kind(size: int, write: bool) -> int:
    """The row of LDS_PHASES for an access of `size` bytes a lane."""
    return 0 if size <= 4 else 1 if size == 8 else 3 if write else 2


def count_access(total: np.ndarray, addresses: np.ndarray, size: int, lanes: np.ndarray) -> None:
    """Add one execution to an instruction's totals: addresses uint64 and lanes bool, both [W, 64]."""
    each_wave = np.count_nonzero(lanes, axis=1)
    lines = count_blocks(addresses, size, lanes, LINE_BYTES)
    total[Count.BYTES_PER_LANE] = size
    total[Count.LANES] += each_wave.sum()
    total[Count.LINES] += lines.sum()
    total[Count.SEGMENTS] += count_blocks(addresses, size, lanes, SEGMENT_BYTES).sum()
    # Lanes that share an address need fewer lines than their bytes add up to.
    total[Count.LEAST_LINES] += np.minimum(lines, -(-each_wave * size // LINE_BYTES)).sum()


def count_blocks(addresses: np.ndarray, size: int, lanes: np.ndarray, block: int) -> np.ndarray:
    """How many blocks of `block` bytes, a power of two, the active lanes of each wave touch: int [W]."""
    shift = np.uint64(block.bit_length() - 1)
    nowhere = np.uint64(0xFFFFFFFFFFFFFFFF)
    ends = (addresses >> shift, (addresses + np.uint64(size - 1)) >> shift)
    touched = np.sort(np.concatenate([np.where(lanes, end, nowhere) for end in ends], axis=1), axis=1)
    new = np.ones(touched.shape, bool)
    new[:, 1:] = touched[:, 1:] != touched[:, :-1]
    return np.count_nonzero(new & (touched != nowhere), axis=1)


def count_banks(total: np.ndarray, addresses: np.ndarray, size: int, lanes: np.ndarray, write: bool) -> None:
    """Add one LDS access to an instruction's totals: byte addresses and lanes, both [W, 64].

    The lanes of a phase meet. In each cycle of it a bank serves one word, to all lanes that ask for it.
    """
    kind = phase_kind(size, write)
    phase = np.empty(64, np.int64)
    phase[LDS_PHASES[kind]] = np.arange(64) // LANES_PER_PHASE[kind]
    meeting = (np.arange(len(lanes))[:, None] * 64 + phase)[lanes]  # a number for each wave's phase
    first = np.broadcast_to(addresses, lanes.shape)[lanes].astype(np.int64) >> 2
    words = first[:, None] + np.arange(max(size // 4, 1))
    asked = np.unique((meeting[:, None] << 32) | words)
    at_bank, queue = np.unique((asked >> 32) * LDS_BANKS + asked % LDS_BANKS, return_counts=True)
    longest = np.zeros(len(lanes) * 64, np.int64)
    np.maximum.at(longest, at_bank // LDS_BANKS, queue)
    total[LdsCount.BYTES] += size * np.count_nonzero(lanes)
    total[LdsCount.CYCLES] += longest.sum()
    total[LdsCount.LEAST_CYCLES] += np.count_nonzero(longest)
