"""Instructions that read and write global memory: global_, flat_, buffer_ and scalar loads.

Each step finds the lanes' addresses, moves the bytes, and tells the recorder what was touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labkit.emulator.access import reader, register, store, store_half
from labkit.emulator.atomics import ATOMICS
from labkit.emulator.lds_memory import lds_of
from labkit.emulator.memory import Allocation, Memory, OutOfRange
from labkit.emulator.operands import M0, Constant, Name, Register
from labkit.emulator.program import Instruction
from labkit.emulator.state import LANES, LaneMask, State, join

Step = Callable[[], None]
# Called with (addresses [W, 64], bytes a lane, lanes that access, bool [W, 64]).
Recorder = Callable[[np.ndarray, int, np.ndarray], None]
# Called with (the memory, None for LDS; addresses; bytes a lane; lanes that access), [W, 64] or [W, 1].
Witness = Callable[[Memory | None, np.ndarray, int, np.ndarray], None]
# Called with (instruction, addresses, bytes a lane, lanes that access), [W, 64].
LineKeeper = Callable[[Instruction, np.ndarray, int, np.ndarray], None]

# Called with (lanes [W, 64] or [W, 1], their addresses, the bytes that each must be a multiple of).
Misaligned = Callable[[np.ndarray, np.ndarray, int, Instruction], None]

FORM = re.compile(r"(global|flat|buffer)_(load|store|atomic)_(\w+)")
SIZES = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "byte": 1, "ubyte": 1, "sbyte": 1,
          "short": 2, "ushort": 2, "sshort": 2}  # fmt: skip
_SIGNED = {"sbyte": np.int8, "sshort": np.int16}
CACHE_HINTS = ("sc0", "sc1", "nt", "glc", "slc")


@dataclass(slots=True)
class Context:
    """What memory instructions need beside registers; each launch sets it anew.

    outside: told of an access outside memory; it raises, or the access goes on without those lanes.
    misaligned: told of an access that the chip does not carry out as it stands.
    discover: asked first whether the access may go on with more memory than before; it adds that, or says no.
    counting: whether the recorder is told of accesses.
    witness: shown every access that is carried out, for a trace.
    keep_lines: shown every vector access, to record its cache lines.
    """

    memory: Memory
    outside: Callable[[OutOfRange, Instruction], None]
    discover: Callable[[OutOfRange, Instruction], bool] = lambda error, instruction: False
    misaligned: Misaligned = lambda lanes, addresses, size, instruction: None
    counting: bool = True
    witness: Witness | None = None
    keep_lines: LineKeeper | None = None


def _addresses(state: State, instruction: Instruction, operands: list) -> Callable[[], tuple]:
    """For global_ and flat_: a function that gives addresses [W, 64] and None (no lane is masked away)."""
    instruction.allow("offset", *CACHE_HINTS)
    base, scalar_base = operands[0], operands[1] if len(operands) > 1 else Name("off")
    offset = np.uint64(int(instruction.modifiers.get("offset", "0"), 0) & 0xFFFFFFFFFFFFFFFF)
    if isinstance(scalar_base, Register):
        read, start = reader(state, instruction, base, "u32"), scalar_base.index
        return lambda: (join(state.s[start], state.s[start + 1]) + (read().astype(np.uint64) + offset), None)
    read = reader(state, instruction, base, "u64")
    return lambda: (read() + offset, None)


def _buffer_addresses(
    state: State, instruction: Instruction, operands: list, context: Context
) -> Callable[[], tuple]:
    """For buffer_: addresses, and which lanes lie inside the resource (raw buffers: offset < num_records).

    Triton masks a lane by an offset beyond num_records: its load gives 0, its store vanishes.
    """
    instruction.allow("offen", "offset", "lds", *CACHE_HINTS)
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
        addresses = base + offset + soffset()
        if inside.all():
            return addresses, None
        negative = _negative_offsets(state, np.broadcast_to(offset, inside.shape), addresses)
        if negative is not None:
            context.outside(negative, instruction)
        return addresses, inside

    return find


def _negative_offsets(state: State, offset: np.ndarray, addresses: np.ndarray) -> OutOfRange | None:
    """The lanes whose offset is a negative number, as an access outside memory.

    The chip takes it for a huge one, gives 0 and drops the store, so that the kernel's error goes unseen.
    Triton's way to mask a lane is the offset 2^31, to which an instruction's constant may be added.
    """
    wrapped = (offset > _MASKED_UP_TO) & (offset < _TWO_TO_32)
    wrapped &= state.lane_mask().lanes
    if not wrapped.any():
        return None
    return OutOfRange(wrapped, addresses - _TWO_TO_32, 1, _TWO_TO_32 - offset)


_TWO_TO_32 = np.uint64(1 << 32)
_MASKED_UP_TO = np.uint64((1 << 31) + (1 << 12))  # a buffer instruction's constant has 12 bits


def bind_global(state: State, instruction: Instruction, context: Context, record: Recorder) -> Step:
    """A step for any global_, flat_ or buffer_ load, store or atomic."""
    family, kind, width = FORM.fullmatch(instruction.operation).groups()  # type: ignore[union-attr]
    operands = list(instruction.operands)
    to_lds = "lds" in instruction.modifiers
    if family == "buffer":
        data = None if to_lds else operands.pop(0)
        find = _buffer_addresses(state, instruction, operands, context)
    else:
        # A load's or returning atomic's result comes first, a store's address does.
        returns = kind == "load" or (kind == "atomic" and "sc0" in instruction.modifiers)
        result = operands.pop(0) if returns else None
        data = result if kind == "load" else operands.pop(1)
        if family == "flat":
            operands = operands[:1]
        find = _addresses(state, instruction, operands)
    access = _Access(state, instruction, context, record, find)
    if to_lds:
        if kind != "load":
            raise instruction.refuse("modifier `lds` is implemented for loads only")
        return access.load_to_lds(width)
    if kind == "atomic":
        target = (data if family == "buffer" else result) if "sc0" in instruction.modifiers else None
        return access.atomic(width, data, target)
    return access.load(width, data) if kind == "load" else access.store(width, data)


@dataclass(frozen=True, slots=True)
class _Access:
    """One global memory instruction; each method makes its step for one kind of access."""

    state: State
    instruction: Instruction
    context: Context
    record: Recorder
    find: Callable[[], tuple[np.ndarray, np.ndarray | None]]  # addresses, and lanes that are in range

    def _place(self, mask: LaneMask) -> tuple[np.ndarray, np.ndarray | None]:
        """Addresses [W, 64], and the lanes that access memory (None for all of them)."""
        addresses, inside = self.find()
        if inside is None:
            return addresses, None if mask.full else mask.lanes
        return addresses, inside & mask.lanes

    def _reach(self, move: Callable, active: np.ndarray | None, mask: LaneMask) -> tuple:
        """(what `move(memory, lanes)` returns, the lanes it moved for); lanes outside memory stay away."""
        memory = self.context.memory.of(self.instruction)
        try:
            return move(memory, active), active
        except OutOfRange as error:
            if self.context.discover(error, self.instruction):
                return self._reach(move, active, mask)
            self.context.outside(error, self.instruction)
            active = (mask.lanes if active is None else active) & ~error.lanes
            return move(memory, active), active

    def _aligned(
        self, addresses: np.ndarray, size: int, active: np.ndarray | None, mask: LaneMask
    ) -> np.ndarray | None:
        """The lanes of an atomic that are aligned to its size; the chip refuses the others.

        Loads and stores need no alignment: ROCm sets SH_MEM_CONFIG.alignment_mode to UNALIGNED, and LLVM
        compiles for that ("unaligned-access-mode", a feature of every amdhsa target).
        """
        lanes = mask.lanes if active is None else active
        wrong = lanes & (addresses % np.uint64(size) != 0)
        if not wrong.any():
            return active
        self.context.misaligned(wrong, addresses, size, self.instruction)
        return lanes & ~wrong

    def _tell(self, addresses: np.ndarray, size: int, active: np.ndarray | None, mask: LaneMask) -> None:
        lanes = mask.lanes if active is None else active
        addresses = np.broadcast_to(addresses, lanes.shape)
        if self.context.witness is not None:
            self.context.witness(self.context.memory, addresses, size, lanes)
        if self.context.keep_lines is not None:
            self.context.keep_lines(self.instruction, addresses, size, lanes)
        if self.context.counting:
            memory, kind = self.context.memory, self.instruction.kind
            memory.touch(addresses, size, lanes, kind != "VMEM store", kind != "VMEM load")
            self.record(memory.on_gpu_lines(addresses, lanes), size, lanes)

    def _size(self, width: str) -> tuple[int, str]:
        """Bytes a lane, and "", "_d16" or "_d16_hi", of a width such as "dwordx4" or "short_d16_hi"."""
        name, marker, rest = width.partition("_d16")
        if name not in SIZES or rest not in ("", "_hi"):
            raise self.instruction.refuse("this width is not implemented")
        return SIZES[name], marker + rest

    def load(self, width: str, target: Register) -> Step:
        """Words from memory into registers; a _d16 form fills one half of a register."""
        size, half = self._size(width)
        signed = _SIGNED.get(width.split("_d16")[0])
        state, file = self.state, getattr(self.state, target.file)

        def step() -> None:
            mask = state.lane_mask()
            addresses, active = self._place(mask)
            words, active = self._reach(lambda memory, on: memory.load(addresses, size, on), active, mask)
            self._tell(addresses, size, active, mask)
            if signed:
                words = [words[0].astype(f"u{size}").view(signed).astype(np.int32)]
            for k, word in enumerate(words):
                if half:
                    value = word.view(np.uint32).astype(np.uint16)
                    store_half(file[target.index], int(half == "_d16_hi"), value, mask)
                else:
                    store(file[target.index + k], word, mask)

        return step

    def load_to_lds(self, width: str) -> Step:
        """Words from memory straight into LDS, at M0 + the constant offset + the lane's number * its size.

        Lanes that the buffer's range check masks write 0 (ISA guide, "Memory buffer load to LDS").
        """
        size, half = self._size(width)
        if half or size < 4:
            raise self.instruction.refuse("this width is not implemented")
        lds, state = lds_of(self.state), self.state
        offset = np.uint32(int(self.instruction.modifiers.get("offset", "0"), 0))
        place = np.arange(LANES, dtype=np.uint32) * np.uint32(size) + offset

        def step() -> None:
            mask = state.lane_mask()
            addresses, active = self._place(mask)
            words, active = self._reach(lambda memory, on: memory.load(addresses, size, on), active, mask)
            self._tell(addresses, size, active, mask)
            address = (state.s[M0] & np.uint32(0xFFFF)) + place
            lds.write(self.instruction, address, size, mask, words)

        return step

    def store(self, width: str, source: Register) -> Step:
        """Registers to memory; a _d16_hi form stores the upper half of a register."""
        size, half = self._size(width)
        shift = np.uint32(16 if half == "_d16_hi" else 0)
        state, file = self.state, getattr(self.state, source.file)

        def step() -> None:
            mask = state.lane_mask()
            addresses, active = self._place(mask)
            words = [file[source.index + k] >> shift for k in range((size + 3) // 4)]
            _, active = self._reach(lambda memory, on: memory.store(addresses, size, on, words), active, mask)
            self._tell(addresses, size, active, mask)

        return step

    def atomic(self, name: str, source: Register, target: Register | None) -> Step:
        """A read-modify-write; the old values go to `target` where there is one."""
        if name not in ATOMICS:
            raise self.instruction.refuse("this atomic is not implemented")
        operation = ATOMICS[name]
        state, file = self.state, getattr(self.state, source.file)

        def step() -> None:
            mask = state.lane_mask()
            addresses, active = self._place(mask)
            active = self._aligned(addresses, operation.size, active, mask)
            words = [file[source.index + k].reshape(-1) for k in range(operation.words)]

            def change(allocation: Allocation, offsets: np.ndarray, lanes: np.ndarray) -> np.ndarray:
                data = [word[lanes] for word in words]
                return operation.apply(allocation.words.view(np.uint8), offsets, data)

            before, active = self._reach(
                lambda memory, on: memory.update(addresses, operation.size, on, change), active, mask
            )
            self._tell(addresses, operation.size, active, mask)
            if target is not None:
                halves = before.view(np.uint32).reshape(*before.shape, -1)
                for k in range(operation.size // 4):
                    store(register(state, target, k), np.ascontiguousarray(halves[..., k]), mask)

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
        active, words = state.group, None
        # The two low bits of a scalar address are ignored (ISA guide, "Scalar memory").
        wrong = (address & np.uint64(3) != 0) & (True if active is None else active)
        if wrong.any():
            context.misaligned(wrong, address, 4, instruction)
        while words is None:
            try:
                words = context.memory.of(instruction).load(address & ~np.uint64(3), 4 * count, active)
            except OutOfRange as error:
                if not context.discover(error, instruction):
                    context.outside(error, instruction)
                    active = ~error.lanes if active is None else active & ~error.lanes
        waves = np.ones(address.shape, bool) if active is None else active
        if context.counting:
            context.memory.touch(address & ~np.uint64(3), 4 * count, waves, read=True, write=False)
        if context.witness is not None:
            context.witness(context.memory, address & ~np.uint64(3), 4 * count, waves)
        for k, word in enumerate(words):
            state.write_scalar(target.index + k, word)

    return step
