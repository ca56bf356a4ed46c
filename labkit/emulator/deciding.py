"""What decides which way a wave goes: the registers that its branches depend on.

They are found by following the way that the wave has gone backwards. What only grows along it, such as a sum,
is not among them.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from labkit.emulator.operands import EXEC, Register
from labkit.emulator.program import Instruction
from labkit.emulator.typed import RAW, Typed, element_bytes
from labkit.emulator.uses import uses
from labkit.emulator.waits import READS_ONLY

Part = tuple[str, int]  # (file, number) of a register
_LANES = ("VALU", "MFMA", "VMEM load", "VMEM store", "VMEM atomic", "LDS")  # what EXEC has a say in
_PARTLY = re.compile("v_writelane|v_permlane|.*d16")  # these leave lanes or halves as they were
_MEMORY = ("SMEM", "VMEM load", "VMEM atomic", "LDS")


@dataclass(frozen=True)
class Passed:
    """An instruction of the way, and whether all 64 lanes were on. fnuz: FP8 is FNUZ (gfx942)."""

    instruction: Instruction
    all_lanes: bool
    fnuz: bool

    @functools.cached_property
    def effects(self) -> tuple[set[Part], set[Part], set[Part]] | None:
        """What it reads, what it writes, and of that, the registers of which nothing old is left.

        None where it is not known where its result comes from.
        """
        instruction = self.instruction
        sources, results = uses(instruction, self.fnuz)
        if instruction.has_result and not results:
            return None
        reads = {part for typed in sources for part in typed.register.parts}
        if instruction.kind in _LANES:
            reads |= set(Register("s", EXEC, 2).parts)
        whole = (
            self.all_lanes and _all_lanes_written(instruction) and not _PARTLY.match(instruction.operation)
        )
        replaces = {
            part
            for typed in results
            for part in typed.register.parts
            if typed.register.file in ("s", "scc") or (whole and _fills(typed))
        }
        return reads, {part for typed in results for part in typed.register.parts}, replaces


def deciding(path: list[Passed], forever: bool) -> tuple[set[Part], list[int]] | None:
    """The registers whose values at the start of `path` decide which way its branches go.

    forever: the path is a loop's, so what decides its next turns counts, too; and where something loaded
    does, so does all that is stored, which may be what is loaded there next. Also gives the places in the
    path of the loads that take part. None where that cannot be told.
    """
    if any(passed.effects is None for passed in path):
        return None
    found = _followed(path, forever, through_memory=False)
    if not (forever and found[1]):
        return found
    if any("lds" in passed.instruction.modifiers for passed in path):
        return None  # what goes from memory to LDS is in no register
    return _followed(path, forever, through_memory=True)


def _followed(path: list[Passed], forever: bool, through_memory: bool) -> tuple[set[Part], list[int]]:
    """`deciding`, with the stores in it or without."""
    live: set[Part] = set()
    while True:
        now, loads = set(live), []
        for number in range(len(path) - 1, -1, -1):
            instruction, (reads, writes, replaces) = path[number].instruction, path[number].effects
            stores = through_memory and _stores(instruction)
            if instruction.kind == "branch" or stores or writes & now:
                now = now - replaces | reads if writes & now else now | reads
                if loads_something(instruction):
                    loads.append(number)
        if now <= live or not forever:
            return now, loads
        live |= now


def _stores(instruction: Instruction) -> bool:
    if instruction.kind == "LDS":
        return not READS_ONLY.match(instruction.operation)
    return instruction.kind in ("VMEM store", "VMEM atomic")


def _all_lanes_written(instruction: Instruction) -> bool:
    """Not so where DPP masks rows away, or finds no source for a lane."""
    if instruction.encoding != "dpp":
        return True
    masks = (instruction.modifiers.get(name, "0xf") for name in ("row_mask", "bank_mask"))
    return set(masks) == {"0xf"} and not {"bound_ctrl", "quad_perm"}.isdisjoint(instruction.modifiers)


def _fills(typed: Typed) -> bool:
    """Whether all bytes of the registers are written."""
    size = 1 if typed.element == RAW else element_bytes(typed.element)
    return size * typed.count == 4 * typed.register.count


def loads_something(instruction: Instruction) -> bool:
    """Whether its result comes from memory, of whatever kind."""
    return instruction.kind in _MEMORY and instruction.has_result
