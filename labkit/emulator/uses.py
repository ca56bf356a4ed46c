"""What an instruction reads and writes, each operand with the type that the instruction takes it for.

The types come from where the instruction is defined: the signatures of VECTOR and SCALAR, else the name of a
packed, matrix or conversion instruction. One that only moves bits (v_mov) has "raw" operands. EXEC, which
every vector instruction reads, is not listed.
"""

from __future__ import annotations

import re

from labkit.emulator.matrix_forms import parse_form
from labkit.emulator.operands import EXEC, VCC, Operand, Register, parse_list
from labkit.emulator.program import Instruction
from labkit.emulator.scalar import SCALAR
from labkit.emulator.typed import MASK, RAW, SCC, Typed, element_bytes, every, fp8_name, mask, one
from labkit.emulator.uses_memory import global_uses, lds_uses, scalar_load_uses
from labkit.emulator.vector import VECTOR

Uses = tuple[list[Typed], list[Typed]]  # what is read, what is written


def uses(instruction: Instruction, fnuz: bool) -> Uses:
    """What an instruction reads and writes, each in the order of its text. fnuz: FP8 is FNUZ (gfx942)."""
    operation, operands = instruction.operation, instruction.operands
    if operation in VECTOR:
        return _vector(instruction)
    if operation in SCALAR:
        return _scalar(instruction)
    if instruction.kind == "MFMA":
        return _matrix(instruction, fnuz)
    if instruction.kind.startswith("VMEM"):
        return global_uses(instruction)
    if instruction.kind == "LDS":
        return lds_uses(instruction)
    if operation.startswith("s_load"):
        return scalar_load_uses(instruction)
    if operation.startswith("s_cbranch"):
        condition = {"scc": SCC, "vcc": mask(VCC), "exe": mask(EXEC)}
        return [condition[operation.removeprefix("s_cbranch_")[:3]]], []
    if "saveexec" in operation:
        return [*one(operands[1], MASK), mask(EXEC)], [*one(operands[0], MASK), mask(EXEC), SCC]
    if operation.startswith("s_setreg"):
        return one(operands[1], "u32"), []
    return _by_name(instruction, fnuz) if operation.startswith("v_") else ([], [])


# Results that are two values in one register, which their signatures call b32.
_PACKED_RESULTS = {
    "v_cvt_pkrtz_f16_f32": "f16",
    "v_cvt_pk_f16_f32": "f16",
    "v_pack_b32_f16": "f16",
    "v_cvt_pk_bf16_f32": "bf16",
    "v_cvt_pknorm_i16_f32": "i16",
    "v_cvt_pk_i16_i32": "i16",
    "v_cvt_pk_u16_u32": "u16",
}


def _vector(instruction: Instruction) -> Uses:
    operation = VECTOR[instruction.operation]
    results = instruction.operands[: len(operation.results)]
    sources = instruction.operands[len(operation.results) :]
    kinds = [kind for kind in operation.sources if kind not in ("old", "vcc")]
    reads = [
        typed
        for number, (operand, kind) in enumerate(zip(sources, kinds, strict=True))
        for typed in one(operand, *_source_part(instruction, operand, number, kind))
    ]
    if "old" in operation.sources:
        reads += one(results[0], operation.results[0])
    if "vcc" in operation.sources:
        reads.append(mask(VCC))
    if instruction.operation in _PACKED_RESULTS:
        return reads, one(results[0], _PACKED_RESULTS[instruction.operation], 0, 2)
    selector = instruction.modifiers.get("dst_sel", "DWORD")
    writes = [
        typed
        for operand, kind in zip(results, operation.results, strict=True)
        for typed in one(operand, *_field("DWORD" if kind == MASK else selector, kind))
    ]
    return reads, writes


def _source_part(instruction: Instruction, operand: Operand, number: int, kind: str) -> tuple[str, int, int]:
    """(type, first, count) of a source: SDWA and op_sel can choose a byte or a half."""
    if instruction.operation.startswith("v_cvt_f32_ubyte"):
        return "u8", int(instruction.operation[-1]), 1
    if instruction.encoding == "sdwa" and kind != MASK:
        signed = isinstance(operand, Register) and operand.sign_extended
        return _field(instruction.modifiers.get(f"src{number}_sel", "DWORD"), kind, signed)
    if "op_sel" in instruction.modifiers:
        return kind, parse_list(instruction.modifiers["op_sel"])[number], 1
    return kind, 0, 0


def _field(selector: str, kind: str, signed: bool = False) -> tuple[str, int, int]:
    """(type, first, count) of a DWORD, WORD_n or BYTE_n whose instruction works on `kind`."""
    name, _, number = selector.partition("_")
    if name == "DWORD":
        return kind, 0, 0
    if name == "WORD" and kind in ("f16", "h16"):
        return "f16", int(number), 1
    return ("i" if signed else "u") + {"WORD": "16", "BYTE": "8"}[name], int(number), 1


