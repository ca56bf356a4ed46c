"""What went wrong with an answer as lines of a panel: an error, a fault, a place in the result."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.errors import EndlessKernel

if TYPE_CHECKING:
    from types import FunctionType

    from triton import JITFunction

    from labkit.checks.trial import Outcome
    from labkit.emulator.faults import Finding

Lines = tuple[tuple[str, str], ...]


def cell_of(function: JITFunction | FunctionType) -> str:
    """The notebook cell that defines a kernel or a function, as "In[5]", or "" outside a notebook."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None:
        return ""
    # IPython numbers cells by the file name that it compiles them under; None for a real file.
    code = inspect.unwrap(getattr(function, "fn", function)).__code__
    named = shell.compile.format_code_name(code.co_filename)
    return named[1] if named is not None and named[0] == "Cell" else ""


def name_index(outcome: Outcome, index: int) -> str:
    """The element with the flat `index`, as its place in the result."""
    place = np.unravel_index(index, outcome.trial.expected.shape)
    return f"index {int(place[0])}" if len(place) == 1 else f"index {tuple(int(i) for i in place)}"


def explain_fault(finding: Finding, kernel: JITFunction) -> Lines:
    """A fault in words, with the learner's line, and which lane of which program did it first."""
    lane = f", lane {finding.lane}" if finding.lane is not None else ""
    more = f"; {finding.lanes} lanes at once" if finding.lanes > 1 else ""
    where = f"program {finding.workgroup}, wave {finding.wave}{lane}{more}"
    # The message begins with file and line, which have a row of their own here.
    message = finding.message.removeprefix(f"{finding.source}: ").split(". First: ")[0]
    return (
        ("what came", f"a fault, {finding.kind}: {message}"),
        ("your line", _line(kernel, finding.source_line) or finding.source),
        ("first at", where),
    )


def explain_error(error: Exception, kernel: JITFunction | None = None) -> Lines:
    """An exception as lines of a panel: what happened, and the learner's line where it is known."""
    located = _innermost(error, lambda e: getattr(getattr(e, "node", None), "lineno", None) is not None)
    if located is None:
        message = str(error).strip().splitlines()
        told = (("what came", f"{type(error).__name__}: {message[0] if message else 'no message'}"),)
        # The sentence about an endless kernel names file and line.
        at = re.search(r":(\d+)[.,]", message[0]) if isinstance(error, EndlessKernel) else None
        line = _line(kernel, int(at[1])) if at and kernel is not None else ""
        return (*told, ("your line", line)) if line else told
    reason = getattr(located, "error_message", None) or str(located.__cause__ or "")
    reason = reason.strip().splitlines()[0] if reason.strip() else "Triton cannot compile this line"
    # Triton passes on an error of Python as its repr.
    reason = re.sub(r"""^\w+\((["'])(.*)\1\)$""", r"\2", reason)
    what = ("what came", f"the kernel does not compile: {reason}")
    return (what, ("your line", _compiled_line(located, kernel)))


def _compiled_line(located: Any, kernel: JITFunction | None) -> str:
    """The line at which Triton gave up. It counts from the `def` of the function that it compiled."""
    source, line = (located.src or "").split("\n"), located.node.lineno
    if kernel is not None and located.src == kernel.src:
        lines, start = inspect.getsourcelines(kernel.fn)
        first = next(i for i, text in enumerate(lines) if text.lstrip().startswith("def "))
        if text := _line(kernel, start + first + line - 1):
            return text
    return source[line - 1].strip() if line <= len(source) else "not known"


def _line(kernel: JITFunction, number: int) -> str:
    """Line `number` of the file or cell that defines the kernel, or "" where it is not the kernel's."""
    lines, first = inspect.getsourcelines(kernel.fn)
    if not first <= number < first + len(lines):
        return ""
    return f"line {number}: {lines[number - first].strip()}"


def _innermost(error: BaseException, fits: Callable[[BaseException], bool]) -> Any:
    """The deepest exception in the chain of causes that `fits`, or None."""
    found, seen = None, error
    while seen is not None:
        found = seen if fits(seen) else found
        seen = seen.__cause__
    return found
