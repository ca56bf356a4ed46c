"""Read the AMDGCN assembly text that Triton emits: lines, source locations, descriptor, metadata.

Plain text in, plain Python out: no torch, triton or pandas, so that the emulator can build on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

# `.file 1 "/dir" "name.py"`, or with one string only.
_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)(?:\s+(\d+))?")
# One place of an inlining chain, `name.py:293:36`; the name itself may hold colons.
_PLACE = re.compile(r"^(.*):(\d+):(\d+)$")
_BLOCK = re.compile(r"^;\s*(%bb\.\d+):")
_DESCRIPTOR = re.compile(r"^\s*\.amdhsa_(\w+)\s+(\S+)", re.MULTILINE)
_METADATA = re.compile(r"^\s*\.amdgpu_metadata\n(.*?)^\s*\.end_amdgpu_metadata", re.MULTILINE | re.DOTALL)
_METADATA_LINE = re.compile(r"^( *)(- )?(?:\.?([\w.]+):)? *(.*)$")


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a source file; line 0 means that the compiler tied no line to it."""

    file: str = ""
    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class AsmLine:
    """One line of the text that is not blank.

    number: 1-based line in the text.
    kind: "instruction"; "label" (text is its name, without the colon); "block" (a block that is only
    fallen into and so has a comment `; %bb.1:` for a label; text is "%bb.1"); "directive" (text is the
    whole directive); "comment"; "metadata" (a line of the YAML block).
    mnemonic, operands: of an instruction, without the comment; else empty.
    source_*: the line of the kernel itself, which is the outermost call site where code was inlined.
    inlined_*: the innermost line, in the inlined function; the same as source_* where nothing was.
    File names come without their folder. Line 0 means that the compiler tied no line to it.
    """

    number: int
    kind: str
    text: str
    mnemonic: str = ""
    operands: str = ""
    source_file: str = ""
    source_line: int = 0
    source_column: int = 0
    inlined_file: str = ""
    inlined_line: int = 0
    inlined_column: int = 0


def parse_lines(asm: str) -> list[AsmLine]:
    """Every line of `asm` that is not blank, in order, instructions with their source locations."""
    files: dict[int, str] = {}
    outer = inner = Place()
    in_metadata = False
    lines = []
    for number, raw in enumerate(asm.splitlines(), start=1):
        stripped = raw.strip()
        if not stripped:
            continue
        if stripped == ".end_amdgpu_metadata":
            in_metadata = False
        if in_metadata:
            lines.append(AsmLine(number, "metadata", raw))
            continue
        line = _classify(number, stripped, outer, inner)
        lines.append(line)
        if line.kind == "directive":
            in_metadata = line.text == ".amdgpu_metadata"
            if match := _FILE.match(stripped):
                files[int(match[1])] = (match[3] or match[2]).rsplit("/", 1)[-1]
            elif stripped.startswith(".loc"):
                outer, inner = _places(stripped, files)
    return lines


def _classify(number: int, stripped: str, outer: Place, inner: Place) -> AsmLine:
    if stripped.startswith(";"):
        block = _BLOCK.match(stripped)
        return AsmLine(number, "block", block[1]) if block else AsmLine(number, "comment", stripped)
    # A quoted string may hold a semicolon, and only directives have strings.
    text = stripped if '"' in stripped else stripped.split(";", 1)[0].rstrip()
    if text.endswith(":"):
        return AsmLine(number, "label", text[:-1])
    if text.startswith("."):
        return AsmLine(number, "directive", text)
    mnemonic, _, operands = text.replace("\t", " ").partition(" ")
    return AsmLine(
        number,
        "instruction",
        text,
        mnemonic,
        operands.strip(),
        *(outer.file, outer.line, outer.column),
        *(inner.file, inner.line, inner.column),
    )


def _places(directive: str, files: dict[int, str]) -> tuple[Place, Place]:
    """The outermost and innermost place that a `.loc` names.

    The numbers of the directive give the innermost one only. The chain of call sites stands in its
    comment: `; standard.py:293:36 @[ add.py:20:47 ]`.
    """
    match = _LOC.match(directive)
    if match is None:
        return Place(), Place()
    inner = _place(files.get(int(match[1]), ""), int(match[2]), int(match[3] or 0))
    _, _, comment = directive.partition(";")
    chain = [part.rstrip(" ]").strip() for part in comment.split("@[")]
    if len(chain) > 1 and (outer := _PLACE.match(chain[-1])):
        return _place(outer[1].rsplit("/", 1)[-1], int(outer[2]), int(outer[3])), inner
    return inner, inner


def _place(file: str, line: int, column: int) -> Place:
    return Place(file, line, column) if line else Place()


def parse_descriptor(asm: str) -> dict[str, int]:
    """The kernel descriptor's `.amdhsa_` directives by name, without that prefix.

    A value that is an expression of symbols, as in a kernel that calls functions, is left out.
    """
    found = {}
    for name, value in _DESCRIPTOR.findall(asm):
        if re.fullmatch(r"-?\d+|0x[0-9a-fA-F]+", value):
            found[name] = int(value, 0)
    found.pop("code_object_version", None)  # stands at the top of the file, outside the descriptor
    return found


def parse_metadata(asm: str) -> dict[str, Any]:
    """The kernel's entry in the `.amdgpu_metadata` block, names without their leading dot.

    Numbers are ints, `true` and `false` bools, the rest strings; "args" is a list of dicts (offset and
    size in bytes, value_kind, ...). Empty where the text has no such block. Reads the one kernel
    that Triton puts in a module.
    """
    match = _METADATA.search(asm)
    if match is None:
        return {}
    kernel: dict[str, Any] = {}
    items: list[Any] = []
    for raw in match[1].splitlines():
        indent, dash, key, value = _METADATA_LINE.match(raw).groups()  # type: ignore[union-attr]
        depth = len(indent) + (2 if dash else 0)
        if depth == 4 and key:
            items = []
            kernel[key] = _scalar(value) if value else items
        elif depth == 8 and key:
            if dash:
                items.append({})
            items[-1][key] = _scalar(value)
        elif depth == 8 and dash:
            items.append(_scalar(value))
    return kernel


def _scalar(text: str) -> int | bool | str:
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return {"true": True, "false": False}.get(text, text.strip("'\""))
