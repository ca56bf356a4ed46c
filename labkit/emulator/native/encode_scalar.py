"""Rows of scalar instructions."""

from __future__ import annotations

import re

from labkit.emulator.access import constant
from labkit.emulator.native.operations import EQUAL, GREATER, LESS, SAVEEXEC, Op, Source
from labkit.emulator.native.rows import From, Row, Unknown
from labkit.emulator.operands import Constant, Operand, Register
from labkit.emulator.program import Instruction
from labkit.emulator.scalar import SCALAR

_RELATIONS = {"eq": EQUAL, "lg": LESS | GREATER, "gt": GREATER, "ge": GREATER | EQUAL, "lt": LESS,
              "le": LESS | EQUAL}  # fmt: skip
_COMPARE = re.compile(r"s_cmpk?_(eq|lg|gt|ge|lt|le)_(i32|u32|u64)")
_SIMPLE = re.compile(r"s_(mov|and|or|xor|andn2|lshl|lshr|cselect)_b(?:32|64)")
_SAME = {
    "s_movk_i32": Op.S_MOV,
    "s_add_u32": Op.S_ADD_U32,
    "s_addc_u32": Op.S_ADDC_U32,
    "s_sub_u32": Op.S_SUB_U32,
    "s_add_i32": Op.S_ADD_I32,
    "s_addk_i32": Op.S_ADD_I32,
    "s_sub_i32": Op.S_SUB_I32,
    "s_mul_i32": Op.S_MUL_I32,
    "s_mulk_i32": Op.S_MUL_I32,
    "s_mul_hi_u32": Op.S_MUL_HI_U32,
    "s_ashr_i32": Op.S_ASHR_I32,
}


def encode_scalar(instruction: Instruction) -> list[Row]:
    """The row of a scalar operation. Raises Unknown for one that the fast path does not know."""
    operation, relations = instruction.operation, 0
    if operation.startswith("s_load_dword"):
        return _load(instruction)
    if operation.endswith("_saveexec_b64"):
        return _save_exec(instruction)
    if operation.startswith("s_setreg"):
        return _set_mode(instruction)
    if match := _COMPARE.fullmatch(operation):
        op, relations = Op[f"S_COMPARE_{match[2].upper()}"], _RELATIONS[match[1]]
    elif match := _SIMPLE.fullmatch(operation):
        op = Op[f"S_{match[1].upper()}"]
    else:
        op = _SAME.get(operation)
    if op is None or instruction.modifiers:
        raise Unknown
    entry = SCALAR[operation]
    results = [kind for kind in entry.results if kind != "scc"]
    operands = list(instruction.operands)
    target = operands[0]
    rest = iter(operands[len(results) :])
    sources, widths = [], []
    for kind in entry.sources:
        if kind == "scc":
            continue
        sources.append(_source(instruction, target if kind == "old" else next(rest), kind))
        widths.append(64 if kind.endswith("64") else 32)
    if results and not isinstance(target, Register):
        raise Unknown
    bits = (64 if results[0].endswith("64") else 32) if results else 0
    row = Row(op, sources, parameters=(bits, relations, widths[0], widths[-1]))
    row.target = target.index if results else 0
    return [row]


def _source(instruction: Instruction, operand: Operand, kind: str) -> From:
    if kind == "k16":  # sign-extended, except where an unsigned compare takes it
        value = operand.value & 0xFFFF
        return From(Source.CONSTANT, value if "_u32" in instruction.operation else (value ^ 0x8000) - 0x8000)
    if isinstance(operand, Constant):
        bits = constant(instruction, operand, kind if kind != "old" else "u32")
        return From(Source.CONSTANT, int(bits.view(f"i{bits.itemsize}")))
    if not isinstance(operand, Register) or operand.file != "s" or operand.negated or operand.absolute:
        raise Unknown
    return From(Source.SCALAR, operand.index)


def _load(instruction: Instruction) -> list[Row]:
    if set(instruction.modifiers) - {"glc", "offset"}:
        raise Unknown
    target, base, offset = instruction.operands
    fixed = int(instruction.modifiers.get("offset", "0"), 0)
    if isinstance(offset, Constant):
        fixed, offset = fixed + int(offset.value), Constant(0)
    sources = [From(Source.SCALAR, base.index), _source(instruction, offset, "u32")]
    words = int(instruction.operation.removeprefix("s_load_dword").removeprefix("x") or 1)
    return [Row(Op.S_LOAD, sources, target=target.index, parameters=(words, fixed))]


def _save_exec(instruction: Instruction) -> list[Row]:
    name = instruction.operation.removeprefix("s_").removesuffix("_saveexec_b64")
    if name not in SAVEEXEC or instruction.modifiers:
        raise Unknown
    target, source = instruction.operands
    read = _source(instruction, source, "u64")
    return [Row(Op.S_SAVEEXEC, [read], target=target.index, parameters=(SAVEEXEC.index(name),))]


def _set_mode(instruction: Instruction) -> list[Row]:
    """MODE.FP16_OVFL; other fields stay with the NumPy step."""
    field, value = instruction.operands
    if re.fullmatch(r"hwreg\(HW_REG_MODE,\s*23,\s*1\)", field.text) is None or instruction.modifiers:
        raise Unknown
    return [Row(Op.S_SET_SATURATE, [_source(instruction, value, "u32")])]
