"""Say in words what a bad memory access did: line, lane, wave, workgroup, address, nearest tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from labkit.errors import MemoryFault

if TYPE_CHECKING:
    from labkit.emulator.lds import LdsOutOfRange
    from labkit.emulator.machine import Machine
    from labkit.emulator.memory import Memory, OutOfRange
    from labkit.emulator.program import Instruction


def describe_global(error: OutOfRange, instruction: Instruction, machine: Machine) -> MemoryFault:
    """The fault of a global access outside every tensor of the launch."""
    address = _first(error.addresses, error.lanes)
    where = _nearest(machine.context.memory, address)
    if error.before_base is not None:
        where = f"{_first(error.before_base, error.lanes):,} bytes before the pointer that it starts from"
    return MemoryFault(
        f"{instruction.where}: `{instruction.line.text}` touches address {address:#x}, {where}. "
        f"{_who(error.lanes, machine)}Check the mask and the offsets of that line."
    )


def describe_lds(error: LdsOutOfRange, instruction: Instruction, machine: Machine) -> MemoryFault:
    """The fault of an LDS access beyond the workgroup's allocation."""
    address = _first(error.addresses, error.lanes)
    return MemoryFault(
        f"{instruction.where}: `{instruction.line.text}` touches LDS byte {address}, but the workgroup has "
        f"{machine.state.lds.shape[1]} bytes. {_who(error.lanes, machine)}"
    )


def _first(values: np.ndarray, lanes: np.ndarray) -> int:
    return int(np.broadcast_to(values, lanes.shape)[lanes][0])


def _who(lanes: np.ndarray, machine: Machine) -> str:
    wave, lane = (int(axis[0]) for axis in np.nonzero(lanes))
    group, wave_in_group = divmod(wave, machine.state.waves_per_workgroup)
    assert machine.batch is not None
    ids = tuple(int(part) for part in machine.batch.workgroups[group])
    total = int(np.count_nonzero(lanes))
    who = f"workgroup {ids}, wave {wave_in_group}" + (f", lane {lane}" if lanes.shape[1] > 1 else "")
    return f"First: {who}; {total} lane{'s' if total > 1 else ''} at once. "


def _nearest(memory: Memory, address: int) -> str:
    if not memory.allocations:
        return "and the launch has no tensors"
    inside = memory.find(address)
    if inside is not None:
        return f"and reaches past the end of `{inside.name}` ({inside.bytes.size:,} bytes)"
    before = [a for a in memory.allocations if a.end <= address]
    after = [a for a in memory.allocations if a.base > address]
    below = max(before, key=lambda a: a.end, default=None)
    above = min(after, key=lambda a: a.base, default=None)
    if below is not None and (above is None or address - below.end <= above.base - address):
        return f"{address - below.end:,} bytes past the end of `{below.name}` ({below.bytes.size:,} bytes)"
    assert above is not None  # the address is in none, so one lies on either side of it
    return f"{above.base - address:,} bytes before the start of `{above.name}`"
