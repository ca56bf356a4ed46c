"""What the fast path works on: a machine's registers, and the tables of the present launch."""

from __future__ import annotations

import functools

import numpy as np

from labkit.emulator.counters import Counters
from labkit.emulator.lds_memory import lds_of
from labkit.emulator.lines import LineRecorder
from labkit.emulator.memory import Memory
from labkit.emulator.native.interpreter import run
from labkit.emulator.native.operations import CHIP
from labkit.emulator.native.plan import Plan
from labkit.emulator.native.rows import Encoder
from labkit.emulator.rounding import FP8_FORMATS, fp8_bytes, fp8_values
from labkit.emulator.state import LANES, State
from labkit.emulator.traffic import LDS_PHASES

# 32-bit words of each of CHIP's scratch fields.
_SCRATCH = {"operands": 6 * LANES, "result": 8 * LANES, "places": 2 * LANES, "seen": 2 * LANES,
            "banks": 2 * 32 * 34, "left": 128 * 32, "right": 128 * 32, "product": 32 * 32}  # fmt: skip


class Fast:
    """The fast path of one machine."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.encoder = Encoder(len(state.v))
        self.chip = np.zeros(1, CHIP)
        self._kept: dict[str, np.ndarray] = {}  # what the addresses in `chip` point to
        self._plan: Plan | None = None
        self._told: tuple = ()  # for which memory, at how many changes, and recorder the ranges in `chip` are
        self._tell(**{name: np.zeros(words, np.uint32) for name, words in _SCRATCH.items()})
        self._tell(v=state.registers, s=state.s, scc=state.scc, saturate=state.fp16_overflow)
        formats = FP8_FORMATS[state.fnuz]
        values = np.stack([fp8_values(formats[name]) for name in ("fp8", "bf8")])
        self._tell(to_fp8=_to_fp8(state.fnuz), from_fp8=values, phases=LDS_PHASES)
        self.chip["count"] = LANES
        for name in ("waves", "waves_per_workgroup", "pitch"):
            self.chip[name] = getattr(state, name)

    def _tell(self, **arrays: np.ndarray) -> None:
        """Put the addresses of these arrays into `chip`."""
        self._kept.update(arrays)
        for name, array in arrays.items():
            self.chip[name] = array.ctypes.data

    def begin(self, memory: Memory, counters: Counters, lines: LineRecorder | None = None) -> None:
        """A batch begins: its memory, where it counts, and what keeps its cache lines."""
        self._memory, self._program, self._lines = memory, counters.program, lines
        self.chip["recording"] = lines is not None
        lds = lds_of(self.state)
        self.chip["counting"], self.chip["checking"] = counters.enabled, lds.checked
        self.chip["lds_size"] = lds.size
        self._tell(executions=counters.executions, lanes=counters.lanes, traffic=counters.traffic)
        self._tell(lds_traffic=counters.lds_traffic, lds=self.state.lds)
        self._tell(written=lds.shadow.written, writer=lds.shadow.writer, reader=lds.shadow.reader)
        self._tell_allocations()

    def _tell_allocations(self) -> None:
        """What may be touched, anew for a launch and where an access has made it more."""
        now = (self._memory, self._memory.changes, self._lines)
        if now == self._told:
            return
        self._told = now
        allocations, counting = self._memory.allocations, self.chip["counting"][0]
        self.chip["allocations"] = len(allocations)
        self._tell(
            bases=np.array([a.base for a in allocations]),
            ends=np.array([a.end for a in allocations]),
            word_ends=np.array([a.end_for(4) for a in allocations]),
            touched=np.array([a.touched.ctypes.data if counting else 0 for a in allocations]),
        )
        if self._lines is not None:
            self._tell(line_bases=self._lines.first_lines(self._memory))
        limits = [self._memory.permitted(instruction) for instruction in self._program.instructions]
        self._tell(
            limits=np.array([limit for ranges in limits for limit in ranges], np.int64),
            limits_at=np.cumsum([0, *map(len, limits)]),
        )

    def use(self, plan: Plan) -> None:
        """Execute this plan's rows from now on."""
        if plan is self._plan:
            return
        self._plan = plan
        self._rows, self._sources, lanes = plan.tables
        self._tell(dpp=lanes, memo=np.zeros((2 * len(plan.program.instructions), 3 + LANES), np.int64))

    def run(self, waves: np.ndarray, at: np.ndarray, stop: np.ndarray, spent: np.ndarray, turn: int) -> None:
        """As interpreter.run."""
        # An access through a pointer from memory may have added an allocation, or one that left its view.
        self._tell_allocations()
        if self._lines is not None:  # a NumPy step may have made its buffer larger
            lines = self._lines
            self._tell(lines=lines.buffer, lines_used=lines.used, workgroups=lines.workgroups)
        run(self._rows, self._sources, waves, at, stop, spent, turn, self.chip)
        self.state.exec_changed()


@functools.cache
def _to_fp8(fnuz: bool) -> np.ndarray:
    """rounding.fp8_bytes of both formats: uint8 [format, saturate, key]."""
    formats = FP8_FORMATS[fnuz]
    return np.stack([[fp8_bytes(formats[name], on) for on in (False, True)] for name in ("fp8", "bf8")])
