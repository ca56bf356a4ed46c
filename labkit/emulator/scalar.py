"""Scalar instructions: the table of s_ operations, and how an entry is bound to scalar registers.

An entry is a function on arrays [W, 1]. A signature "u32 u32 -> u32 scc" says that the function returns
the result and the condition code; `scc` among the sources passes its present value. EXEC plays no part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labkit.emulator.access import reader
from labkit.emulator.operands import Register
from labkit.emulator.program import Instruction
from labkit.emulator.state import State, split

Step = Callable[[], None]
U32, I32, U64 = np.uint32, np.int32, np.uint64
_31, _63 = U32(31), U32(63)


@dataclass(frozen=True, slots=True)
class ScalarOperation:
    """One entry of the table: a function, the types of its sources and of its results."""

    function: Callable
    sources: tuple[str, ...]
    results: tuple[str, ...]


SCALAR: dict[str, ScalarOperation] = {}


def scalar(names: str, signature: str) -> Callable[[Callable], Callable]:
    """Enter a function under each of the blank-separated operation names."""

    def enter(function: Callable) -> Callable:
        sources, results = (tuple(side.split()) for side in signature.split("->"))
        for name in names.split():
            SCALAR[name] = ScalarOperation(function, sources, results)
        return function

    return enter


def _with_scc(function: Callable) -> Callable:
    """Most logic operations set SCC where the result is not zero."""

    def call(*values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        result = function(*values)
        return result, result != 0

    return call


scalar("s_mov_b32", "u32 -> u32")(lambda a: a)
scalar("s_mov_b64", "u64 -> u64")(lambda a: a)
scalar("s_movk_i32", "k16 -> i32")(lambda k: k)
scalar("s_brev_b32", "u32 -> u32")(lambda a: _reverse(a))
scalar("s_mul_i32", "u32 u32 -> u32")(np.multiply)
scalar("s_mul_hi_u32", "u32 u32 -> u32")(lambda a, b: (np.multiply(a, b, dtype=U64) >> U64(32)).astype(U32))
scalar("s_mul_hi_i32", "i32 i32 -> i32")(
    lambda a, b: (np.multiply(a, b, dtype=np.int64) >> np.int64(32)).astype(I32)
)
scalar("s_cselect_b32", "u32 u32 scc -> u32")(lambda a, b, scc: np.where(scc, a, b))
scalar("s_cselect_b64", "u64 u64 scc -> u64")(lambda a, b, scc: np.where(scc, a, b))
scalar("s_bitcmp0_b32", "u32 u32 -> scc")(lambda a, n: (a >> (n & _31)) & U32(1) == 0)
scalar("s_bitcmp1_b32", "u32 u32 -> scc")(lambda a, n: (a >> (n & _31)) & U32(1) == 1)
scalar("s_bitset0_b32", "u32 old -> u32")(lambda n, a: a & ~(U32(1) << (n & _31)))
scalar("s_bitset1_b32", "u32 old -> u32")(lambda n, a: a | (U32(1) << (n & _31)))
scalar("s_sext_i32_i16", "u32 -> i32")(lambda a: a.astype(np.uint16).view(np.int16).astype(I32))
scalar("s_sext_i32_i8", "u32 -> i32")(lambda a: a.astype(np.uint8).view(np.int8).astype(I32))
scalar("s_pack_ll_b32_b16", "u32 u32 -> u32")(lambda a, b: (a & U32(0xFFFF)) | (b << U32(16)))
scalar("s_pack_lh_b32_b16", "u32 u32 -> u32")(lambda a, b: (a & U32(0xFFFF)) | (b & U32(0xFFFF0000)))
scalar("s_pack_hh_b32_b16", "u32 u32 -> u32")(lambda a, b: (a >> U32(16)) | (b & U32(0xFFFF0000)))
scalar("s_ff1_i32_b32", "u32 -> i32")(
    lambda a: np.where(a == 0, -1, np.bitwise_count((a & (~a + U32(1))) - U32(1)).astype(I32))
)
scalar("s_flbit_i32_b32", "u32 -> i32")(
    lambda a: np.where(a == 0, -1, 32 - np.frexp(a.astype(np.float64))[1]).astype(I32)
)
scalar("s_bcnt1_i32_b32", "u32 -> u32 scc")(_with_scc(lambda a: np.bitwise_count(a).astype(U32)))
scalar("s_bcnt1_i32_b64", "u64 -> u32 scc")(_with_scc(lambda a: np.bitwise_count(a).astype(U32)))

for _bits in ("32", "64"):
    _t = f"u{_bits}"
    _two = f"{_t} {_t} -> {_t} scc"
    scalar(f"s_and_b{_bits}", _two)(_with_scc(np.bitwise_and))
    scalar(f"s_or_b{_bits}", _two)(_with_scc(np.bitwise_or))
    scalar(f"s_xor_b{_bits}", _two)(_with_scc(np.bitwise_xor))
    scalar(f"s_andn2_b{_bits}", _two)(_with_scc(lambda a, b: a & ~b))
    scalar(f"s_orn2_b{_bits}", _two)(_with_scc(lambda a, b: a | ~b))
    scalar(f"s_nand_b{_bits}", _two)(_with_scc(lambda a, b: ~(a & b)))
    scalar(f"s_nor_b{_bits}", _two)(_with_scc(lambda a, b: ~(a | b)))
    scalar(f"s_xnor_b{_bits}", _two)(_with_scc(lambda a, b: ~(a ^ b)))
    scalar(f"s_not_b{_bits}", f"{_t} -> {_t} scc")(_with_scc(np.invert))
    _limit = {"32": U32(31), "64": U32(63)}[_bits]
    scalar(f"s_lshl_b{_bits}", f"{_t} u32 -> {_t} scc")(
        _with_scc(lambda a, n, k=_limit: a << (n & k).astype(a.dtype))
    )
    scalar(f"s_lshr_b{_bits}", f"{_t} u32 -> {_t} scc")(
        _with_scc(lambda a, n, k=_limit: a >> (n & k).astype(a.dtype))
    )
    scalar(f"s_ashr_i{_bits}", f"i{_bits} u32 -> i{_bits} scc")(
        _with_scc(lambda a, n, k=_limit: a >> (n & k).astype(a.dtype))
    )


def _reverse(a: np.ndarray) -> np.ndarray:
    for shift, pattern in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F)):
        a = ((a >> U32(shift)) & U32(pattern)) | ((a & U32(pattern)) << U32(shift))
    return a.byteswap()


@scalar("s_add_u32", "u32 u32 -> u32 scc")
def _add(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = a + b
    return total, total < a


scalar("s_sub_u32", "u32 u32 -> u32 scc")(lambda a, b: (a - b, a < b))


@scalar("s_addc_u32", "u32 u32 scc -> u32 scc")
def _add_carry(a: np.ndarray, b: np.ndarray, carry: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = np.add(a, b, dtype=U64) + carry
    return total.astype(U32), total > 0xFFFFFFFF


@scalar("s_subb_u32", "u32 u32 scc -> u32 scc")
def _subtract_borrow(a: np.ndarray, b: np.ndarray, borrow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    taken = np.add(b, borrow, dtype=U64)
    return (a - taken).astype(U32), a < taken


@scalar("s_add_i32", "i32 i32 -> i32 scc")
@scalar("s_addk_i32", "old k16 -> i32 scc")
def _add_signed(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = a.view(I32) + b
    return total, ((a.view(I32) ^ total) & (b ^ total)) < 0  # SCC is signed overflow


@scalar("s_sub_i32", "i32 i32 -> i32 scc")
def _subtract_signed(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = a - b
    return total, ((a ^ b) & (a ^ total)) < 0


scalar("s_mulk_i32", "old k16 -> i32")(lambda a, k: a.view(I32) * k)
scalar("s_abs_i32", "i32 -> i32 scc")(_with_scc(np.abs))
for _type in ("i32", "u32"):
    scalar(f"s_min_{_type}", f"{_type} {_type} -> {_type} scc")(lambda a, b: (np.minimum(a, b), a < b))
    scalar(f"s_max_{_type}", f"{_type} {_type} -> {_type} scc")(lambda a, b: (np.maximum(a, b), a > b))

for _shift in (1, 2, 3, 4):
    scalar(f"s_lshl{_shift}_add_u32", "u32 u32 -> u32 scc")(lambda a, b, n=_shift: _wide_shift_add(a, b, n))


def _wide_shift_add(a: np.ndarray, b: np.ndarray, shift: int) -> tuple[np.ndarray, np.ndarray]:
    total = (a.astype(U64) << U64(shift)) + b
    return total.astype(U32), total > 0xFFFFFFFF


@scalar("s_bfe_u32", "u32 u32 -> u32 scc")
def _extract(a: np.ndarray, field: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The field's offset is in bits 4:0, its width in bits 22:16 of the second operand."""
    width = (field >> U32(16)) & U32(127)
    keep = ((U64(1) << np.minimum(width, 32).astype(U64)) - U64(1)).astype(U32)
    result = (a >> (field & _31)) & keep
    return result, result != 0


