"""The memory of one launch, and which part of it each instruction may touch with no question asked.

An address that starts at an argument belongs in that argument's tensor: the same address is good for one
instruction and a fault for the next.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from labkit.emulator.arguments import TensorArgument
from labkit.emulator.memory import Allocation, Memory, OutOfRange
from labkit.emulator.program import Instruction, Program
from labkit.emulator.provenance import Origin, address_origins

_UNKNOWN = Origin(frozenset(), anything=True, segment=False)


class LaunchMemory(Memory):
    """All storages behind the tensor arguments, the kernel arguments themselves, and tables beside the code.

    checked: whether instructions are held to their own arguments; else each may touch everything here.
    """

    def __init__(
        self, program: Program, arguments: list[TensorArgument], kernarg: np.ndarray, checked: bool = True
    ) -> None:
        self._segment = Allocation.of("kernel arguments", kernarg)
        storages = _merged((a.storage_base, a.storage_end, a.name) for a in arguments)
        tables = [Allocation.of(name, data) for name, data in program.tables.items()]
        self._own = [self._segment, *tables]
        super().__init__([*storages, *self._own])
        self._arguments = {argument.number: argument for argument in arguments}
        self._checked, self._origins = checked, address_origins(program)
        self._views: dict[Origin, Memory] = {}
        self._widened: dict[int, Memory] = {}  # by assembly line

    @property
    def tensors(self) -> list[Allocation]:
        """Those allocations that are tensors, with the ones found through memory."""
        return [a for a in self.allocations if not any(a is own for own in self._own)]

    def origin(self, instruction: Instruction) -> Origin:
        """What the addresses of an access are made from."""
        origin = self._origins.get(instruction.line.number, _UNKNOWN)
        # An argument with no tensor behind it is a number that the caller passed as a pointer.
        return origin if origin.arguments <= self._arguments.keys() else _UNKNOWN

    def of(self, instruction: Instruction) -> Memory:
        """The memory that an access may touch: that of the arguments which its address may start at.

        A view's own bytes, or, once a finding has said that it is left, its whole storage.
        """
        origin = self.origin(instruction)
        if origin.anything or not self._checked:
            return self
        if instruction.line.number in self._widened:
            return self._widened[instruction.line.number]
        if origin not in self._views:
            self._views[origin] = self._part(origin, [(a.base, a.end, a.name) for a in self._all(origin)])
        return self._views[origin]

    def permitted(self, instruction: Instruction) -> list[tuple[int, int]]:
        """The address ranges [base, end) that an access is held to; none where it may touch everything here.

        The list may grow in the course of a launch, which `changes` tells.
        """
        memory = self.of(instruction)
        return [] if memory is self else [(a.base, a.end) for a in memory.allocations]

    def beyond_view(self, error: OutOfRange, instruction: Instruction) -> np.ndarray:
        """Of the lanes of `error`, those that left a view but not its storage, like error.lanes."""
        inside = np.zeros(error.lanes.shape, bool)
        if self._checked and instruction.line.number not in self._widened:
            for a in self._all(self.origin(instruction)):
                last = np.uint64(a.storage_end - error.size)
                inside |= (error.addresses >= np.uint64(a.storage_base)) & (error.addresses <= last)
        return inside & error.lanes

    def widen(self, instruction: Instruction) -> None:
        """From now on the instruction may touch the storages that its views are of."""
        origin = self.origin(instruction)
        self.changes += 1
        storages = [(a.storage_base, a.storage_end, a.name) for a in self._all(origin)]
        self._widened[instruction.line.number] = self._part(origin, storages)

    def _all(self, origin: Origin) -> list[TensorArgument]:
        return [self._arguments[number] for number in origin.arguments]

    def _part(self, origin: Origin, ranges: list[tuple[int, int, str]]) -> Memory:
        return Memory([*_merged(ranges), self._segment] if origin.segment else _merged(ranges))


def _merged(ranges: Iterable[tuple[int, int, str]]) -> list[Allocation]:
    """(start, end, name) as allocations, those that overlap as one with all their names."""
    merged: list[tuple[int, int, str]] = []
    for start, end, name in sorted(ranges):
        if merged and start < merged[-1][1]:
            first, last, names = merged.pop()
            merged.append((first, max(last, end), names if name in names.split("/") else f"{names}/{name}"))
        else:
            merged.append((start, end, name))
    return [Allocation.at(name, start, end - start) for start, end, name in merged]


def nearest(memory: Memory, address: int) -> tuple[str, str]:
    """The allocation nearest to `address`, and where the address lies beside it."""
    if not memory.allocations:
        return "", "and the launch has no tensors"
    inside = memory.find(address)
    if inside is not None:
        return inside.name, f"and reaches past the end of `{inside.name}` ({inside.bytes.size:,} bytes)"
    before = [a for a in memory.allocations if a.end <= address]
    after = [a for a in memory.allocations if a.base > address]
    below = max(before, key=lambda a: a.end, default=None)
    above = min(after, key=lambda a: a.base, default=None)
    if below is not None and (above is None or address - below.end <= above.base - address):
        past = f"{address - below.end:,} bytes past the end of"
        return below.name, f"{past} `{below.name}` ({below.bytes.size:,} bytes)"
    assert above is not None  # the address is in none, so one lies on either side of it
    return above.name, f"{above.base - address:,} bytes before the start of `{above.name}`"
