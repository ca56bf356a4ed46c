"""Scalar operations of one wave, on values of up to 64 bits."""

from __future__ import annotations

import numpy as np

from labkit.emulator.native.bits import lane
from labkit.emulator.native.integer import relation
from labkit.emulator.native.operations import Op

U, L, I32, I64 = np.uint32, np.uint64, np.int32, np.int64


@lane
def scalar_operation(op, width, wanted, x, y, scc):
    """(result, SCC) of sources x and y, uint64.

    width: 32 or 64; wanted: the relations that a compare counts.
    """
    if op == Op.S_MOV:
        return x, scc
    if op == Op.S_ADD_U32 or op == Op.S_ADDC_U32:
        total = x + y + (L(scc) if op == Op.S_ADDC_U32 else L(0))
        return total & L(0xFFFFFFFF), total >> L(32) != 0
    if op == Op.S_SUB_U32:
        return L(U(x - y)), x < y
    if op == Op.S_ADD_I32 or op == Op.S_SUB_I32:
        exact = I64(I32(x)) + I64(I32(y)) if op == Op.S_ADD_I32 else I64(I32(x)) - I64(I32(y))
        return L(U(exact)), I64(I32(exact)) != exact
    if op == Op.S_MUL_I32:
        return L(U(x * y)), scc
    if op == Op.S_MUL_HI_U32:
        return (x * y) >> L(32), scc
    if op == Op.S_CSELECT:
        return (x if scc else y), scc
    if op == Op.S_COMPARE_I32:
        return L(0), (wanted & relation(I32(x) < I32(y), I32(x) == I32(y))) != 0
    if op == Op.S_COMPARE_U32 or op == Op.S_COMPARE_U64:
        return L(0), (wanted & relation(x < y, x == y)) != 0
    result = logic(op, width, x, y)
    return result, result != 0


@lane
def logic(op, width, x, y):
    """The operations that set SCC where the result is not 0."""
    places = y & L(width - 1)
    if op == Op.S_AND:
        result = x & y
    elif op == Op.S_OR:
        result = x | y
    elif op == Op.S_XOR:
        result = x ^ y
    elif op == Op.S_ANDN2:
        result = x & ~y
    elif op == Op.S_LSHL:
        result = x << places
    elif op == Op.S_LSHR:
        result = x >> places
    else:
        result = L(U(I32(x) >> I32(places)))
    return result & L(0xFFFFFFFF) if width == 32 else result
