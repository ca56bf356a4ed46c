"""Where addresses come from: which instructions use a pointer that the kernel read from memory.

Such a pointer may lead to a tensor that is no argument of the launch (a grouped product takes an array of
pointers); one that comes from an argument may not. The program is followed along all its branches: a
register's origin is what its instruction's sources had.
"""

from __future__ import annotations

from labkit.emulator.operands import Constant, Register
from labkit.emulator.program import Instruction, Program
from labkit.emulator.waits import successors

# What a register's value was made from.
ARGUMENT, MEMORY, SEGMENT = 1, 2, 4  # SEGMENT: the address of the kernel arguments themselves
_Origins = dict[tuple[str, int], int]
_SPARES_FIRST = ("s_cmp", "s_bitcmp", "s_cbranch", "s_waitcnt", "s_barrier", "ds_write")


def pointers_from_memory(program: Program) -> set[int]:
    """Assembly lines of the accesses whose address comes from a loaded 64-bit value and no argument."""
    entering: dict[int, _Origins] = {program.entry: _at_start(program)}
    found: dict[int, bool] = {}
    work = [program.entry]
    while work:
        number = work.pop()
        origins = dict(entering[number])
        for instruction in program.blocks[number].instructions:
            if instruction.kind.startswith(("VMEM", "SMEM")) or instruction.operation.startswith("s_load"):
                found[instruction.line.number] = _address_origin(origins, instruction) == MEMORY
            _follow(program, origins, instruction)
        for successor in successors(program, number):
            known = entering.get(successor)
            merged = {r: (known or {}).get(r, 0) | origins.get(r, 0) for r in {*(known or {}), *origins}}
            if merged != known:
                entering[successor] = merged
                work.append(successor)
    return {line for line, yes in found.items() if yes}


def _pointer_words(program: Program) -> set[int]:
    """The words of the kernel arguments that hold a pointer to a tensor."""
    slots = [slot for slot in program.metadata.get("args", []) if slot["value_kind"] == "global_buffer"]
    return {slot["offset"] // 4 + k for slot in slots for k in (0, 1)}


def _at_start(program: Program) -> _Origins:
    """What the hardware has put into s0 and the following before the first instruction."""
    first = program.descriptor.get("user_sgpr_kernarg_preload_offset", 0)
    count = program.descriptor.get("user_sgpr_kernarg_preload_length", 0)
    pointers = _pointer_words(program)
    preloaded = {("s", 2 + k): ARGUMENT for k in range(count) if first + k in pointers}
    return {("s", 0): SEGMENT, ("s", 1): SEGMENT, **preloaded}


def _address_origin(origins: _Origins, instruction: Instruction) -> int:
    """Of all its registers but the data's: those of a store's data don't make its address."""
    operands = [operand for operand in instruction.operands if isinstance(operand, Register)]
    stores = "store" in instruction.operation or "atomic" in instruction.operation
    if instruction.operation.startswith("buffer"):
        operands = operands[1:]
    elif stores:
        # global_store address, data, base: the data is the second.
        operands = [operands[0], *operands[2:]]
    else:
        operands = operands[1:]
    return _union(origins, operands)


def _union(origins: _Origins, operands: list[Register]) -> int:
    result = 0
    for operand in operands:
        for k in range(operand.count):
            result |= origins.get((operand.file, operand.index + k), 0)
    return result


def _follow(program: Program, origins: _Origins, instruction: Instruction) -> None:
    operands = [operand for operand in instruction.operands if isinstance(operand, Register)]
    if not operands or instruction.operation.startswith(_SPARES_FIRST) or instruction.kind == "VMEM store":
        return
    target, sources = operands[0], operands[1:]
    numbers = [(target.file, target.index + k) for k in range(target.count)]
    if instruction.operation.startswith("s_load"):
        from_arguments = _union(origins, sources) == SEGMENT
        offset = instruction.operands[2]
        if from_arguments and isinstance(offset, Constant):
            pointers, first = _pointer_words(program), int(offset.value) // 4
            origins.update({r: ARGUMENT * (first + k in pointers) for k, r in enumerate(numbers)})
            return
    if "load" in instruction.operation:
        origins.update(dict.fromkeys(numbers, MEMORY if len(numbers) > 1 else 0))
        return
    origin = _union(origins, sources)
    if instruction.operation.startswith(("v_writelane", "v_fmac", "v_mac")):
        origin |= _union(origins, [target])
    origins.update(dict.fromkeys(numbers, origin))
