"""The memory that a workgroup's waves have in common, and what is looked for at each access to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from labkit.emulator.lds_shadow import LdsShadow
from labkit.emulator.memory import Allocation, Change, Memory
from labkit.emulator.program import Instruction
from labkit.emulator.state import LANES, LaneMask, State

if TYPE_CHECKING:
    from labkit.emulator.faults import Watcher
    from labkit.emulator.global_memory import Witness


# Called with (instruction, byte addresses [W, 64], bytes a lane, lanes that access, is it a write).
Recorder = Callable[[Instruction, np.ndarray, int, np.ndarray, bool], None]


class LdsOutOfRange(Exception):
    """Some active lanes address LDS beyond what the workgroup allocated."""

    def __init__(self, lanes: np.ndarray, addresses: np.ndarray, size: int) -> None:
        super().__init__("address outside the workgroup's LDS")
        self.lanes, self.addresses, self.size = lanes, addresses, size


class Lds:
    """All workgroups' LDS as one Memory, a lane's address moved to its workgroup's part.

    record: told of every access (None: nobody is).
    watcher: told of accesses beyond the LDS (None: they raise LdsOutOfRange), and, where `checked`, of races
    and of reads before any write.
    """

    def __init__(self, state: State) -> None:
        self.size = state.lds.shape[1]
        # A workgroup's part is padded to whole words so that no access can cross into the next one.
        self.allocation = Allocation.of("LDS", state.lds.reshape(-1))
        self.memory = Memory([self.allocation])
        wave = np.arange(state.waves)
        group = wave // state.waves_per_workgroup
        start = (group * self.size + self.allocation.base).astype(np.uint64)[:, None]
        self.start = np.broadcast_to(start, (state.waves, LANES))
        self.wave = np.broadcast_to((wave % state.waves_per_workgroup)[:, None], (state.waves, LANES))
        self.shadow = LdsShadow(state.lds.size)
        self.watcher: Watcher | None = None
        self.witness: Witness | None = None
        self.checked = False
        self.record: Recorder | None = None

    def begin(self, checked: bool) -> None:
        """Waves begin anew, and nothing is written."""
        self.checked = checked
        if checked:
            self.shadow.reset()

    def read(
        self, instruction: Instruction, address: np.ndarray, size: int, mask: LaneMask
    ) -> list[np.ndarray]:
        """Words of `size` bytes at each active lane's `address` in its workgroup's LDS."""
        at, lanes = self._locate(instruction, address, size, mask, False)
        words = self.memory.load(at, size, lanes)
        if self.checked:
            assert self.watcher is not None
            chosen, offsets, waves = self._touched(at, lanes)
            unwritten, rival = self.shadow.read(offsets, size, waves)
            if unwritten.any():
                self.watcher.unwritten(*_spread(chosen, unwritten, address), instruction)
            self._tell_race(instruction, chosen, rival, address)
        return words

    def write(
        self, instruction: Instruction, address: np.ndarray, size: int, mask: LaneMask, words: list
    ) -> None:
        """Store the low `size` bytes of `words` at each active lane's `address`."""
        at, lanes = self._locate(instruction, address, size, mask, True)
        if not self.checked:
            self.memory.store(at, size, lanes, words)
            return
        before = self.memory.load(at, size, lanes)
        self.memory.store(at, size, lanes, words)
        after = self.memory.load(at, size, lanes)
        chosen, offsets, waves = self._touched(at, lanes)
        bits = np.uint32((1 << 8 * min(size, 4)) - 1)
        changed, lost = (
            np.logical_or.reduce([(old ^ new) & bits != 0 for old, new in zip(there, words, strict=True)])
            for there in (before, after)
        )
        rival = self.shadow.write(offsets, size, waves, changed[chosen], lost[chosen])
        self._tell_race(instruction, chosen, rival, address)

    def update(
        self, instruction: Instruction, address: np.ndarray, size: int, mask: LaneMask, change: Change
    ) -> np.ndarray:
        """Atomics: as Memory.update."""
        at, lanes = self._locate(instruction, address, size, mask, True)
        # As in global memory, only atomics need alignment.
        wrong = (mask.lanes if lanes is None else lanes) & (address % np.uint32(size) != 0)
        if wrong.any():
            if self.watcher is not None:
                self.watcher.misaligned(wrong, address, size, instruction)
            lanes = (mask.lanes if lanes is None else lanes) & ~wrong
        if self.checked:
            _, offsets, _ = self._touched(at, lanes)
            self.shadow.mark_written(offsets, size)
        return self.memory.update(at, size, lanes, change)

    def pass_barrier(self, workgroups: np.ndarray) -> None:
        """Waves of these workgroups have passed a barrier: what they did before it lies behind them."""
        for group in workgroups if self.checked else ():
            self.shadow.pass_barrier(slice(group * self.size, (group + 1) * self.size))

    def _locate(
        self, instruction: Instruction, address: np.ndarray, size: int, mask: LaneMask, write: bool
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Addresses in all workgroups' LDS, and the lanes that access it (None for all)."""
        lanes = None if mask.full else mask.lanes
        beyond = mask.lanes & (address.astype(np.uint64) + np.uint64(size) > np.uint64(self.size))
        if beyond.any():
            error = LdsOutOfRange(beyond, np.broadcast_to(address, beyond.shape), size)
            if self.watcher is None:
                raise error
            self.watcher.lds_outside(error, instruction)
            lanes = mask.lanes & ~beyond
        here = mask.lanes if lanes is None else lanes
        if self.record is not None:
            self.record(instruction, address, size, here, write)
        if self.witness is not None:
            self.witness(None, np.broadcast_to(address, here.shape).astype(np.uint64), size, here)
        return self.start + address, lanes

    def _touched(self, at: np.ndarray, lanes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The lanes that access LDS, bool [W, 64], and their byte offsets and waves, [n]."""
        chosen = np.ones(at.shape, bool) if lanes is None else lanes
        return chosen, (at[chosen] - np.uint64(self.allocation.base)).view(np.int64), self.wave[chosen]

    def _tell_race(
        self, instruction: Instruction, chosen: np.ndarray, rival: np.ndarray, address: np.ndarray
    ) -> None:
        if rival.any():
            assert self.watcher is not None
            lanes, addresses = _spread(chosen, rival != 0, address)
            self.watcher.race(lanes, addresses, int(rival[rival != 0][0]), instruction)


def _spread(chosen: np.ndarray, which: np.ndarray, address: np.ndarray) -> tuple:
    """(lanes, addresses), [W, 64], of those of the chosen lanes that `which` [n] marks."""
    lanes = np.zeros(chosen.shape, bool)
    lanes[chosen] = which
    return lanes, np.broadcast_to(address, chosen.shape)


def lds_of(state: State) -> Lds:
    """The LDS of every workgroup of a state."""
    if not hasattr(state, "_lds_memory"):
        state._lds_memory = Lds(state)
    return state._lds_memory
