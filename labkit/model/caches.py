"""The compiled part of the cache model: set-associative caches with least-recently-used replacement.

A cache is int64 [sets, ways], the most recently used way first: line << 1 | is it dirty, -1 for empty.
Everything that Numba compiles stands in this file, since its cache on disk looks at one file only.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numba import njit


class Total(IntEnum):
    """The columns of an XCD's totals."""

    ACCESSES = 0
    HITS = 1
    FETCHES = 2  # lines that L2 asked the Infinity Cache for
    WRITE_BACKS = 3  # dirty lines that L2 gave up
    INFINITY_HITS = 4  # of the fetches


@njit(cache=True)
def by_stream(stream, streams, line, kind):
    """Sort records by stream, keeping each stream's order.

    Returns (where each stream begins, int64 [streams + 1]; line << 2 | kind of each record).
    """
    begin = np.zeros(streams + 1, np.int64)
    for k in range(stream.size):
        begin[stream[k] + 1] += 1
    for k in range(streams):
        begin[k + 1] += begin[k]
    at, records = begin[:-1].copy(), np.empty(stream.size, np.int64)
    for k in range(stream.size):
        records[at[stream[k]]] = line[k] << 2 | kind[k]
        at[stream[k]] += 1
    return begin, records


@njit(cache=True)
def touch(cache, line, dirty):
    """Use a line, which comes in where it is missing. Returns (was it there, what went out or -1)."""
    sets, ways = cache.shape
    tags = cache[(line ^ line // sets ^ line // sets // sets) % sets]
    for k in range(ways):
        found = tags[k]
        if found >> 1 == line:
            for j in range(k, 0, -1):
                tags[j] = tags[j - 1]
            tags[0] = found | dirty
            return True, -1
    victim = tags[ways - 1]
    for j in range(ways - 1, 0, -1):
        tags[j] = tags[j - 1]
    tags[0] = line << 1 | dirty
    return False, victim


@njit(cache=True)
def access(l2, infinity, record, total):
    """One access of an XCD: 0 load, 1 store, 2 atomic. Returns whether it hit L2."""
    line, kind = record >> 2, record & 3
    hit, victim = touch(l2, line, 1 if kind else 0)
    total[Total.ACCESSES] += 1
    if hit:
        total[Total.HITS] += 1
        return True
    total[Total.WRITE_BACKS] += victim >= 0 and victim & 1
    if kind != 1:
        total[Total.FETCHES] += 1
        there, _ = touch(infinity, line, 0)
        total[Total.INFINITY_HITS] += there
    return False


@njit(cache=True)
def play(begin, records, waves, order, resident, l2, infinity, totals, hits):
    """Run all workgroups through the caches.

    order: int64, the workgroup that each dispatch number runs; resident: how many an XCD holds at a time.
    l2: one cache an XCD. Adds to totals, int64 [XCDs, Total], and to hits, int64 by dispatch
    number.
    Waves that are resident take turns, a line each; as a workgroup ends its XCD's next one takes its place.
    """
    xcds = l2.shape[0]
    slots = resident * xcds
    running, at = np.full(slots, -1, np.int64), np.zeros((slots, waves), np.int64)
    upcoming = np.arange(xcds)
    live = np.arange(slots)  # slot s belongs to XCD s % xcds
    while live.size:
        kept = 0
        for place in range(live.size):
            slot = live[place]
            xcd = slot % xcds
            while True:
                number = running[slot]
                moved = False
                if number >= 0:
                    first = order[number] * waves
                    for wave in range(waves):
                        k = begin[first + wave] + at[slot, wave]
                        if k < begin[first + wave + 1]:
                            at[slot, wave] += 1
                            hits[number] += access(l2[xcd], infinity, records[k], totals[xcd])
                            moved = True
                if moved or upcoming[xcd] >= order.size:
                    break
                running[slot] = upcoming[xcd]
                upcoming[xcd] += xcds
                at[slot] = 0
            if moved:
                live[kept] = slot
                kept += 1
        live = live[:kept]
