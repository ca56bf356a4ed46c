"""Scalar instructions that are more than a function of their operands: EXEC, MODE, hints."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from labkit.emulator.access import reader
from labkit.emulator.operands import EXEC, Constant, Operand, Register
from labkit.emulator.program import Instruction
from labkit.emulator.scalar import U32, Step, write_scalar
from labkit.emulator.state import State, join

_SAVEEXEC = re.compile(r"s_(and|or|xor|andn2|orn2|andn1|orn1)_saveexec_b64")
_COMBINE: dict[str, Callable] = {
    "and": lambda source, exec_: source & exec_,
    "or": lambda source, exec_: source | exec_,
    "xor": lambda source, exec_: source ^ exec_,
    "andn2": lambda source, exec_: source & ~exec_,
    "orn2": lambda source, exec_: source | ~exec_,
    "andn1": lambda source, exec_: ~source & exec_,
    "orn1": lambda source, exec_: ~source | exec_,
}


def bind_saveexec(state: State, instruction: Instruction) -> Step:
    """s_and_saveexec_b64 and its kin: keep EXEC in the destination, then combine it with the source."""
    instruction.allow()
    target, source = instruction.operands
    read = reader(state, instruction, source, "u64")
    combine = _COMBINE[_SAVEEXEC.match(instruction.operation)[1]]
    exec_register = Register("s", EXEC, 2)

    def step() -> None:
        old = join(state.s[EXEC], state.s[EXEC + 1])
        result = combine(read(), old)
        write_scalar(state, target, old)
        write_scalar(state, exec_register, result)
        state.write_scc(result != 0)

    return step


def bind_setreg(state: State, instruction: Instruction) -> Step:
    """s_setreg of MODE: FP16_OVFL (bit 23), and the rounding mode (bits 3:0) where it stays "to nearest"."""
    field, value = instruction.operands
    match = _MODE_FIELD.fullmatch(field.text)
    if match is None:
        raise instruction.refuse("only fields of MODE are implemented")
    offset, width = int(match[1]), int(match[2])
    if (offset, width) == (23, 1):
        return _set_overflow(state, instruction, value)
    if offset + width <= 4 and isinstance(value, Constant) and value.value == 0:
        return lambda: None  # a kernel starts in this mode (amdhsa_float_round_mode)
    raise instruction.refuse("this field or value of MODE is not implemented")


_MODE_FIELD = re.compile(r"hwreg\(HW_REG_MODE,\s*(\d+),\s*(\d+)\)")


def _set_overflow(state: State, instruction: Instruction, value: Operand) -> Step:
    read = reader(state, instruction, value, "u32")

    def step() -> None:
        saturate = np.broadcast_to((read() & U32(1)).astype(bool), (state.waves, 1))
        if state.group is None:
            state.fp16_overflow[...] = saturate
        else:
            np.copyto(state.fp16_overflow, saturate, where=state.group)

    return step


def bind_getpc(state: State, instruction: Instruction) -> Step:
    """s_getpc_b64: where the code stands, which is 0 here; see constant_tables."""
    instruction.allow()
    (target,) = instruction.operands

    def step() -> None:
        for part in (0, 1):
            state.write_scalar(target.index + part, np.zeros((state.waves, 1), np.uint32))

    return step


def bind_sendmsg(state: State, instruction: Instruction) -> Step:
    """s_sendmsg calls the host: tl.device_print, and tl.device_assert in debug mode, end in it."""
    raise instruction.refuse(
        "tl.device_print and tl.device_assert need a host that listens, which the emulated chip has not; "
        "take them out and look at the values with labkit.trace, or store them to a tensor"
    )


def _nothing(state: State, instruction: Instruction) -> Step:
    """Scheduling and cache hints, and waits: results in program order need none of them."""
    return lambda: None


HINTS = [
    "s_nop",
    "s_waitcnt",
    "s_setprio",
    "s_sleep",
    "s_sethalt",
    "s_ttracedata",
    "s_icache_inv",
    "s_dcache_inv",
    "s_dcache_wb",
    "buffer_inv",
    "buffer_wbl2",
]
SCALAR_FORMS: dict[str, Callable[[State, Instruction], Step]] = {
    **{f"s_{name}_saveexec_b64": bind_saveexec for name in _COMBINE},
    "s_setreg_imm32_b32": bind_setreg,
    "s_setreg_b32": bind_setreg,
    "s_getpc_b64": bind_getpc,
    "s_sendmsg": bind_sendmsg,
    **dict.fromkeys(HINTS, _nothing),
}
