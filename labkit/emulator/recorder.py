"""The observer that keeps what one wave executed."""

from __future__ import annotations

import numpy as np

from labkit.emulator.memory import Memory
from labkit.emulator.operands import EXEC
from labkit.emulator.program import Instruction
from labkit.emulator.settle import settle
from labkit.emulator.state import State
from labkit.emulator.steps import Access, Step, Value
from labkit.emulator.typed import BIT, Typed
from labkit.emulator.uses import uses

# Triton's names of types -> what a register that holds such elements is read as. A bool is a byte in memory.
_ELEMENTS = {
    **{f"fp{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"{letter}{bits}": f"{letter}{bits}" for letter in "iu" for bits in (8, 16, 32, 64)},
    "i1": "u8",
    "bf16": "bf16",
    "fp8e4b8": "e4m3fnuz",
    "fp8e5b16": "e5m2fnuz",
    "fp8e4nv": "e4m3fn",
    "fp8e5": "e5m2",
}


class StepRecorder:
    """Keeps the steps of the wave number `wave` of a workgroup. fnuz: FP8 is FNUZ (gfx942)."""

    def __init__(self, wave: int, fnuz: bool) -> None:
        self.wave, self._fnuz = wave, fnuz
        self._uses: dict[int, tuple[list[Typed], list[Typed]]] = {}  # by assembly line
        self._seen: list[tuple] = []
        self._accesses: list[Access] = []

    def __call__(self, moment: str, instruction: Instruction, state: State) -> None:
        if state.group is not None and not state.group[self.wave, 0]:
            return
        line = instruction.line.number
        if line not in self._uses:
            self._uses[line] = uses(instruction, self._fnuz)
        reads, writes = self._uses[line]
        if moment == "before":
            low, high = (int(state.s[EXEC + k][self.wave, 0]) for k in (0, 1))
            self._accesses = []
            self._before = low | high << 32, self._bits(state, reads)
        else:
            exec_mask, before = self._before
            after = self._bits(state, writes)
            self._seen.append((instruction, exec_mask, before, after, self._accesses))

    def witness(self, memory: Memory | None, addresses: np.ndarray, size: int, lanes: np.ndarray) -> None:
        """An access of all waves of the workgroup that execute now."""
        self._accesses.append(Access.of(memory, addresses[self.wave], size, lanes[self.wave]))

    def _bits(self, state: State, operands: list[Typed]) -> dict[tuple[str, int], np.ndarray]:
        """The bits of each register, by file and number."""
        return {
            part: state.scc[self.wave].astype(np.uint32)
            if typed.element == BIT
            else getattr(state, part[0])[part[1]][self.wave].copy()
            for typed in operands
            for part in typed.register.parts
        }

    def steps(self, types: dict[str, str]) -> list[Step]:
        """What was recorded, each operand with its type. types: argument name -> its type in Triton."""
        used = [self._uses[instruction.line.number] for instruction, *_ in self._seen]
        moved = [_moved(accesses, types) for *_, accesses in self._seen]
        return [
            Step(
                number,
                instruction,
                exec_mask,
                [_value(typed, before) for typed in reads],
                [_value(typed, after) for typed in writes],
                accesses,
            )
            for number, ((instruction, exec_mask, before, after, accesses), (reads, writes)) in enumerate(
                zip(self._seen, settle(used, moved), strict=True)
            )
        ]


def _value(typed: Typed, bits: dict[tuple[str, int], np.ndarray]) -> Value:
    return Value(typed, np.stack([bits[part] for part in typed.register.parts]))


def _moved(accesses: list[Access], types: dict[str, str]) -> str:
    """The type of the elements that a step moves from or to a tensor, "" where that is not known."""
    for access in accesses:
        for tensor in access.tensors[access.lanes]:
            return _ELEMENTS.get(types.get(tensor, "").removeprefix("*"), "")
    return ""
