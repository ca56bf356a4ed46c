"""Instructions that read and write global memory: global_, flat_, buffer_ and scalar loads.

Each step finds the lanes' addresses, moves the bytes, and tells the recorder what was touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labkit.emulator.access import reader, store, store_half
from labkit.emulator.atomics import ATOMICS
from labkit.emulator.memory import Memory
from labkit.emulator.operands import Constant, Name, Register
from labkit.emulator.program import Instruction
from labkit.emulator.state import LANES, LaneMask, State, join

Step = Callable[[], None]
# Called with (addresses [W, 64], bytes a lane, lanes that access, bool [W, 64]).
Recorder = Callable[[np.ndarray, int, np.ndarray], None]

_FORM = re.compile(r"(global|flat|buffer)_(load|store|atomic)_(\w+)")
_SIZES = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "byte": 1, "ubyte": 1, "sbyte": 1,
          "short": 2, "ushort": 2, "sshort": 2}  # fmt: skip
_SIGNED = {"sbyte": np.int8, "sshort": np.int16}
_CACHE_HINTS = ("sc0", "sc1", "nt", "glc", "slc")


@dataclass(slots=True)
class Context:
    """What memory instructions need beside registers. `memory` is set anew by each launch."""

    memory: Memory


def _addresses(state: State, instruction: Instruction, operands: list) -> Callable[[], tuple]:
    """For global_ and flat_: a function that gives addresses [W, 64] and None (no lane is masked away)."""
    instruction.allow("offset", *_CACHE_HINTS)
    base, scalar_base = operands[0], operands[1] if len(operands) > 1 else Name("off")
    offset = np.uint64(int(instruction.modifiers.get("offset", "0"), 0) & 0xFFFFFFFFFFFFFFFF)
    if isinstance(scalar_base, Register):
        read, start = reader(state, instruction, base, "u32"), scalar_base.index
        return lambda: (join(state.s[start], state.s[start + 1]) + (read().astype(np.uint64) + offset), None)
    read = reader(state, instruction, base, "u64")
    return lambda: (read() + offset, None)


def _buffer_addresses(state: State, instruction: Instruction, operands: list) -> Callable[[], tuple]:
    """For buffer_: addresses, and which lanes lie inside the resource (raw buffers: offset < num_records).

    Triton masks a lane by an offset beyond num_records: its load gives 0, its store vanishes.
    """
    instruction.allow("offen", "offset", *_CACHE_HINTS)
    index, resource, scalar_offset = operands
    if not isinstance(resource, Register) or resource.count != 4:
        raise instruction.refuse("expected a buffer resource of four scalar registers")
    read = (
        reader(state, instruction, index, "u32") if "offen" in instruction.modifiers else lambda: np.uint32(0)
    )
    soffset = reader(state, instruction, scalar_offset, "u32")
    fixed = np.uint64(int(instruction.modifiers.get("offset", "0"), 0))
    at = resource.index

    def find() -> tuple[np.ndarray, np.ndarray]:
        base = join(state.s[at], state.s[at + 1] & np.uint32(0xFFFF))
        offset = np.asarray(read()).astype(np.uint64) + fixed
        # A raw buffer's range check leaves the scalar offset out (ISA guide, "Range checking").
        inside = np.broadcast_to(offset < state.s[at + 2], (state.waves, LANES))
        return base + offset + soffset(), None if inside.all() else inside

    return find


def bind_global(state: State, instruction: Instruction, context: Context, record: Recorder) -> Step:
    """A step for any global_, flat_ or buffer_ load, store or atomic."""
    family, kind, width = _FORM.fullmatch(instruction.operation).groups()  # type: ignore[union-attr]
    operands = list(instruction.operands)
    if family == "buffer":
        data = operands.pop(0)
        find = _buffer_addresses(state, instruction, operands)
    else:
        # A load's or returning atomic's result comes first, a store's address does.
        returns = kind == "load" or (kind == "atomic" and "sc0" in instruction.modifiers)
        result = operands.pop(0) if returns else None
        data = result if kind == "load" else operands.pop(1)
        if family == "flat":
            operands = operands[:1]
        find = _addresses(state, instruction, operands)
    if kind == "atomic":
        target = (data if family == "buffer" else result) if "sc0" in instruction.modifiers else None
        return _atomic(state, instruction, context, record, find, width, data, target)
    if kind == "load":
        return _load(state, instruction, context, record, find, width, data)
    return _store(state, instruction, context, record, find, width, data)


def _active(mask: LaneMask, inside: np.ndarray | None) -> np.ndarray | None:
    """The lanes that access memory, None for all of them."""
    if inside is None:
        return None if mask.full else mask.lanes
    return inside & mask.lanes


def _tell(record: Recorder, context: Context, addresses: np.ndarray, size: int, lanes: np.ndarray) -> None:
    addresses = np.broadcast_to(addresses, lanes.shape)
    record(context.memory.on_gpu_lines(addresses, lanes), size, lanes)


def _load(state, instruction, context, record, find, width, target) -> Step:
    half = width.endswith("_d16_hi") or width.endswith("_d16")
    width, into = width.split("_d16")[0], int(width.endswith("_hi"))
    if width not in _SIZES:
        raise instruction.refuse("this width is not implemented")
    size, signed = _SIZES[width], _SIGNED.get(width)
    file = getattr(state, target.file)

    def step() -> None:
        mask = state.lane_mask()
        addresses, inside = find()
        active = _active(mask, inside)
        words = context.memory.load(addresses, size, active)
        _tell(record, context, addresses, size, mask.lanes if active is None else active)
        if signed:
            words = [words[0].astype(f"u{size}").view(signed).astype(np.int32)]
        for k, word in enumerate(words):
            if half:
                store_half(file[target.index], into, word.view(np.uint32).astype(np.uint16), mask)
            else:
                store(file[target.index + k], word, mask)

    return step


def _store(state, instruction, context, record, find, width, source) -> Step:
    high = width.endswith("_d16_hi")
    size = _SIZES.get(width.split("_d16")[0])
    if size is None:
        raise instruction.refuse("this width is not implemented")
    file = getattr(state, source.file)

    def step() -> None:
        mask = state.lane_mask()
        addresses, inside = find()
        active = _active(mask, inside)
        words = [file[source.index + k] for k in range((size + 3) // 4)]
        if high:
            words = [words[0] >> np.uint32(16)]
        context.memory.store(addresses, size, active, words)
        _tell(record, context, addresses, size, mask.lanes if active is None else active)

    return step


def _atomic(state, instruction, context, record, find, name, source, target) -> Step:
    if name not in ATOMICS:
        raise instruction.refuse("this atomic is not implemented")
    operation = ATOMICS[name]
    file = getattr(state, source.file)

    def step() -> None:
        mask = state.lane_mask()
        addresses, inside = find()
        active = _active(mask, inside)
        words = [file[source.index + k].reshape(-1) for k in range(operation.words)]
        before = context.memory.update(
            addresses,
            operation.size,
            active,
            lambda allocation, offsets, lanes: operation.apply(
                allocation.words.view(np.uint8), offsets, [word[lanes] for word in words]
            ),
        )
        _tell(record, context, addresses, operation.size, mask.lanes if active is None else active)
        if target is not None:
            halves = before.view(np.uint32).reshape(*before.shape, -1)
            for k in range(operation.size // 4):
                store(state.v[target.index + k], np.ascontiguousarray(halves[..., k]), mask)

    return step


_SCALAR_LOAD = re.compile(r"s_load_dword(?:x(\d+))?")


def bind_scalar_load(state: State, instruction: Instruction, context: Context) -> Step:
    """s_load_dword and wider: words from memory into consecutive scalar registers."""
    instruction.allow("glc", "offset")
    count = int(_SCALAR_LOAD.fullmatch(instruction.operation)[1] or 1)  # type: ignore[index]
    target, base, offset = instruction.operands
    fixed = int(instruction.modifiers.get("offset", "0"), 0)
    if isinstance(offset, Constant):
        fixed, read = fixed + int(offset.value), lambda: np.uint32(0)
    else:
        read = reader(state, instruction, offset, "u32")
    displacement = np.uint64(fixed & 0xFFFFFFFFFFFFFFFF)  # it may be negative

    def step() -> None:
        address = join(state.s[base.index], state.s[base.index + 1]) + read() + displacement
        # The two low bits of a scalar address are ignored (ISA guide, "Scalar memory").
        words = context.memory.load(address & ~np.uint64(3), 4 * count, state.group)
        for k, word in enumerate(words):
            state.write_scalar(target.index + k, word)

    return step
