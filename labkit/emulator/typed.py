"""Registers together with the type that an instruction takes them for, and how such bits read as values."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from labkit.emulator.operands import EXEC, M0, VCC, Operand, Register
from labkit.emulator.rounding import FP8_FORMATS
from labkit.emulator.state import to_lanes


def fp8_name(kind: str, fnuz: bool) -> str:
    """The format that "fp8" or "bf8" means on this chip, such as e4m3fnuz; another type's own name."""
    forms = FP8_FORMATS[fnuz]
    return np.dtype(forms[kind]).name.removeprefix("float8_") if kind in forms else kind


# What registers can hold beside "mask" (a bit a lane), "bit" (SCC) and "raw" (bits whose type is still open).
# b8, b16 and b32 are bits to which nothing gave a type.
ELEMENTS = {
    **{f"{letter}{8 * size}": np.dtype(f"{letter}{size}") for letter in "ui" for size in (1, 2, 4, 8)},
    **{f"f{8 * size}": np.dtype(f"f{size}") for size in (2, 4, 8)},
    **{f"b{8 * size}": np.dtype(f"u{size}") for size in (1, 2, 4)},
    "bf16": np.dtype(ml_dtypes.bfloat16),
    **{
        fp8_name(kind, fnuz): np.dtype(form)
        for fnuz, forms in FP8_FORMATS.items()
        for kind, form in forms.items()
    },
}
RAW, MASK, BIT = "raw", "mask", "bit"
_PAIRS = {VCC: "vcc", EXEC: "exec"}
_SINGLE = {VCC: "vcc_lo", VCC + 1: "vcc_hi", EXEC: "exec_lo", EXEC + 1: "exec_hi", M0: "m0"}


@dataclass(frozen=True, slots=True)
class Typed:
    """Registers and what they hold: `count` elements of a type, from number `first` in their bytes.

    For "raw", `count` is how many bytes mean something.
    """

    register: Register
    element: str
    first: int = 0
    count: int = 1

    @property
    def name(self) -> str:
        """As the assembly writes the registers: v2, s[4:5], vcc."""
        file, index, count = self.register.file, self.register.index, self.register.count
        if file == "s" and count == 2 and index in _PAIRS:
            return _PAIRS[index]
        return register_name(file, index) if count == 1 else f"{file}[{index}:{index + count - 1}]"

    @property
    def type(self) -> str:
        """Such as "f32" or "f16 x2"; "u8 in bits 31:24" where a part of the register is taken."""
        several = f"{self.element} x{self.count}" if self.count > 1 else self.element
        if not self.first:
            return several
        width = 8 * element_bytes(self.element)
        return f"{several} in bits {(self.first + self.count) * width - 1}:{self.first * width}"

    def values(self, bits: np.ndarray) -> np.ndarray:
        """`bits`, uint32 [registers, lanes], as [lanes], or [lanes, count] where a lane holds several.

        lanes is 1 for a scalar register, but a lane mask gives a bool for each of the 64.
        """
        if self.element == MASK:
            return to_lanes(bits[0:1], bits[1:2])[0]
        if self.element == BIT:
            return bits[0].astype(bool)
        elements = np.ascontiguousarray(bits.T).view(ELEMENTS[self.element])
        chosen = elements[:, self.first : self.first + self.count]
        return chosen[:, 0] if self.count == 1 else chosen

    def part(self, number: int) -> Typed:
        """What the register `number` alone holds; all of it where a value takes two registers."""
        register, size = self.register, element_bytes(self.element)
        if register.count == 1 or size == 8:
            return self
        return Typed(Register(register.file, number), self.element, 0, 4 // size)


def element_bytes(element: str) -> int:
    """Bytes of one element; a lane mask has 8, as it takes two registers."""
    return 8 if element == MASK else 4 if element == BIT else ELEMENTS[element].itemsize


def register_name(file: str, number: int) -> str:
    """One register's name in the assembly, such as v2 or vcc_lo."""
    if file == "scc":
        return file
    return _SINGLE.get(number, f"s{number}") if file == "s" else f"{file}{number}"


SCC = Typed(Register("scc", 0), BIT)


def mask(index: int) -> Typed:
    """The lane mask in two scalar registers."""
    return Typed(Register("s", index, 2), MASK)


def one(operand: Operand | None, kind: str, first: int = 0, count: int = 0) -> list[Typed]:
    """An operand as a type of the signatures, as `count` of it or as many as its registers are made for.

    Nothing for an operand that is no register. b32 and b64 become "raw", or a lane mask in VCC and EXEC.
    """
    if not isinstance(operand, Register):
        return []
    plain = Register(operand.file, operand.index, operand.count)
    element = {"b32": RAW, "b64": RAW, "h16": "f16"}.get(kind, kind)
    if element == RAW and operand.file == "s" and operand.index in _PAIRS and operand.count == 2:
        element = MASK
    if element == MASK:
        return [Typed(plain, MASK)]
    if element == RAW:
        return [Typed(plain, RAW, 0, count or 4 * operand.count)]
    # A 16-bit value takes the lower half of its register.
    return [Typed(plain, element, first, count or 4 * operand.count // max(4, element_bytes(element)))]


def every(operands: list[Operand] | tuple[Operand, ...], kind: str) -> list[Typed]:
    """Each operand as `kind`."""
    return [typed for operand in operands for typed in one(operand, kind)]
