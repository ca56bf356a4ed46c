"""Turn an instruction into rows for the interpreter, or say that the fast path does not know it."""

from __future__ import annotations

import re

from labkit.emulator.access import DTYPES
from labkit.emulator.crosslane import dpp_source, row_and_bank, sdwa_field
from labkit.emulator.native.encode_memory import encode_global, encode_lds
from labkit.emulator.native.encode_packed import PACKED, encode_fma_mix, encode_matrix, encode_packed
from labkit.emulator.native.encode_scalar import encode_scalar
from labkit.emulator.native.operations import EQUAL, GREATER, LESS, UNORDERED, Op, Result, Source
from labkit.emulator.native.rows import ALL_BITS, Encoder, From, Row, Unknown
from labkit.emulator.operands import VCC, Register, parse_list
from labkit.emulator.program import Instruction
from labkit.emulator.vector import VECTOR

_SAME = {
    "v_accvgpr_read_b32": Op.V_MOV_B32,
    "v_accvgpr_write_b32": Op.V_MOV_B32,
    "v_accvgpr_mov_b32": Op.V_MOV_B32,
    "v_fmac_f32": Op.V_FMA_F32,
    "v_fmaak_f32": Op.V_FMA_F32,
    "v_fmamk_f32": Op.V_FMA_F32,
    "v_rcp_iflag_f32": Op.V_RCP_F32,
}
_ORDERED = {"lt": LESS, "eq": EQUAL, "le": LESS | EQUAL, "gt": GREATER, "ge": GREATER | EQUAL,
            "lg": LESS | GREATER, "o": LESS | EQUAL | GREATER}  # fmt: skip
_RELATIONS = {**_ORDERED, "ne": LESS | GREATER, "neq": LESS | GREATER | UNORDERED, "u": UNORDERED,
              **{f"n{name}": 15 & ~bits for name, bits in _ORDERED.items() if name != "eq"}}  # fmt: skip
_COMPARE = re.compile(rf"v_cmp_({'|'.join(_RELATIONS)})_(u32|i32|f32)")
_RESULTS = {("mask",): Result.MASK, ("u64",): Result.PAIR, ("u64", "mask"): Result.BOTH_PAIR}
_NOTHING = ("s_waitcnt", "s_nop", "s_setprio")


def encode(encoder: Encoder, instruction: Instruction) -> list[Row]:
    """The rows that execute an instruction. Raises Unknown where the fast path does not know it."""
    operation = instruction.operation
    if operation in _NOTHING:
        return []
    if operation.startswith(("global_", "flat_", "buffer_")):
        return encode_global(encoder, instruction)
    if operation.startswith("ds_"):
        return encode_lds(encoder, instruction)
    if operation.startswith("s_"):
        return encode_scalar(instruction)
    if operation in PACKED:
        return encode_packed(encoder, instruction)
    if operation.startswith("v_fma_mix"):
        return encode_fma_mix(encoder, instruction)
    if operation.startswith(("v_cvt_pk_fp8", "v_cvt_pk_bf8", "v_cvt_f32_fp8", "v_cvt_f32_bf8")):
        return _fp8(encoder, instruction)
    if operation.startswith("v_mfma_f32"):
        return encode_matrix(encoder, instruction)
    if operation in ("v_readfirstlane_b32", "v_readlane_b32", "v_writelane_b32"):
        return _lane_move(encoder, instruction)
    return _vector(encoder, instruction)


def _lane_move(encoder: Encoder, instruction: Instruction) -> list[Row]:
    if instruction.modifiers:
        raise Unknown
    target, *operands = instruction.operands
    sources = [encoder.source(instruction, operand, "u32") for operand in operands]
    writes = instruction.operation == "v_writelane_b32"
    return [
        Row(
            Op[instruction.operation.upper()],
            sources,
            target=encoder.row_of(target) if writes else target.index,
        )
    ]


