"""LDS of one wave: check against what other waves did, count bank conflicts, move the bytes.

Row columns: p0 bytes of a part, p1 the number of parts (2 for ds_read2 and its kin), p2 and p3 their byte
offsets, p4 and p5 the first data registers (a read has one run of them, at p4), p6 how a narrow read widens
or, for a write, the shift of its source.
"""

from __future__ import annotations

from labkit.emulator.native.bits import lane, load8, load16, load32, numbers, words
from labkit.emulator.native.integer import ROW
from labkit.emulator.native.memory import I64, L, U, is_on, put_bytes, widen
from labkit.emulator.state import LANES
from labkit.emulator.traffic import LDS_BANKS, LdsCount

_SEVERAL = U(255)  # lds_shadow.SEVERAL
TOTALS = 8 * len(LdsCount)
_EVERY = U(0x01010101)  # one byte's number in all four bytes of a word


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
def alone(marks, own):
    """Whether no wave but `own` stands in the marks: of one byte, or of a word's four."""
    return marks == 0 or marks == own


@lane
def marked(marks, own, byte):
    """A word's marks with `own` added to one byte of it, or to all four where `byte` is -1."""
    if byte < 0 and alone(marks, own * _EVERY):
        return own * _EVERY
    for k in range(4):
        if byte < 0 or byte == k:
            shift = U(8 * k)
            before = (marks >> shift) & U(0xFF)
            after = own if alone(before, own) else _SEVERAL
            marks = U((marks & ~U(U(0xFF) << shift)) | U(after << shift))
    return marks


@lane
def may_read(on, first, size, own, a, chip):
    """Whether all bytes were written, none by another wave since the barrier. Marks them as read."""
    written, writer, reader = words(chip.written), words(chip.writer), words(chip.reader)
    keep = U(0xFFFFFFFF) if size >= 4 else U((1 << (8 * size)) - 1)
    for i in range(LANES):
        if is_on(on, i):
            at = first + I64(a[i])
            shift = U((at & 3) * 8)
            for k in range(max(size // 4, 1)):
                word = L((at >> 2) + k)
                if (written[word] >> shift) & keep != keep:
                    return False
                if not alone((writer[word] >> shift) & keep, (own * _EVERY) & keep):
                    return False
                reader[word] = mark_all(reader[word], own, at, size)
    return True


@lane
def mark_all(marks, own, at, size):
    if size >= 4:
        return marked(marks, own, -1)
    for byte in range(size):
        marks = marked(marks, own, (at & 3) + byte)
    return marks


@lane
def may_write(on, first, size, own, a, register, shift, chip):
    """Whether no other wave touched the bytes since the barrier, or they keep their value. Marks them."""
    written, writer, reader = words(chip.written), words(chip.writer), words(chip.reader)
    lds = words(chip.lds)
    keep = U(0xFFFFFFFF) if size >= 4 else U((1 << (8 * size)) - 1)
    for i in range(LANES):
        if is_on(on, i):
            at = first + I64(a[i])
            move = U((at & 3) * 8)
            for k in range(max(size // 4, 1)):
                word = L((at >> 2) + k)
                mine = (own * _EVERY) & keep
                free = alone((writer[word] >> move) & keep, mine)
                if not (free and alone((reader[word] >> move) & keep, mine)):
                    value = words(register + 4 * k * chip.pitch)[i] >> U(shift)
                    if ((lds[word] >> move) ^ value) & keep != 0:
                        return False
                writer[word] = mark_all(writer[word], own, at, size)
                written[word] |= U(keep << move)
    return True


@lane
def count_banks(row, on, offset, size, write, a, chip):
    """Add one access: its bytes, the cycles that LDS needs, and those it would need without conflicts.

    Lanes of one phase meet; in it a bank serves one word a cycle, to all lanes that ask for that word.
    """
    kind = 0 if size <= 4 else 1 if size == 8 else 3 if write else 2
    per_phase = 32 if kind == 0 else 16 if kind == 1 else 8
    cycles, phases, lanes = 0, 0, 0
    order, banks = numbers(chip.phases + 8 * LANES * kind), numbers(chip.banks)
    for start in range(0, LANES, per_phase):
        worst = 0
        for bank in range(LDS_BANKS):
            banks[34 * bank] = 0
        for position in range(start, start + per_phase):
            i = L(order[position])
            if not is_on(on, i):
                continue
            lanes += 1
            for k in range(max(size // 4, 1)):
                worst = max(worst, ask(banks, ((I64(a[i]) + offset) >> 2) + k))
        cycles += worst
        phases += I64(worst > 0)
    total = numbers(chip.lds_traffic + TOTALS * row.index)
    total[LdsCount.BYTES] += lanes * size
    total[LdsCount.CYCLES] += cycles
    total[LdsCount.LEAST_CYCLES] += phases


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
                    address = start + I64(a[i]) + 4 * k
                    t[i] = load32(address) if size >= 4 else load16(address) if size == 2 else load8(address)
    # All of it before any register changes: the result may contain the address register.
    for k in range(row.p1 * count):
        t = words(chip.result + k * ROW)
        register = words(chip.v + 4 * ((row.p4 + k) * chip.pitch + wave * LANES))
        if size < 4:
            widen(row.p6, size, t, register)
        for i in range(LANES):
            register[i] = t[i] if is_on(on, i) else register[i]


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
            if writes and not may_write(on, first, row.p0, own, a, register, row.p6, chip):
                return False
            if not writes and not may_read(on, first, row.p0, own, a, chip):
                return False
    if chip.counting:
        for part in range(row.p1):
            count_banks(row, on, row.p2 if part == 0 else row.p3, row.p0, writes, a, chip)
    base = chip.lds + group * chip.lds_size
    if writes:
        write(row, on, a, wave, base, chip)
    else:
        read(row, on, a, wave, base, chip)
    return True
