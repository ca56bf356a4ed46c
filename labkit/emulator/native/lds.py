"""LDS of one wave: check against what other waves did, count bank conflicts, move the bytes.

Row columns: p0 bytes of a part, p1 the number of parts (2 for ds_read2 and its kin), p2 and p3 their byte
offsets, p4 and p5 the first data registers (a read has one run of them, at p4), p6 how a narrow read widens
or, for a write, the shift of its source.
"""

from __future__ import annotations

from labkit.emulator.native.bits import lane, numbers, words
from labkit.emulator.native.integer import ROW
from labkit.emulator.native.memory import I64, L, U, fill, get_bytes, is_on, put_bytes
from labkit.emulator.state import LANES
from labkit.emulator.traffic import LANES_PER_PHASE, LDS_BANKS, LdsCount
from labkit.emulator.traffic import phase_kind as numpy_phase_kind

_ALL_BYTES = U(0xFFFFFFFF)
TOTALS = 8 * len(LdsCount)  # bytes of one instruction's totals
MEMO = 8 * (3 + LANES)  # bytes of what is remembered of a part of an instruction
_EVERY = U(0x01010101)  # one byte's number in all four bytes of a word
phase_kind = lane(numpy_phase_kind)


@lane
def inside(on, offset, size, a, chip):
    """Whether every active lane stays in the workgroup's LDS, at whole words or less than one."""
    for i in range(LANES):
        if is_on(on, i):
            first = I64(a[i]) + offset
            if first + size > chip.lds_size or first & (min(size, 4) - 1):
                return False
    return True


@lane
def alone(marks, mine):
    """Whether no other wave stands in some bytes' marks; mine: this wave's in each of them."""
    return marks == 0 or marks == mine


@lane
def with_mark(marks, mine, field):
    """A word's marks with this wave's added to the bytes of `field`."""
    if alone(marks & field, mine):
        return (marks & ~field) | mine
    for shift in range(0, 32, 8):
        byte = U(255 << shift)
        if byte & field and not alone(marks & byte, mine & byte):
            marks |= byte  # SEVERAL
        elif byte & field:
            marks = (marks & ~byte) | (mine & byte)
    return U(marks)


@lane
def field_of(at, size):
    """The bytes of a word that an access at byte `at` touches, as a mask."""
    return _ALL_BYTES if size >= 4 else U(U((1 << (8 * size)) - 1) << U((at & 3) * 8))


