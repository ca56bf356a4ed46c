"""Missing s_waitcnt: uses of a register that a load still in flight is to fill.

A load returns later; the program must wait for it with s_waitcnt. vmcnt counts vector memory operations, and
those come back in order, so `vmcnt(n)` says that all but the latest n have. lgkmcnt counts LDS operations,
in order too, and scalar loads, which come back in any order, so only `lgkmcnt(0)` settles those (CDNA 3 ISA
guide, "Manually inserted wait states and s_waitcnt"). The program is followed along all its branches, as
LLVM does when it inserts the waits; what comes out depends on no data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from labkit.emulator.operands import Name, Register
from labkit.emulator.program import Instruction, Program, branch_target

_COUNT = re.compile(r"(vmcnt|lgkmcnt)\((\d+)\)")
_MOST = 64  # vmcnt has 6 bits: an operation older than that has come back

# (file, number) of a register -> what is to fill it. Two ways to one place merge by the younger load.
_Pending = dict[tuple[str, int], "_InFlight"]


@dataclass(frozen=True, slots=True)
class _InFlight:
    """A load: its queue ("vm", "lds", "scalar") and how many operations of that queue are younger."""

    queue: str
    younger: int
    load: Instruction


@dataclass(frozen=True, slots=True)
class Hazard:
    """`instruction` uses `register` while `load` may still be filling it."""

    instruction: Instruction
    load: Instruction
    register: str


def find_hazards(program: Program) -> dict[int, list[Hazard]]:
    """The missing waits of a program, by the number of the block that holds the use."""
    entering: dict[int, _Pending] = {program.entry: {}}
    found: dict[int, dict[int, Hazard]] = {}
    work = [program.entry]
    while work:
        number = work.pop()
        pending, here = dict(entering[number]), found.setdefault(number, {})
        for instruction in program.blocks[number].instructions:
            for hazard in _follow(pending, instruction):
                here.setdefault(instruction.line.number, hazard)
        for successor in successors(program, number):
            if successor not in entering:
                entering[successor] = dict(pending)
                work.append(successor)
            elif _merge(entering[successor], pending):
                work.append(successor)
    return {number: list(hazards.values()) for number, hazards in found.items() if hazards}


def successors(program: Program, number: int) -> Iterator[int]:
    """The blocks that may run after block `number`."""
    last = program.blocks[number].instructions[-1]
    if last.operation == "s_endpgm":
        return
    if last.operation == "s_branch" or last.operation.startswith("s_cbranch"):
        yield program.block_of_label[branch_target(last)]
    if last.operation != "s_branch" and number + 1 < len(program.blocks):
        yield number + 1


def _merge(into: _Pending, other: _Pending) -> bool:
    """Add what another way here leaves in flight; returns whether that is news."""
    news = False
    for register, flight in other.items():
        if register not in into or flight.younger < into[register].younger:
            into[register] = flight
            news = True
    return news


def _follow(pending: _Pending, instruction: Instruction) -> list[Hazard]:
    """Execute one instruction on `pending`; returns the hazards that it meets."""
    if instruction.operation == "s_waitcnt":
        _wait(pending, instruction)
        return []
    queue = _queue(instruction)
    fills = _filled(instruction) if queue else []
    hazards = []
    for register in _named(instruction):
        flight = pending.get(register)
        # Loads of one queue that fill the same register come back in order.
        if flight is None or (register in fills and flight.queue == queue != "scalar"):
            continue
        del pending[register]
        hazards.append(Hazard(instruction, flight.load, "".join(map(str, register))))
    if queue:
        for register, flight in list(pending.items()):
            if flight.queue == queue:
                pending[register] = _InFlight(queue, min(flight.younger + 1, _MOST), flight.load)
        pending.update(dict.fromkeys(fills, _InFlight(queue, 0, instruction)))
    return hazards


def _wait(pending: _Pending, instruction: Instruction) -> None:
    limits = {name: int(count) for name, count in _COUNT.findall(instruction.line.text)}
    if not limits and not any(isinstance(operand, Name) for operand in instruction.operands):
        raise instruction.refuse("its counts are expected by name")
    in_flight = {
        "vm": limits.get("vmcnt", _MOST + 1),
        "lds": limits.get("lgkmcnt", _MOST + 1),
        "scalar": 0 if limits.get("lgkmcnt") == 0 else _MOST + 1,
    }
    for register, flight in list(pending.items()):
        if flight.younger >= in_flight[flight.queue]:
            del pending[register]


def _queue(instruction: Instruction) -> str:
    """The queue that an instruction's completion is counted in, "" for none."""
    if instruction.kind.startswith("VMEM") or instruction.operation.startswith(("scratch_", "buffer_wbl2")):
        return "vm"
    if instruction.operation.startswith("ds_"):
        return "lds"
    return "scalar" if instruction.operation.startswith("s_load") else ""


def _filled(instruction: Instruction) -> list[tuple[str, int]]:
    """The registers that a memory instruction fills when it comes back."""
    operation = instruction.operation
    fills = "load" in operation and "lds" not in instruction.modifiers
    fills |= "atomic" in operation and "sc0" in instruction.modifiers
    fills |= operation.startswith("ds_") and re.search("read|rtn|permute|swizzle", operation) is not None
    return _registers(instruction.operands[0]) if fills else []


def _named(instruction: Instruction) -> list[tuple[str, int]]:
    return [register for operand in instruction.operands for register in _registers(operand)]


def _registers(operand: object) -> list[tuple[str, int]]:
    if not isinstance(operand, Register):
        return []
    return [(operand.file, operand.index + k) for k in range(operand.count)]
