"""Read-modify-write operations on memory, for global memory and LDS alike.

Lanes of one instruction that hit the same address act one after the other, lowest lane first. The chip
leaves that order open, so a kernel must not depend on it; here it makes runs repeat to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np


@dataclass(frozen=True, slots=True)
class Atomic:
    """`change(old, operand)` on elements of `dtype`; `words` registers of data a lane."""

    dtype: np.dtype
    change: Callable
    words: int

    @property
    def size(self) -> int:
        """Bytes that one lane changes."""
        return self.dtype.itemsize

    def apply(self, memory: np.ndarray, offsets: np.ndarray, data: list[np.ndarray]) -> np.ndarray:
        """Change `memory` (uint8) at byte `offsets` by `data`, words of uint32; returns the old values.

        Values are unsigned integers of the element's size. Offsets must be multiples of that size apart.
        """
        # A tensor may begin anywhere in memory, so its elements need not begin at offset 0.
        first = int(offsets[0]) % self.size
        elements = memory[first : first + (memory.size - first) // self.size * self.size].view(self.dtype)
        index = (offsets // np.uint64(self.size)).astype(np.int64)
        operands = self._operands(data)
        before = np.zeros(index.size, f"u{self.size}")
        remaining = np.arange(index.size)
        while remaining.size:
            # One turn takes the lowest remaining lane of every address.
            _, first = np.unique(index[remaining], return_index=True)
            turn = remaining[first]
            old = elements[index[turn]]
            before[turn] = old.view(f"u{self.size}")
            elements[index[turn]] = self.change(old, *[operand[turn] for operand in operands])
            remaining = np.delete(remaining, first)
        return before

    def _operands(self, data: list[np.ndarray]) -> list[np.ndarray]:
        width = self.size // 4
        groups = [data[start : start + width] for start in range(0, len(data), width)]
        return [np.ascontiguousarray(np.stack(group, axis=-1)).view(self.dtype)[..., 0] for group in groups]


def _packed(dtype: type) -> Callable:
    """Add two 16-bit floats that share a register."""

    def add(old: np.ndarray, operand: np.ndarray) -> np.ndarray:
        pair = old[:, None].view(dtype) + operand[:, None].view(dtype)
        return np.ascontiguousarray(pair).view(np.uint32)[:, 0]

    return add


def _wrap_increment(old: np.ndarray, limit: np.ndarray) -> np.ndarray:
    return np.where(old >= limit, 0, old + 1).astype(old.dtype)


def _wrap_decrement(old: np.ndarray, limit: np.ndarray) -> np.ndarray:
    return np.where((old == 0) | (old > limit), limit, old - 1).astype(old.dtype)


def _compare_swap(old: np.ndarray, new: np.ndarray, expected: np.ndarray) -> np.ndarray:
    return np.where(old == expected, new, old)


_INTEGER: dict[str, tuple[str, Callable]] = {
    "swap": ("u", lambda old, new: new),
    "add": ("u", np.add),
    "sub": ("u", np.subtract),
    "smin": ("i", np.minimum),
    "umin": ("u", np.minimum),
    "smax": ("i", np.maximum),
    "umax": ("u", np.maximum),
    "and": ("u", np.bitwise_and),
    "or": ("u", np.bitwise_or),
    "xor": ("u", np.bitwise_xor),
    "inc": ("u", _wrap_increment),
    "dec": ("u", _wrap_decrement),
}
ATOMICS: dict[str, Atomic] = {
    "cmpswap": Atomic(np.dtype(np.uint32), _compare_swap, 2),
    "cmpswap_x2": Atomic(np.dtype(np.uint64), _compare_swap, 4),
    "add_f32": Atomic(np.dtype(np.float32), np.add, 1),
    "add_f64": Atomic(np.dtype(np.float64), np.add, 2),
    "min_f64": Atomic(np.dtype(np.float64), np.fmin, 2),
    "max_f64": Atomic(np.dtype(np.float64), np.fmax, 2),
    "pk_add_f16": Atomic(np.dtype(np.uint32), _packed(np.float16), 1),
    "pk_add_bf16": Atomic(np.dtype(np.uint32), _packed(ml_dtypes.bfloat16), 1),
}
for _name, (_sign, _change) in _INTEGER.items():
    ATOMICS[_name] = Atomic(np.dtype(f"{_sign}4"), _change, 1)
    ATOMICS[f"{_name}_x2"] = Atomic(np.dtype(f"{_sign}8"), _change, 2)
