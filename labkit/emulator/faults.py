"""Faults: what a kernel did that it must not do, as findings with line, lane, wave, workgroup and address."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from labkit.emulator.launch_memory import nearest
from labkit.emulator.lds_shadow import SEVERAL
from labkit.emulator.memory import first_active
from labkit.errors import LaunchError, MemoryFault

if TYPE_CHECKING:
    import pandas as pd

    from labkit.emulator.lds_memory import LdsOutOfRange
    from labkit.emulator.machine import Machine
    from labkit.emulator.memory import OutOfRange
    from labkit.emulator.program import Instruction
    from labkit.emulator.waits import Hazard

MODES = ("raise", "report", "off")


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault, told once for each instruction: the first lanes that did it stand for the rest.

    kind: "global access outside", "global access outside its view", "misaligned access",
    "LDS access outside", "LDS read before write", "LDS race", "register used before its load came back" or
    "barrier before an LDS write is done"; workgroup, wave, lane: the first that did it (lane None where it is
    the whole wave); lanes: how many did it at that moment; address: in global memory, or the byte within the
    workgroup's LDS, None for a register; tensor: the argument that the address starts at (where that is open,
    the nearest), "" where there is none; soft: it may be meant, so it is told and never raised.
    """

    kind: str
    message: str
    source: str  # file:line of the kernel
    source_line: int
    assembly_line: int
    instruction: str
    workgroup: tuple[int, int, int]
    wave: int
    lane: int | None
    lanes: int
    address: int | None
    tensor: str
    soft: bool = False

    def __str__(self) -> str:
        return self.message

    @property
    def word(self) -> str:
        """What to call it where findings are listed."""
        return "hint" if self.soft else "fault"


@dataclass(slots=True)
class Faults:
    """The findings of one launch. mode: "raise" stops at the first that is not soft, "report" goes on, "off"
    looks for none.

    An access outside memory is never carried out: where the launch goes on, its load gives 0 and its store
    vanishes.
    """

    mode: str = "raise"
    findings: list[Finding] = field(default_factory=list)

    def add(self, finding: Finding) -> None:
        """Keep a finding, unless its instruction has one of its kind already.

        Raises MemoryFault in mode "raise", but for a soft finding.
        """
        what = (finding.kind, finding.assembly_line)
        if self.mode == "off" or what in {(told.kind, told.assembly_line) for told in self.findings}:
            return
        self.findings.append(finding)
        if self.mode == "raise" and not finding.soft:
            raise MemoryFault(finding.message)

    @property
    def table(self) -> pd.DataFrame:
        """A row for each finding."""
        import pandas as pd

        columns = [name for name in Finding.__slots__ if name != "message"]
        rows = [tuple(getattr(finding, name) for name in columns) for finding in self.findings]
        return pd.DataFrame(rows, columns=columns)


def check_mode(mode: str) -> str:
    """`mode` itself. Raises LaunchError where it is none of MODES."""
    if mode not in MODES:
        raise LaunchError(f"faults={mode!r}: choose one of {', '.join(map(repr, MODES))}")
    return mode


