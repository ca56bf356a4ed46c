"""Goals that an exercise can declare: what the machine code of a right answer must reach, as counted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from labkit.checks.trial import Outcome


@dataclass(frozen=True)
class Goal:
    """Something that the machine code must reach. `judge` gives (what came, reached) of a right launch."""

    quantity: str
    wanted: str
    judge: Callable[[Outcome], tuple[str, bool]]


def bytes_at_floor() -> Goal:
    """Loads and stores move no more bytes than the trial's floor."""

    def judge(outcome: Outcome) -> tuple[str, bool]:
        moved = int(outcome.launch.counters.memory["bytes_requested"].sum())
        floor = outcome.trial.floor_bytes
        return f"{moved:,} bytes, floor {floor:,}", moved <= floor

    return Goal("bytes loaded and stored (counted)", "each element once", judge)


def load_width(size: int) -> Goal:
    """Every global load of a vector fetches `size` bytes a lane."""

    def judge(outcome: Outcome) -> tuple[str, bool]:
        memory = outcome.launch.counters.memory
        widths = sorted(set(memory.loc[memory["kind"] == "load", "bytes_per_lane"].astype(int)))
        return (", ".join(map(str, widths)) or "0") + " bytes a lane", widths == [size]

    return Goal("width of the loads (counted)", f"{size} bytes a lane", judge)


def active_share(percent: float) -> Goal:
    """At least so many percent of the lanes were on, over all vector instructions."""

    def judge(outcome: Outcome) -> tuple[str, bool]:
        instructions = outcome.launch.counters.instructions
        vector = instructions[instructions["active_lanes"] > 0]
        share = 100 * vector["active_lanes"].sum() / (64 * vector["executions"].sum())
        return f"{share:.1f} %", bool(share >= percent)

    return Goal("lanes that are on (counted)", f"at least {percent:g} %", judge)


def no_bank_conflicts() -> Goal:
    """No LDS access waits for a bank that another lane uses."""

    def judge(outcome: Outcome) -> tuple[str, bool]:
        cycles = int(outcome.launch.counters.lds["conflict_cycles"].sum())
        return f"{cycles:,} cycles", cycles == 0

    return Goal("LDS bank conflicts (counted)", "0 cycles", judge)


def registers_at_most(count: int) -> Goal:
    """A wave takes at most so many vector registers, accumulation registers among them."""

    def judge(outcome: Outcome) -> tuple[str, bool]:
        total = outcome.launch.compiled.registers.vgprs_total
        return f"{total} registers", total <= count

    return Goal("vector registers a lane (from the compiler)", f"at most {count}", judge)


def executes(pattern: str, wanted: str) -> Goal:
    """An instruction ran whose mnemonic the regular expression `pattern` matches as a whole."""

    def judge(outcome: Outcome) -> tuple[str, bool]:
        found = _executed(outcome, pattern)
        return ", ".join(found) or "none", bool(found)

    return Goal("instructions that ran (counted)", wanted, judge)


def avoids(pattern: str, wanted: str) -> Goal:
    """No instruction ran whose mnemonic `pattern` matches as a whole."""

    def judge(outcome: Outcome) -> tuple[str, bool]:
        found = _executed(outcome, pattern)
        return ", ".join(found) or "none", not found

    return Goal("instructions that ran (counted)", wanted, judge)


def _executed(outcome: Outcome, pattern: str) -> list[str]:
    names = outcome.launch.counters.instructions["mnemonic"]
    return sorted({name for name in names if re.fullmatch(pattern, name)})
