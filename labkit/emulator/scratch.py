"""Scratch: the private memory of a lane, where registers spill."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from labkit.emulator.access import reader, store
from labkit.emulator.operands import Name, Operand, Register
from labkit.emulator.program import Instruction
from labkit.emulator.state import LANES, LaneMask, State

Step = Callable[[], object]
_FORM = re.compile(r"scratch_(load|store)_dword(?:x([234]))?")


def bind_scratch(state: State, instruction: Instruction) -> Step:
    """scratch_load/store_dword and wider, at an offset and what a vector and a scalar register add to it."""
    match = _FORM.fullmatch(instruction.operation)
    if match is None:
        raise instruction.refuse("this scratch instruction is not implemented")
    instruction.allow("offset")
    loads, count = match[1] == "load", int(match[2] or 1)
    operands = list(instruction.operands)
    data = operands.pop(0 if loads else 1)
    if not isinstance(data, Register):
        raise instruction.refuse("expected registers of data")
    offset = int(instruction.modifiers.get("offset", "0"), 0)
    file, find = getattr(state, data.file), _addresses(state, instruction, operands, offset)

    def step() -> None:
        mask = state.lane_mask()
        places = [(first, lanes) for first, lanes in find(mask) if lanes.count]
        if loads:
            # All is read before any is written: the results may overlap the address.
            words = [[_word(state, first + k).copy() for k in range(count)] for first, _ in places]
        for number, (first, lanes) in enumerate(places):
            for k in range(count):
                if loads:
                    store(file[data.index + k], words[number][k], lanes)
                else:
                    store(_word(state, first + k), file[data.index + k], lanes)

    return step


def _addresses(
    state: State, instruction: Instruction, operands: list[Operand], offset: int
) -> Callable[[LaneMask], list[tuple[int, LaneMask]]]:
    """A function that gives each dword that active lanes address, and the lanes that do."""
    registers = [operand for operand in operands if not (isinstance(operand, Name) and operand.text == "off")]
    reads = [reader(state, instruction, operand, "u32") for operand in registers]
    if not reads and offset % 4 == 0:
        return lambda mask: [(offset // 4, mask)]

    def find(mask: LaneMask) -> list[tuple[int, LaneMask]]:
        address = sum((read() for read in reads), np.uint32(offset & 0xFFFFFFFF))
        address = np.broadcast_to(address, mask.lanes.shape)
        used = np.unique(address[mask.lanes])
        if (used % 4).any():
            raise instruction.refuse("its address is not a multiple of 4")
        if used.size == 1:
            return [(int(used[0]) // 4, mask)]
        return [(int(at) // 4, LaneMask.of(mask.lanes & (address == at))) for at in used]

    return find


def _word(state: State, index: int) -> np.ndarray:
    """Dword `index` of every lane's scratch, [W, 64]; it comes to be when first touched."""
    return state.scratch.setdefault(index, np.zeros((state.waves, LANES), np.uint32))
