"""The registers of the waves that run together, and which of their lanes are active.

One State holds W waves. Every array keeps waves and lanes as its last two axes, so one array operation
executes an instruction for all waves: vector registers are [register, W, 64], scalar ones [register, W, 1]
(they broadcast against lanes).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labkit.emulator.operands import EXEC

LANES = 64
SCALAR_REGISTERS = 128  # s0..s101, then flat_scratch, vcc, m0, exec at the hardware's numbers
ALL_LANES = np.uint32(0xFFFFFFFF)


def join(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """A 64-bit value from two 32-bit registers."""
    value = high.astype(np.uint64)
    value <<= np.uint64(32)
    value |= low
    return value


def split(value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The low and high 32-bit registers of 64-bit values."""
    words = np.ascontiguousarray(value).view(np.uint32)
    return words[..., 0::2], words[..., 1::2]


def to_lanes(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Bools [W, 64] from a lane mask in two scalar registers [W, 1]: bit i is lane i."""
    words = np.concatenate((low, high), axis=1)
    return np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").view(bool)


def from_lanes(lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two scalar registers [W, 1] that hold bools [W, 64] as a lane mask."""
    words = np.packbits(lanes, axis=1, bitorder="little").view(np.uint32)
    return words[:, 0:1], words[:, 1:2]


@dataclass(slots=True)
class LaneMask:
    """Which lanes an instruction acts on: EXEC, and only the waves that stand at it.

    full: no lane is off, so `lanes` and `bits` are not needed (they are there all the same).
    bits: all ones for an active lane, else 0, to blend results without a branch.
    """

    full: bool
    lanes: np.ndarray  # bool [W, 64]
    bits: np.ndarray  # uint32 [W, 64]
    count: int

    @classmethod
    def of(cls, lanes: np.ndarray) -> LaneMask:
        """The mask of bools [W, 64]."""
        count = int(np.count_nonzero(lanes))
        return cls(count == lanes.size, lanes, lanes * ALL_LANES, count)


class State:
    """Registers of `waves` waves, `waves_per_workgroup` of them in each workgroup."""

    def __init__(
        self, waves: int, waves_per_workgroup: int, vgprs: int, agprs: int, lds_bytes: int, fnuz: bool
    ) -> None:
        self.waves = waves
        self.fnuz = fnuz  # FP8 is FNUZ (gfx942), else OCP
        self.waves_per_workgroup = waves_per_workgroup
        # A cache line between registers: else those of a wave, a power of two apart, share few cache sets.
        self.pitch = waves * LANES + 16
        file = np.zeros((vgprs + agprs, self.pitch), np.uint32)
        self.registers = file.reshape(-1)
        registers = file[:, : waves * LANES].reshape(-1, waves, LANES)
        self.v, self.a = registers[:vgprs], registers[vgprs:]
        self.s = np.zeros((SCALAR_REGISTERS, waves, 1), np.uint32)
        self.scc = np.zeros((waves, 1), bool)
        self.fp16_overflow = np.zeros((waves, 1), bool)  # MODE.FP16_OVFL: conversions saturate
        self.lds = np.zeros((waves // waves_per_workgroup, -(-lds_bytes // 16) * 16), np.uint8)
        self.scratch: dict[int, np.ndarray] = {}  # dword of a lane's private memory -> uint32 [W, 64]
        self._full = LaneMask.of(np.ones((waves, LANES), bool))
        self._mask: LaneMask | None = None
        self.group: np.ndarray | None = None  # bool [W, 1]: the waves that execute now; None is all of them

    def reset(self) -> None:
        """Registers and LDS as a new batch of waves finds them here: zero, every lane on."""
        for array in (self.v, self.a, self.s, self.scc, self.fp16_overflow, self.lds):
            array.fill(0)
        self.scratch.clear()
        self.s[EXEC : EXEC + 2] = ALL_LANES
        self.group = None
        self._mask = None

    def set_group(self, group: np.ndarray | None) -> None:
        """Choose the waves that execute the next instructions."""
        if group is not None or self.group is not None:
            self._mask = None
        self.group = group

    def exec_changed(self) -> None:
        """Forget the cached lane mask after a write to EXEC."""
        self._mask = None

    def lane_mask(self) -> LaneMask:
        """The lanes that a vector instruction acts on now."""
        if self._mask is None:
            low, high = self.s[EXEC], self.s[EXEC + 1]
            if self.group is None and (low & high == ALL_LANES).all():
                self._mask = self._full
            else:
                lanes = to_lanes(low, high)
                if self.group is not None:
                    lanes &= self.group
                self._mask = LaneMask.of(lanes)
        return self._mask

    def saturate(self) -> np.ndarray | bool:
        """MODE.FP16_OVFL: one bool where all waves agree, else bools [W, 1]."""
        first = bool(self.fp16_overflow[0, 0])
        return first if (self.fp16_overflow == first).all() else self.fp16_overflow

    def write_scalar(self, index: int, value: np.ndarray) -> None:
        """Write a scalar register [W, 1] of the waves that execute now."""
        if self.group is None:
            self.s[index][...] = value
        else:
            np.copyto(self.s[index], value, where=self.group)
        if index in (EXEC, EXEC + 1):
            self._mask = None

    def write_scc(self, value: np.ndarray) -> None:
        """Write the scalar condition code of the waves that execute now."""
        if self.group is None:
            self.scc[...] = value
        else:
            np.copyto(self.scc, value, where=self.group)
