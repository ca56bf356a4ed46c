"""Errors that a person can act on: each message says what happened and what to do."""

from __future__ import annotations


class LabkitError(Exception):
    """Base of labkit's errors. In a notebook only the message shows, not our traceback."""

    def _render_traceback_(self) -> list[str]:
        # IPython calls this in place of formatting a traceback through our own frames.
        return [f"{type(self).__name__}: {self}"]


class EnvironmentProblem(LabkitError):
    """Something about this machine (Triton's version, a folder's rights) stops labkit."""


class LaunchError(LabkitError):
    """A kernel was launched with arguments or a grid that cannot work."""


class UnsupportedInstruction(LabkitError):
    """The emulator met an instruction or a modifier that it does not execute."""


class MemoryFault(LabkitError):
    """A kernel used memory or a register in a way that labkit.last_launch().faults describes."""


class EndlessKernel(LabkitError):
    """A launch ran past its instruction budget, or its waves wait for each other for ever."""
