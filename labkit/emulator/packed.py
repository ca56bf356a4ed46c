"""Instructions whose operands are chosen by op_sel: packed math, mixed-precision FMA, FP8 conversions.

op_sel means something else in each family (LLVM, "AMDGPU instruction modifiers"):
packed float32 picks a register of each pair, packed 16-bit a half of each register, v_fma_mix says which
sources are halves and which half, and a conversion to FP8 picks the half that it writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from labkit.emulator.access import DTYPES, Reader, constant, reader, store, store_half, with_sign
from labkit.emulator.crosslane import sdwa_sources
from labkit.emulator.operands import Constant, Operand, Register, parse_list
from labkit.emulator.program import Instruction
from labkit.emulator.rounding import (
    FP8_FORMATS,
    fp8_values,
    fused_multiply_add,
    fused_multiply_add_half,
    to_fp8,
    to_half,
)
from labkit.emulator.state import State
from labkit.emulator.vector_float import half, maximum, minimum

Step = Callable[[], None]
SELECTORS = ("op_sel", "op_sel_hi", "neg_lo", "neg_hi")

_PAIRS: dict[str, Callable] = {
    "v_pk_add_f32": np.add,
    "v_pk_mul_f32": np.multiply,
    "v_pk_fma_f32": fused_multiply_add,
}
# Packed 16-bit operation -> the type of its halves and the function on them; float16 ones take `saturate`.
_HALVES: dict[str, tuple[str, Callable]] = {
    "v_pk_add_f16": ("f16", half(np.add)),
    "v_pk_mul_f16": ("f16", half(np.multiply)),
    "v_pk_fma_f16": ("f16", fused_multiply_add_half),
    "v_pk_min_f16": ("f16", lambda a, b, saturate: minimum(a, b)),
    "v_pk_max_f16": ("f16", lambda a, b, saturate: maximum(a, b)),
    "v_pk_add_u16": ("u16", np.add),
    "v_pk_add_i16": ("i16", np.add),
    "v_pk_sub_u16": ("u16", np.subtract),
    "v_pk_sub_i16": ("i16", np.subtract),
    "v_pk_mul_lo_u16": ("u16", np.multiply),
    "v_pk_mad_u16": ("u16", lambda a, b, c: a * b + c),
    "v_pk_mad_i16": ("i16", lambda a, b, c: a * b + c),
    "v_pk_min_u16": ("u16", np.minimum),
    "v_pk_max_u16": ("u16", np.maximum),
    "v_pk_min_i16": ("i16", np.minimum),
    "v_pk_max_i16": ("i16", np.maximum),
    "v_pk_lshlrev_b16": ("u16", lambda n, a: a << (n & np.uint16(15))),
    "v_pk_lshrrev_b16": ("u16", lambda n, a: a >> (n & np.uint16(15))),
    "v_pk_ashrrev_i16": ("i16", lambda n, a: a >> (n & np.int16(15))),
}


# Integer operations that `clamp` makes saturate (LLVM, VOP3PInstructions.td: those with an integer clamp).
_SATURATING = re.compile(r"v_pk_(add|sub|mad)_[iu]16")


def _clamped(instruction: Instruction, kind: str, function: Callable) -> Callable:
    """The function as `clamp` changes it: integers saturate, floats are held to 0..1, and NaN gives 0."""
    if kind[0] == "f":
        # DX10_CLAMP is on in every kernel Triton makes, hence the 0 for NaN.
        zero, one = DTYPES[kind].type(0), DTYPES[kind].type(1)
        return lambda *values, **mode: np.fmin(np.fmax(function(*values, **mode), zero), one)
    if not _SATURATING.fullmatch(instruction.operation):
        raise instruction.refuse("modifier `clamp` is not implemented here")
    limits = np.iinfo(DTYPES[kind])

    def saturate(*values: np.ndarray) -> np.ndarray:
        wide = function(*[value.astype(np.int64) for value in values])
        return np.clip(wide, limits.min, limits.max).astype(limits.dtype)

    return saturate


def selector(instruction: Instruction, name: str, default: int) -> tuple[int, ...]:
    """The list of a modifier such as op_sel, one number a source; `default` each where it is not there."""
    count = len(instruction.operands) - 1
    if name not in instruction.modifiers:
        return (default,) * count
    return parse_list(instruction.modifiers[name])


def element(state: State, instruction: Instruction, operand: Operand, kind: str, part: int) -> Reader:
    """A reader of part 0 or 1 of an operand: a register of a pair, or a 16-bit half of a register."""
    if DTYPES[kind].itemsize == 4:
        if isinstance(operand, Register) and operand.count == 2:
            return reader(state, instruction, Register(operand.file, operand.index + part), kind)
        if part:
            raise instruction.refuse("the high half of a packed float32 constant")
        return reader(state, instruction, operand, kind)
    if isinstance(operand, Constant):
        # A constant is one 32-bit word; a float in it is a half in the low 16 bits.
        word = constant(instruction, operand, "f16" if isinstance(operand.value, float) else "u32")
        half = word.view(f"u{word.itemsize}").astype(np.uint32) >> np.uint32(16 * part)
        fixed = half.astype(np.uint16).view(DTYPES[kind])
        return lambda: fixed
    view = getattr(state, operand.file)[operand.index].view(DTYPES[kind])[:, part::2]
    return lambda: view


def _side(state: State, instruction: Instruction, kind: str, which: str) -> list[Reader]:
    """The source readers of the low ("lo") or high ("hi") result, negated as neg_lo or neg_hi says."""
    chosen = selector(instruction, "op_sel" if which == "lo" else "op_sel_hi", 0 if which == "lo" else 1)
    negated = selector(instruction, f"neg_{which}", 0)
    readers = []
    for operand, part, negative in zip(instruction.operands[1:], chosen, negated, strict=True):
        read = element(state, instruction, operand, kind, part)
        readers.append((lambda read=read: np.negative(read())) if negative else read)
    return readers


def bind_packed(state: State, instruction: Instruction) -> Step:
    """Packed float32 or 16-bit arithmetic: the same function on two elements of each operand."""
    instruction.allow(*SELECTORS, "clamp")
    pairs = instruction.operation in _PAIRS
    kind, function = ("f32", _PAIRS[instruction.operation]) if pairs else _HALVES[instruction.operation]
    if "clamp" in instruction.modifiers:
        function = _clamped(instruction, kind, function)
    low, high = (_side(state, instruction, kind, which) for which in ("lo", "hi"))
    target = instruction.operands[0].index

    def step() -> None:
        # Both first, then write: a result may overlap a source.
        mode = {"saturate": state.saturate()} if kind == "f16" else {}
        results = [function(*[read() for read in side], **mode) for side in (low, high)]
        mask = state.lane_mask()
        for part, result in enumerate(results):
            if pairs:
                store(state.v[target + part], result, mask)
            else:
                store_half(state.v[target], part, result, mask)

    return step


def bind_packed_move(state: State, instruction: Instruction) -> Step:
    """v_pk_mov_b32: op_sel picks the low result from the first pair and the high one from the second."""
    instruction.allow("op_sel", "op_sel_hi")
    target, *sources = instruction.operands
    chosen = selector(instruction, "op_sel", 0)
    reads = [element(state, instruction, o, "b32", part) for o, part in zip(sources, chosen, strict=True)]

    def step() -> None:
        values = [np.array(read()) for read in reads]
        for part, value in enumerate(values):
            store(state.v[target.index + part], value, state.lane_mask())

    return step


def bind_fma_mix(state: State, instruction: Instruction) -> Step:
    """v_fma_mix_f32, v_fma_mixlo_f16, v_fma_mixhi_f16: float32 FMA whose sources may be halves."""
    instruction.allow("op_sel", "op_sel_hi")
    is_half, part = selector(instruction, "op_sel_hi", 0), selector(instruction, "op_sel", 0)
    reads = [
        _mixed(state, instruction, operand, half, at)
        for operand, half, at in zip(instruction.operands[1:], is_half, part, strict=True)
    ]
    register = state.v[instruction.operands[0].index]
    if instruction.operation == "v_fma_mix_f32":
        return lambda: store(register, fused_multiply_add(*[read() for read in reads]), state.lane_mask())
    high = int(instruction.operation == "v_fma_mixhi_f16")

    def step() -> None:
        result = to_half(fused_multiply_add(*[read() for read in reads]), state.saturate())
        store_half(register, high, result, state.lane_mask())

    return step


def _mixed(state: State, instruction: Instruction, operand: Operand, half: int, part: int) -> Reader:
    if not half:
        return reader(state, instruction, operand, "f32")
    read = element(state, instruction, operand, "f16", part)
    return lambda: with_sign(instruction, operand, read().astype(np.float32), "f32")


def bind_to_fp8(state: State, instruction: Instruction) -> Step:
    """v_cvt_pk_fp8_f32 and v_cvt_pk_bf8_f32: two float32 into one half of the register, by op_sel[2]."""
    instruction.allow("op_sel")
    dtype = FP8_FORMATS[state.fnuz]["bf8" if "bf8" in instruction.operation else "fp8"]
    target, first, second = instruction.operands
    reads = [reader(state, instruction, operand, "f32") for operand in (first, second)]
    half = parse_list(instruction.modifiers.get("op_sel", "[0,0,0]"))[2]

    def step() -> None:
        saturate = state.saturate()
        low, high = (to_fp8(read(), dtype, saturate).astype(np.uint16) for read in reads)
        store_half(state.v[target.index], half, low | (high << np.uint16(8)), state.lane_mask())

    return step


def bind_stochastic(state: State, instruction: Instruction) -> Step:
    """v_cvt_sr_: stochastic rounding. Triton emits none; only inline assembly does."""
    raise instruction.refuse(
        "the ISA guide's description of stochastic rounding adds the random bits and then rounds to nearest, "
        "which would be biased, so what the chip does is not known"
    )


def bind_from_fp8(state: State, instruction: Instruction) -> Step:
    """v_cvt_f32_fp8/bf8 (a byte) and v_cvt_pk_f32_fp8/bf8 (two bytes), the field chosen by SDWA."""
    table = fp8_values(FP8_FORMATS[state.fnuz]["bf8" if "bf8" in instruction.operation else "fp8"])
    target, source = instruction.operands
    if instruction.encoding == "sdwa":
        (read,) = sdwa_sources(state, instruction, [source], ["u32"])
    else:
        instruction.allow()
        read = reader(state, instruction, source, "u32")
    count = 2 if "_pk_" in instruction.operation else 1

    def step() -> None:
        word = np.array(read())
        for part in range(count):
            byte = (word >> np.uint32(8 * part)) & np.uint32(0xFF)
            store(state.v[target.index + part], table[byte], state.lane_mask())

    return step


PACKED: dict[str, Callable[[State, Instruction], Step]] = {
    **dict.fromkeys((*_PAIRS, *_HALVES), bind_packed),
    "v_pk_mov_b32": bind_packed_move,
    **dict.fromkeys(("v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16"), bind_fma_mix),
    **dict.fromkeys(("v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32"), bind_to_fp8),
    **dict.fromkeys((f"v_cvt_sr_{kind}_f32" for kind in ("fp8", "bf8", "f16", "bf16")), bind_stochastic),
    **dict.fromkeys(
        ("v_cvt_f32_fp8", "v_cvt_f32_bf8", "v_cvt_pk_f32_fp8", "v_cvt_pk_f32_bf8"), bind_from_fp8
    ),
}
