"""Vector integer operations of one wave: 64 lanes of sources `a` to `d`, uint32, into the result `t`."""

from __future__ import annotations

import numpy as np

from labkit.emulator.native.bits import as_float, lane, words
from labkit.emulator.native.lanes import is_nan
from labkit.emulator.native.operations import EQUAL, GREATER, LESS, UNORDERED, Op
from labkit.emulator.state import LANES

U, I32 = np.uint32, np.int32
_1, _16, _31, _LOW, _24_BITS = U(1), U(16), U(31), U(0xFFFF), U(0xFFFFFF)

ROW = 4 * LANES  # bytes of one value a lane


@lane
def joined(low, high):
    """64 bits of two registers."""
    return np.uint64(low) | (np.uint64(high) << np.uint64(32))


@lane
def signed_24(a):
    return I32(I32(a << U(8)) >> I32(8))


@lane
def reversed_bits(a):
    a = ((a >> U(1)) & U(0x55555555)) | ((a & U(0x55555555)) << U(1))
    a = ((a >> U(2)) & U(0x33333333)) | ((a & U(0x33333333)) << U(2))
    a = ((a >> U(4)) & U(0x0F0F0F0F)) | ((a & U(0x0F0F0F0F)) << U(4))
    a = ((a >> U(8)) & U(0x00FF00FF)) | ((a & U(0x00FF00FF)) << U(8))
    return (a >> U(16)) | (a << U(16))


@lane
def permuted_bytes(a, b, selector):
    both = joined(b, a)
    result = U(0)
    for position in range(0, 32, 8):
        choice = (selector >> U(position)) & U(0xFF)
        byte = U(both >> np.uint64((choice & U(7)) * U(8))) & U(0xFF)
        sign = U(both >> np.uint64((choice & U(3)) * U(16) + U(15))) & U(1)
        byte = sign * U(0xFF) if choice >= U(8) else byte
        byte = U(0) if choice == U(12) else byte
        byte = U(0xFF) if choice > U(12) else byte
        result |= byte << U(position)
    return result


@lane
def relation(less, equal):
    return U(LESS) if less else (U(EQUAL) if equal else U(GREATER))


