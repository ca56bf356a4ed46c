"""Execute rows: one wave after the other, each as far as it gets."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import numpy as np
from numba import njit

from labkit.emulator.native import lds, memory, recording
from labkit.emulator.native.bits import lane, load32, numbers, octets, words
from labkit.emulator.native.floating import floating_operation
from labkit.emulator.native.integer import ROW, integer_operation, shifted_sum
from labkit.emulator.native.matrix import multiply_add
from labkit.emulator.native.memory import I64, is_on
from labkit.emulator.native.operations import CHIP, MOST_SOURCES, SOURCE, Op, Stop, When
from labkit.emulator.native.operations import ROW as ROW_TYPE
from labkit.emulator.native.registers import (
    fetch,
    fetch_from_lanes,
    lanes_with_source,
    pair,
    put,
    put_result,
    scalar_source,
    set_pair,
    set_scalar,
)
from labkit.emulator.native.scalar import scalar_operation
from labkit.emulator.operands import EXEC, VCC
from labkit.emulator.state import LANES

U, L = np.uint32, np.uint64
_ONE = L(1)


@lane
def scalar_row(row, sources, wave, chip):
    x = scalar_source(sources[0], row.p2, wave, chip)
    y = scalar_source(sources[1], row.p3, wave, chip) if row.sources > 1 else L(0)
    flags = octets(chip.scc)
    result, scc = scalar_operation(row.op, row.p2, row.p1, x, y, flags[L(wave)] != 0)
    flags[L(wave)] = 1 if scc else 0
    if row.p0 == 32:
        set_scalar(row.target, result, wave, chip)
    elif row.p0 == 64:
        set_pair(row.target, result, wave, chip)


@lane
def first_lane(on):
    for i in range(LANES):
        if is_on(on, i):
            return i
    return 0


@lane
def vector_row(row, sources, on, wave, chip):
    """Sources, operation, result."""
    writes = on
    if row.dpp != 0:
        table = chip.dpp + 8 * LANES * (row.dpp - 1)
        fetch_from_lanes(sources[0], on, wave, chip, table, chip.operands)
        a = chip.operands
        writes = on & L(row.may_write)
        if row.bound == 0:
            writes &= lanes_with_source(on, table)
    else:
        a = fetch(sources[0], wave, chip, chip.operands)
    b = fetch(sources[1], wave, chip, chip.operands + ROW) if row.sources > 1 else a
    c = fetch(sources[2], wave, chip, chip.operands + 2 * ROW) if row.sources > 2 else a
    d = fetch(sources[3], wave, chip, chip.operands + 3 * ROW) if row.sources > 3 else a
    if row.op <= Op.LAST_INTEGER:
        integer_operation(row.op, row.p0, chip.count, chip.result, words(a), words(b), words(c), words(d))
    elif row.op == Op.V_LSHL_ADD_U64:
        e = fetch(sources[4], wave, chip, chip.operands + 4 * ROW)
        shifted_sum(chip.count, chip.result, words(a), words(b), words(c), words(d), words(e))
    else:
        saturate = octets(chip.saturate)[L(wave)] != 0
        floating_operation(row.op, row.p0, saturate, chip, words(a), words(b), words(c), words(d))
    put_result(row, writes, wave, chip)


@lane
def wave_row(row, sources, on, wave, chip):
    """An operation of the whole wave. False where its NumPy step must do it."""
    op, first = row.op, chip.operands
    second = chip.operands + ROW
    if row.sources > 0:
        first = fetch(sources[0], wave, chip, first)
    if row.sources > 1:
        second = fetch(sources[1], wave, chip, second)
    a, b = words(first), words(second)
    if op == Op.MATRIX:
        multiply_add(row, wave, chip)
    elif op == Op.V_READFIRSTLANE_B32:
        set_scalar(row.target, a[L(first_lane(on))], wave, chip)
    elif op == Op.V_READLANE_B32:
        set_scalar(row.target, a[b[0] & U(63)], wave, chip)
    elif op == Op.V_WRITELANE_B32:
        register = words(chip.v + 4 * (row.target * chip.pitch + wave * LANES))
        register[b[0] & U(63)] = a[0]
    elif op == Op.DS_BPERMUTE_B32:
        t = words(chip.result)
        for i in range(chip.count):
            k = L((a[i] + U(row.p0)) >> U(2)) & L(63)
            t[i] = b[k] if is_on(on, k) else U(0)
        put(row, 0, on, wave, chip)
    elif op == Op.GLOBAL_LOAD or op == Op.GLOBAL_STORE:
        if chip.recording:
            return recording.access(row, op == Op.GLOBAL_STORE, on, a, b, wave, chip)
        return memory.access(row, op == Op.GLOBAL_STORE, on, a, b, wave, chip)
    else:
        return lds.access(row, op == Op.LDS_WRITE, on, a, wave, chip)
    return True


@lane
def load_scalars(row, sources, wave, chip):
    """s_load: words into consecutive scalar registers. False where the NumPy step must do it."""
    base = pair(sources[0].at, wave, chip)
    address = I64(base + scalar_source(sources[1], 32, wave, chip)) + row.p1
    size = 4 * row.p0
    k = memory.allocation_of(address, address, size, chip)
    if k < 0 or address & 3 or not memory.permitted(row.index, address, address, size, chip):
        return False
    if chip.counting:
        marks = numbers(chip.touched)[L(k)]
        memory.mark_touched(address - numbers(chip.bases)[L(k)], size, False, marks)
    for n in range(row.p0):
        set_scalar(row.target + n, load32(address + 4 * n), wave, chip)
    return True


@lane
def save_exec(row, source, on, wave, chip):
    x = scalar_source(source, 64, wave, chip)
    result = x & on if row.p0 == 0 else x | on if row.p0 == 1 else x ^ on if row.p0 == 2 else x & ~on
    set_pair(row.target, on, wave, chip)
    set_pair(EXEC, result, wave, chip)
    octets(chip.scc)[L(wave)] = 1 if result != 0 else 0


@lane
def taken(when, on, wave, chip):
    if when == When.ALWAYS:
        return True
    if when <= When.SCC1:
        return (octets(chip.scc)[L(wave)] != 0) == (when == When.SCC1)
    if when <= When.VCCNZ:
        return (pair(VCC, wave, chip) != 0) == (when == When.VCCNZ)
    return (on != 0) == (when == When.EXECNZ)


@lane
def begin_block(number, on, chip):
    numbers(chip.executions)[L(number)] += 1
    lanes = 0
    for i in range(chip.count):
        lanes += is_on(on, i)
    numbers(chip.lanes)[L(number)] += lanes


@lane
def run_wave(rows, sources, r, wave, turn, chip):
    """Execute from row r on, `turn` rows at most. Returns (the row where the wave stands, why, rows done)."""
    on = pair(EXEC, wave, chip)
    for done in range(turn):
        row = rows[r]
        op = row.op
        if op <= Op.LAST_VECTOR:
            vector_row(row, sources[r], on, wave, chip)
        elif op <= Op.LAST_WAVE:
            if not wave_row(row, sources[r], on, wave, chip):
                return r, Stop.NUMPY, done
        elif op <= Op.LAST_SCALAR:
            scalar_row(row, sources[r], wave, chip)
            on = pair(EXEC, wave, chip)
        elif op == Op.BLOCK:
            begin_block(row.p0, on, chip)
        elif op == Op.BRANCH:
            if taken(row.p0, on, wave, chip):
                r = row.p1
                continue
        elif op == Op.S_SAVEEXEC:
            save_exec(row, sources[r, 0], on, wave, chip)
            on = pair(EXEC, wave, chip)
        elif op == Op.S_LOAD:
            if not load_scalars(row, sources[r], wave, chip):
                return r, Stop.NUMPY, done
        elif op == Op.S_SET_SATURATE:
            octets(chip.saturate)[L(wave)] = scalar_source(sources[r, 0], 32, wave, chip) & _ONE
        elif op == Op.BARRIER:
            return r + 1, Stop.BARRIER, done + 1
        elif op == Op.END:
            return r, Stop.ENDED, done + 1
        else:
            return r, Stop.NUMPY, done
        r += 1
    return r, Stop.RUNNING, turn


def _compile(stamp: str):
    """`run`, compiled. Numba's cache looks at one file; by the stamp of all files it sees the others too."""

    # Without Numba's reference counts: no array is made or kept here.
    @njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
    def run(rows, sources, waves, at, stop, spent, turn, chips):
        """Let `waves`, one after the other, execute up to `turn` rows each. chips: one CHIP.

        at, stop, spent: int64 by wave, the row where each stands, why (Stop), and how many rows it has
        executed; all three are updated.
        """
        stamp  # noqa: B018
        chip = chips[0]
        for number in range(waves.size):
            wave = waves[number]
            at[wave], stop[wave], done = run_wave(rows, sources, at[wave], wave, turn, chip)
            spent[wave] += done

    return run


def prepare() -> None:
    """Compile `run`, which takes half a minute, or load it from Numba's cache, which takes an instant."""
    note = threading.Timer(2, print, ["labkit: compiling the emulator for this machine, once: half a minute"])
    note.start()
    try:
        none = np.zeros(0, np.int64)
        run(
            np.zeros(0, ROW_TYPE),
            np.zeros((0, MOST_SOURCES), SOURCE),
            none,
            none,
            none,
            none,
            0,
            np.zeros(1, CHIP),
        )
    finally:
        note.cancel()


# What is compiled takes names from those beside this package, too.
_SOURCES = [
    *sorted(Path(__file__).parent.glob("*.py")),
    *(Path(__file__).parents[1] / name for name in ("operands.py", "state.py", "traffic.py")),
]
run = _compile(hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest())
