"""Keep the cache lines of each global access, where `lines.record_lines` asks for them.

A record is two int64: see `lines.pack`.
"""

from __future__ import annotations

import numpy as np

from labkit.emulator.native import memory
from labkit.emulator.native.bits import lane, numbers
from labkit.emulator.native.memory import is_on
from labkit.emulator.state import LANES

L, I64 = np.uint64, np.int64


@lane
def access(row, write, on, a, b, wave, chip):
    """As memory.access; False also where the buffer is full, so that the NumPy step makes it larger."""
    used = numbers(chip.lines_used)
    before = used[0]
    if before + 2 * LANES > used[1]:
        return False
    used[0] = note(row, write, on, a, b, wave, before, chip)
    if memory.access(row, write, on, a, b, wave, chip):
        return True
    used[0] = before  # nothing has happened; the NumPy step records it
    return False


@lane
def note(row, write, on, a, b, wave, at, chip):
    """Write the records of one access from number `at` on. Returns the number after the last one."""
    group = wave // chip.waves_per_workgroup
    number = numbers(chip.workgroups)[L(group)]
    active, _ = memory.find_addresses(row, on, a, b, wave, chip)
    places, lines = numbers(chip.places), numbers(chip.lines)
    head = row.index | (wave % chip.waves_per_workgroup) << 24 | number << 32
    first, size, kind = at, row.p1, I64(1 if write else 0)
    for i in range(LANES):
        if not is_on(active, i):
            continue
        k = memory.allocation_of(places[i], places[i], size, chip)
        if k < 0:
            continue
        offset = places[i] - numbers(chip.bases)[L(k)]
        start = numbers(chip.line_bases)[L(k)]
        for part in range(2):
            tail = (start + ((offset + part * (size - 1)) >> 7)) << 2 | kind
            # Where lanes go upward, as most do, only the last line can have been there before.
            known = False
            for j in range(at - 1, first - 1, -1):
                known = lines[L(2 * j + 1)] == tail
                if known:
                    break
            if not known:
                lines[L(2 * at)], lines[L(2 * at + 1)] = head, tail
                at += 1
    return at
