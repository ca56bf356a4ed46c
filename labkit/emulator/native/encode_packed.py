"""Rows of packed math, mixed-precision FMA and matrix instructions."""

from __future__ import annotations

from labkit.emulator.access import constant
from labkit.emulator.matrix_forms import parse_form
from labkit.emulator.native.matrix import Kind
from labkit.emulator.native.operations import Op, Result, Source
from labkit.emulator.native.rows import ALL_BITS, Encoder, From, Row, Unknown
from labkit.emulator.operands import Constant, Register
from labkit.emulator.packed import selector
from labkit.emulator.program import Instruction

PACKED = {
    "v_pk_add_f32": Op.V_ADD_F32,
    "v_pk_mul_f32": Op.V_MUL_F32,
    "v_pk_fma_f32": Op.V_FMA_F32,
    "v_pk_add_f16": Op.V_ADD_F16,
    "v_pk_mul_f16": Op.V_MUL_F16,
    "v_pk_mov_b32": Op.V_MOV_B32,
}
_MATRIX_KINDS = {"fp8": Kind.FP8, "bf8": Kind.BF8, "f16": Kind.F16, "bf16": Kind.BF16, "f32": Kind.F32}


def encode_packed(encoder: Encoder, instruction: Instruction) -> list[Row]:
    """Packed arithmetic: two rows, in the order in which neither destroys what the other reads."""
    op, moves = PACKED[instruction.operation], instruction.operation == "v_pk_mov_b32"
    halves = instruction.operation.endswith("f16")
    if set(instruction.modifiers) - {"op_sel", "op_sel_hi", "neg_lo", "neg_hi"}:
        raise Unknown
    target, *operands = instruction.operands
    rows = []
    for part, name in enumerate(("lo", "hi")):
        chosen = selector(instruction, "op_sel" if part == 0 else "op_sel_hi", part)
        negated = selector(instruction, f"neg_{name}", 0)
        read = [
            _element(encoder, instruction, operand, halves, at, negative)
            for operand, at, negative in zip(operands, chosen, negated, strict=True)
        ]
        if moves:  # op_sel alone chooses: the low result from the first pair, the high one from the second
            at = selector(instruction, "op_sel", 0)[part]
            read = [_element(encoder, instruction, operands[part], False, at, 0)]
        row = Row(op, read, Result.VECTOR, encoder.row_of(target) + (0 if halves else part))
        if halves:
            row.shift, row.keep = 16 * part, 0xFFFF << (16 * part)
        rows.append(row)
    return _ordered(rows)


def _ordered(rows: list[Row]) -> list[Row]:
    first, second = rows
    if not first.overwrites(second):
        return rows
    if second.overwrites(first):
        raise Unknown
    return [second, first]


def _element(
    encoder: Encoder, instruction: Instruction, operand: object, halves: bool, part: int, negative: int
) -> From:
    """Part 0 or 1 of a packed operand."""
    if isinstance(operand, Register) and (operand.negated or operand.absolute):
        raise Unknown
    if halves:
        flip = 0x8000 if negative else 0
        if isinstance(operand, Constant):
            word = constant(instruction, operand, "f16" if isinstance(operand.value, float) else "u32")
            bits = int(word.view(f"u{word.itemsize}")) >> (16 * part) & 0xFFFF
            return From(Source.CONSTANT, bits ^ flip)
        source = encoder.source(instruction, operand, "u32")
        return From(source.kind, source.at, 16 * part, 0xFFFF, flip)
    pair = isinstance(operand, Register) and operand.count == 2
    if part and not pair:
        raise Unknown
    source = encoder.source(instruction, operand, "f32")
    at = source.at + (part if pair else 0)
    return From(source.kind, at, 0, ALL_BITS, 0x80000000 if negative else 0)


def encode_fma_mix(encoder: Encoder, instruction: Instruction) -> list[Row]:
    """v_fma_mix_f32, v_fma_mixlo_f16, v_fma_mixhi_f16: op_sel_hi says which sources are halves."""
    if set(instruction.modifiers) - {"op_sel", "op_sel_hi"}:
        raise Unknown
    target, *operands = instruction.operands
    is_half, part = selector(instruction, "op_sel_hi", 0), selector(instruction, "op_sel", 0)
    sources, halves = [], 0
    for number, operand in enumerate(operands):
        if not is_half[number]:
            sources.append(encoder.source(instruction, operand, "f32"))
            continue
        halves |= 1 << number
        if not isinstance(operand, Register):
            raise Unknown
        source = encoder.source(instruction, operand, "f16")
        sources.append(From(source.kind, source.at, 16 * part[number], source.keep, source.flip))
    row = Row(Op.V_FMA_MIX_F16, sources, Result.VECTOR, encoder.row_of(target), parameters=(halves,))
    if instruction.operation == "v_fma_mix_f32":
        row.op = Op.V_FMA_MIX_F32
    else:
        row.shift = 16 if instruction.operation == "v_fma_mixhi_f16" else 0
        row.keep = 0xFFFF << row.shift
    return [row]


def encode_matrix(encoder: Encoder, instruction: Instruction) -> list[Row]:
    """v_mfma_f32 of one block, in 16x16 or 32x32."""
    form = parse_form(instruction.operation)
    first, _, second = form.kinds.partition("_")
    kinds = [_MATRIX_KINDS.get(name) for name in (first, second or first)]
    if None in kinds or form.blocks != 1 or form.size not in (16, 32) or instruction.modifiers:
        raise Unknown
    target, a, b, c = instruction.operands
    addend, fixed = -1, 0
    if isinstance(c, Constant):
        fixed = int(constant(instruction, c, "f32").view("u4"))
    else:
        addend = encoder.row_of(c)
    parameters = (form.size, form.depth, *kinds, encoder.row_of(a), encoder.row_of(b), addend, fixed)
    return [Row(Op.MATRIX, target=encoder.row_of(target), parameters=parameters)]
