"""Run a program: bind its instructions to registers, then let the waves of a batch execute it.

Each wave goes as far as the fast path takes it. An instruction that only NumPy executes is executed for all
waves that stand at it: of the places where waves stand so, the earliest in the program goes first, which
brings waves back together after a branch. Barriers hold a wave until its workgroup has arrived or ended.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from labkit.emulator.arguments import living_tensor
from labkit.emulator.bind import Step, bind, registers_named
from labkit.emulator.counters import Counters
from labkit.emulator.endless import Standing, look_for_endless_loop
from labkit.emulator.faults import Faults, Watcher
from labkit.emulator.global_memory import Context, Witness
from labkit.emulator.launch_memory import LaunchMemory
from labkit.emulator.lds_memory import lds_of
from labkit.emulator.lines import KINDS, LineRecorder
from labkit.emulator.memory import Memory, OutOfRange, first_active
from labkit.emulator.native.fast import Fast
from labkit.emulator.native.operations import Stop
from labkit.emulator.native.plan import CONTROL, Plan
from labkit.emulator.program import Instruction, Program
from labkit.emulator.state import State
from labkit.emulator.traffic import count_access, count_banks
from labkit.emulator.waits import Hazard, find_hazards
from labkit.errors import EndlessKernel


class Observer(Protocol):
    """What watches a run: called "before" and "after" each instruction, and shown each memory access."""

    witness: Witness

    def __call__(self, moment: str, instruction: Instruction, state: State) -> None: ...


# Instructions of one wave after which a launch counts as endless though nothing proves it, as where a counter
# runs for ever. It is so large because it would end honest kernels, too; ours need some ten thousand.
_budget: ContextVar[int] = ContextVar("budget", default=50_000_000)
_fast: ContextVar[bool] = ContextVar("fast", default=True)
# Every so many turns the furthest waves go first, so that a wave which spins on memory lets others write it.
_FAIRNESS = 256
_TURN = 1 << 16  # rows that a wave executes before others have their turn
# After so many rows of one wave, and again each time they have doubled, that wave is watched for some rows:
# can it end at all? By then a launch has run for so long that watching adds little.
_SUSPICIOUS = 1 << 17


@dataclass(frozen=True, slots=True)
class Batch:
    """The workgroups that run together: their ids [n, 3] as (x, y, z)."""

    workgroups: np.ndarray
    kernarg: np.ndarray  # uint8, the kernel's arguments as the ABI lays them out
    lines: LineRecorder | None = None  # takes the cache lines of its accesses


@contextmanager
def limit_instructions(count: int) -> Iterator[None]:
    """Inside the block, a launch counts as endless once a wave has executed so many instructions."""
    token = _budget.set(count)
    try:
        yield
    finally:
        _budget.reset(token)


@contextmanager
def numpy_only() -> Iterator[None]:
    """Inside the block every instruction is executed by its NumPy step, for tests of the fast path."""
    token = _fast.set(False)
    try:
        yield
    finally:
        _fast.reset(token)


class Machine:
    """A program bound to the registers of `workgroups` workgroups."""

    def __init__(self, program: Program, workgroups: int, waves_per_workgroup: int, lds_bytes: int) -> None:
        self.program = program
        vgprs, agprs = registers_named(program)
        waves = workgroups * waves_per_workgroup
        fnuz = program.target == "gfx942"
        self.state = State(waves, waves_per_workgroup, vgprs, agprs, lds_bytes, fnuz)
        self._watcher = Watcher(self)
        self._lds = lds_of(self.state)
        self._lds.watcher = self._watcher
        self.context = Context(
            Memory([]), self._watcher.global_outside, self._discover, self._watcher.misaligned
        )
        self.faults = Faults()
        self._hazards = find_hazards(program)
        self._number = {i.line.number: index for index, i in enumerate(program.instructions)}
        self.counters = Counters.of(program)
        self.batch: Batch | None = None
        self._steps = self._bind()
        self._fast = Fast(self.state)
        self._fast_plan = self._make_plan(fast=True)

    def _bind(self) -> list[Step | None]:
        """Each instruction's NumPy step; branches, barriers and the end have none."""
        return [
            None
            if instruction.operation in CONTROL
            else bind(self.state, instruction, self.context, self._recorder(index))
            for index, instruction in enumerate(self.program.instructions)
        ]

    def _make_plan(self, fast: bool, observer: Observer | None = None) -> Plan:
        """The program as rows. fast: else every instruction is left to its NumPy step."""
        plan = Plan(self.program)
        for number, block in enumerate(self.program.blocks):
            plan.begin_block(number)
            for hazard in self._hazards.get(number, ()):
                plan.add_python(block.first, functools.partial(self._tell_hazard, hazard))
            for index, instruction in enumerate(block.instructions, block.first):
                step = self._steps[index]
                if observer is not None:
                    plan.add_python(index, functools.partial(self._observe, observer, instruction, step))
                elif step is not None and fast:
                    plan.add(index, self._fast.encoder, step)
                elif step is not None:
                    plan.add_python(index, step)
                if step is None:
                    plan.add_control(index)
        return plan

    def _tell_hazard(self, hazard: Hazard) -> None:
        group = self.state.group
        self._watcher.early_use(hazard, np.ones(self.state.waves, bool) if group is None else group[:, 0])

    def _observe(self, observer: Observer, instruction: Instruction, step: Step | None) -> None:
        observer("before", instruction, self.state)
        if step is not None:
            step()
        observer("after", instruction, self.state)

    def _recorder(self, index: int) -> Callable[[np.ndarray, int, np.ndarray], None]:
        def record(addresses: np.ndarray, size: int, lanes: np.ndarray) -> None:
            count_access(self.counters.traffic[index], addresses, size, lanes)

        return record

    def _record_lds(
        self, instruction: Instruction, addresses: np.ndarray, size: int, lanes: np.ndarray, write: bool
    ) -> None:
        total = self.counters.lds_traffic[self._number[instruction.line.number]]
        count_banks(total, addresses, size, lanes, write)

    def _keep_lines(
        self, instruction: Instruction, addresses: np.ndarray, size: int, lanes: np.ndarray
    ) -> None:
        kind = KINDS.index(instruction.kind.removeprefix("VMEM "))
        number, memory = self._number[instruction.line.number], self.context.memory
        self.batch.lines.add(number, kind, memory, addresses, size, lanes)

    def _discover(self, error: OutOfRange, instruction: Instruction) -> bool:
        memory = self.context.memory
        if memory.origin(instruction).anything:
            found = living_tensor(first_active(error.addresses, error.lanes))
            if found is None or any(a.base < found.end and found.base < a.end for a in memory.allocations):
                return False
            memory.add([found])
            return True
        beyond = memory.beyond_view(error, instruction)
        if beyond.any():
            self._watcher.beyond_view(beyond, error.addresses, instruction)
            memory.widen(instruction)
        return bool(beyond.any())

    def run(
        self,
        batch: Batch,
        memory: LaunchMemory,
        counters: Counters,
        faults: Faults,
        observer: Observer | None = None,
    ) -> None:
        """Execute the batch to its end. Changes the memory's tensors; adds to `counters` and `faults`.

        Raises MemoryFault at the first fault where `faults` says so.
        """
        self.batch, self.context.memory, self.counters, self.faults = batch, memory, counters, faults
        self.context.witness = self._lds.witness = observer.witness if observer else None
        self._initialize(batch)
        waves = self.state.waves
        self._lds.begin(checked=faults.mode != "off")
        self._lds.record = self._record_lds if counters.enabled else None
        self.context.counting = counters.enabled
        self.context.keep_lines = self._keep_lines if batch.lines is not None else None
        self._fast.begin(memory, counters, batch.lines)
        fast = _fast.get() and observer is None
        self.plan = self._fast_plan if fast else self._make_plan(fast=False, observer=observer)
        self._fast.use(self.plan)
        start = np.full(waves, self.plan.block_at[self.program.entry])
        self.standing = Standing(start, np.zeros(waves, np.int64), np.zeros(waves, np.int64))
        spent = self.standing.spent
        budget, suspicious = _budget.get(), _SUSPICIOUS
        turn = min(_TURN, budget)
        with np.errstate(all="ignore"):
            for number in itertools.count(1):
                if self.take_turn(turn, last=number % _FAIRNESS == 0):
                    return
                if spent.max() > budget:
                    where = self.where(int(self.standing.at[np.argmax(spent)]))
                    raise EndlessKernel(
                        f"kernel `{self.program.name}` ran {budget:,} instructions without ending. "
                        f"Look for a loop that never stops near {where}."
                    )
                if spent.max() > suspicious:
                    suspicious = 2 * int(spent.max())
                    look_for_endless_loop(self, budget)

    def take_turn(self, turn: int, last: bool = False) -> bool:
        """Let each wave execute up to `turn` rows; True once all have ended.

        A row without a fast path is executed for all waves that stand there: the first such row, or the last.
        """
        at, stop, spent = self.standing.at, self.standing.stop, self.standing.spent
        self._fast.run(np.flatnonzero(stop == Stop.RUNNING), at, stop, spent, turn)
        self._release(stop)
        left = stop == Stop.NUMPY
        if not left.any():
            # A barrier lets go as its last wave arrives, so nobody is left waiting.
            return bool((stop == Stop.ENDED).all())
        places = at[left]
        row = int(places.max() if last else places.min())
        here = left & (at == row)
        self.state.set_group(None if here.all() else here[:, None])
        self.plan.steps[row]()
        at[here], stop[here] = row + 1, Stop.RUNNING
        spent[here] += 1
        return False

    def run_alone(self, wave: int) -> None:
        """Let one wave execute rows while the others stand still."""
        waves = self.standing
        self._fast.run(np.array([wave]), waves.at, waves.stop, waves.spent, _TURN)

    def where(self, row: int) -> str:
        """The source line of a row, or of the nearest one before it that has one."""
        before = self.program.instructions[: self.plan.numbers[row] + 1]
        return next((i.where for i in reversed(before) if i.line.source_line), "its first line")

    def _release(self, stop: np.ndarray) -> None:
        """Let a workgroup pass its barrier once every wave of it waits or has ended."""
        waiting = (stop == Stop.BARRIER).reshape(-1, self.state.waves_per_workgroup)
        if not waiting.any():
            return
        arrived = (waiting | (stop == Stop.ENDED).reshape(waiting.shape)).all(axis=1)
        self._lds.pass_barrier(np.flatnonzero(arrived & waiting.any(axis=1)))
        stop.reshape(waiting.shape)[arrived[:, None] & waiting] = Stop.RUNNING

    def _initialize(self, batch: Batch) -> None:
        """Set the registers that a wave finds at its start (LLVM, "Initial Kernel Execution State")."""
        state, descriptor = self.state, self.program.descriptor
        state.reset()
        thread = np.arange(state.waves_per_workgroup * 64, dtype=np.uint32).reshape(-1, 64)
        state.v[0] = np.tile(thread, (len(batch.workgroups), 1))
        at = self.program.user_sgprs
        if (pointer := at.get("kernarg_segment_ptr")) is not None:
            address = batch.kernarg.ctypes.data
            state.s[pointer], state.s[pointer + 1] = address & 0xFFFFFFFF, address >> 32
        words = batch.kernarg.view(np.uint32)
        first = descriptor.get("user_sgpr_kernarg_preload_offset", 0)
        for k in range(descriptor.get("user_sgpr_kernarg_preload_length", 0)):
            if first + k < words.size:
                state.s[at["kernarg_preload"] + k] = words[first + k]
        next_register = descriptor["user_sgpr_count"]
        for axis, letter in enumerate("xyz"):
            if descriptor.get(f"system_sgpr_workgroup_id_{letter}", 0):
                ids = np.repeat(batch.workgroups[:, axis], state.waves_per_workgroup)
                state.s[next_register] = ids.astype(np.uint32)[:, None]
                next_register += 1
