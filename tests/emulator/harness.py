"""Run single instructions on chosen register values, for tests."""

from __future__ import annotations

import numpy as np

from labkit.compiler.assembly import parse_lines
from labkit.emulator.global_memory import Context
from labkit.emulator.machine import bind
from labkit.emulator.memory import Allocation, Memory
from labkit.emulator.operands import EXEC
from labkit.emulator.program import parse_instruction
from labkit.emulator.state import State

ALL = (1 << 64) - 1


def make_state(waves: int = 1, fnuz: bool = True, lds_bytes: int = 4096) -> State:
    """A state with 64 vector and 64 accumulation registers, every lane on."""
    state = State(waves, waves, 64, 64, lds_bytes, fnuz)
    state.reset()
    return state


def set_exec(state: State, mask: int) -> None:
    """Turn on the lanes whose bits are set, in every wave."""
    state.s[EXEC], state.s[EXEC + 1] = mask & 0xFFFFFFFF, mask >> 32
    state.exec_changed()


def set_pair(state: State, index: int, value: int) -> None:
    """A 64-bit value in two scalar registers of every wave."""
    state.s[index], state.s[index + 1] = value & 0xFFFFFFFF, value >> 32


def pair(state: State, index: int) -> int:
    """The 64-bit value of two scalar registers of wave 0."""
    return int(state.s[index][0, 0]) | int(state.s[index + 1][0, 0]) << 32


def execute(state: State, text: str, memory: list[np.ndarray] = ()) -> list[tuple]:
    """Execute one or more lines of assembly; returns (addresses, size, lanes) of each memory access.

    memory: uint8 arrays (sizes multiples of 4) that global instructions may touch.
    """
    context = Context(Memory([Allocation.of(f"m{k}", data) for k, data in enumerate(memory)]))
    accesses: list[tuple] = []
    with np.errstate(all="ignore"):
        for line in parse_lines(text):
            step = bind(state, parse_instruction(line), context, lambda *access: accesses.append(access))
            step()
    return accesses


def lanes(values: list, dtype: str) -> np.ndarray:
    """Values repeated over the 64 lanes, as the bits of a register [1, 64]."""
    filled = np.resize(np.array(values, dtype), 64)
    bits = filled.view(f"u{filled.itemsize}")
    return bits.astype(np.uint32)[None, :] if filled.itemsize < 4 else bits[None, :]