class Watcher:
    """Told of what a machine's accesses do wrong; it makes findings. It raises, or the access goes on.

    lanes, addresses: [W, 64], or [W, 1] of a scalar load.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def global_outside(self, error: OutOfRange, instruction: Instruction) -> None:
        """Lanes that reach outside the tensors that their addresses start at."""
        address = first_active(error.addresses, error.lanes)
        memory = self.machine.context.memory
        tensor, where = nearest(memory.of(instruction), address)
        if error.before_base is not None:
            before = first_active(error.before_base, error.lanes)
            where = f"{before:,} bytes before the pointer to `{tensor}` that it starts from"
        stranger = memory.find(address)
        if stranger is not None and stranger.name not in tensor.split("/"):
            where = f"in the memory of `{stranger.name}`, {where}"
        what = f"touches address {address:#x}, {where}. {_who(error.lanes, self.machine)}"
        what += "Check the mask and the offsets of that line."
        self._add("global access outside", what, error.lanes, address, instruction, tensor)

    def beyond_view(self, lanes: np.ndarray, addresses: np.ndarray, instruction: Instruction) -> None:
        """Lanes that leave the view which an argument is, but not the storage that it is a view of."""
        address = first_active(addresses, lanes)
        tensor, where = nearest(self.machine.context.memory.of(instruction), address)
        what = (
            f"touches address {address:#x}, {where}, which is a view: the address is still in its storage, "
            f"so the access is carried out and this is only a hint. {_who(lanes, self.machine)}"
            "Check the mask and the offsets of that line, unless this is meant."
        )
        kind = "global access outside its view"
        self._add(kind, what, lanes, address, instruction, tensor, soft=True)

    def misaligned(
        self, lanes: np.ndarray, addresses: np.ndarray, size: int, instruction: Instruction
    ) -> None:
        """Lanes of an atomic or a scalar load whose address is no multiple of `size`."""
        address = first_active(addresses, lanes)
        tensor, memory = "", f"LDS byte {address}"
        if instruction.kind != "LDS":
            tensor, _ = nearest(self.machine.context.memory.of(instruction), address)
            memory = f"address {address:#x} (`{tensor}`)"
        does = "an atomic faults there"
        if instruction.kind == "SMEM":
            does = "a scalar load ignores the two low bits and reads from before it"
        what = f"touches {memory}, which is no multiple of {size}: {does}. {_who(lanes, self.machine)}"
        what += "Make the pointer a multiple of its element's size."
        self._add("misaligned access", what, lanes, address, instruction, tensor)

    def early_use(self, hazard: Hazard, waves: np.ndarray) -> None:
        """A use of a register that a load in flight is to fill, or a barrier that an LDS write may pass.

        waves: bool [W], who is there.
        """
        load = hazard.load
        if hazard.register is None:
            what = (
                f"lets the other waves go on, while `{load.line.text}` (assembly line {load.line.number}, "
                f"{load.where}) may not be done yet: an s_waitcnt lgkmcnt(0) between the two is missing."
            )
            kind = "barrier before an LDS write is done"
            self._add(kind, what, waves[:, None], None, hazard.instruction)
            return
        what = (
            f"uses {hazard.register}, which `{load.line.text}` "
            f"(assembly line {load.line.number}, {load.where}) may not have filled yet: "
            "an s_waitcnt between the two is missing or waits for too little."
        )
        kind = "register used before its load came back"
        self._add(kind, what, waves[:, None], None, hazard.instruction)

    def lds_outside(self, error: LdsOutOfRange, instruction: Instruction) -> None:
        """Lanes that reach beyond the workgroup's allocation."""
        size = self.machine.state.lds.shape[1]
        what = f"touches LDS byte {{}}, but the workgroup has {size} bytes"
        self._add_lds("LDS access outside", what, error.lanes, error.addresses, instruction)

    def unwritten(self, lanes: np.ndarray, addresses: np.ndarray, instruction: Instruction) -> None:
        """Lanes that read what nothing has written."""
        what = "reads LDS byte {}, which nothing has written: what comes is an earlier workgroup's"
        self._add_lds("LDS read before write", what, lanes, addresses, instruction)

    def race(self, lanes: np.ndarray, addresses: np.ndarray, rival: int, instruction: Instruction) -> None:
        """Lanes whose access another wave's undoes or foresees, by chance."""
        other = "another wave" if rival == SEVERAL else f"wave {rival - 1}"
        what = (
            f"touches LDS byte {{}}, as {other} of the workgroup does with no barrier between, "
            "and one of them writes: which comes first is chance"
        )
        self._add_lds("LDS race", what, lanes, addresses, instruction)

    def _add_lds(
        self, kind: str, what: str, lanes: np.ndarray, addresses: np.ndarray, instruction: Instruction
    ) -> None:
        """`what` leaves a place for the address."""
        address = first_active(addresses, lanes)
        what = f"{what.format(address)}. {_who(lanes, self.machine)}"
        self._add(kind, what, lanes, address, instruction)

    def _add(
        self,
        kind: str,
        what: str,
        lanes: np.ndarray,
        address: int | None,
        instruction: Instruction,
        tensor: str = "",
        soft: bool = False,
    ) -> None:
        workgroup, wave, lane = _where(lanes, self.machine)
        self.machine.faults.add(
            Finding(
                kind,
                f"{instruction.where}: `{instruction.line.text}` {what}",
                instruction.where,
                instruction.line.source_line or 0,
                instruction.line.number,
                instruction.line.text,
                workgroup,
                wave,
                lane if lanes.shape[1] > 1 else None,
                int(np.count_nonzero(lanes)),
                address,
                tensor,
                soft,
            )
        )


def _where(lanes: np.ndarray, machine: Machine) -> tuple[tuple[int, int, int], int, int]:
    """Workgroup, wave in it, and lane of the first of `lanes`, [W, 64] or [W, 1]."""
    wave, lane = (int(axis[0]) for axis in np.nonzero(lanes))
    group, wave_in_group = divmod(wave, machine.state.waves_per_workgroup)
    assert machine.batch is not None
    x, y, z = (int(part) for part in machine.batch.workgroups[group])
    return (x, y, z), wave_in_group, lane


def _who(lanes: np.ndarray, machine: Machine) -> str:
    ids, wave, lane = _where(lanes, machine)
    total = int(np.count_nonzero(lanes))
    who = f"workgroup {ids}, wave {wave}" + (f", lane {lane}" if lanes.shape[1] > 1 else "")
    return f"First: {who}; {total} lane{'s' if total > 1 else ''} at once. "
