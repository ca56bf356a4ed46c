"""A limit on the processor time of a check, so that a kernel which compiles for ever is answered, too."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class TookTooLong(Exception):
    """A check was stopped at its deadline."""


@dataclass
class Deadline:
    """expired: whether the limit was reached."""

    seconds: float
    expired: bool = False


@contextmanager
def cpu_deadline(seconds: float) -> Iterator[Deadline]:
    """Raise TookTooLong inside the block after so many seconds of this process's processor time.

    Processor time, so that a busy machine does not fail a right answer. It works in the main thread, where a
    notebook runs its cells, and between two steps of Python: one long call into LLVM ends first. Elsewhere
    there is no limit.
    """
    deadline = Deadline(seconds)
    if threading.current_thread() is not threading.main_thread():
        yield deadline
        return

    def stop(*_: object) -> None:
        deadline.expired = True
        raise TookTooLong(f"no answer within {seconds:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield deadline
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