def _vector(encoder: Encoder, instruction: Instruction) -> list[Row]:
    """An entry of the table of vector operations."""
    operation, compare = instruction.operation, _COMPARE.fullmatch(instruction.operation)
    name = f"COMPARE_{compare[2].upper()}" if compare else operation.upper()
    op = _SAME.get(operation, Op.__members__.get(name))
    if op is None or operation not in VECTOR:
        raise Unknown
    entry = VECTOR[operation]
    count = len(entry.results)
    results, operands = instruction.operands[:count], list(instruction.operands[count:])
    kinds = [kind for kind in entry.sources if kind not in ("old", "vcc")]
    if len(operands) != len(kinds):
        raise Unknown
    sources: list[From] = []
    for number, (operand, kind) in enumerate(zip(operands, kinds, strict=True)):
        for part in range(max(DTYPES[kind].itemsize // 4, 1) if kind != "mask" else 1):
            source = encoder.source(instruction, operand, kind, part)
            sources.append(_selected(instruction, operand, source, number, kind))
    if "old" in entry.sources:
        sources.append(From(Source.VECTOR, encoder.row_of(results[0])))
    if "vcc" in entry.sources:
        sources.append(From(Source.MASK, VCC))
    row = Row(op, sources, _RESULTS.get(entry.results, Result.VECTOR))
    if compare:
        row.parameters = (_RELATIONS[compare[1]],)
    if row.result == Result.MASK:
        row.target = results[0].index
    else:
        row.target = encoder.row_of(results[0])
        if count == 2:
            row.second = results[1].index
            row.result = row.result if row.result == Result.BOTH_PAIR else Result.BOTH
    if instruction.encoding == "dpp":
        _dpp(instruction, row)
    else:
        _place(instruction, row, entry.results[0])
    return [row]


def _dpp(instruction: Instruction, row: Row) -> None:
    """The first source comes from other lanes."""
    controls = [found for name, value in instruction.modifiers.items() if (found := dpp_source(name, value))]
    rest = set(instruction.modifiers) - {"row_mask", "bank_mask", "bound_ctrl"}
    if len(controls) != 1 or len(rest) != 1 or row.result != Result.VECTOR or row.keep != ALL_BITS:
        raise Unknown
    if row.sources[0].kind != Source.VECTOR:
        raise Unknown
    index, exists = controls[0]
    row.dpp = tuple(int(lane) if there else -1 for lane, there in zip(index, exists, strict=True))
    row.bound = "bound_ctrl" in instruction.modifiers
    allowed = sum(1 << lane for lane, on in enumerate(row_and_bank(instruction)) if on)
    row.may_write = allowed - (1 << 64) if allowed >> 63 else allowed


def _selected(instruction: Instruction, operand: object, source: From, number: int, kind: str) -> From:
    """A source with its half or byte chosen, by SDWA or op_sel."""
    shift, width = 0, 32
    if instruction.encoding == "sdwa":
        shift, width = sdwa_field(instruction, instruction.modifiers.get(f"src{number}_sel", "DWORD"))
    elif "op_sel" in instruction.modifiers:
        chosen = parse_list(instruction.modifiers["op_sel"])
        if kind not in ("f16", "u16", "i16"):
            raise Unknown
        shift = 16 * chosen[number]
    if shift == 0 and width == 32:
        return source
    if source.kind != Source.VECTOR or kind == "mask":
        if instruction.encoding == "sdwa" and not isinstance(operand, Register):
            return source  # a constant is as it is
        raise Unknown
    if width == 8 and (operand.negated or operand.absolute):
        raise Unknown
    return From(source.kind, source.at, shift, source.keep & ((1 << width) - 1), source.flip)


def _place(instruction: Instruction, row: Row, kind: str) -> None:
    """Which part of its register the result fills."""
    modifiers = dict(instruction.modifiers)
    modifiers.pop("op_sel", None)
    if instruction.encoding == "sdwa":
        shift, width = sdwa_field(instruction, modifiers.pop("dst_sel", "DWORD"))
        unused = modifiers.pop("dst_unused", "UNUSED_PAD")
        for name in ("src0_sel", "src1_sel"):
            modifiers.pop(name, None)
        if row.result == Result.MASK or width == 32:
            pass
        elif unused == "UNUSED_PRESERVE":
            row.shift, row.keep = shift, ((1 << width) - 1) << shift
        else:
            raise Unknown
    if modifiers:
        raise Unknown  # clamp and output modifiers
    if kind == "h16":
        row.keep = 0xFFFF
    chosen = parse_list(instruction.modifiers.get("op_sel", "[0]"))
    if len(chosen) > len(row.sources) and chosen[len(row.sources)]:
        raise Unknown


def _fp8(encoder: Encoder, instruction: Instruction) -> list[Row]:
    """Conversions between float32 and FP8."""
    form = int("bf8" in instruction.operation)
    target, *operands = instruction.operands
    if instruction.operation.startswith("v_cvt_pk"):
        if set(instruction.modifiers) - {"op_sel"}:
            raise Unknown
        half = parse_list(instruction.modifiers.get("op_sel", "[0,0,0]"))[2]
        sources = [encoder.source(instruction, operand, "f32") for operand in operands]
        row = Row(Op.V_CVT_PK_FP8_F32, sources, Result.VECTOR, encoder.row_of(target), parameters=(form,))
        row.shift, row.keep = 16 * half, 0xFFFF << (16 * half)
        return [row]
    source = _selected(instruction, operands[0], encoder.source(instruction, operands[0], "u32"), 0, "u32")
    row = Row(Op.V_CVT_F32_FP8, [source], Result.VECTOR, encoder.row_of(target), parameters=(form,))
    _place(instruction, row, "f32")
    return [row]
