"""Where addresses come from: which instructions use a pointer that the kernel read from memory.

Such a pointer may lead to a tensor that is no argument of the launch (a grouped product takes an array of
pointers); one that comes from an argument may not. The program is followed along all its branches: a
register's origin is what its instruction's sources had.
"""

from __future__ import annotations

import functools
import operator

from labkit.emulator.dataflow import follow
from labkit.emulator.operands import Constant, Register
from labkit.emulator.program import Instruction, Program

# What a register's value was made from.
ARGUMENT, MEMORY, SEGMENT = 1, 2, 4  # SEGMENT: the address of the kernel arguments themselves
_Origins = dict[tuple[str, int], int]


def pointers_from_memory(program: Program) -> set[int]:
    """Assembly lines of the accesses whose address comes from a loaded 64-bit value and no argument."""
    found: dict[int, bool] = {}
    pointers = _pointer_words(program)

    def execute(block: int, instruction: Instruction, origins: _Origins) -> None:
        if instruction.kind.startswith(("VMEM", "SMEM")):
            found[instruction.line.number] = _address_origin(origins, instruction) == MEMORY
        if instruction.has_result:
            _assign(pointers, origins, instruction)

    follow(program, _at_start(program, pointers), execute, merge=operator.or_)
    return {line for line, yes in found.items() if yes}


def _pointer_words(program: Program) -> set[int]:
    """The words of the kernel arguments that hold a pointer to a tensor."""
    slots = [slot for slot in program.metadata.get("args", []) if slot["value_kind"] == "global_buffer"]
    return {slot["offset"] // 4 + k for slot in slots for k in (0, 1)}


def _at_start(program: Program, pointers: set[int]) -> _Origins:
    """What the hardware has put into s0 and the following before the first instruction."""
    first = program.descriptor.get("user_sgpr_kernarg_preload_offset", 0)
    count = program.descriptor.get("user_sgpr_kernarg_preload_length", 0)
    preloaded = {("s", 2 + k): ARGUMENT for k in range(count) if first + k in pointers}
    return {("s", 0): SEGMENT, ("s", 1): SEGMENT, **preloaded}


def _address_origin(origins: _Origins, instruction: Instruction) -> int:
    """Of its registers without its result or data: those don't make the address."""
    operands = [operand for operand in instruction.operands if isinstance(operand, Register)]
    if instruction.operation.startswith("buffer"):
        data_first = "lds" not in instruction.modifiers
        return _union(origins, operands[data_first:])
    operands = operands[instruction.has_result :]
    if instruction.kind in ("VMEM store", "VMEM atomic"):
        del operands[1]  # address, data, base
    return _union(origins, operands)


def _union(origins: _Origins, operands: list[Register]) -> int:
    parts = [part for operand in operands for part in operand.parts]
    return functools.reduce(operator.or_, (origins.get(part, 0) for part in parts), 0)


def _assign(pointers: set[int], origins: _Origins, instruction: Instruction) -> None:
    target, *sources = [operand for operand in instruction.operands if isinstance(operand, Register)]
    offset = instruction.operands[-1]
    if instruction.kind == "SMEM" and _union(origins, sources) == SEGMENT and isinstance(offset, Constant):
        first = int(offset.value) // 4
        origins.update({part: ARGUMENT * (first + k in pointers) for k, part in enumerate(target.parts)})
        return
    if instruction.kind in ("SMEM", "VMEM load"):
        origin = MEMORY if target.count > 1 else 0
    else:
        keeps = instruction.operation.startswith(("v_writelane", "v_fmac", "v_mac"))
        origin = _union(origins, [target, *sources] if keeps else sources)
    origins.update(dict.fromkeys(target.parts, origin))