# Scalar instructions that treat their operands as bits, though their table calls them u32 and u64.
_MOVES = re.compile(
    r"s_((mov|cselect)_b(32|64)|not_b64|(and|or|xor|andn2|orn2|nand|nor|xnor)_b64)"
)  # fmt: skip


def _scalar(instruction: Instruction) -> Uses:
    operation, moves = SCALAR[instruction.operation], _MOVES.fullmatch(instruction.operation)
    results = [kind for kind in operation.results if kind != "scc"]
    rest = iter(instruction.operands[len(results) :])
    reads: list[Typed] = []
    for kind in operation.sources:
        if kind == "scc":
            reads.append(SCC)
        elif kind == "old":
            reads += one(instruction.operands[0], results[0])
        else:
            reads += one(next(rest), RAW if moves else kind)
    writes = one(instruction.operands[0], RAW if moves else results[0]) if results else []
    return reads, [*writes, SCC] if "scc" in operation.results else writes


def _matrix(instruction: Instruction, fnuz: bool) -> Uses:
    form = parse_form(instruction.operation)
    target, a, b, c = instruction.operands
    if form.kinds == "f8f6f4":
        kinds = [("fp8", "bf8")[int(instruction.modifiers.get(name, "0"), 0)] for name in ("cbsz", "blgp")]
    else:
        first, _, second = form.kinds.partition("_")
        kinds = [first, second or first]
    inputs = []
    for operand, kind in zip((a, b), kinds, strict=True):
        element = "f32" if kind == "xf32" else fp8_name(kind, fnuz)
        inputs += one(operand, element, 0, 4 * operand.count // element_bytes(element))
    if instruction.operation.startswith("v_smfmac"):
        return [*inputs, *one(c, "u32"), *one(target, form.out)], one(target, form.out)
    return [*inputs, *one(c, form.out)], one(target, form.out)


def _by_name(instruction: Instruction, fnuz: bool) -> Uses:
    """Packed arithmetic, conversions from and to FP8, moves between lanes."""
    operation, modifiers = instruction.operation, instruction.modifiers
    target, *sources = instruction.operands
    if match := re.fullmatch(r"v_cvt_(?:scalef32_)?(?:pk_)?(f32|f16|bf16)_(fp8|bf8)", operation):
        return _from_fp8(instruction, match[1], fp8_name(match[2], fnuz))
    if match := re.fullmatch(r"v_cvt_(?:scalef32_)?pk_(fp8|bf8)_(f32|f16|bf16)", operation):
        half = parse_list(modifiers.get("op_sel", "[0]"))[-1]
        reads = [t for o in sources for t in one(o, match[2], 0, 0 if match[2] == "f32" else 2)]
        return reads, one(target, fp8_name(match[1], fnuz), 2 * half, 2)
    if operation.startswith("v_fma_mix"):
        return _mixed(instruction)
    if match := re.fullmatch(r"v_pk_\w+_([fuib])(16|32)", operation):
        if match[2] == "32":
            kind = "f32" if match[1] == "f" else RAW
            return every(sources, kind), one(target, kind)
        element = match[1].replace("b", "u") + "16"
        return [t for o in sources for t in one(o, element, 0, 2)], one(target, element, 0, 2)
    if operation.startswith("v_bitop3"):
        kind = "u16" if operation.endswith("b16") else "u32"
        return every(sources, kind), one(target, kind)
    if operation.startswith("v_permlane"):  # they swap lanes of two registers
        return every(instruction.operands, RAW), every(instruction.operands, RAW)
    if operation in ("v_readlane_b32", "v_writelane_b32"):
        value, lane = sources
        return [*one(value, RAW), *one(lane, "u32")], one(target, RAW)
    return every(sources, RAW), one(target, RAW)  # v_readfirstlane, and what this module doesn't know


def _mixed(instruction: Instruction) -> Uses:
    """v_fma_mix_f32, v_fma_mixlo_f16, v_fma_mixhi_f16: op_sel_hi says which sources are halves."""
    target, *sources = instruction.operands
    is_half, part = (
        parse_list(instruction.modifiers.get(name, "[0,0,0]")) for name in ("op_sel_hi", "op_sel")
    )
    reads = [
        typed
        for operand, half, at in zip(sources, is_half, part, strict=True)
        for typed in (one(operand, "f16", at, 1) if half else one(operand, "f32"))
    ]
    if instruction.operation == "v_fma_mix_f32":
        return reads, one(target, "f32")
    return reads, one(target, "f16", int(instruction.operation == "v_fma_mixhi_f16"), 1)


def _from_fp8(instruction: Instruction, result: str, element: str) -> Uses:
    target, source, *_ = instruction.operands
    field = instruction.modifiers.get("src0_sel", "")
    if "_pk_" not in instruction.operation:
        byte = int(field.removeprefix("BYTE_")) if field.startswith("BYTE") else 0
        return one(source, element, byte, 1), one(target, result)
    half = int(field == "WORD_1") or parse_list(instruction.modifiers.get("op_sel", "[0]"))[0]
    return one(source, element, 2 * half, 2), one(target, result, 0, 0 if result == "f32" else 2)
