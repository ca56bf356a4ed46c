"""Global memory of one wave: find the addresses, refuse what needs the NumPy step, count, move the bytes.

Row columns of an access: p0 the addressing (`Address`), p1 bytes a lane, p2 the first data register, p3 a
constant offset, p4 the scalar register of the base or the buffer resource, p5 how a narrow load widens
(`Widen`), p6 the shift of a narrow store's source.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from labkit.emulator.native.bits import lane, load8, load16, load32, numbers, store8, store16, store32, words
from labkit.emulator.native.integer import joined
from labkit.emulator.state import LANES
from labkit.emulator.traffic import Count

U, L, I64 = np.uint32, np.uint64, np.int64
_ONE = L(1)
_TWO_TO_32 = 1 << 32
_MASKED_UP_TO = (1 << 31) + (1 << 12)  # as in global_memory: Triton's offset of a masked lane
TOTALS = 8 * len(Count)  # bytes of one instruction's totals


class Address(IntEnum):
    """How an instruction says where it accesses memory."""

    SCALAR_BASE = 0  # a scalar pair plus a 32-bit offset a lane
    VECTOR = 1  # a 64-bit address a lane
    BUFFER = 2  # a resource of four scalar registers, a lane's and a scalar offset


class Widen(IntEnum):
    """What becomes of a loaded value of less than 32 bits."""

    ZERO = 0
    SIGN = 1
    LOW_HALF = 2  # the register's other half stays
    HIGH_HALF = 3


@lane
def is_on(mask, i):
    return ((mask >> L(i)) & _ONE) != 0


@lane
def find_addresses(row, on, a, b, wave, chip):
    """Fill `chip.places`. Returns (the lanes that access memory, as bits; is all well?).

    All is not well where an offset wrapped around below the buffer.
    """
    at = numbers(chip.places)
    s, base = words(chip.s), row.p4 * chip.waves + wave
    if row.p0 == Address.VECTOR:
        for i in range(LANES):
            at[i] = I64(joined(a[i], b[i])) + row.p3
        return on, True
    low, high = s[L(base)], s[L(base + chip.waves)]
    if row.p0 == Address.SCALAR_BASE:
        start = I64(joined(low, high)) + row.p3
        for i in range(LANES):
            at[i] = start + I64(a[i])
        return on, True
    start = I64(joined(low, high & U(0xFFFF))) + I64(b[0])
    records = I64(s[L(base + 2 * chip.waves)])
    inside, wrapped = L(0), L(0)
    for i in range(LANES):
        offset = I64(a[i]) + row.p3
        at[i] = start + offset
        inside |= L(offset < records) << L(i)
        wrapped |= L(offset > _MASKED_UP_TO and offset < _TWO_TO_32) << L(i)
    return on & inside, (on & wrapped & ~inside) == 0


@lane
def holds(k, low, high, size, chip):
    """Whether allocation k holds accesses of `size` bytes from address `low` to `high`."""
    ends = numbers(chip.word_ends) if size == 4 else numbers(chip.ends)
    return numbers(chip.bases)[L(k)] <= low and high + size <= ends[L(k)]


@lane
def allocation_of(low, high, size, chip):
    for k in range(chip.allocations):
        if holds(k, low, high, size, chip):
            return k
    return -1


@lane
def permitted(number, low, high, size, chip):
    """Whether instruction `number` may access `size` bytes from address `low` to `high`."""
    first, end = numbers(chip.limits_at)[L(number)], numbers(chip.limits_at)[L(number + 1)]
    limits, good = numbers(chip.limits), first == end
    for k in range(first, end):
        good = good or (limits[L(2 * k)] <= low and high + size <= limits[L(2 * k + 1)])
    return good


@lane
def find_allocation(number, active, size, chip):
    """The allocation of all lanes' accesses, -1 for several, -2 where one is not allowed."""
    at = numbers(chip.places)
    lowest, highest = I64(0x7FFFFFFFFFFFFFFF), I64(0)
    for i in range(LANES):
        lowest = min(lowest, at[i]) if is_on(active, i) else lowest
        highest = max(highest, at[i]) if is_on(active, i) else highest
    found = allocation_of(lowest, highest, size, chip)
    if found >= 0 and permitted(number, lowest, highest, size, chip):
        return found
    for i in range(LANES):
        if is_on(active, i):
            known = allocation_of(at[i], at[i], size, chip) >= 0
            if not (known and permitted(number, at[i], at[i], size, chip)):
                return -2
    return found