@lane
def may_read(on, first, size, own, a, chip):
    """Whether all bytes were written, none by another wave since the barrier. Marks them as read."""
    written, writer, reader = words(chip.written), words(chip.writer), words(chip.reader)
    several = chip.waves_per_workgroup > 1  # one wave has nobody to race with
    for i in range(LANES):
        if is_on(on, i):
            at = first + I64(a[i])
            field = field_of(at, size)
            mine = U(own * _EVERY) & field
            for k in range(max(size // 4, 1)):
                word = L((at >> 2) + k)
                if written[word] & field != field:
                    return False
                if several:
                    if not alone(writer[word] & field, mine):
                        return False
                    reader[word] = with_mark(reader[word], mine, field)
    return True


@lane
def may_write(on, first, size, own, a, register, shift, chip):
    """Whether no other wave touched the bytes since the barrier, or they keep their value. Marks them."""
    written, writer, reader = words(chip.written), words(chip.writer), words(chip.reader)
    several = chip.waves_per_workgroup > 1  # one wave has nobody to race with
    for i in range(LANES):
        if is_on(on, i):
            at = first + I64(a[i])
            move = U((at & 3) * 8)
            field = field_of(at, size)
            mine = U(own * _EVERY) & field
            for k in range(max(size // 4, 1)):
                word = L((at >> 2) + k)
                written[word] |= field
                if not several:
                    continue
                if not (alone(writer[word] & field, mine) and alone(reader[word] & field, mine)):
                    value = U((words(register + 4 * k * chip.pitch)[i] >> shift) << move)
                    if (words(chip.lds)[word] ^ value) & field != 0:
                        return False
                writer[word] = with_mark(writer[word], mine, field)
    return True


@lane
def count_banks(row, part, on, write, a, chip):
    """Add one access of a row's `part` to the totals: its bytes, and cycles with and without conflicts."""
    memo = numbers(chip.memo + MEMO * (2 * row.index + part))
    if not same_pattern(memo, on, a):
        remember_pattern(memo, on, a)
        memo[1], memo[2] = conflicts(row, part, on, write, a, chip)
    lanes = 0
    for i in range(LANES):
        lanes += is_on(on, i)
    total = numbers(chip.lds_traffic + TOTALS * row.index)
    total[LdsCount.BYTES] += lanes * row.p0
    total[LdsCount.CYCLES] += memo[1]
    total[LdsCount.LEAST_CYCLES] += memo[2]


@lane
def same_pattern(memo, on, a):
    """Whether lanes lie to each other, and to the banks, as when this instruction was last counted.

    Most instructions run many times on one pattern. memo: lanes that are on, cycles, those without
    conflicts, then the addresses of that time.
    """
    start = I64(a[0]) - memo[3]
    different = start & (4 * LDS_BANKS - 1)
    for i in range(LANES):
        different |= I64(a[i]) - memo[3 + i] - start
    return different == 0 and memo[0] == I64(on)


@lane
def remember_pattern(memo, on, a):
    memo[0] = I64(on)
    for i in range(LANES):
        memo[3 + i] = I64(a[i])


@lane
def conflicts(row, part, on, write, a, chip):
    """(cycles, cycles without conflicts) of one access; traffic.count_banks has the rule."""
    size, offset = row.p0, row.p2 if part == 0 else row.p3
    kind = phase_kind(size, write)
    per_phase = LANES_PER_PHASE[kind]
    order, banks = numbers(chip.phases + 8 * LANES * kind), numbers(chip.banks)
    cycles, phases = 0, 0
    for start in range(0, LANES, per_phase):
        worst = 0
        for bank in range(LDS_BANKS):
            banks[34 * bank] = 0
        for position in range(start, start + per_phase):
            i = L(order[position])
            if is_on(on, i):
                for k in range(max(size // 4, 1)):
                    worst = max(worst, ask(banks, ((I64(a[i]) + offset) >> 2) + k))
        cycles += worst
        phases += I64(worst > 0)
    return cycles, phases


@lane
def ask(banks, word):
    """Note that a lane asks for `word`. Returns how many words its bank has to serve now.

    banks: for each bank that number, and the words.
    """
    at = 34 * (word & (LDS_BANKS - 1))
    count = banks[L(at)]
    for k in range(1, count + 1):
        if banks[L(at + k)] == word:
            return count
    banks[L(at)] = count + 1
    banks[L(at + count + 1)] = word
    return count + 1


@lane
def read(row, on, a, wave, base, chip):
    size, count = row.p0, max(row.p0 // 4, 1)
    for part in range(row.p1):
        start = base + (row.p2 if part == 0 else row.p3)
        for k in range(count):
            t = words(chip.result + (part * count + k) * ROW)
            for i in range(LANES):
                if is_on(on, i):
                    t[i] = get_bytes(start + I64(a[i]) + 4 * k, size)
    # All of it before any register changes: the result may contain the address register.
    for k in range(row.p1 * count):
        fill(row.p4 + k, on, row.p6, size, words(chip.result + k * ROW), wave, chip)


@lane
def write(row, on, a, wave, base, chip):
    size, shift = row.p0, U(row.p6)
    for part in range(row.p1):
        start = base + (row.p2 if part == 0 else row.p3)
        for k in range(max(size // 4, 1)):
            first = (row.p4 if part == 0 else row.p5) + k
            register = words(chip.v + 4 * (first * chip.pitch + wave * LANES))
            for i in range(LANES):
                if is_on(on, i):
                    put_bytes(start + I64(a[i]) + 4 * k, size, register[i] >> shift)


@lane
def access(row, writes, on, a, wave, chip):
    """One LDS read or write; False where the NumPy step must do it, and no byte has moved yet."""
    group = wave // chip.waves_per_workgroup
    own = U(wave % chip.waves_per_workgroup + 1)
    for part in range(row.p1):
        offset = row.p2 if part == 0 else row.p3
        if not inside(on, offset, row.p0, a, chip):
            return False
        first = group * chip.lds_size + offset
        if chip.checking:
            data = row.p4 if part == 0 else row.p5
            register = chip.v + 4 * (data * chip.pitch + wave * LANES)
            if writes and not may_write(on, first, row.p0, own, a, register, U(row.p6), chip):
                return False
            if not writes and not may_read(on, first, row.p0, own, a, chip):
                return False
    if chip.counting:
        for part in range(row.p1):
            count_banks(row, part, on, writes, a, chip)
    base = chip.lds + group * chip.lds_size
    if writes:
        write(row, on, a, wave, base, chip)
    else:
        read(row, on, a, wave, base, chip)
    return True
