"""Step through one wave of a launch: every instruction it executes, its EXEC and what it wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.emulator.launch import Call, execute_one, interceptor
from labkit.emulator.operands import EXEC, M0, VCC
from labkit.emulator.program import Instruction
from labkit.errors import LabkitError, LaunchError

if TYPE_CHECKING:
    import pandas as pd

    from labkit.emulator.state import State


@dataclass(frozen=True, slots=True)
class Step:
    """One executed instruction. written: register name -> its new bits, [64] for vector, [1] for scalar."""

    instruction: Instruction
    exec_mask: int
    written: dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Trace:
    """What one wave executed, in order."""

    name: str
    workgroup: tuple[int, int, int]
    wave: int
    executed: list[Step]

    @property
    def steps(self) -> pd.DataFrame:
        """A row a step: assembly_line, source_line, instruction, exec (64 bits), active_lanes, written."""
        import pandas as pd

        rows = [
            (
                number,
                step.instruction.line.number,
                step.instruction.line.source_line,
                step.instruction.line.text,
                step.exec_mask,
                step.exec_mask.bit_count(),
                ", ".join(step.written),
            )
            for number, step in enumerate(self.executed)
        ]
        columns = ["step", "assembly_line", "source_line", "instruction", "exec", "active_lanes", "written"]
        return pd.DataFrame(rows, columns=columns)

    def exec_lanes(self) -> np.ndarray:
        """EXEC at each step as bools [steps, 64]: lane by lane over time."""
        masks = np.array([step.exec_mask for step in self.executed], np.uint64)
        return (masks[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)).astype(bool)

    def lane(self, lane: int, kind: str = "f4") -> pd.DataFrame:
        """What one lane's registers became, step by step; `kind` is the NumPy type to decode the value as."""
        import pandas as pd

        rows = []
        for number, step in enumerate(self.executed):
            for register, bits in step.written.items():
                value = bits[lane] if bits.size > 1 else bits[0]
                decoded = np.array([value], np.uint32).view(kind)[0]
                rows.append((number, step.instruction.line.text, register, f"{int(value):#010x}", decoded))
        return pd.DataFrame(rows, columns=["step", "instruction", "register", "hex", "value"])


def trace(
    kernel: Any,
    grid: Any,
    args: tuple = (),
    kwargs: dict[str, Any] | None = None,
    workgroup: tuple[int, int, int] = (0, 0, 0),
    wave: int = 0,
) -> Trace:
    """Run one workgroup of `kernel[grid](*args, **kwargs)` and watch one of its waves.

    The other workgroups do not run. The workgroup's stores do happen, in the tensors given.
    Raises LaunchError for a workgroup or wave that the launch doesn't have, LabkitError where no emulated
    chip is current.
    """
    if not hasattr(kernel, "__getitem__"):
        raise LaunchError(f"expected a function decorated with @triton.jit, got {type(kernel).__name__}")
    executed: list[Step] = []
    names: list[str] = []

    def watch(call: Call) -> None:
        if not 0 <= wave < call.num_warps:
            waves = f"a workgroup of this launch has {call.num_warps} waves"
            raise LaunchError(f"wave {wave} does not exist: {waves}")
        names.append(call.program.name)
        execute_one(call, workgroup, _Recorder(wave, executed))

    token = interceptor.set(watch)
    try:
        kernel[grid](*args, **(kwargs or {}))
    finally:
        interceptor.reset(token)
    if not names:
        raise LabkitError(
            "this launch ran on a real GPU, which cannot be traced: call labkit.start('MI300X') first"
        )
    return Trace(names[0], workgroup, wave, executed)


class _Recorder:
    """The observer that keeps the steps of one wave."""

    def __init__(self, wave: int, executed: list[Step]) -> None:
        self.wave, self.executed = wave, executed
        self._exec = 0

    def __call__(self, moment: str, instruction: Instruction, state: State) -> None:
        if state.group is not None and not state.group[self.wave, 0]:
            return
        if moment == "before":
            low, high = (int(state.s[EXEC + k][self.wave, 0]) for k in (0, 1))
            self._exec = low | high << 32
        else:
            self.executed.append(Step(instruction, self._exec, _written(state, instruction, self.wave)))


def _written(state: State, instruction: Instruction, wave: int) -> dict[str, np.ndarray]:
    """The destination registers' new values: a store, branch or wait writes none."""
    if not instruction.has_result:
        return {}
    parts = instruction.operands[0].parts
    return {_name(file, number): getattr(state, file)[number][wave].copy() for file, number in parts}


def _name(file: str, number: int) -> str:
    special = {VCC: "vcc_lo", VCC + 1: "vcc_hi", EXEC: "exec_lo", EXEC + 1: "exec_hi", M0: "m0"}
    return special.get(number, f"s{number}") if file == "s" else f"{file}{number}"