@lane
def integer_operation(op, wanted, count, result, a, b, c, d):
    """`wanted`: the relations that a compare counts. 64-bit values take two sources and two results."""
    t, upper, third = words(result), words(result + ROW), words(result + 2 * ROW)
    if op == Op.V_MOV_B32:
        for i in range(count):
            t[i] = U(a[i])
    elif op == Op.V_NOT_B32:
        for i in range(count):
            t[i] = U(~a[i])
    elif op == Op.V_AND_B32:
        for i in range(count):
            t[i] = U(a[i] & b[i])
    elif op == Op.V_OR_B32:
        for i in range(count):
            t[i] = U(a[i] | b[i])
    elif op == Op.V_XOR_B32:
        for i in range(count):
            t[i] = U(a[i] ^ b[i])
    elif op == Op.V_AND_OR_B32:
        for i in range(count):
            t[i] = U((a[i] & b[i]) | c[i])
    elif op == Op.V_OR3_B32:
        for i in range(count):
            t[i] = U(a[i] | b[i] | c[i])
    elif op == Op.V_ADD_U32:
        for i in range(count):
            t[i] = U(a[i] + b[i])
    elif op == Op.V_SUB_U32:
        for i in range(count):
            t[i] = U(a[i] - b[i])
    elif op == Op.V_SUBREV_U32:
        for i in range(count):
            t[i] = U(b[i] - a[i])
    elif op == Op.V_ADD3_U32:
        for i in range(count):
            t[i] = U(a[i] + b[i] + c[i])
    elif op == Op.V_XAD_U32:
        for i in range(count):
            t[i] = U((a[i] ^ b[i]) + c[i])
    elif op == Op.V_LSHL_ADD_U32:
        for i in range(count):
            t[i] = U((a[i] << (b[i] & _31)) + c[i])
    elif op == Op.V_ADD_LSHL_U32:
        for i in range(count):
            t[i] = U(U(a[i] + b[i]) << (c[i] & _31))
    elif op == Op.V_LSHL_OR_B32:
        for i in range(count):
            t[i] = U((a[i] << (b[i] & _31)) | c[i])
    elif op == Op.V_LSHLREV_B32:
        for i in range(count):
            t[i] = U(b[i] << (a[i] & _31))
    elif op == Op.V_LSHRREV_B32:
        for i in range(count):
            t[i] = U(b[i] >> (a[i] & _31))
    elif op == Op.V_ASHRREV_I32:
        for i in range(count):
            t[i] = U(I32(b[i]) >> I32(a[i] & _31))
    elif op == Op.V_MUL_LO_U32:
        for i in range(count):
            t[i] = U(a[i] * b[i])
    elif op == Op.V_MUL_HI_U32:
        for i in range(count):
            t[i] = U((np.uint64(a[i]) * np.uint64(b[i])) >> np.uint64(32))
    elif op == Op.V_MUL_U32_U24:
        for i in range(count):
            t[i] = U((a[i] & _24_BITS) * (b[i] & _24_BITS))
    elif op == Op.V_MAD_U32_U24:
        for i in range(count):
            t[i] = U((a[i] & _24_BITS) * (b[i] & _24_BITS) + c[i])
    elif op == Op.V_MUL_I32_I24:
        for i in range(count):
            t[i] = U(signed_24(a[i]) * signed_24(b[i]))
    elif op == Op.V_MAD_I32_I24:
        for i in range(count):
            t[i] = U(signed_24(a[i]) * signed_24(b[i]) + I32(c[i]))
    elif op == Op.V_MIN_U32:
        for i in range(count):
            t[i] = U(min(a[i], b[i]))
    elif op == Op.V_MAX_U32:
        for i in range(count):
            t[i] = U(max(a[i], b[i]))
    elif op == Op.V_MIN_I32:
        for i in range(count):
            t[i] = U(min(I32(a[i]), I32(b[i])))
    elif op == Op.V_MAX_I32:
        for i in range(count):
            t[i] = U(max(I32(a[i]), I32(b[i])))
    elif op == Op.V_CNDMASK_B32:
        for i in range(count):
            t[i] = U(b[i] if c[i] != 0 else a[i])
    elif op == Op.V_BFE_U32:
        for i in range(count):
            t[i] = U((a[i] >> (b[i] & _31)) & ((_1 << (c[i] & _31)) - _1))
    elif op == Op.V_BFI_B32:
        for i in range(count):
            t[i] = U((a[i] & b[i]) | (~a[i] & c[i]))
    elif op == Op.V_BFREV_B32:
        for i in range(count):
            t[i] = U(reversed_bits(a[i]))
    elif op == Op.V_PERM_B32:
        for i in range(count):
            t[i] = U(permuted_bytes(a[i], b[i], c[i]))
    elif op == Op.V_ALIGNBIT_B32:
        for i in range(count):
            t[i] = U(joined(b[i], a[i]) >> np.uint64(c[i] & _31))
    elif op == Op.V_PACK_B32_F16:
        for i in range(count):
            t[i] = U((a[i] & _LOW) | (b[i] << _16))
    elif op == Op.V_ADD_CO_U32:
        for i in range(count):
            t[i] = a[i] + b[i]
            upper[i] = U(1) if t[i] < a[i] else U(0)
    elif op == Op.V_ADDC_CO_U32:
        for i in range(count):
            total = np.uint64(a[i]) + np.uint64(b[i]) + np.uint64(c[i])
            t[i], upper[i] = U(total), U(total >> np.uint64(32))
    elif op == Op.V_MAD_U64_U32:
        for i in range(count):
            product = np.uint64(a[i]) * np.uint64(b[i])
            total = product + joined(c[i], d[i])
            t[i], upper[i] = U(total), U(total >> np.uint64(32))
            third[i] = U(1) if total < product else U(0)
    elif op == Op.V_LSHLREV_B64:
        for i in range(count):
            value = joined(b[i], c[i]) << np.uint64(a[i] & U(63))
            t[i], upper[i] = U(value), U(value >> np.uint64(32))
    elif op == Op.COMPARE_U32:
        for i in range(count):
            t[i] = U(1) if (wanted & relation(a[i] < b[i], a[i] == b[i])) != 0 else U(0)
    elif op == Op.COMPARE_I32:
        for i in range(count):
            t[i] = U(1) if (wanted & relation(I32(a[i]) < I32(b[i]), a[i] == b[i])) != 0 else U(0)
    elif op == Op.COMPARE_F32:
        for i in range(count):
            found = relation(as_float(a[i]) < as_float(b[i]), as_float(a[i]) == as_float(b[i]))
            found = U(UNORDERED) if is_nan(a[i]) or is_nan(b[i]) else found
            t[i] = U(1) if (wanted & found) != 0 else U(0)


@lane
def shifted_sum(count, result, a, b, shift, c, d):
    """v_lshl_add_u64, which alone has five sources."""
    t, upper = words(result), words(result + ROW)
    for i in range(count):
        value = (joined(a[i], b[i]) << np.uint64(shift[i] & U(7))) + joined(c[i], d[i])
        t[i], upper[i] = U(value), U(value >> np.uint64(32))
