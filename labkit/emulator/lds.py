"""LDS (local data share): ds_ instructions, on the memory that a workgroup's waves have in common."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from labkit.emulator.access import reader, register, store, store_half
from labkit.emulator.atomics import ATOMICS
from labkit.emulator.lds_memory import lds_of
from labkit.emulator.operands import Register
from labkit.emulator.program import Instruction
from labkit.emulator.state import State

Step = Callable[[], object]
PLAIN = re.compile(r"ds_(read|write)_(b32|b64|b96|b128|b8|b16|u8|i8|u16|i16)(?:_(d16_hi|d16))?")
PAIRED = re.compile(r"ds_(read|write)2(st64)?_b(32|64)")
_ATOMIC = re.compile(
    r"ds_(add|sub|min|max|and|or|xor|inc|dec|cmpst|wrxchg)_(rtn_)?(u32|i32|b32|f32|u64|i64|b64)"
)
_SIGNED = {"i8": np.int8, "i16": np.int16}


def bind_lds(state: State, instruction: Instruction) -> Step:
    """A step for a ds_ read, write or atomic."""
    if match := PLAIN.fullmatch(instruction.operation):
        return _bind_plain(state, instruction, *match.groups())
    if match := PAIRED.fullmatch(instruction.operation):
        return _bind_paired(state, instruction, *match.groups())
    if match := _ATOMIC.fullmatch(instruction.operation):
        return _bind_atomic(state, instruction, *match.groups())
    raise instruction.refuse("this LDS instruction is not implemented")


def _transfer(
    state: State,
    instruction: Instruction,
    kind: str,
    parts: list[tuple[int, int, Register]],
    address: Callable[[], np.ndarray],
    shift: int = 0,
) -> Callable[[], list[np.ndarray]]:
    """Move words between registers and LDS. parts: (byte offset, size in bytes, registers).

    The function returned gives the words that a read found. A write takes registers shifted right by
    `shift` bits.
    """
    lds = lds_of(state)

    def move() -> list[np.ndarray]:
        mask = state.lane_mask()
        base = np.asarray(address())
        loaded: list[np.ndarray] = []
        for offset, size, data in parts:
            at = base + np.uint32(offset)
            if kind == "read":
                loaded += lds.read(instruction, at, size, mask)
            else:
                count = (size + 3) // 4
                words = [register(state, data, k) >> np.uint32(shift) for k in range(count)]
                lds.write(instruction, at, size, mask, words)
        return loaded

    return move


def _bind_plain(state: State, instruction: Instruction, kind: str, width: str, half: str | None) -> Step:
    instruction.allow("offset")
    size = int(width[1:]) // 8
    offset = int(instruction.modifiers.get("offset", "0"), 0)
    address_at = 1 if kind == "read" else 0
    address = reader(state, instruction, instruction.operands[address_at], "u32")
    data = instruction.operands[1 - address_at]
    high = half == "d16_hi"
    move = _transfer(
        state, instruction, kind, [(offset, size, data)], address, 16 * (high and kind == "write")
    )
    if kind == "write":
        return move
    signed = _SIGNED.get(width)

    def step() -> None:
        words = move()
        mask = state.lane_mask()
        if signed:
            words = [words[0].astype(f"u{size}").view(signed).astype(np.int32).view(np.uint32)]
        for k, word in enumerate(words):
            if half:
                store_half(register(state, data), int(high), word.astype(np.uint16), mask)
            else:
                store(register(state, data, k), word, mask)

    return step


def _bind_paired(state: State, instruction: Instruction, kind: str, strided: str, bits: str) -> Step:
    """ds_read2/write2: two elements; offsets count elements, or 64 of them with st64."""
    instruction.allow("offset0", "offset1")
    size = int(bits) // 8
    unit = size * (64 if strided else 1)
    offsets = [int(instruction.modifiers.get(f"offset{k}", "0"), 0) * unit for k in (0, 1)]
    operands = instruction.operands
    if kind == "write":
        address = reader(state, instruction, operands[0], "u32")
        parts = [(offsets[k], size, operands[1 + k]) for k in (0, 1)]
        return _transfer(state, instruction, kind, parts, address)
    address = reader(state, instruction, operands[1], "u32")
    move = _transfer(state, instruction, kind, [(offset, size, operands[0]) for offset in offsets], address)

    def step() -> None:
        words = move()  # before any write: the result may contain the address register
        for k, word in enumerate(words):
            store(register(state, operands[0], k), word, state.lane_mask())

    return step


def _bind_atomic(state: State, instruction: Instruction, name: str, returns: str, kind: str) -> Step:
    instruction.allow("offset")
    wide = "_x2" if kind.endswith("64") else ""
    name = {"cmpst": "cmpswap", "wrxchg": "swap"}.get(name, name)
    if name in ("min", "max"):
        name = kind[0].replace("i", "s") + name
    key = f"{name}_{kind}" if kind[0] == "f" else name + wide
    if key not in ATOMICS:
        raise instruction.refuse("this LDS atomic is not implemented")
    operation, lds = ATOMICS[key], lds_of(state)
    operands = list(instruction.operands)
    target = operands.pop(0) if returns else None
    address = reader(state, instruction, operands[0], "u32")
    offset = np.uint32(int(instruction.modifiers.get("offset", "0"), 0))
    # ds_cmpst takes the expected value first, the global form second.
    sources = operands[:0:-1] if name == "cmpswap" else operands[1:]

    def step() -> None:
        mask = state.lane_mask()
        at = np.asarray(address()) + offset
        words = [
            register(state, source, k).reshape(-1) for source in sources for k in range(operation.size // 4)
        ]
        before = lds.update(
            instruction,
            at,
            operation.size,
            mask,
            lambda allocation, offsets, lanes: operation.apply(
                allocation.words.view(np.uint8), offsets, [word[lanes] for word in words]
            ),
        )
        if target is not None:
            halves = before.view(np.uint32).reshape(*before.shape, -1)
            for k in range(operation.size // 4):
                store(register(state, target, k), np.ascontiguousarray(halves[..., k]), mask)

    return step
