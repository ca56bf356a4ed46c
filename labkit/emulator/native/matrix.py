"""Matrix instructions of one wave: A and B as float32, their product summed in the order of k, plus C.

Row columns: p0 the size (16 or 32), p1 the depth, p2 and p3 the types of A and B (`Kind`), p4 and p5 their
first registers, p6 the first register of C, or -1 for the constant p7.
"""

from __future__ import annotations

from enum import IntEnum

from labkit.emulator.native.bits import add_products, as_bits, as_float, floats, lane, words
from labkit.emulator.native.lanes import from_half
from labkit.emulator.native.memory import U
from labkit.emulator.state import LANES


class Kind(IntEnum):
    """The type of a matrix's elements."""

    FP8 = 0
    BF8 = 1
    F16 = 2
    BF16 = 3
    F32 = 4


@lane
def unpack(kind, register, size, depth, wave, matrix, chip):
    """matrix[k, r] = element k of row (or column) r, as matrix_forms says where it stands."""
    groups = LANES // size
    per_lane = depth // groups
    per_word = 4 if kind <= Kind.BF8 else 2 if kind <= Kind.BF16 else 1
    table = words(chip.from_fp8 + kind * 1024)
    for word in range(per_lane // per_word):
        for g in range(groups):
            lanes = words(chip.v + 4 * ((register + word) * chip.pitch + wave * LANES + g * size))
            for part in range(per_word):
                to = words(matrix + 128 * (g * per_lane + word * per_word + part))
                shift = U(32 // per_word * part)
                if kind <= Kind.BF8:
                    for r in range(size):
                        to[r] = table[(lanes[r] >> shift) & U(0xFF)]
                elif kind == Kind.F16:
                    for r in range(size):
                        to[r] = from_half((lanes[r] >> shift) & U(0xFFFF))
                elif kind == Kind.BF16:
                    for r in range(size):
                        to[r] = U((lanes[r] >> shift) << U(16))
                else:
                    for r in range(size):
                        to[r] = lanes[r]


@lane
def multiply_add(row, wave, chip):
    """D = A @ B + C, for every lane: EXEC plays no part."""
    size, depth = row.p0, row.p1
    unpack(row.p2, row.p4, size, depth, wave, chip.left, chip)
    unpack(row.p3, row.p5, size, depth, wave, chip.right, chip)
    for r in range(0, size, 8):
        for start in range(0, size, 16):
            add_products(depth, chip.left, chip.right, chip.product, r, start)
    groups = LANES // size
    registers = size * size // LANES
    for step in range(registers):
        # D may lie over a part of C (Triton 3.9 does so): C's registers are read before they are written.
        i = step if row.target <= row.p6 else registers - 1 - step
        for g in range(groups):
            place = wave * LANES + g * size
            sums = floats(chip.product + 128 * (4 * groups * (i // 4) + 4 * g + i % 4))
            result = words(chip.v + 4 * ((row.target + i) * chip.pitch + place))
            if row.p6 >= 0:
                before = words(chip.v + 4 * ((row.p6 + i) * chip.pitch + place))
                for c in range(size):
                    result[c] = as_bits(sums[c] + as_float(before[c]))
            else:
                for c in range(size):
                    result[c] = as_bits(sums[c] + as_float(U(row.p7)))
