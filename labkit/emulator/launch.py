"""One launch on the emulated chip: its grid, its arguments, what it executed; and the record of launches."""

from __future__ import annotations

import html
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.emulator.arguments import TensorArgument
from labkit.emulator.counters import Counters
from labkit.emulator.faults import Faults, Finding
from labkit.emulator.launch_memory import LaunchMemory
from labkit.emulator.lines import hand_over, line_recorder
from labkit.emulator.machine import Batch, Machine, Observer
from labkit.emulator.program import Program
from labkit.errors import LabkitError, LaunchError

if TYPE_CHECKING:
    from labkit.compiler import Compiled

# Waves that run side by side: enough that what a step in NumPy costs a call is small, few enough that their
# registers stay near the core.
WAVES_AT_ONCE = 128
_LARGEST_GRID = 2**31 - 1  # HIP's limit of a dimension


@dataclass(slots=True)
class Launch:
    """What one `kernel[grid](...)` did on the emulated chip.

    compiled: every stage of the compiled kernel; counters: what was executed (counted, not timed);
    faults: what it did that it must not do, none where labkit.start was told faults="off".
    """

    name: str
    grid: tuple[int, int, int]
    compiled: Compiled
    counters: Counters
    chip: str
    arguments: dict[str, str] = field(default_factory=dict)
    faults: list[Finding] = field(default_factory=list)

    def _repr_html_(self) -> str:
        found = "".join(
            f"<p>{finding.word.title()}: {html.escape(str(finding))}</p>" for finding in self.faults
        )
        return f"<p>{self}</p>{found}{self.counters.summary().to_html(index=False)}"

    def __str__(self) -> str:
        grid = " x ".join(str(size) for size in self.grid)
        return (
            f"{self.name}, {grid} workgroups of {self.compiled.num_warps} waves, on an emulated {self.chip}"
        )


# A function that runs in place of `execute`, for labkit.trace: it returns no counters.
interceptor: ContextVar[Callable[[Call, Faults], None] | None] = ContextVar("interceptor", default=None)
_lock = threading.RLock()
_last: list[Launch] = []  # the last launch of this process, at most one
_recorders: list[list[Launch]] = []


def last_launch() -> Launch:
    """The latest launch on the emulated chip. Raises LabkitError where there has been none."""
    if not _last:
        raise LabkitError(
            "no kernel has run on the emulated chip yet: call labkit.start(), then launch one as "
            "kernel[grid](...) on CPU tensors. A launch on a real GPU is not counted."
        )
    return _last[0]


@contextmanager
def record() -> Iterator[list[Launch]]:
    """Collect every launch made inside the block: `with labkit.record() as launches: ...`."""
    launches: list[Launch] = []
    with _lock:
        _recorders.append(launches)
    try:
        yield launches
    finally:
        with _lock:
            # By identity: two recorders with equal launches are still two.
            _recorders[:] = [recorder for recorder in _recorders if recorder is not launches]


def remember(launch: Launch) -> None:
    """Make `launch` the last one and hand it to the open recorders."""
    with _lock:
        _last[:] = [launch]
        for recorder in _recorders:
            recorder.append(launch)


def check_grid(grid: Sequence[Any]) -> tuple[int, int, int]:
    """A grid as three positive ints. Raises LaunchError that names the bad dimension."""
    sizes = []
    for axis, size in enumerate(grid):
        try:
            number = operator.index(size)
        except TypeError:
            raise LaunchError(f"grid dimension {axis} is {size!r}: pass a whole number") from None
        if not 1 <= number <= _LARGEST_GRID:
            raise LaunchError(
                f"grid dimension {axis} is {number}: it must be between 1 and {_LARGEST_GRID:,}. "
                "Is the tensor empty, or the block size larger than it should be?"
            )
        sizes.append(number)
    return (sizes[0], sizes[1] if len(sizes) > 1 else 1, sizes[2] if len(sizes) > 2 else 1)


@dataclass(frozen=True, slots=True)
class Call:
    """What a launch asks of the chip. kernarg: the kernel's arguments as the ABI lays them out, uint8.

    types: argument name -> its type as Triton writes it, such as "*fp32".
    """

    program: Program
    grid: tuple[int, int, int]
    kernarg: np.ndarray
    tensors: list[TensorArgument]
    num_warps: int
    lds_bytes: int
    types: dict[str, str] = field(default_factory=dict)

    def memory(self, checked: bool) -> LaunchMemory:
        """The memory that the kernel may touch: its tensors, its arguments, and tables beside its code."""
        return LaunchMemory(self.program, self.tensors, self.kernarg, checked)

    def machine(self, workgroups: int) -> Machine:
        """A machine of this shape, kept with the program so that the next launch binds nothing again."""
        bound, key = self.program.bound, (workgroups, self.num_warps, self.lds_bytes)
        if key not in bound:
            # A launch needs two shapes: its full batches and its last one.
            while len(bound) >= 2:
                del bound[next(iter(bound))]
            bound[key] = Machine(self.program, *key)
        return bound[key]


def execute(call: Call, counters: Counters, faults: Faults) -> None:
    """Run every workgroup of the grid: changes the allocations' memory, adds to `counters` and `faults`.

    Raises MemoryFault at the first fault where `faults` says so, EndlessKernel past the budget.
    """
    memory = call.memory(checked=faults.mode != "off")
    total = call.grid[0] * call.grid[1] * call.grid[2]
    at_once = max(1, WAVES_AT_ONCE // call.num_warps)
    recorder = line_recorder()
    with _lock:
        try:
            for start in range(0, total, at_once):
                linear = np.arange(start, min(start + at_once, total))
                lines = recorder if recorder is not None and recorder.begin_batch(linear) else None
                batch = Batch(workgroup_ids(linear, call.grid), call.kernarg, lines)
                call.machine(len(linear)).run(batch, memory, counters, faults)
        finally:
            counters.add_tensors(memory.tensors)
            hand_over(recorder, call.program.name, call.grid)


def execute_one(call: Call, workgroup: tuple[int, int, int], faults: Faults, observer: Observer) -> None:
    """Run one workgroup alone and let `observer` see every instruction. Adds to `faults`, as `execute`."""
    if any(not 0 <= at < size for at, size in zip(workgroup, call.grid, strict=True)):
        last = tuple(size - 1 for size in call.grid)
        raise LaunchError(
            f"workgroup {workgroup} is not in the grid {call.grid}: choose one from (0, 0, 0) to {last}"
        )
    batch = Batch(np.array([workgroup]), call.kernarg)
    with _lock:
        memory = call.memory(checked=faults.mode != "off")
        call.machine(1).run(batch, memory, Counters.of(call.program), faults, observer)


def workgroup_ids(linear: np.ndarray, grid: tuple[int, int, int]) -> np.ndarray:
    """(x, y, z) of workgroups by their number in dispatch order: x runs first."""
    x, rest = linear % grid[0], linear // grid[0]
    return np.stack((x, rest % grid[1], rest // grid[1]), axis=1)
