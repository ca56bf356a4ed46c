"""Watch every compiler pass: the IR before and after each, from one more compile in a child process."""

from __future__ import annotations

import html
import os
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.compiler import triton_api
from labkit.compiler.diff import diff_html, unified_diff
from labkit.compiler.passes_text import DESCRIPTIONS
from labkit.errors import LabkitError

if TYPE_CHECKING:
    import pandas as pd

TIME_LIMIT_SECONDS = 120

# What we write between the dumps, so that a reader of the child's stderr can tell where a stage begins.
_MARK = "// labkit: "
_EVENT = re.compile(rf"^(?:// -----// IR Dump Before (.+) //----- //|{_MARK}(\w+) (\w*))$", re.MULTILINE)
# `Canonicalizer (canonicalize) ('tt.func' operation: @add)`; Triton 3.9 writes the first part as
# `CanonicalizerPass: canonicalize{max-iterations=10}`.
_HEADER = re.compile(
    r"^(?P<kind>[^\s:]+)(?: \((?P<name>[^)']+)\)|: (?P<name39>[^\s{]+)(?:\{.*\})?)?"
    r"(?: \('[^']*' operation(?:: (?P<scope>.*?))?\))?$"
)
# Where each operation came from: noise in a diff. One pair of brackets may stand inside another.
_LOCATION = re.compile(r" loc\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|^#loc\d* = .*\n", re.MULTILINE)
_DEBUG = re.compile(r",? !dbg !\d+|^!(?:\d+|llvm\.dbg\S*) = .*\n|^ *#dbg_.*\n|^#di_\w+ = .*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Pass:
    """One compiler pass over the module.

    number: 0, 1, ... in the order of the compile. name: the compiler's own, such as "tritongpu-coalesce".
    stage: "ttir", "ttgir" or "llir". scope: the function that it ran on, or "" for the whole module.
    before, after: IR text without source locations. changed: whether these differ.
    """

    number: int
    name: str
    stage: str
    scope: str
    before: str = field(repr=False)
    after: str = field(repr=False)

    @property
    def changed(self) -> bool:
        """Whether the pass did anything."""
        return self.before != self.after

    @property
    def description(self) -> str:
        """What the pass is for, in one sentence; "" if labkit doesn't know it."""
        return DESCRIPTIONS.get(self.name, "")

    def diff(self, context: int = 3) -> str:
        """The change as a unified diff with `context` lines around it; "" if there is none.

        Printing numbers values and layouts anew each time (%12, #blocked1), so a line that differs in
        such names only counts as the same, unless no other line differs.
        """
        return unified_diff(self.before, self.after, context)

    def _repr_html_(self) -> str:
        title = f"<b>{self.number}. {html.escape(self.name)}</b> ({self.stage})"
        return diff_html(self.diff(), f"{title} {html.escape(self.description)}")


def trace_passes(compiled_kernel: Any) -> list[Pass]:
    """Compile a Triton CompiledKernel's source again in a child process and read every pass.

    The child is forked, so kernels defined in a notebook cell are there, too, and its dump can't mix with
    this process's output. Raises LabkitError where the system can't fork, or if the child fails.
    """
    if not hasattr(os, "fork"):
        raise LabkitError("Tracing passes needs a system that can fork, such as Linux.")
    with tempfile.TemporaryDirectory(prefix="labkit-passes-") as folder:
        dump = Path(folder) / "dump.txt"
        with warnings.catch_warnings():
            # Python 3.12 warns of threads that the child lacks. It only compiles, and needs none of them.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            _compile_in_child(compiled_kernel, dump)
        status = _wait(child)
        text = dump.read_text(errors="replace") if dump.exists() else ""
    if status != 0:
        raise LabkitError(f"Tracing the passes failed:\n{text[-2000:].strip() or f'status {status}'}")
    return parse_dump(text, final=compiled_kernel.asm["llir"])


def _compile_in_child(compiled_kernel: Any, dump: Path) -> None:
    """Compile with every pass dumped to `dump`; never returns."""
    status = 1
    try:
        stderr = os.open(dump, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(stderr, 1)
        os.dup2(stderr, 2)
        triton_api.dump_every_pass(str(dump.parent / "cache"))
        triton_api.watch_stages(
            compiled_kernel.metadata.target, lambda stage: _write(f"\n{_MARK}stage {stage}\n")
        )
        triton_api.watch_llvm(lambda label, text: _write(f"\n{_MARK}text {label}\n{text}\n"))
        triton_api.compile_again(compiled_kernel)
        status = 0
    except BaseException:
        _write(traceback.format_exc())
    finally:
        # Not sys.exit: the parent's exit handlers, and a notebook's sockets, are the parent's to close.
        os._exit(status)


def _write(text: str) -> None:
    data = text.encode()
    while data:
        data = data[os.write(2, data) :]


def _wait(child: int) -> int:
    """The child's exit status; kills it after TIME_LIMIT_SECONDS."""
    deadline = time.monotonic() + TIME_LIMIT_SECONDS
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise LabkitError(f"Tracing the passes took over {TIME_LIMIT_SECONDS} s, so it was stopped.")
        time.sleep(0.01)


def parse_dump(text: str, final: str) -> list[Pass]:
    """Passes from what a compile with MLIR_ENABLE_DUMP=1 and our marks printed.

    `final` is the LLVM IR at the end of the llir stage. The two steps that follow the last MLIR pass get
    entries of their own: "to-llvm-ir" (translation) and "llvm-o3" (LLVM's own optimisation).
    """
    stage = ""
    steps: list[tuple[str, str, str]] = []  # name, stage, scope
    states: list[str] = []  # the module before each step
    events = list(_EVENT.finditer(text))
    ends = [event.start() for event in events] + [len(text)]
    for event, end in zip(events, ends[1:], strict=True):
        header, mark, value = event.groups()
        if mark == "stage":
            stage = value
            continue
        name, scope = ({"mlir": "to-llvm-ir", "llvm": "llvm-o3"}[value], "") if mark else _read_header(header)
        steps.append((name, stage, scope))
        states.append(_clean(text[event.end() : end]))
    states.append(_clean(final))
    return [
        Pass(number, *step, before=before, after=after)
        for number, (step, before, after) in enumerate(zip(steps, states[:-1], states[1:], strict=True))
    ]


def _read_header(header: str) -> tuple[str, str]:
    """(name, scope) of a dump's header; a header of another form is taken whole as the name."""
    match = _HEADER.match(header)
    if match is None:
        return header, ""
    return match["name"] or match["name39"] or match["kind"], match["scope"] or ""


def _clean(ir: str) -> str:
    """The IR without source locations, interned: most passes change nothing, so most texts are the same."""
    return sys.intern(_DEBUG.sub("", _LOCATION.sub("", ir)).strip())


def pass_table(passes: list[Pass]) -> pd.DataFrame:
    """One row a pass: number, stage, name, scope, changed, lines_added, lines_removed, description."""
    import pandas as pd

    rows = []
    for step in passes:
        lines = step.diff(context=0).splitlines()[2:]
        added = sum(line.startswith("+") for line in lines)
        removed = sum(line.startswith("-") for line in lines)
        rows.append(
            (step.number, step.stage, step.name, step.scope, step.changed, added, removed, step.description)
        )
    columns = ["number", "stage", "name", "scope", "changed", "lines_added", "lines_removed", "description"]
    return pd.DataFrame(rows, columns=columns)
