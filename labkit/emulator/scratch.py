"""Scratch: the private memory of a lane, where registers spill."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from labkit.emulator.access import store
from labkit.emulator.operands import Name, Register
from labkit.emulator.program import Instruction
from labkit.emulator.state import LANES, State

Step = Callable[[], object]
_FORM = re.compile(r"scratch_(load|store)_dword(?:x([234]))?")


def bind_scratch(state: State, instruction: Instruction) -> Step:
    """scratch_load/store_dword and wider at a fixed offset, the form that spills take."""
    match = _FORM.fullmatch(instruction.operation)
    if match is None:
        raise instruction.refuse("this scratch instruction is not implemented")
    instruction.allow("offset")
    loads, count = match[1] == "load", int(match[2] or 1)
    operands = list(instruction.operands)
    data = operands.pop(0 if loads else 1)
    offset = int(instruction.modifiers.get("offset", "0"), 0)
    if any(not isinstance(part, Name) or part.text != "off" for part in operands) or offset % 4:
        raise instruction.refuse("scratch at an address in a register")
    if not isinstance(data, Register):
        raise instruction.refuse("expected registers of data")
    file, first = getattr(state, data.file), offset // 4

    def step() -> None:
        mask = state.lane_mask()
        for k in range(count):
            word = _word(state, first + k)
            target, source = (file[data.index + k], word) if loads else (word, file[data.index + k])
            store(target, source, mask)

    return step


def _word(state: State, index: int) -> np.ndarray:
    """Dword `index` of every lane's scratch, [W, 64]; it comes to be when first touched."""
    return state.scratch.setdefault(index, np.zeros((state.waves, LANES), np.uint32))
