"""Run a program: bind its instructions to registers, then advance waves block by block.

All waves of a batch run together. Of the places where waves stand, the earliest block in the program goes
first, with every wave that stands there: that brings waves back together after a branch. Barriers hold a
wave until its whole workgroup has arrived or ended.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from labkit.emulator import (  # noqa: F401  (each vector_ module fills the table of vector)
    cdna4,
    matrix,
    packed,
    scalar_forms,
    vector_compare,
    vector_convert,
    vector_division,
    vector_float,
    vector_integer,
)
from labkit.emulator.arguments import living_tensor
from labkit.emulator.counters import Counters, Traffic
from labkit.emulator.crosslane import CROSSLANE
from labkit.emulator.faults import Faults, Watcher
from labkit.emulator.global_memory import Context, Recorder, bind_global, bind_scalar_load
from labkit.emulator.launch_memory import LaunchMemory
from labkit.emulator.lds import bind_lds
from labkit.emulator.lds_memory import lds_of
from labkit.emulator.memory import Memory, OutOfRange, first_active
from labkit.emulator.operands import EXEC, VCC, Register
from labkit.emulator.permute import PERMUTE
from labkit.emulator.program import Instruction, Program, branch_target
from labkit.emulator.scalar import SCALAR, bind_scalar
from labkit.emulator.scratch import bind_scratch
from labkit.emulator.state import State
from labkit.emulator.vector import VECTOR, bind_vector
from labkit.emulator.waits import find_hazards
from labkit.errors import EndlessKernel

Step = Callable[[], None]
# Called "before" and "after" each instruction: (moment, instruction, state).
Observer = Callable[[str, Instruction, State], None]

# Instructions of one batch after which a launch counts as endless. Our own kernels need some ten thousand.
_budget: ContextVar[int] = ContextVar("budget", default=20_000_000)
# Every so many blocks the furthest waves go first, so that a wave which spins on memory lets others write it.
_FAIRNESS = 256

_SPECIAL: dict[str, Callable[[State, Instruction], Step]] = {
    **CROSSLANE,
    **packed.PACKED,
    **scalar_forms.SCALAR_FORMS,
    **matrix.MATRIX,
    **cdna4.CDNA4,
    **PERMUTE,
}
_CONDITIONS: dict[str, Callable[[State], np.ndarray]] = {
    "s_cbranch_scc0": lambda state: ~state.scc,
    "s_cbranch_scc1": lambda state: state.scc,
    "s_cbranch_vccz": lambda state: (state.s[VCC] | state.s[VCC + 1]) == 0,
    "s_cbranch_vccnz": lambda state: (state.s[VCC] | state.s[VCC + 1]) != 0,
    "s_cbranch_execz": lambda state: (state.s[EXEC] | state.s[EXEC + 1]) == 0,
    "s_cbranch_execnz": lambda state: (state.s[EXEC] | state.s[EXEC + 1]) != 0,
}
_CONTROL = {*_CONDITIONS, "s_branch", "s_endpgm", "s_barrier"}
_ENDED = -1


def bind(state: State, instruction: Instruction, context: Context, record: Recorder) -> Step:
    """The step that executes one instruction on `state`. Raises UnsupportedInstruction for an unknown one."""
    operation = instruction.operation
    if operation in _SPECIAL:
        return _SPECIAL[operation](state, instruction)
    if operation in VECTOR:
        return bind_vector(state, instruction)
    if operation in SCALAR:
        return bind_scalar(state, instruction)
    if operation.startswith("s_load_dword"):
        return bind_scalar_load(state, instruction, context)
    if operation.startswith(("global_", "flat_", "buffer_")):
        return bind_global(state, instruction, context, record)
    if operation.startswith("ds_"):
        return bind_lds(state, instruction)
    if operation.startswith("scratch_"):
        return bind_scratch(state, instruction)
    raise instruction.refuse("this instruction is not implemented")


@dataclass(frozen=True, slots=True)
class Batch:
    """The workgroups that run together: their ids [n, 3] as (x, y, z)."""

    workgroups: np.ndarray
    kernarg: np.ndarray  # uint8, the kernel's arguments as the ABI lays them out


@contextmanager
def limit_instructions(count: int) -> Iterator[None]:
    """Inside the block, a launch counts as endless once a batch has executed so many instructions."""
    token = _budget.set(count)
    try:
        yield
    finally:
        _budget.reset(token)


class Machine:
    """A program bound to the registers of `workgroups` workgroups."""

    def __init__(self, program: Program, workgroups: int, waves_per_workgroup: int, lds_bytes: int) -> None:
        self.program = program
        vgprs, agprs = _registers_named(program)
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
        self.counters = Counters.of(program)
        self.batch: Batch | None = None
        self._steps = [self._bind_block(number) for number in range(len(program.blocks))]

    def _bind_block(self, number: int) -> list[tuple[Instruction, Step]]:
        block = self.program.blocks[number]
        return [
            (instruction, bind(self.state, instruction, self.context, self._recorder(block.first + offset)))
            for offset, instruction in enumerate(block.instructions)
            if instruction.operation not in _CONTROL
        ]

    def _recorder(self, index: int) -> Callable[[np.ndarray, int, np.ndarray], None]:
        def record(addresses: np.ndarray, size: int, lanes: np.ndarray) -> None:
            self.counters.traffic.setdefault(index, Traffic()).add(addresses, size, lanes)

        return record

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
        self._initialize(batch)
        waves = self.state.waves
        self._lds.begin(checked=faults.mode != "off")
        self._pc = np.full(waves, self.program.entry)
        self._waiting = np.zeros(waves, bool)
        with np.errstate(all="ignore"):
            executed, budget = 0, _budget.get()
            for turn in itertools.count(1):
                runnable = (self._pc != _ENDED) & ~self._waiting
                if not runnable.any():
                    return  # a barrier lets go as its last wave arrives, so nobody is left waiting
                places = self._pc[runnable]
                number = int(places.max() if turn % _FAIRNESS == 0 else places.min())
                self._run_block(number, runnable & (self._pc == number), observer)
                executed += len(self.program.blocks[number].instructions)
                if executed > budget:
                    raise EndlessKernel(
                        f"kernel `{self.program.name}` ran {budget:,} instructions without ending. "
                        f"Look for a loop that never stops near {self._where(number)}."
                    )

    def _where(self, number: int) -> str:
        """The first source line of a block, or of the nearest block before it that has one."""
        before = [i for block in self.program.blocks[: number + 1] for i in block.instructions]
        here = self.program.blocks[number].instructions
        return next((i.where for i in (*here, *reversed(before)) if i.line.source_line), "its first line")

    def _run_block(self, number: int, here: np.ndarray, observer: Observer | None) -> None:
        state = self.state
        state.set_group(None if here.all() else here[:, None])
        self.counters.executions[number] += int(np.count_nonzero(here))
        self.counters.lanes[number] += state.lane_mask().count
        for hazard in self._hazards.get(number, ()):
            self._watcher.early_use(hazard, here)
        if observer is None:
            for _, step in self._steps[number]:
                step()
        else:
            for instruction, step in self._steps[number]:
                observer("before", instruction, state)
                step()
                observer("after", instruction, state)
        last = self.program.blocks[number].instructions[-1]
        if observer is not None and last.operation in _CONTROL:
            observer("before", last, state)
            observer("after", last, state)
        self._advance(number, last, here)

    def _advance(self, number: int, last: Instruction, here: np.ndarray) -> None:
        """Move the waves that ran block `number` to their next block."""
        operation = last.operation
        if operation == "s_endpgm":
            self._pc[here] = _ENDED
            self._release()
        elif operation == "s_branch":
            self._pc[here] = self._target(last)
        elif operation in _CONDITIONS:
            taken = _CONDITIONS[operation](self.state)[:, 0]
            self._pc[here] = np.where(taken[here], self._target(last), number + 1)
        else:
            self._pc[here] = number + 1
            if operation == "s_barrier":
                self._waiting |= here
                self._release()

    def _target(self, branch: Instruction) -> int:
        return self.program.block_of_label[branch_target(branch)]

    def _release(self) -> None:
        """Let a workgroup pass its barrier once every wave of it waits or has ended."""
        shape = (-1, self.state.waves_per_workgroup)
        arrived = (self._waiting | (self._pc == _ENDED)).reshape(shape).all(axis=1)
        self._lds.pass_barrier(np.flatnonzero(arrived & self._waiting.reshape(shape).any(axis=1)))
        self._waiting &= ~np.repeat(arrived, self.state.waves_per_workgroup)

    def _initialize(self, batch: Batch) -> None:
        """Set the registers that a wave finds at its start (LLVM, "Initial Kernel Execution State")."""
        state, descriptor = self.state, self.program.descriptor
        state.reset()
        thread = np.arange(state.waves_per_workgroup * 64, dtype=np.uint32).reshape(-1, 64)
        state.v[0] = np.tile(thread, (len(batch.workgroups), 1))
        next_register = 0
        for name, count in _USER_SGPRS:
            if not descriptor.get(f"user_sgpr_{name}", 0):
                continue
            if name == "kernarg_segment_ptr":
                address = batch.kernarg.ctypes.data
                state.s[next_register], state.s[next_register + 1] = address & 0xFFFFFFFF, address >> 32
            next_register += count
        words = batch.kernarg.view(np.uint32)
        first = descriptor.get("user_sgpr_kernarg_preload_offset", 0)
        for k in range(descriptor.get("user_sgpr_kernarg_preload_length", 0)):
            if first + k < words.size:
                state.s[next_register + k] = words[first + k]
        next_register = descriptor["user_sgpr_count"]
        for axis, letter in enumerate("xyz"):
            if descriptor.get(f"system_sgpr_workgroup_id_{letter}", 0):
                ids = np.repeat(batch.workgroups[:, axis], state.waves_per_workgroup)
                state.s[next_register] = ids.astype(np.uint32)[:, None]
                next_register += 1


# In this order, each with its number of registers (LLVM AMDGPU usage guide, "SGPR register set up order").
_USER_SGPRS = (
    ("private_segment_buffer", 4),
    ("dispatch_ptr", 2),
    ("queue_ptr", 2),
    ("kernarg_segment_ptr", 2),
    ("dispatch_id", 2),
    ("flat_scratch_init", 2),
    ("private_segment_size", 1),
)


def _registers_named(program: Program) -> tuple[int, int]:
    """How many vector and accumulation registers the program's operands reach."""
    highest = {"v": 1, "a": 0, "s": 0}
    for instruction in program.instructions:
        for operand in instruction.operands:
            if isinstance(operand, Register):
                highest[operand.file] = max(highest[operand.file], operand.index + operand.count)
    return highest["v"], highest["a"]
