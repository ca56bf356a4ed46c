"""Step through one wave of a launch: each instruction it executes, with its registers, EXEC and addresses."""

from __future__ import annotations

import html
import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.emulator.faults import Faults, Finding
from labkit.emulator.launch import Call, execute_one, interceptor
from labkit.emulator.recorder import StepRecorder
from labkit.emulator.steps import Step, Value
from labkit.errors import LabkitError, LaunchError

if TYPE_CHECKING:
    import pandas as pd

_ROWS_SHOWN = 40  # steps of a trace that a notebook shows


@dataclass(frozen=True, slots=True)
class Trace:
    """What one wave executed, in order. `trace[10:20]` is the part with the steps 10 to 19.

    faults: what the workgroup did that it must not do, where labkit.start was told faults="report".
    """

    name: str
    workgroup: tuple[int, int, int]
    wave: int
    executed: list[Step]
    faults: list[Finding] = field(default_factory=list)

    @property
    def table(self) -> pd.DataFrame:
        """A row a step: its lines, instruction, EXEC (64 bits) before it, what it read, wrote and touched.

        Of a vector register it shows some of the lanes that are on, of memory the byte in the tensor.
        """
        import pandas as pd

        columns = ["step", "source_line", "assembly_line", "instruction", "exec", "active_lanes"]
        rows = [
            (
                step.number,
                step.instruction.line.source_line,
                step.instruction.line.number,
                step.instruction.line.text,
                step.exec_mask,
                step.exec_mask.bit_count(),
                *step.texts(),
            )
            for step in self.executed
        ]
        return pd.DataFrame(rows, columns=[*columns, "read", "written", "memory"])

    def lane(self, lane: int) -> pd.DataFrame:
        """What one lane saw: a row for each register that a step read or wrote, decoded by its type.

        on: whether EXEC had the lane on; a vector register of a lane that is off keeps its value.
        """
        import pandas as pd

        _check_range("lane", lane, 64)
        rows = [
            (
                step.number,
                step.instruction.line.source_line,
                step.instruction.line.text,
                bool(step.exec_mask >> lane & 1),
                access,
                value.typed.name,
                value.typed.type,
                value.in_lane(lane),
            )
            for step in self.executed
            for access, values in (("read", step.reads), ("written", step.writes))
            for value in values
        ]
        columns = ["step", "source_line", "instruction", "on", "access", "register", "type", "value"]
        return pd.DataFrame(rows, columns=columns)

    def exec_lanes(self) -> np.ndarray:
        """EXEC at each step as bools [steps, 64]: lane by lane over time."""
        masks = np.array([step.exec_mask for step in self.executed], np.uint64)
        return (masks[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)).astype(bool)

    def register(self, name: str) -> list[tuple[Step, Value]]:
        """The steps that wrote the vector register `name` ("v2", "a0"), each with what it held after.

        Raises LabkitError for what is no vector register, or one that no step wrote.
        """
        match = re.fullmatch(r"([va])(\d+)", name) if isinstance(name, str) else None
        if match is None:
            raise LabkitError(
                f"{name!r} is not a vector register: give one by its name, such as 'v2'. A scalar register "
                "has no lanes; trace.table shows its value."
            )
        found = [
            (step, _part(value, int(match[2])))
            for step in self.executed
            for value in step.writes
            if (match[1], int(match[2])) in value.typed.register.parts
        ]
        if not found:
            written = {register for step in self.executed for register in step.written}
            known = sorted((r for r in written if r[0] in "va" and r[1:].isdigit()), key=_in_order)
            raise LabkitError(f"no step wrote {name}; these were written: {', '.join(known) or 'none'}")
        return found

    def memory_step(self, number: int) -> Step:
        """The step with this number, which touches memory. Raises LabkitError where it doesn't."""
        reaching = {step.number: step for step in self.executed if step.accesses}
        if number not in reaching:
            listed = ", ".join(map(str, list(reaching)[:12])) + (", ..." if len(reaching) > 12 else "")
            raise LabkitError(f"step {number} touches no memory; these do: {listed or 'none of this trace'}")
        return reaching[number]

    def __len__(self) -> int:
        return len(self.executed)

    def __getitem__(self, steps: slice) -> Trace:
        if not isinstance(steps, slice) or steps.step is not None:
            raise LabkitError("a trace is cut as trace[first:last]; trace.executed[n] is one step")
        return replace(self, executed=self.executed[steps])

    def __str__(self) -> str:
        return f"{self.name}, workgroup {self.workgroup}, wave {self.wave}: {len(self)} steps"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = ("step", "line", "instruction", "lanes on", "read", "written", "memory")
        rows = [
            (
                step.number,
                step.instruction.line.source_line or "",
                step.instruction.line.text,
                step.exec_mask.bit_count(),
                *step.texts(),
            )
            for step in self.executed[:_ROWS_SHOWN]
        ]
        more = ""
        if len(self) > _ROWS_SHOWN:
            more = f"<p>The first {_ROWS_SHOWN} steps; trace[{_ROWS_SHOWN}:] has the rest.</p>"
        faults = "".join(
            f"<p>{finding.word.title()}: {html.escape(str(finding))}</p>" for finding in self.faults
        )
        return f"<p>{html.escape(str(self))}</p>{faults}<table>{_row(head, 'th')}{_body(rows)}</table>{more}"