@scalar("s_bfe_i32", "u32 u32 -> u32 scc")
def _extract_signed(a: np.ndarray, field: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    width = np.minimum((field >> U32(16)) & U32(127), 32).astype(U64)
    # The value is shifted as a signed one: a field that reaches beyond bit 31 finds its sign there.
    shifted = (a.view(I32) >> (field & _31).astype(I32)).view(U32)
    result = shifted & ((U64(1) << width) - U64(1)).astype(U32)
    sign = ((U64(1) << width) >> U64(1)).astype(U32)
    result = (result ^ sign) - sign
    return result, result != 0


scalar("s_bfm_b32", "u32 u32 -> u32")(lambda n, at: ((U32(1) << (n & _31)) - U32(1)) << (at & _31))

_RELATIONS: dict[str, Callable] = {
    "eq": np.equal,
    "lg": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}
for _name, _function in _RELATIONS.items():
    for _type in ("i32", "u32"):
        scalar(f"s_cmp_{_name}_{_type}", f"{_type} {_type} -> scc")(_function)
    scalar(f"s_cmpk_{_name}_i32", "i32 k16 -> scc")(_function)
    scalar(f"s_cmpk_{_name}_u32", "u32 k16 -> scc")(lambda a, k, f=_function: f(a, k.view(U32) & U32(0xFFFF)))

scalar("s_cmp_eq_u64", "u64 u64 -> scc")(np.equal)
scalar("s_cmp_lg_u64", "u64 u64 -> scc")(np.not_equal)


def bind_scalar(state: State, instruction: Instruction) -> Step:
    """The step that executes a table instruction on `state`."""
    operation = SCALAR[instruction.operation]
    instruction.allow()
    operands = list(instruction.operands)
    results = [kind for kind in operation.results if kind != "scc"]
    target = operands[0] if results else None
    if target is not None and not isinstance(target, Register):
        raise instruction.refuse("its destination is not a register")
    rest = iter(operands[len(results) :])
    reads = []
    for kind in operation.sources:
        if kind == "scc":
            reads.append(lambda: state.scc)
        elif kind == "old":
            reads.append(reader(state, instruction, target, "u32"))
        elif kind == "k16":
            reads.append(_immediate16(next(rest).value))
        else:
            reads.append(reader(state, instruction, next(rest), kind))
    function, sets_scc = operation.function, "scc" in operation.results

    def step() -> None:
        outcome = function(*[read() for read in reads])
        result, scc = outcome if results and sets_scc else (outcome, outcome)
        if results:
            write_scalar(state, target, result)
        if sets_scc:
            state.write_scc(scc)

    return step


def _immediate16(value: int) -> Callable[[], np.ndarray]:
    """The 16-bit constant of the K forms, sign-extended."""
    fixed = np.array(value & 0xFFFF, np.uint16).view(np.int16).astype(I32)
    return lambda: fixed


def write_scalar(state: State, target: Register, value: np.ndarray) -> None:
    """Write a 32- or 64-bit value [W, 1] to scalar registers."""
    if target.count == 2:
        low, high = split(np.broadcast_to(value, (state.waves, 1)))
        state.write_scalar(target.index, low)
        state.write_scalar(target.index + 1, high)
    else:
        state.write_scalar(target.index, value.view(U32))
