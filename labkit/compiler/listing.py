"""The assembly as a table: one row an instruction, with its class and the kernel line it came from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from labkit.compiler.assembly import parse_lines

if TYPE_CHECKING:
    import pandas as pd

CLASSES = (
    "SALU",
    "VALU",
    "MFMA",
    "SMEM",
    "VMEM load",
    "VMEM store",
    "VMEM atomic",
    "LDS",
    "branch",
    "wait",
    "barrier",
    "other",
)

# First match wins. Matrix instructions of RDNA (wmma) count as MFMA: the same job on another chip.
_RULES = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"v_s?mfma|v_s?wmma", "MFMA"),
        (r"v_", "VALU"),
        (r"ds_", "LDS"),
        (r"(global|flat|buffer|tbuffer|scratch)_load", "VMEM load"),
        (r"(global|flat|buffer|tbuffer|scratch)_store", "VMEM store"),
        (r"(global|flat|buffer)_atomic", "VMEM atomic"),
        (r"s_wait", "wait"),
        (r"s_barrier", "barrier"),
        (r"s_(branch|cbranch|setpc|swappc|call)", "branch"),
        (r"s_(load|store|atomic|memtime|memrealtime|dcache)|s_(buffer|scratch)_(load|store)", "SMEM"),
        # These order the program or its issue and compute nothing.
        (r"s_(nop|endpgm|sleep|setprio|sethalt|trap|sendmsg|icache|code_end|clause|delay_alu)", "other"),
        (r"s_(set_inst_prefetch|inst_prefetch|incperflevel|decperflevel|ttracedata)", "other"),
        (r"s_", "SALU"),
    )
)


def instruction_class(mnemonic: str) -> str:
    """The unit that an AMD instruction goes to, one of CLASSES; "other" for what has no unit."""
    for pattern, name in _RULES:
        if pattern.match(mnemonic):
            return name
    return "other"


def listing(asm: str) -> pd.DataFrame:
    """A table of the instructions in AMDGCN text, in the order of the text.

    Columns: assembly_line (1-based line of the text), instruction, mnemonic, operands, class,
    source_file, source_line (of the kernel itself; 0 where the compiler tied no line to it).
    """
    import pandas as pd

    rows = [
        (
            line.number,
            line.text,
            line.mnemonic,
            line.operands,
            instruction_class(line.mnemonic),
            line.source_file,
            line.source_line,
        )
        for line in parse_lines(asm)
        if line.kind == "instruction"
    ]
    columns = ["assembly_line", "instruction", "mnemonic", "operands", "class"] + [
        "source_file",
        "source_line",
    ]
    return pd.DataFrame(rows, columns=columns)
