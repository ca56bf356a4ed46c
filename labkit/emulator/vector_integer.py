"""Vector integer instructions: one small function each (CDNA 3 ISA guide, chapters VOP1, VOP2, VOP3)."""

from __future__ import annotations

import numpy as np

from labkit.emulator.state import join
from labkit.emulator.vector import CLAMPED, vector

U32, I32, U64 = np.uint32, np.int32, np.uint64
_31, _63, _15 = U32(31), U64(63), np.uint16(15)


def _saturating_add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    total = a + b
    return np.where(total < a, np.iinfo(total.dtype).max, total).astype(total.dtype)


def _saturating_subtract(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum(a, b) - b


for _name in ("u32", "u16"):
    CLAMPED[f"v_add_{_name}"] = _saturating_add
    CLAMPED[f"v_sub_{_name}"] = _saturating_subtract
    CLAMPED[f"v_subrev_{_name}"] = lambda a, b: _saturating_subtract(b, a)


def low(value: np.ndarray) -> np.ndarray:
    """The low 32 bits of 64-bit values."""
    return value.astype(U32)


vector("v_mov_b32", "b32 -> b32")(lambda a: a)
vector("v_mov_b64", "b64 -> b64")(lambda a: a)
vector("v_accvgpr_read_b32 v_accvgpr_write_b32 v_accvgpr_mov_b32", "b32 -> b32")(lambda a: a)
vector("v_not_b32", "u32 -> u32")(np.invert)
vector("v_and_b32", "u32 u32 -> u32")(np.bitwise_and)
vector("v_or_b32", "u32 u32 -> u32")(np.bitwise_or)
vector("v_xor_b32", "u32 u32 -> u32")(np.bitwise_xor)
vector("v_xnor_b32", "u32 u32 -> u32")(lambda a, b: ~(a ^ b))
vector("v_and_or_b32", "u32 u32 u32 -> u32")(lambda a, b, c: (a & b) | c)
vector("v_or3_b32", "u32 u32 u32 -> u32")(lambda a, b, c: a | b | c)
vector("v_add_u32", "u32 u32 -> u32")(np.add)
vector("v_sub_u32", "u32 u32 -> u32")(np.subtract)
vector("v_subrev_u32", "u32 u32 -> u32")(lambda a, b: b - a)
vector("v_add3_u32", "u32 u32 u32 -> u32")(lambda a, b, c: a + b + c)
vector("v_xad_u32", "u32 u32 u32 -> u32")(lambda a, b, c: (a ^ b) + c)
vector("v_lshl_add_u32", "u32 u32 u32 -> u32")(lambda a, b, c: (a << (b & _31)) + c)
vector("v_add_lshl_u32", "u32 u32 u32 -> u32")(lambda a, b, c: (a + b) << (c & _31))
vector("v_lshl_or_b32", "u32 u32 u32 -> u32")(lambda a, b, c: (a << (b & _31)) | c)
vector("v_lshl_add_u64", "u64 u32 u64 -> u64")(lambda a, b, c: (a << (b.astype(U64) & U64(7))) + c)
vector("v_lshlrev_b32", "u32 u32 -> u32")(lambda n, a: a << (n & _31))
vector("v_lshrrev_b32", "u32 u32 -> u32")(lambda n, a: a >> (n & _31))
vector("v_ashrrev_i32", "u32 i32 -> i32")(lambda n, a: a >> (n & _31).view(I32))
vector("v_lshlrev_b64", "u32 u64 -> u64")(lambda n, a: a << (n.astype(U64) & _63))
vector("v_lshrrev_b64", "u32 u64 -> u64")(lambda n, a: a >> (n.astype(U64) & _63))
vector("v_ashrrev_i64", "u32 i64 -> i64")(lambda n, a: a >> (n.astype(np.int64) & np.int64(63)))
vector("v_lshlrev_b16", "u16 u16 -> u16")(lambda n, a: a << (n & _15))
vector("v_lshrrev_b16", "u16 u16 -> u16")(lambda n, a: a >> (n & _15))
vector("v_ashrrev_i16", "u16 i16 -> i16")(lambda n, a: a >> (n & _15).view(np.int16))
vector("v_add_u16", "u16 u16 -> u16")(np.add)
vector("v_sub_u16", "u16 u16 -> u16")(np.subtract)
vector("v_subrev_u16", "u16 u16 -> u16")(lambda a, b: b - a)
vector("v_mul_lo_u16", "u16 u16 -> u16")(np.multiply)
vector("v_mul_lo_u32", "u32 u32 -> u32")(np.multiply)
vector("v_mad_legacy_u16 v_mad_legacy_i16", "u16 u16 u16 -> u16")(lambda a, b, c: a * b + c)
vector("v_mad_u16 v_mad_i16", "u16 u16 u16 -> h16")(lambda a, b, c: a * b + c)
for _t in ("u16", "i16", "u32", "i32"):
    vector(f"v_min_{_t}", f"{_t} {_t} -> {_t}")(np.minimum)
    vector(f"v_max_{_t}", f"{_t} {_t} -> {_t}")(np.maximum)
for _t in ("u16", "i16", "u32", "i32"):
    _three = f"{_t} {_t} {_t} -> {'h16' if _t.endswith('16') else _t}"
    vector(f"v_min3_{_t}", _three)(lambda a, b, c: np.minimum(np.minimum(a, b), c))
    vector(f"v_max3_{_t}", _three)(lambda a, b, c: np.maximum(np.maximum(a, b), c))


@vector("v_med3_i32", "i32 i32 i32 -> i32")
@vector("v_med3_u32", "u32 u32 u32 -> u32")
@vector("v_med3_i16", "i16 i16 i16 -> h16")
@vector("v_med3_u16", "u16 u16 u16 -> h16")
def _median(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


@vector("v_mul_u32_u24", "u32 u32 -> u32")
def _multiply_24(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a & U32(0xFFFFFF)) * (b & U32(0xFFFFFF))


def _signed_24(a: np.ndarray) -> np.ndarray:
    return (a << I32(8)) >> I32(8)


vector("v_mul_i32_i24", "i32 i32 -> i32")(lambda a, b: _signed_24(a) * _signed_24(b))
vector("v_mad_i32_i24", "i32 i32 i32 -> i32")(lambda a, b, c: _signed_24(a) * _signed_24(b) + c)
vector("v_mad_u32_u24", "u32 u32 u32 -> u32")(lambda a, b, c: _multiply_24(a, b) + c)
vector("v_mul_hi_u32", "u32 u32 -> u32")(lambda a, b: low(np.multiply(a, b, dtype=U64) >> U64(32)))
vector("v_mul_hi_i32", "i32 i32 -> u32")(
    lambda a, b: low(np.multiply(a, b, dtype=np.int64).view(U64) >> U64(32))
)


@vector("v_mad_u64_u32", "u32 u32 u64 -> u64 mask")
def _multiply_add_64(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    product = np.multiply(a, b, dtype=U64)
    total = product + c
    return total, total < product


@vector("v_mad_i64_i32", "i32 i32 i64 -> i64 mask")
def _multiply_add_i64(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    product = np.multiply(a, b, dtype=np.int64)
    total = product + c
    return total, (total < product) != (c < 0)


@vector("v_add_co_u32", "u32 u32 -> u32 mask")
def _add_carry_out(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = a + b
    return total, total < a


vector("v_sub_co_u32", "u32 u32 -> u32 mask")(lambda a, b: (a - b, a < b))
vector("v_subrev_co_u32", "u32 u32 -> u32 mask")(lambda a, b: (b - a, b < a))


@vector("v_addc_co_u32", "u32 u32 mask -> u32 mask")
def _add_with_carry(a: np.ndarray, b: np.ndarray, carry: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = np.add(a, b, dtype=U64) + carry
    return low(total), total > 0xFFFFFFFF


@vector("v_subb_co_u32", "u32 u32 mask -> u32 mask")
def _subtract_with_borrow(a: np.ndarray, b: np.ndarray, borrow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    taken = np.add(b, borrow, dtype=U64)
    return low(a - taken), a < taken


vector("v_subbrev_co_u32", "u32 u32 mask -> u32 mask")(lambda a, b, c: _subtract_with_borrow(b, a, c))


@vector("v_cndmask_b32", "b32 b32 mask -> b32")
def _select(if_false: np.ndarray, if_true: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    return np.where(chosen, if_true, if_false)


@vector("v_bfe_u32", "u32 u32 u32 -> u32")
def _extract_bits(a: np.ndarray, offset: np.ndarray, width: np.ndarray) -> np.ndarray:
    keep = (U32(1) << (width & _31)) - U32(1)
    return (a >> (offset & _31)) & keep


@vector("v_bfe_i32", "i32 u32 u32 -> u32")
def _extract_signed_bits(a: np.ndarray, offset: np.ndarray, width: np.ndarray) -> np.ndarray:
    """The value is shifted as a signed one: a field that reaches beyond bit 31 finds its sign there."""
    width = width & _31
    field = (a >> (offset & _31).view(I32)).view(U32) & ((U32(1) << width) - U32(1))
    sign = (U32(1) << width) >> U32(1)
    return (field ^ sign) - sign


vector("v_bfi_b32", "u32 u32 u32 -> u32")(lambda mask, a, b: (mask & a) | (~mask & b))
vector("v_bfm_b32", "u32 u32 -> u32")(lambda n, at: ((U32(1) << (n & _31)) - U32(1)) << (at & _31))


@vector("v_bfrev_b32", "u32 -> u32")
def _reverse_bits(a: np.ndarray) -> np.ndarray:
    for shift, pattern in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F)):
        a = ((a >> U32(shift)) & U32(pattern)) | ((a & U32(pattern)) << U32(shift))
    return a.byteswap()


def _leading_zeros(a: np.ndarray) -> np.ndarray:
    """Zeros above the highest set bit, 32 for 0: float64 holds 32 bits exactly, so its exponent tells."""
    return (U32(32) - np.frexp(a.astype(np.float64))[1].astype(U32)) * (a != 0) + U32(32) * (a == 0)


@vector("v_ffbh_u32", "u32 -> u32")
def _first_bit_high(a: np.ndarray) -> np.ndarray:
    return np.where(a == 0, U32(0xFFFFFFFF), _leading_zeros(a))


@vector("v_ffbh_i32", "i32 -> u32")
def _first_bit_unlike_sign(a: np.ndarray) -> np.ndarray:
    unlike = (a ^ (a >> I32(31))).view(U32)
    return np.where(unlike == 0, U32(0xFFFFFFFF), _leading_zeros(unlike))


@vector("v_ffbl_b32", "u32 -> u32")
def _first_bit_low(a: np.ndarray) -> np.ndarray:
    return np.where(a == 0, U32(0xFFFFFFFF), np.bitwise_count((a & (~a + U32(1))) - U32(1)).astype(U32))


vector("v_bcnt_u32_b32", "u32 u32 -> u32")(lambda a, b: np.bitwise_count(a).astype(U32) + b)


@vector("v_mbcnt_lo_u32_b32", "u32 u32 -> u32")
def _count_lower_lanes(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    lanes = np.arange(64)
    below = np.where(lanes < 32, (1 << np.minimum(lanes, 31)) - 1, 0xFFFFFFFF).astype(U32)
    return np.bitwise_count(a & below).astype(U32) + b


@vector("v_mbcnt_hi_u32_b32", "u32 u32 -> u32")
def _count_lower_lanes_high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    lanes = np.maximum(np.arange(64) - 32, 0)
    below = ((1 << lanes) - 1).astype(U32)
    return np.bitwise_count(a & below).astype(U32) + b


@vector("v_perm_b32", "u32 u32 u32 -> u32")
def _permute_bytes(a: np.ndarray, b: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """Selector bytes 0-3 take b, 4-7 take a, 12 gives 0x00, above it 0xFF; 8-11 spread a sign bit."""
    both = join(*np.broadcast_arrays(b, a))
    result = np.zeros(np.broadcast(both, selector).shape, U32)
    for position in (0, 8, 16, 24):
        choice = (selector >> U32(position)) & U32(0xFF)
        byte = low(both >> (U64(8) * (choice & U32(7)).astype(U64))) & U32(0xFF)
        sign_at = U64(16) * (choice & U32(3)).astype(U64) + U64(15)
        sign = (low(both >> sign_at) & U32(1)) * U32(0xFF)
        byte = np.where(choice >= 8, np.where(choice < 12, sign, np.where(choice == 12, 0, 0xFF)), byte)
        result |= byte.astype(U32) << U32(position)
    return result


vector("v_alignbit_b32", "u32 u32 u32 -> u32")(
    lambda a, b, n: low(join(*np.broadcast_arrays(b, a)) >> (n & _31).astype(U64))
)
vector("v_alignbyte_b32", "u32 u32 u32 -> u32")(
    lambda a, b, n: low(join(*np.broadcast_arrays(b, a)) >> ((n & U32(3)).astype(U64) * U64(8)))
)
vector("v_sad_u32", "u32 u32 u32 -> u32")(lambda a, b, c: np.maximum(a, b) - np.minimum(a, b) + c)
