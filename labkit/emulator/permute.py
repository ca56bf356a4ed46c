"""Permutations of lanes by the LDS hardware, which touch no memory: ds_bpermute, ds_permute, ds_swizzle."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from labkit.emulator.access import reader, store
from labkit.emulator.operands import Register, parse_list
from labkit.emulator.program import Instruction
from labkit.emulator.state import LANES, State

Step = Callable[[], object]


def _registers(state: State, operand: Register) -> np.ndarray:
    """The register of an operand, [W, 64]: a vector or an accumulation register."""
    return getattr(state, operand.file)[operand.index]


def bind_permute(state: State, instruction: Instruction) -> Step:
    """ds_bpermute_b32: each lane reads the lane whose number times 4 is in its address register."""
    instruction.allow("offset")
    target, address, source = instruction.operands
    offset = np.uint32(int(instruction.modifiers.get("offset", "0"), 0))
    where = reader(state, instruction, address, "u32")
    data, result = _registers(state, source), _registers(state, target)

    def step() -> None:
        mask = state.lane_mask()
        lane = np.broadcast_to(((where() + offset) >> np.uint32(2)) & np.uint32(63), mask.lanes.shape)
        lane = lane.astype(np.int64)
        value = np.take_along_axis(data, lane, axis=1)
        active = np.take_along_axis(mask.lanes, lane, axis=1)
        store(result, np.where(active, value, np.uint32(0)), mask)

    return step


def bind_forward_permute(state: State, instruction: Instruction) -> Step:
    """ds_permute_b32: each lane sends to the lane that its address register names; unsent lanes get 0.

    Of several senders to one lane the highest wins, as the lanes are served in order.
    """
    instruction.allow("offset")
    target, address, source = instruction.operands
    offset = np.uint32(int(instruction.modifiers.get("offset", "0"), 0))
    where = reader(state, instruction, address, "u32")
    data, result = _registers(state, source), _registers(state, target)

    def step() -> None:
        mask = state.lane_mask()
        lane = np.broadcast_to(((where() + offset) >> np.uint32(2)) & np.uint32(63), mask.lanes.shape)
        received = np.zeros(mask.lanes.shape, np.uint32)
        wave, sender = np.nonzero(mask.lanes)
        received[wave, lane[wave, sender]] = data[wave, sender]
        store(result, received, mask)

    return step


def swizzle_source(pattern: str) -> np.ndarray | None:
    """The lane that each lane reads for the `offset:` of ds_swizzle_b32, in groups of 32; None if unknown."""
    lane = np.arange(LANES)
    match = re.fullmatch(r"swizzle\((\w+),\s*(.*)\)", pattern)
    if match is None:
        number = int(pattern, 0)
        if number >= 0xC000:  # rotation and the order of an FFT
            return None
        if number & 0x8000:
            return (lane & ~3) | ((number >> (2 * (lane & 3))) & 3)
        keep, or_, xor = number & 31, (number >> 5) & 31, (number >> 10) & 31
        return (lane & ~31) | (((lane & 31 & keep) | or_) ^ xor)
    mode, rest = match.groups()
    if mode == "SWAP":
        return lane ^ int(rest)
    if mode == "REVERSE":
        size = int(rest)
        return (lane & ~(size - 1)) | (size - 1 - (lane & (size - 1)))
    if mode == "BROADCAST":
        size, which = parse_list(rest)
        return (lane & ~(size - 1)) | which
    if mode == "BITMASK_PERM":
        return _bitmask_source(rest.strip('"'))
    if mode == "QUAD_PERM":
        return (lane & ~3) | np.array(parse_list(rest))[lane & 3]
    return None


def _bitmask_source(bits: str) -> np.ndarray:
    """One letter a bit of the lane's number, the highest first: 0, 1, p keeps it, i inverts it (LLVM)."""
    keep, or_, xor = (int("".join("01"[bit in letters] for bit in bits), 2) for letters in ("pi", "1", "i"))
    lane = np.arange(LANES)
    return (lane & ~31) | (((lane & keep) | or_) ^ xor)


def bind_swizzle(state: State, instruction: Instruction) -> Step:
    """ds_swizzle_b32: a fixed exchange of lanes inside groups of 32."""
    instruction.allow("offset")
    target, source = instruction.operands
    lane = swizzle_source(instruction.modifiers.get("offset", "0"))
    if lane is None:
        raise instruction.refuse("this swizzle pattern is not implemented")
    data, result = _registers(state, source), _registers(state, target)

    def step() -> None:
        mask = state.lane_mask()
        value = data[:, lane]
        store(result, np.where(mask.lanes[:, lane], value, np.uint32(0)), mask)

    return step


PERMUTE: dict[str, Callable[[State, Instruction], Step]] = {
    "ds_bpermute_b32": bind_permute,
    "ds_permute_b32": bind_forward_permute,
    "ds_swizzle_b32": bind_swizzle,
}
