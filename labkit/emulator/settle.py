"""Give a type to bits that were only moved: that of the instruction that made them, or next uses them.

A load or store of a tensor moves the tensor's elements. Else the steps of a trace are followed forward, so
that a raw operand takes the type in which its register was written, then backward, so that one still open
takes the type in which it is used next. The raw operands of one instruction (v_mov, v_cndmask) are alike.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from labkit.emulator.operands import Register
from labkit.emulator.typed import RAW, Typed, element_bytes

Key = tuple[str, int]  # a register: its file and number
# An element, the first and the number of those in one register; a 64-bit value has the number 0 and counts
# its two registers: first is 0 or 1.
Kind = tuple[str, int, int]


class _Operand:
    """One operand of one step, its kind register by register; None where that is open."""

    def __init__(self, typed: Typed) -> None:
        self.typed, self.raw = typed, typed.element == RAW
        self.keys: list[Key] = typed.register.parts
        self.kinds: list[Kind | None] = [None] * len(self.keys) if self.raw else list(_kinds(typed))

    def fill(self, kinds: Iterable[Kind | None]) -> None:
        """Take these kinds where the own one is open, but for half a 64-bit value."""
        merged = [own or new for own, new in zip(self.kinds, kinds, strict=True)]
        for place, kind in enumerate(merged):
            if kind is not None and not _whole(merged, place, kind):
                merged[place] = None
        self.kinds = merged

    def become(self, element: str) -> None:
        """Where it is raw, as many of these elements as it holds."""
        if self.raw:
            self.kinds = list(_kinds(Typed(self.typed.register, element, 0, _per_register(element))))

    def settled(self) -> Iterator[Typed]:
        """What the operand is, as few pieces as its types allow."""
        if not self.raw:
            yield self.typed
            return
        place = 0
        while place < len(self.kinds):
            length = self._alike(place)
            yield self._piece(place, length)
            place += length

    def _alike(self, place: int) -> int:
        """How many registers from `place` make one piece."""
        kind = self.kinds[place]
        if kind is not None and kind[2] == 0:
            return 2
        if kind is not None and kind != _all_of(kind):
            return 1  # a value in its lower half only
        same = itertools.takewhile(lambda other: other == kind, self.kinds[place:])
        return len(list(same))

    def _piece(self, place: int, length: int) -> Typed:
        register, kind = Register(*self.keys[place], length), self.kinds[place]
        moved = min(self.typed.count, 4)  # bytes of a register that mean something
        if kind is None:
            return Typed(register, f"b{8 * moved}", 0, length)
        element, _, count = kind
        if count == 0:
            return Typed(register, element)
        return Typed(register, element, 0, length * max(1, min(count, moved // element_bytes(element))))


def _kinds(typed: Typed) -> Iterator[Kind]:
    count, size = typed.register.count, element_bytes(typed.element)
    for place in range(count):
        if size == 8:
            yield (typed.element, place % 2, 0)
        elif count == 1:
            yield (typed.element, typed.first, typed.count)
        else:
            yield (typed.element, 0, _per_register(typed.element))


def _per_register(element: str) -> int:
    return max(1, 4 // element_bytes(element))


def _whole(kinds: list[Kind | None], place: int, kind: Kind) -> bool:
    """Whether a 64-bit value has both its registers here."""
    element, first, count = kind
    other = place + 1 - 2 * first
    return count != 0 or (0 <= other < len(kinds) and kinds[other] == (element, 1 - first, 0))


def _all_of(kind: Kind) -> Kind:
    """As many elements as fit the register: who reads its upper half leaves the lower one to another."""
    element, _, count = kind
    return kind if count == 0 else (element, 0, _per_register(element))


def settle(
    steps: list[tuple[list[Typed], list[Typed]]], moved: list[str]
) -> list[tuple[list[Typed], list[Typed]]]:
    """What each step reads and writes, with no "raw" left: what nothing gave a type is b8, b16 or b32.

    moved: for each step the type of the tensor's elements that it loads or stores, "" where there is none.
    """
    opened = [tuple([_Operand(typed) for typed in side] for side in step) for step in steps]
    for step, element in zip(opened, moved, strict=True):
        for operand in (*step[0], *step[1]) if element else ():
            operand.become(element)
    made: dict[Key, Kind | None] = {}
    for reads, writes in opened:
        _fill(reads, made)
        _share(reads, writes)
        for operand in writes:
            for key, kind in zip(operand.keys, operand.kinds, strict=True):
                made[key] = _all_of(kind) if kind and kind[1] and kind[2] else kind
    used: dict[Key, Kind] = {}
    for reads, writes in reversed(opened):
        _fill(writes, used)
        _share(writes, reads)
        for operand in writes:
            for key in operand.keys:
                used.pop(key, None)
        for operand in reads:
            for key, kind in zip(operand.keys, operand.kinds, strict=True):
                if kind is not None:
                    used[key] = _all_of(kind)
    return [tuple([t for operand in side for t in operand.settled()] for side in step) for step in opened]


def _fill(operands: list[_Operand], known: dict) -> None:
    for operand in operands:
        if operand.raw:
            operand.fill([known.get(key) for key in operand.keys])


def _share(known: list[_Operand], others: list[_Operand]) -> None:
    """Give the raw operands of an instruction that moves bits what one of them is known to be."""
    known, others = ([operand for operand in side if operand.raw] for side in (known, others))
    alike = [*known, *others]
    if not known or not others or len({len(operand.kinds) for operand in alike}) != 1:
        return
    for source in known:
        for operand in alike:
            operand.fill(source.kinds)
