"""Loops that never end: a wave comes back to where it was, and nothing that decides its way has changed.

Where the registers that decide (see deciding.py) are as they were one turn ago, the next turn is like the
last one, and so are all that follow. That is a proof, so that a kernel which is merely long is never taken
for one that is endless, as any limit of instructions or time would.

Where what was loaded takes part, this wave or another may still change it. Then all that the loop stores
counts as deciding, too, and the wave is stuck where it has also loaded the same as one turn ago. The launch
is endless once all its waves are stuck.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from labkit.emulator.deciding import Part, Passed, deciding, loads_something
from labkit.emulator.native.operations import Stop
from labkit.emulator.native.plan import Plan
from labkit.emulator.operands import EXEC
from labkit.emulator.state import ALL_LANES, State
from labkit.errors import EndlessKernel

if TYPE_CHECKING:
    from labkit.emulator.machine import Machine

_WATCHED_ROWS = 10_000


@dataclass(slots=True)
class Standing:
    """Where each wave stands: its row, why it stopped (Stop), how many rows it has executed; int64 [W]."""

    at: np.ndarray
    stop: np.ndarray
    spent: np.ndarray


class Verdict(Enum):
    """What a wave's way shows so far: nothing yet, that memory changes, or what is said above."""

    OPEN, GOES_ON, STUCK, ENDLESS = range(4)


class Course:
    """The way of one wave from row `start`, where it stands now.

    path: the instructions since then, or since the last turn that changed nothing but memory.
    alone: it has come round, and no memory has a say in whether it will again. turn: of a wave that is stuck,
    its turn and what it loads.
    """

    def __init__(self, state: State, plan: Plan, wave: int, row: int) -> None:
        self._state, self._plan, self._wave, self.start = state, plan, wave, row
        self.alone = False
        self._known: dict[tuple[int, bool], Passed] = {}
        self.turn: tuple[list[Passed], list[bytes]] | None = None

    def begin(self) -> None:
        """The wave stands at its start now."""
        self.path: list[Passed] = []
        self._loaded: list[bytes] = []  # what each instruction of the path loaded
        self._first: set[Part] | None = None  # what decides the first turn alone
        self._returns = 0  # how often that was as at the start
        wave = self._wave
        self._before = {
            "s": self._state.s[:, wave].copy(),
            "scc": self._state.scc[wave : wave + 1].copy(),
            "v": self._state.v[:, wave].copy(),
            "a": self._state.a[:, wave].copy(),
        }

    def step(self, row: int, standing: int) -> Verdict:
        """The wave has executed `row` and stands at row `standing`."""
        instruction = self._plan.program.instructions[self._plan.numbers[row]]
        # A vector instruction leaves EXEC as it is, so this is what it was.
        all_lanes = all(self._state.s[EXEC + k][self._wave, 0] == ALL_LANES for k in (0, 1))
        key = row, all_lanes
        if key not in self._known:
            self._known[key] = Passed(instruction, all_lanes, self._state.fnuz)
        self.path.append(self._known[key])
        parts = instruction.operands[0].parts if loads_something(instruction) else []  # type: ignore[union-attr]
        self._loaded.append(b"".join(self._now(part).tobytes() for part in parts))
        return self._judge() if standing == self.start else Verdict.OPEN

    def _judge(self) -> Verdict:
        if self._first is None:
            found = deciding(self.path, forever=False)
            self._first = set() if found is None else found[0]
            whole = deciding(self.path, forever=True)
            self.alone = whole is not None and not whole[1]
        if not self._unchanged(self._first):
            return Verdict.OPEN  # perhaps an inner loop: a later turn may be where all is as before
        self._returns += 1
        if self._returns & (self._returns - 1):
            return Verdict.OPEN  # the way is long by now, and following it back takes as long each time
        found = deciding(self.path, forever=True)
        if found is None or not self._unchanged(found[0]):
            return Verdict.OPEN
        if not found[1]:
            return Verdict.ENDLESS
        turn = self.path, [self._loaded[number] for number in found[1]]
        if self.turn is not None:
            return Verdict.STUCK if turn == self.turn else Verdict.GOES_ON
        self.turn = turn
        self.begin()
        return Verdict.OPEN

    def _now(self, part: Part) -> np.ndarray:
        file, number = part
        return (
            self._state.scc[self._wave] if file == "scc" else getattr(self._state, file)[number][self._wave]
        )

    def _unchanged(self, parts: set[Part]) -> bool:
        return all(
            np.array_equal(self._before[file][number], self._now((file, number))) for file, number in parts
        )


def look_for_endless_loop(machine: Machine, budget: int) -> None:
    """Go on for some rows. Raises EndlessKernel where a wave can't end, or none can that is left."""
    waves = machine.standing
    order = np.argsort(-waves.spent)
    left = [int(wave) for wave in order if waves.stop[wave] in (Stop.RUNNING, Stop.NUMPY)]
    earlier: dict[int, Course] = {}
    # Twice around, since a wave may have been stuck while another still changed something.
    for wave in (*left, *left):
        before = earlier.get(wave)
        verdict, course = _follow(machine, wave, before.start if before else int(waves.at[wave]))
        if verdict == Verdict.ENDLESS:
            _tell(machine, course, "nothing that decides whether it goes on changes any more")
        # Where nobody else has a say in it, it comes to its end, or the budget's, before all others.
        while course.alone and waves.stop[wave] == Stop.RUNNING and waves.spent[wave] <= budget:
            machine.run_alone(wave)
        if verdict in (Verdict.OPEN, Verdict.GOES_ON) or (before and before.turn != course.turn):
            return
        earlier[wave] = course
    _tell(machine, course, "all waves that are left read the same, turn after turn, and none ends")


def _follow(machine: Machine, wave: int, start: int) -> tuple[Verdict, Course]:
    """Go on row by row and watch one wave from when it stands at row `start`."""
    waves, course = machine.standing, Course(machine.state, machine.plan, wave, start)
    watching = False
    for _ in range(_WATCHED_ROWS):
        row, before = int(waves.at[wave]), waves.spent[wave]
        if row == start and not watching:
            watching = True
            course.begin()
        machine.take_turn(1)
        if waves.stop[wave] == Stop.ENDED:
            break
        if watching and waves.spent[wave] > before:
            verdict = course.step(row, int(waves.at[wave]))
            if verdict != Verdict.OPEN:
                return verdict, course
    return Verdict.OPEN, course


def _tell(machine: Machine, course: Course, why: str) -> None:
    known = [passed.instruction for passed in course.path if passed.instruction.line.source_line]
    first = min(known, key=lambda instruction: instruction.line.source_line or 0, default=None)
    where = first.where if first is not None else machine.where(course.start)
    raise EndlessKernel(
        f"kernel `{machine.program.name}` never ends: in the loop at {where}, {why}. "
        "Check the loop's condition and what it counts."
    )
