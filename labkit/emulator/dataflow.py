"""Follow a program along all its branches, with what is known of each register."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from labkit.emulator.program import Instruction, Program, successors

Known = TypeVar("Known")


def follow(
    program: Program,
    at_start: dict[tuple[str, int], Known],
    execute: Callable[[int, Instruction, dict[tuple[str, int], Known]], None],
    merge: Callable[[Known, Known], Known],
) -> None:
    """Call `execute(block, instruction, known)` in program order until nothing new comes out.

    known maps (file, number) of a register to what is known of it; `execute` changes it. A block that several
    ways lead to starts with what any of them knows; `merge` settles a register that two of them know.
    """
    entering = {program.entry: at_start}
    work = {program.entry}
    while work:
        # The earliest block first: what several ways bring together is then followed once, not once for each.
        number = min(work)
        work.remove(number)
        known = dict(entering[number])
        for instruction in program.blocks[number].instructions:
            execute(number, instruction, known)
        for successor in successors(program, number):
            before = entering.get(successor)
            after = _merged(before or {}, known, merge)
            if after != before:
                entering[successor] = after
                work.add(successor)


def _merged(one: dict, other: dict, merge: Callable) -> dict:
    return {**one, **{key: merge(one[key], value) if key in one else value for key, value in other.items()}}
