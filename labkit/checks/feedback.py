"""What a check answers: one panel, as HTML in a notebook and as text elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from html import escape

NOT_SOLVED = "not solved yet"
TRY_AGAIN = "not right yet"
GOAL_MISSED = "right result, goal not reached"
SOLVED = "solved"

# A sign beside the words, since colour alone must not tell. Okabe-Ito colours for the edge.
_LOOK = {
    NOT_SOLVED: ("○", "#0072B2"),
    TRY_AGAIN: ("✗", "#D55E00"),
    GOAL_MISSED: ("◐", "#E69F00"),
    SOLVED: ("✓", "#009E73"),
}


class Step(IntEnum):
    """What a check asks of an answer, in this order."""

    THERE = 0
    COMPILES = 1
    RUNS = 2
    RIGHT = 3
    GOAL = 4


_STEPS = ("it is there", "it compiles", "it runs without a fault", "its result is right", "the goal is met")


@dataclass(frozen=True)
class GoalRow:
    """One goal with what the answer reached."""

    quantity: str
    wanted: str
    came: str
    reached: bool


@dataclass(frozen=True)
class Feedback:
    """The answer to one check. `lines` are (label, text) pairs: asked, tried, expected, yours, where ...

    step: the one that failed, None where none did or the check did not get so far.
    """

    title: str
    status: str
    step: Step | None = None
    lines: tuple[tuple[str, str], ...] = ()
    goals: tuple[GoalRow, ...] = ()
    hint: str = ""
    hint_number: int = 0

    @property
    def solved(self) -> bool:
        """Whether the answer is right and reaches every goal."""
        return self.status == SOLVED

    @property
    def _steps(self) -> str:
        """The steps up to the one that failed."""
        if self.step is None:
            return ""
        passed = [f"✓ {name}" for name in _STEPS[: self.step]]
        return "; ".join([*passed, f"✗ {_STEPS[self.step]}"])

    def __repr__(self) -> str:
        sign = _LOOK[self.status][0]
        text = [f"{sign} {self.title}: {self.status}"]
        text += [f"  {self._steps}"] if self._steps else []
        text += [f"  {label}: {content}" for label, content in self.lines]
        for goal in self.goals:
            verdict = "reached" if goal.reached else "not reached"
            text.append(f"  goal, {goal.quantity}: wanted {goal.wanted}, yours {goal.came} ({verdict})")
        if self.hint:
            text.append(f"  hint {self.hint_number} of 3: {self.hint}")
        return "\n".join(text)

    def _repr_html_(self) -> str:
        sign, colour = _LOOK[self.status]
        parts = [f"<strong>{sign} {escape(self.title)}: {escape(self.status)}</strong>"]
        if self._steps:
            parts.append(f"<div>{escape(self._steps)}</div>")
        if self.lines:
            rows = "".join(_row(label, content) for label, content in self.lines)
            parts.append(f"<table style='margin:0.5em 0'>{rows}</table>")
        if self.goals:
            parts.append(_goal_table(self.goals))
        if self.hint:
            parts.append(
                f"<details><summary>Hint {self.hint_number} of 3</summary>{escape(self.hint)}</details>"
            )
        # No background and no text colour: the theme's own are readable in light and in dark.
        style = f"border:1px solid {colour};border-left:6px solid {colour};padding:0.6em 1em"
        return f"<div role='status' style='{style}'>{''.join(parts)}</div>"


def _row(label: str, content: str) -> str:
    cell = "text-align:left;vertical-align:top;padding:0.1em 0.8em 0.1em 0"
    return f"<tr><th style='{cell}'>{escape(label)}</th><td style='{cell}'>{escape(content)}</td></tr>"


def _goal_table(goals: tuple[GoalRow, ...]) -> str:
    cell = "text-align:left;padding:0.1em 0.8em 0.1em 0"
    head = "".join(f"<th style='{cell}'>{name}</th>" for name in ("goal", "wanted", "yours", ""))
    rows = "".join(
        f"<tr><td style='{cell}'>{escape(goal.quantity)}</td><td style='{cell}'>{escape(goal.wanted)}</td>"
        f"<td style='{cell}'>{escape(goal.came)}</td>"
        f"<td style='{cell}'>{'✓ reached' if goal.reached else '✗ not reached'}</td></tr>"
        for goal in goals
    )
    return f"<table style='margin:0.5em 0'><tr>{head}</tr>{rows}</table>"
