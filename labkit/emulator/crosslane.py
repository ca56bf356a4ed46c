"""Operands that come from other lanes or from parts of a register: DPP, SDWA, readlane and its kin."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from labkit.emulator.access import DTYPES, Reader, Writer, reader, store, with_sign, writer
from labkit.emulator.operands import Operand, Register, parse_list
from labkit.emulator.program import Instruction
from labkit.emulator.state import LANES, LaneMask, State

Step = Callable[[], None]
_LANE = np.arange(LANES)
_ROW_START, _IN_ROW = _LANE & ~15, _LANE & 15


def dpp_source(control: str, value: str) -> tuple[np.ndarray, np.ndarray] | None:
    """For each lane, the lane it reads and whether that exists; None for a name that is no DPP control.

    control, value: as the assembly writes them, "row_shr" and "8" (ISA guide, "DPP_CTRL").
    """
    always = np.ones(LANES, bool)
    if control == "quad_perm":
        return (_LANE & ~3) + np.array(parse_list(value))[_LANE & 3], always
    if control == "row_mirror":
        return _ROW_START + 15 - _IN_ROW, always
    if control == "row_half_mirror":
        return (_LANE & ~7) + 7 - (_LANE & 7), always
    number = int(value, 0) if value else 0
    if control in ("row_shl", "row_shr"):
        position = _IN_ROW + (number if control == "row_shl" else -number)
        return _ROW_START + (position & 15), (position >= 0) & (position < 16)
    if control == "row_ror":
        return _ROW_START + ((_IN_ROW - number) & 15), always
    if control in ("wave_shl", "wave_shr", "wave_rol", "wave_ror"):
        position = _LANE + (number if control.endswith("l") else -number)
        inside = (position >= 0) & (position < LANES)
        return position % LANES, inside | ("ro" in control)
    if control == "row_newbcast":
        return _ROW_START + number, always
    if control == "row_bcast":
        if number == 15:
            return np.maximum(_ROW_START - 1, 0), _LANE >= 16
        return np.full(LANES, 31), _LANE >= 32
    return None


def dpp(
    state: State,
    instruction: Instruction,
    sources: Sequence[Operand],
    kinds: Sequence[str],
    results: Sequence[Operand],
    result_kinds: Sequence[str],
) -> tuple[list[Reader], list[Writer]]:
    """Readers and writers of a DPP instruction: the first source comes from other lanes.

    A lane whose source lane does not exist or is off reads 0 with bound_ctrl and is not written without.
    """
    instruction.allow(*_DPP_NAMES)
    controls = [
        found
        for name, value in instruction.modifiers.items()
        if (found := dpp_source(name, value)) is not None
    ]
    if len(controls) != 1 or "mask" in result_kinds:
        raise instruction.refuse("this DPP form is not implemented")
    index, exists = controls[0]
    bound = "bound_ctrl" in instruction.modifiers
    allowed = row_and_bank(instruction)
    own = reader(state, instruction, sources[0], kinds[0])

    def moved() -> np.ndarray:
        value = np.broadcast_to(own(), (state.waves, LANES))[:, index]
        valid = exists & state.lane_mask().lanes[:, index]
        return np.where(valid, value, value.dtype.type(0))

    def narrowed(write: Writer) -> Writer:
        def narrow(value: np.ndarray, mask: LaneMask) -> None:
            lanes = mask.lanes & allowed
            if not bound:
                lanes = lanes & exists & mask.lanes[:, index]
            write(value, LaneMask.of(lanes))

        return narrow

    rest = [reader(state, instruction, o, k) for o, k in zip(sources[1:], kinds[1:], strict=True)]
    writers = [narrowed(writer(state, instruction, o, k)) for o, k in zip(results, result_kinds, strict=True)]
    return [moved, *rest], writers


_DPP_NAMES = [
    "quad_perm",
    "row_mirror",
    "row_half_mirror",
    "row_shl",
    "row_shr",
    "row_ror",
    "wave_shl",
    "wave_shr",
    "wave_rol",
    "wave_ror",
    "row_newbcast",
    "row_bcast",
    "row_mask",
    "bank_mask",
    "bound_ctrl",
]


def row_and_bank(instruction: Instruction) -> np.ndarray:
    """The lanes that DPP's row_mask and bank_mask let an instruction write, bool [64]."""
    rows = int(instruction.modifiers.get("row_mask", "0xf"), 0)
    banks = int(instruction.modifiers.get("bank_mask", "0xf"), 0)
    return ((rows >> (_LANE >> 4)) & (banks >> ((_LANE >> 2) & 3)) & 1).astype(bool)


def sdwa_field(instruction: Instruction, selector: str) -> tuple[int, int]:
    """(shift, width) in bits of BYTE_n, WORD_n or DWORD."""
    name, _, number = selector.partition("_")
    widths = {"BYTE": 8, "WORD": 16, "DWORD": 32}
    if name not in widths:
        raise instruction.refuse(f"selector `{selector}` is not implemented")
    return widths[name] * int(number or 0), widths[name]


_SDWA_NAMES = ("src0_sel", "src1_sel", "dst_sel", "dst_unused")