@lane
def count_access(row, active, where, write, chip):
    """Add one access to the totals of its instruction, and mark the bytes it touched."""
    size, at, seen = row.p1, numbers(chip.places), numbers(chip.seen)
    lanes, lines, segments = 0, 0, 0
    previous_line, previous_segment, ordered = -1, -1, True
    for i in range(LANES):
        if not is_on(active, i):
            continue
        k = where if where >= 0 else allocation_of(at[i], at[i], size, chip)
        base = numbers(chip.bases)[L(k)]
        mark_touched(at[i] - base, size, write, numbers(chip.touched)[L(k)])
        # As if each storage began on a 512-byte boundary, as PyTorch's do on a GPU (Memory.on_gpu_lines).
        first = at[i] - (base & 511)
        last = first + size - 1
        seen[lanes] = first
        lanes += 1
        # Where lanes go upward, as most do, only the last block can have been there before.
        ordered = ordered and first >> 6 >= previous_segment
        lines += (first >> 7 != previous_line) + (first >> 7 != last >> 7)
        segments += (first >> 6 != previous_segment) + (first >> 6 != last >> 6)
        previous_line, previous_segment = last >> 7, last >> 6
    if not ordered:
        lines, segments = distinct(lanes, size, 7, chip), distinct(lanes, size, 6, chip)
    total = numbers(chip.traffic + TOTALS * row.index)
    total[Count.BYTES_PER_LANE] = size
    total[Count.LANES] += lanes
    total[Count.LINES] += lines
    total[Count.SEGMENTS] += segments
    total[Count.LEAST_LINES] += min(lines, (lanes * size + 127) // 128)


@lane
def distinct(lanes, size, shift, chip):
    """How many blocks of 2^shift bytes `lanes` accesses touch; each touches one or two of them."""
    seen, count = numbers(chip.seen), 0
    for i in range(lanes):
        for part in range(2):
            block = (seen[i] + part * (size - 1)) >> shift
            new = part == 0 or block != seen[i] >> shift
            for j in range(i):
                new = new and seen[j] >> shift != block and (seen[j] + size - 1) >> shift != block
            count += new
    return count


@lane
def mark_touched(offset, size, write, marks):
    """Tell that these bytes of an allocation were read or written; see Allocation.touched."""
    word = marks + (offset >> 2)
    every = U(0xF0F0F0F0) if write else U(0x0F0F0F0F)
    if size == 16:  # four words' marks at once
        store32(word, load32(word) | every)
    elif size >= 4:
        for k in range(size // 4):
            store8(word + k, load8(word + k) | every)
    else:
        bits = U(U((1 << size) - 1) << U(offset & 3))
        store8(word, load8(word) | (U(bits << U(4)) if write else bits))


@lane
def load(row, on, active, wave, chip):
    """Active lanes from memory, lanes that are on but out of a buffer's range as 0, into the registers."""
    size, at, t = row.p1, numbers(chip.places), words(chip.result)
    for k in range(max(size // 4, 1)):
        for i in range(LANES):
            t[i] = U(0)
            if is_on(active, i):
                t[i] = get_bytes(at[i] + 4 * k, size)
        fill(row.p2 + k, on, row.p5, size, t, wave, chip)


@lane
def fill(number, on, how, size, t, wave, chip):
    """Loaded values into a vector register, in the lanes that are on."""
    register = words(chip.v + 4 * (number * chip.pitch + wave * LANES))
    if size < 4:
        widen(how, size, t, register)
    for i in range(LANES):
        register[i] = t[i] if is_on(on, i) else register[i]


@lane
def widen(how, size, t, register):
    sign = 1 << (8 * size - 1)
    for i in range(LANES):
        if how == Widen.SIGN:
            t[i] = U((I64(t[i]) ^ sign) - sign)
        elif how == Widen.LOW_HALF:
            t[i] = (register[i] & U(0xFFFF0000)) | t[i]
        elif how == Widen.HIGH_HALF:
            t[i] = (register[i] & U(0xFFFF)) | U(t[i] << U(16))


@lane
def store(row, active, wave, chip):
    """Active lanes from the registers to memory, in the order of lanes: of one address the last wins."""
    size, at, shift = row.p1, numbers(chip.places), U(row.p6)
    for k in range(max(size // 4, 1)):
        register = words(chip.v + 4 * ((row.p2 + k) * chip.pitch + wave * LANES))
        for i in range(LANES):
            if is_on(active, i):
                put_bytes(at[i] + 4 * k, size, register[i] >> shift)


@lane
def get_bytes(address, size):
    return load32(address) if size >= 4 else load16(address) if size == 2 else load8(address)


@lane
def put_bytes(address, size, value):
    if size >= 4:
        store32(address, value)
    elif size == 2:
        store16(address, value)
    else:
        store8(address, value)


@lane
def aligned(active, size, chip):
    """Whether every active lane's address is a multiple of its size, or of 4 for a wider one."""
    at, together = numbers(chip.places), 0
    for i in range(LANES):
        together |= at[i] if is_on(active, i) else 0
    return together & (min(size, 4) - 1) == 0


@lane
def access(row, write, on, a, b, wave, chip):
    """One global load or store; False where the NumPy step must do it, and nothing has happened yet."""
    active, good = find_addresses(row, on, a, b, wave, chip)
    if not good:
        return False
    where = find_allocation(row.index, active, row.p1, chip) if active != 0 else -1
    if where == -2 or not aligned(active, row.p1, chip):
        return False
    if chip.counting:
        count_access(row, active, where, write, chip)
    if write:
        store(row, active, wave, chip)
    else:
        load(row, on, active, wave, chip)
    return True
