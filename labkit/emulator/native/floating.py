"""Vector floating-point operations of one wave: 64 lanes of sources `a` to `d` into the result `t`."""

from __future__ import annotations

import numpy as np

from labkit.emulator.native.bits import as_bits, as_float, lane, octets, words
from labkit.emulator.native.integer import ROW
from labkit.emulator.native.lanes import (
    division_fixup,
    division_scale,
    fma,
    fp8_key,
    from_half,
    maximum,
    median,
    minimum,
    power_of_two,
    reciprocal,
    reciprocal_root,
    scale_by_power,
    square_root,
    to_bfloat16,
    to_half,
    to_int,
    unscaled_fma,
)
from labkit.emulator.native.operations import Op

U, I32 = np.uint32, np.int32


@lane
def half_value(h):
    return as_float(from_half(h))


@lane
def mixed(value, is_half):
    """A source of v_fma_mix: a half already selected and with its sign modifiers, or float32 bits."""
    return from_half(value) if is_half else value


@lane
def floating_operation(op, halves, saturate, chip, a, b, c, d):
    """halves: v_fma_mix's sources that are halves, a bit each; for FP8, which of the two formats.

    saturate: MODE.FP16_OVFL.
    """
    count = chip.count
    t, upper = words(chip.result), words(chip.result + ROW)
    if op == Op.V_ADD_F32:
        for i in range(count):
            t[i] = as_bits(as_float(a[i]) + as_float(b[i]))
    elif op == Op.V_SUB_F32:
        for i in range(count):
            t[i] = as_bits(as_float(a[i]) - as_float(b[i]))
    elif op == Op.V_SUBREV_F32:
        for i in range(count):
            t[i] = as_bits(as_float(b[i]) - as_float(a[i]))
    elif op == Op.V_MUL_F32:
        for i in range(count):
            t[i] = as_bits(as_float(a[i]) * as_float(b[i]))
    elif op == Op.V_FMA_F32:
        for i in range(count):
            t[i] = fma(a[i], b[i], c[i])
    elif op == Op.V_MAX_F32:
        for i in range(count):
            t[i] = maximum(a[i], b[i])
    elif op == Op.V_MIN_F32:
        for i in range(count):
            t[i] = minimum(a[i], b[i])
    elif op == Op.V_MAX3_F32:
        for i in range(count):
            t[i] = maximum(maximum(a[i], b[i]), c[i])
    elif op == Op.V_MIN3_F32:
        for i in range(count):
            t[i] = minimum(minimum(a[i], b[i]), c[i])
    elif op == Op.V_MED3_F32:
        for i in range(count):
            t[i] = median(a[i], b[i], c[i])
    elif op == Op.V_RNDNE_F32:
        for i in range(count):
            t[i] = U(as_bits(np.float32(np.rint(as_float(a[i])))))
    elif op == Op.V_FLOOR_F32:
        for i in range(count):
            t[i] = U(as_bits(np.float32(np.floor(as_float(a[i])))))
    elif op == Op.V_LDEXP_F32:
        for i in range(count):
            t[i] = scale_by_power(a[i], b[i])
    elif op == Op.V_RCP_F32:
        for i in range(count):
            t[i] = reciprocal(a[i])
    elif op == Op.V_RSQ_F32:
        for i in range(count):
            t[i] = reciprocal_root(a[i])
    elif op == Op.V_SQRT_F32:
        for i in range(count):
            t[i] = square_root(a[i])
    elif op == Op.V_EXP_F32:
        for i in range(count):
            t[i] = power_of_two(a[i])
    elif op == Op.V_DIV_FIXUP_F32:
        for i in range(count):
            t[i] = division_fixup(a[i], b[i], c[i])
    elif op == Op.V_ADD_F16:
        for i in range(count):
            t[i] = to_half(as_bits(half_value(a[i]) + half_value(b[i])), saturate)
    elif op == Op.V_SUB_F16:
        for i in range(count):
            t[i] = to_half(as_bits(half_value(a[i]) - half_value(b[i])), saturate)
    elif op == Op.V_MUL_F16:
        for i in range(count):
            t[i] = to_half(as_bits(half_value(a[i]) * half_value(b[i])), saturate)
    elif op == Op.V_CVT_F32_F16:
        for i in range(count):
            t[i] = from_half(a[i])
    elif op == Op.V_CVT_F16_F32:
        for i in range(count):
            t[i] = to_half(a[i], saturate)
    elif op == Op.V_CVT_F32_I32:
        for i in range(count):
            t[i] = U(as_bits(np.float32(I32(a[i]))))
    elif op == Op.V_CVT_F32_U32:
        for i in range(count):
            t[i] = U(as_bits(np.float32(a[i])))
    elif op == Op.V_CVT_I32_F32:
        for i in range(count):
            t[i] = U(to_int(a[i], -2147483648.0, 2147483647.0))
    elif op == Op.V_CVT_U32_F32:
        for i in range(count):
            t[i] = U(to_int(a[i], 0.0, 4294967295.0))
    elif op == Op.V_CVT_PK_BF16_F32:
        for i in range(count):
            t[i] = U(to_bfloat16(a[i]) | (to_bfloat16(b[i]) << U(16)))
    elif op == Op.V_DIV_SCALE_F32:
        for i in range(count):
            t[i], upper[i] = division_scale(a[i], b[i], c[i])
    elif op == Op.V_DIV_FMAS_F32:
        raised = U(0)
        for i in range(count):
            t[i] = fma(a[i], b[i], c[i])
            raised |= d[i]
        if raised != 0:
            for i in range(count):
                if d[i] != 0:
                    t[i] = unscaled_fma(a[i], b[i], c[i])
    elif op == Op.V_FMA_MIX_F32 or op == Op.V_FMA_MIX_F16:
        for i in range(count):
            x, y = mixed(a[i], (halves & 1) != 0), mixed(b[i], (halves & 2) != 0)
            t[i] = fma(x, y, mixed(c[i], (halves & 4) != 0))
        if op == Op.V_FMA_MIX_F16:
            for i in range(count):
                t[i] = to_half(t[i], saturate)
    elif op == Op.V_CVT_PK_FP8_F32:
        table = octets(chip.to_fp8 + (2 * halves + (1 if saturate else 0)) * 65536)
        for i in range(count):
            t[i] = U(table[fp8_key(a[i])]) | (U(table[fp8_key(b[i])]) << U(8))
    elif op == Op.V_CVT_F32_FP8:
        values = words(chip.from_fp8 + halves * 1024)
        for i in range(count):
            t[i] = values[a[i] & U(0xFF)]