def sdwa_sources(
    state: State, instruction: Instruction, sources: Sequence[Operand], kinds: Sequence[str]
) -> list[Reader]:
    """Readers that take a byte or a half of a register (SDWA), zero- or sign-extended."""
    instruction.allow(*_SDWA_NAMES, "clamp")
    readers = []
    for number, (operand, kind) in enumerate(zip(sources, kinds, strict=True)):
        selector = instruction.modifiers.get(f"src{number}_sel", "DWORD")
        if kind == "mask" or not isinstance(operand, Register):
            readers.append(reader(state, instruction, operand, kind))
        else:
            readers.append(_sdwa_reader(state, instruction, operand, kind, selector))
    return readers


def _sdwa_reader(
    state: State, instruction: Instruction, operand: Register, kind: str, selector: str
) -> Reader:
    shift, width = sdwa_field(instruction, selector)
    register, dtype = getattr(state, operand.file)[operand.index], DTYPES[kind]
    lift = np.uint32(32 - width)

    def read() -> np.ndarray:
        field = (register >> np.uint32(shift)) << lift
        signed = field.view(np.int32) >> lift.astype(np.int32)
        value = (signed.view(np.uint32) if operand.sign_extended else field >> lift).view(dtype)
        value = value[:, 0::2] if dtype.itemsize == 2 else value
        return with_sign(instruction, operand, value, kind) if operand.negated or operand.absolute else value

    return read


def sdwa_results(
    state: State, instruction: Instruction, results: Sequence[Operand], kinds: Sequence[str]
) -> list[Writer]:
    """Writers that place the result in a byte or a half of the register (SDWA)."""
    (operand,), (kind,) = results, kinds
    selector = instruction.modifiers.get("dst_sel", "DWORD")
    if kind == "mask" or selector == "DWORD":
        return [writer(state, instruction, operand, kind)]
    shift, width = sdwa_field(instruction, selector)
    unused = instruction.modifiers.get("dst_unused", "UNUSED_PAD")
    if not isinstance(operand, Register) or unused not in ("UNUSED_PAD", "UNUSED_PRESERVE"):
        raise instruction.refuse(f"`dst_unused:{unused}` is not implemented")
    register = state.v[operand.index]
    field = np.uint32(((1 << width) - 1) << shift)
    keep = np.uint32(0 if unused == "UNUSED_PAD" else ~field & 0xFFFFFFFF)

    def write(value: np.ndarray, mask: LaneMask) -> None:
        bits = value.view(f"u{value.dtype.itemsize}").astype(np.uint32)
        store(register, (register & keep) | ((bits << np.uint32(shift)) & field), mask)

    return [write]


def half_reader(state: State, instruction: Instruction, operand: Operand, kind: str) -> Reader:
    """A reader of the upper 16-bit half of a register, as op_sel can choose."""
    if not isinstance(operand, Register):
        raise instruction.refuse("op_sel on a constant")
    view = getattr(state, operand.file)[operand.index].view(DTYPES[kind])[:, 1::2]
    if operand.negated or operand.absolute:
        return lambda: with_sign(instruction, operand, view, kind)
    return lambda: view


def bind_read_first_lane(state: State, instruction: Instruction) -> Step:
    """v_readfirstlane_b32: the lowest active lane's value, lane 0's where none is active."""
    instruction.allow()
    target, source = instruction.operands
    read = reader(state, instruction, source, "u32")

    def step() -> None:
        first = state.lane_mask().lanes.argmax(axis=1)[:, None]
        value = np.broadcast_to(read(), (state.waves, LANES))
        state.write_scalar(target.index, np.take_along_axis(value, first, axis=1))

    return step


def bind_read_lane(state: State, instruction: Instruction) -> Step:
    """v_readlane_b32: one lane's value, whether that lane is active or not."""
    instruction.allow()
    target, source, lane = instruction.operands
    register, which = state.v[source.index], reader(state, instruction, lane, "u32")

    def step() -> None:
        chosen = np.broadcast_to(which() & np.uint32(63), (state.waves, 1)).astype(np.int64)
        state.write_scalar(target.index, np.take_along_axis(register, chosen, axis=1))

    return step


def bind_write_lane(state: State, instruction: Instruction) -> Step:
    """v_writelane_b32: a scalar into one lane, whatever EXEC says."""
    instruction.allow()
    target, source, lane = instruction.operands
    register = state.v[target.index]
    read, which = (reader(state, instruction, operand, "u32") for operand in (source, lane))

    def step() -> None:
        here = (which() & np.uint32(63)) == np.arange(LANES, dtype=np.uint32)
        here = np.broadcast_to(here, (state.waves, LANES))
        if state.group is not None:
            here = here & state.group
        store(register, np.broadcast_to(read(), (state.waves, LANES)), LaneMask.of(here))

    return step


CROSSLANE: dict[str, Callable[[State, Instruction], Step]] = {
    "v_readfirstlane_b32": bind_read_first_lane,
    "v_readlane_b32": bind_read_lane,
    "v_writelane_b32": bind_write_lane,
}
