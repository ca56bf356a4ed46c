"""Instructions that gfx950 (MI350X, MI355X) has and gfx942 has not."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from labkit.emulator.access import reader, register, store, store_half, writer
from labkit.emulator.lds_memory import lds_of
from labkit.emulator.operands import Constant, Operand, parse_list
from labkit.emulator.program import Instruction
from labkit.emulator.rounding import FP4_VALUES, FP8_FORMATS, fp8_values, to_fp8, to_half
from labkit.emulator.state import LANES, LaneMask, State
from labkit.emulator.vector import vector
from labkit.emulator.vector_convert import pack, to_bfloat16
from labkit.emulator.vector_float import maximum, minimum

Step = Callable[[], object]

vector("v_cvt_pk_f16_f32", "f32 f32 -> b32", mode=True)(
    lambda a, b, saturate: pack(to_half(a, saturate), to_half(b, saturate))
)


def _propagating(choose: Callable) -> Callable:
    """IEEE 754-2019 maximum and minimum: NaN where an operand is NaN; -0 is below +0."""

    def of_three(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        unordered = np.isnan(a) | np.isnan(b) | np.isnan(c)
        return np.where(unordered, a.dtype.type(np.nan), choose(choose(a, b), c))

    return of_three


vector("v_maximum3_f32", "f32 f32 f32 -> f32")(_propagating(maximum))
vector("v_minimum3_f32", "f32 f32 f32 -> f32")(_propagating(minimum))


def bind_bit_operation(state: State, instruction: Instruction) -> Step:
    """v_bitop3: any function of three bits. Bit 4*a + 2*b + c of `bitop3` is its value (LLVM, BITOP3)."""
    instruction.allow("bitop3")
    table = int(instruction.modifiers.get("bitop3", "0"), 0)
    kind = "u16" if instruction.operation.endswith("b16") else "u32"
    target, *sources = instruction.operands
    reads = [reader(state, instruction, operand, kind) for operand in sources]
    write = writer(state, instruction, target, kind)

    def step() -> None:
        values = [np.asarray(read()) for read in reads]
        result = np.zeros(np.broadcast_shapes(*(v.shape for v in values)), values[0].dtype)
        for row in range(8):
            if table >> row & 1:
                a, b, c = (v if row >> (2 - k) & 1 else ~v for k, v in enumerate(values))
                result |= a & b & c
        write(result, state.lane_mask())

    return step


def _check_scale(instruction: Instruction, scale: Operand) -> None:
    """The scale is an fp32 of which only the exponent counts; no kernel has shown one that is not 1.0."""
    if not isinstance(scale, Constant) or scale.value != 1.0:
        raise instruction.refuse("a scale that is not 1.0")


def bind_scaled_to_fp8(state: State, instruction: Instruction) -> Step:
    """v_cvt_scalef32_pk_fp8/bf8_f32/f16/bf16: two values to FP8; the last bit of op_sel picks the half."""
    instruction.allow("op_sel")
    form, source_kind = instruction.operation.split("_")[-2:]
    dtype = FP8_FORMATS[state.fnuz][form]
    target, *sources, scale = instruction.operands
    _check_scale(instruction, scale)
    kind = "f32" if source_kind == "f32" else "u32"
    reads = [reader(state, instruction, operand, kind) for operand in sources]
    half = parse_list(instruction.modifiers.get("op_sel", "[0]"))[-1]

    def step() -> None:
        values = [read() for read in reads]
        values = values if source_kind == "f32" else _halves(values[0], source_kind)
        low, high = (to_fp8(x, dtype, state.saturate()).astype(np.uint16) for x in values)
        store_half(state.v[target.index], half, low | (high << np.uint16(8)), state.lane_mask())

    return step


def _halves(word: np.ndarray, kind: str) -> list[np.ndarray]:
    """The two 16-bit floats of a register as float32."""
    dtype = np.float16 if kind == "f16" else ml_dtypes.bfloat16
    halves = [(word >> np.uint32(shift)).astype(np.uint16) for shift in (0, 16)]
    return [half.view(dtype).astype(np.float32) for half in halves]


def bind_scaled_up(state: State, instruction: Instruction) -> Step:
    """v_cvt_scalef32_pk_f32/f16/bf16_fp8/bf8/fp4: two narrow values times a scale.

    op_sel[0] picks the half of the source that holds them, or op_sel[1] and op_sel[0] its byte for fp4. The
    scale is the power of two in the exponent bits of an fp32; all ones there stand for NaN (E8M0).
    """
    instruction.allow("op_sel")
    result_kind, form = instruction.operation.split("_")[-2:]
    target, source, scale = instruction.operands
    read, read_scale = (reader(state, instruction, operand, "u32") for operand in (source, scale))
    bits = 4 if form == "fp4" else 8
    table = FP4_VALUES if form == "fp4" else fp8_values(FP8_FORMATS[state.fnuz][form])
    chosen = parse_list(instruction.modifiers.get("op_sel", "[0,0,0]"))
    if any(chosen[1 if bits == 8 else 2 :]):
        raise instruction.refuse("this use of op_sel is not implemented")
    shift = 8 * (chosen[0] + 2 * chosen[1]) if bits == 4 else 16 * chosen[0]

    def step() -> None:
        word, mask = np.asarray(read()) >> np.uint32(shift), state.lane_mask()
        exponent = (np.asarray(read_scale()) >> np.uint32(23) & np.uint32(0xFF)).astype(np.int32)
        factor = np.where(exponent == 255, np.nan, np.ldexp(1.0, exponent - 127))
        values = [
            (table[(word >> np.uint32(bits * k)) & np.uint32((1 << bits) - 1)] * factor).astype(np.float32)
            for k in range(2)
        ]
        if result_kind == "f32":
            for k, value in enumerate(values):
                store(state.v[target.index + k], value, mask)
        elif result_kind == "f16":
            store(state.v[target.index], pack(*[to_half(value, state.saturate()) for value in values]), mask)
        else:
            store(state.v[target.index], pack(*[to_bfloat16(value) for value in values]), mask)

    return step


def bind_permlane_swap(state: State, instruction: Instruction) -> Step:
    """v_permlane16/32_swap: the odd rows (of 16 or 32 lanes) of one register for the even ones of another."""
    instruction.allow()
    width = 32 if "32_swap" in instruction.operation else 16
    first, second = (state.v[operand.index] for operand in instruction.operands)
    odd = (np.arange(LANES) // width) % 2 == 1

    def step() -> None:
        mask = state.lane_mask()
        up, down = np.roll(second, width, axis=1), np.roll(first, -width, axis=1)
        store(first, up, LaneMask.of(mask.lanes & odd))
        store(second, down, LaneMask.of(mask.lanes & ~odd))

    return step


def bind_transposed_read(state: State, instruction: Instruction) -> Step:
    """ds_read_b64_tr_b16, _b8 and _b4: 16 lanes read a tile of 16 columns row by row; each gets a column."""
    instruction.allow("offset")
    target, address = instruction.operands
    where, lds = reader(state, instruction, address, "u32"), lds_of(state)
    offset = np.uint32(int(instruction.modifiers.get("offset", "0"), 0))
    bits = int(instruction.operation.rpartition("_b")[2])
    per_word, per_lane = 32 // bits, 64 // bits  # elements; a lane's are also the rows of the tile
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    lane, row = np.arange(LANES)[:, None], np.arange(per_lane)
    column = lane % 16
    source_lane = (lane & ~15) + (16 // per_lane) * row + column // per_lane

    def step() -> None:
        mask = state.lane_mask()
        words = np.stack(lds.read(instruction, np.asarray(where()) + offset, 8, mask), axis=-1)
        elements = (words[..., None] >> shifts & np.uint32((1 << bits) - 1)).reshape(-1, LANES, per_lane)
        received = elements[:, source_lane, column % per_lane].reshape(-1, LANES, 2, per_word)
        for k in range(2):
            store(
                register(state, target, k), np.bitwise_or.reduce(received[:, :, k] << shifts, axis=-1), mask
            )

    return step


CDNA4: dict[str, Callable[[State, Instruction], Step]] = {
    **dict.fromkeys(("v_bitop3_b32", "v_bitop3_b16"), bind_bit_operation),
    **{
        f"v_cvt_scalef32_pk_{form}_{source}": bind_scaled_to_fp8
        for form in ("fp8", "bf8")
        for source in ("f32", "f16", "bf16")
    },
    **{
        f"v_cvt_scalef32_pk_{result}_{form}": bind_scaled_up
        for form in ("fp8", "bf8", "fp4")
        for result in ("f32", "f16", "bf16")
    },
    **dict.fromkeys(("v_permlane16_swap_b32", "v_permlane32_swap_b32"), bind_permlane_swap),
    **dict.fromkeys(("ds_read_b64_tr_b16", "ds_read_b64_tr_b8", "ds_read_b64_tr_b4"), bind_transposed_read),
}
