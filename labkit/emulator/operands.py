"""Parse the operands and modifiers of one instruction's text.

Registers, constants and modifiers become small values that the rest of the emulator reads; nothing is
executed here. Scalar registers get the numbers that the hardware gives them, so that `vcc` is simply
s[106:107] and `exec` s[126:127].
"""

from __future__ import annotations

import re
from dataclasses import dataclass

VCC, M0, EXEC = 106, 124, 126

_NAMED = {
    "vcc": ("s", VCC, 2),
    "vcc_lo": ("s", VCC, 1),
    "vcc_hi": ("s", VCC + 1, 1),
    "flat_scratch": ("s", 102, 2),
    "m0": ("s", M0, 1),
    "exec": ("s", EXEC, 2),
    "exec_lo": ("s", EXEC, 1),
    "exec_hi": ("s", EXEC + 1, 1),
}
_REGISTER = re.compile(r"^([sva])(?:(\d+)|\[(\d+):(\d+)\])$")
_INTEGER = re.compile(r"^-?(?:0x[0-9a-fA-F]+|\d+)$")
_FLOAT = re.compile(r"^-?\d+\.\d+(?:e[-+]?\d+)?$")
_WRAPPERS = re.compile(r"^(-)?(?:\|(.+)\||(sext|abs|neg)\((.+)\)|(.+))$")


@dataclass(frozen=True, slots=True)
class Register:
    """`count` registers from `index` of one file: "s" scalar, "v" vector, "a" accumulation."""

    file: str
    index: int
    count: int = 1
    negated: bool = False
    absolute: bool = False
    sign_extended: bool = False

    @property
    def parts(self) -> list[tuple[str, int]]:
        """(file, number) of each of its registers."""
        return [(self.file, self.index + k) for k in range(self.count)]


@dataclass(frozen=True, slots=True)
class Constant:
    """A number in the text: an int is a bit pattern, a float takes the type of its instruction."""

    value: int | float
    negated: bool = False
    absolute: bool = False
    sign_extended: bool = False


@dataclass(frozen=True, slots=True)
class Name:
    """Anything else that stands where an operand stands: a label, `off`, `vmcnt(0)`, hwreg(...)."""

    text: str


Operand = Register | Constant | Name


def parse_operand(text: str) -> Operand:
    """One operand, with the `-x`, `|x|`, `abs(x)`, `neg(x)` and `sext(x)` around it taken off."""
    plain = _plain(text)
    if plain is not None:
        return plain
    minus, barred, function, inner, bare = _WRAPPERS.match(text).groups()  # type: ignore[union-attr]
    core = _plain(barred or inner or bare)
    if core is None or isinstance(core, Name):
        return Name(text)
    flags = {
        "negated": bool(minus) or function == "neg",
        "absolute": barred is not None or function == "abs",
        "sign_extended": function == "sext",
    }
    if isinstance(core, Register):
        return Register(core.file, core.index, core.count, **flags)
    return Constant(core.value, **flags)


def _plain(text: str) -> Operand | None:
    if text in _NAMED:
        return Register(*_NAMED[text])
    if match := _REGISTER.match(text):
        file, single, first, last = match.groups()
        if single is not None:
            return Register(file, int(single))
        return Register(file, int(first), int(last) - int(first) + 1)
    if _INTEGER.match(text):
        return Constant(int(text, 0))
    if _FLOAT.match(text):
        return Constant(float(text))
    return None if re.search(r"^-|[|(]", text) and not text.startswith("hwreg") else Name(text)


def split_operands(text: str) -> tuple[list[str], dict[str, str]]:
    """Split `v1, v2, s[0:3], 0 offen offset:16` into operand texts and modifiers {name: value}.

    Modifiers follow the last operand, separated by blanks; one without a value maps to "".
    """
    parts = _split_top_level(text, ",")
    if not parts:
        return [], {}
    words = _split_top_level(parts[-1], " ")
    operands = parts[:-1] + words[:1]
    modifiers = {}
    for word in words[1:]:
        name, _, value = word.partition(":")
        modifiers[name] = value
    # `s_waitcnt vmcnt(0) lgkmcnt(0)` and `global_load ... off` lists have no modifier names of ours.
    return operands, modifiers


def _split_top_level(text: str, separator: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char in "[(") - (char in "])")
        if char == separator and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    parts.append(current.strip())
    return [part for part in parts if part]


def parse_list(value: str) -> tuple[int, ...]:
    """The value of a modifier such as `op_sel:[0,0,1]`."""
    return tuple(int(item, 0) for item in value.strip("[]").split(","))
