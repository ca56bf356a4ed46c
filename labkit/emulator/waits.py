"""Missing s_waitcnt: registers used while a load is to fill them, barriers reached while LDS is written.

A load returns later; the program must wait for it with s_waitcnt. vmcnt counts vector memory operations, and
those come back in order, so `vmcnt(n)` says that all but the latest n have. lgkmcnt counts LDS operations,
in order too, and scalar loads, which come back in any order, so only `lgkmcnt(0)` settles those (CDNA 3 ISA
guide, "Manually inserted wait states and s_waitcnt"). The program is followed along all its branches, as
LLVM does when it inserts the waits; what comes out depends on no data.

s_barrier waits for waves, not for their memory: a write to LDS that is to be seen behind it needs lgkmcnt(0)
first (LLVM, "Memory Model gfx942": release at workgroup scope).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from labkit.emulator.dataflow import follow
from labkit.emulator.operands import Name, Register
from labkit.emulator.program import Instruction, Program

_COUNT = re.compile(r"(vmcnt|lgkmcnt)\((\d+)\)")
READS_ONLY = re.compile(r"ds_(read|b?permute|swizzle|nop)")
_LDS_WRITE = ("LDS write", 0)  # stands among the registers for the latest write to LDS
# The largest value of each counter (6 and 4 bits). An operation waits to issue while its counter is full, so
# one with as many younger ones behind it has come back; LLVM leaves such waits out.
_FULL = {"vm": 63, "lds": 15}
_NEVER = float("inf")

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
    """`instruction` uses `register` while `load` may still be filling it.

    register None: `instruction` is a barrier, and the LDS write `load` may still be on its way.
    """

    instruction: Instruction
    load: Instruction
    register: str | None


def find_hazards(program: Program) -> dict[int, list[Hazard]]:
    """The missing waits of a program, by the number of the block that holds the use."""
    found: dict[int, dict[int, Hazard]] = {}

    def execute(block: int, instruction: Instruction, pending: _Pending) -> None:
        for hazard in _follow(pending, instruction):
            found.setdefault(block, {}).setdefault(instruction.line.number, hazard)

    follow(program, {}, execute, merge=lambda one, other: min(one, other, key=lambda flight: flight.younger))
    return {block: list(hazards.values()) for block, hazards in found.items()}


def _follow(pending: _Pending, instruction: Instruction) -> list[Hazard]:
    """Execute one instruction on `pending`; returns the hazards that it meets."""
    if instruction.operation == "s_waitcnt":
        _wait(pending, instruction)
        return []
    if instruction.kind == "barrier":
        flight = pending.pop(_LDS_WRITE, None)
        return [Hazard(instruction, flight.load, None)] if flight else []
    queue = _queue(instruction)
    fills = instruction.operands[0].parts if queue and instruction.has_result else []
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
                pending[register] = _InFlight(queue, flight.younger + 1, flight.load)
                if flight.younger + 1 == _FULL.get(queue):
                    del pending[register]
        pending.update(dict.fromkeys(fills, _InFlight(queue, 0, instruction)))
    if queue == "lds" and not READS_ONLY.match(instruction.operation):
        pending[_LDS_WRITE] = _InFlight(queue, 0, instruction)
    return hazards


def _wait(pending: _Pending, instruction: Instruction) -> None:
    limits = {name: int(count) for name, count in _COUNT.findall(instruction.line.text)}
    if not limits and not any(isinstance(operand, Name) for operand in instruction.operands):
        raise instruction.refuse("its counts are expected by name")
    in_flight = {
        "vm": limits.get("vmcnt", _NEVER),
        "lds": limits.get("lgkmcnt", _NEVER),
        "scalar": 0 if limits.get("lgkmcnt") == 0 else _NEVER,
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


def _named(instruction: Instruction) -> list[tuple[str, int]]:
    return [
        part for operand in instruction.operands if isinstance(operand, Register) for part in operand.parts
    ]