def trace(
    kernel: Any,
    grid: Any,
    args: tuple = (),
    kwargs: dict[str, Any] | None = None,
    workgroup: tuple[int, ...] = (0, 0, 0),
    wave: int = 0,
) -> Trace:
    """Run one workgroup of `kernel[grid](*args, **kwargs)` and watch one of its waves.

    The other workgroups do not run. The workgroup's stores do happen, in the tensors given. workgroup may
    leave out y and z. Where the kernel is launched several times (by an autotuner), the last launch counts.
    Raises LaunchError for a workgroup or wave that the launch doesn't have, MemoryFault as a launch does,
    LabkitError where no emulated chip is current.
    """
    if not hasattr(kernel, "__getitem__"):
        raise LaunchError(f"expected a function decorated with @triton.jit, got {type(kernel).__name__}")
    if not isinstance(args, tuple | list):
        raise LaunchError(f"args is of type {type(args).__name__}: pass the kernel's arguments as a tuple")
    place = _workgroup(workgroup)
    traces: list[Trace] = []

    def watch(call: Call, faults: Faults) -> None:
        _check_range("wave", wave, call.num_warps, f"; a workgroup of this launch has {call.num_warps} waves")
        recorder = StepRecorder(wave, call.program.target == "gfx942")
        execute_one(call, place, faults, recorder)
        traces.append(Trace(call.program.name, place, wave, recorder.steps(call.types), faults.findings))

    token = interceptor.set(watch)
    try:
        kernel[grid](*args, **(kwargs or {}))
    finally:
        interceptor.reset(token)
    if not traces:
        raise LabkitError(
            "this launch ran on a real GPU, which cannot be traced: call labkit.start('MI300X') first"
        )
    return traces[-1]


def _workgroup(place: Any) -> tuple[int, int, int]:
    sizes = tuple(place) if isinstance(place, tuple | list) else (place,)
    try:
        numbers = [operator.index(number) for number in sizes]
    except TypeError:
        numbers = []
    if not 1 <= len(numbers) <= 3:
        raise LaunchError(f"workgroup={place!r}: pass its number in each dimension of the grid, as (x, y, z)")
    x, y, z = [*numbers, 0, 0][:3]
    return x, y, z


def _check_range(what: str, number: Any, count: int, why: str = "") -> None:
    try:
        inside = 0 <= operator.index(number) < count
    except TypeError:
        inside = False
    if not inside:
        raise LaunchError(f"{what} {number!r} does not exist: choose one from 0 to {count - 1}{why}")


def _part(value: Value, number: int) -> Value:
    """What one register of several holds."""
    typed = value.typed.part(number)
    if typed is value.typed:
        return value
    first = number - value.typed.register.index
    return Value(typed, value.bits[first : first + 1])


def _in_order(register: str) -> tuple[str, int]:
    return register[0], int(register[1:])


def _row(cells: Iterable[Any], tag: str = "td") -> str:
    left = f'<{tag} style="text-align: left">'
    return f"<tr>{''.join(f'{left}{html.escape(str(cell))}</{tag}>' for cell in cells)}</tr>"


def _body(rows: list[tuple]) -> str:
    return "".join(map(_row, rows))
