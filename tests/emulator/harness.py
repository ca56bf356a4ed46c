"""Run single instructions on chosen register values, for tests."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from labkit.compiler.assembly import parse_lines
from labkit.emulator.arguments import pack, tensors
from labkit.emulator.bind import bind
from labkit.emulator.counters import Counters
from labkit.emulator.faults import Faults
from labkit.emulator.global_memory import Context
from labkit.emulator.launch import Call
from labkit.emulator.launch import execute as run_call
from labkit.emulator.memory import Allocation, Memory
from labkit.emulator.native.fast import Fast
from labkit.emulator.native.operations import Stop
from labkit.emulator.native.plan import Plan
from labkit.emulator.operands import EXEC
from labkit.emulator.program import Block, Instruction, Program, parse_instruction, parse_program
from labkit.emulator.state import State

ALL = (1 << 64) - 1


def make_state(waves: int = 1, fnuz: bool = True, lds_bytes: int = 4096) -> State:
    """A state with 64 vector and 64 accumulation registers, every lane on."""
    state = State(waves, waves, 64, 64, lds_bytes, fnuz)
    state.reset()
    return state


def set_exec(state: State, mask: int) -> None:
    """Turn on the lanes whose bits are set, in every wave."""
    state.s[EXEC], state.s[EXEC + 1] = mask & 0xFFFFFFFF, mask >> 32
    state.exec_changed()


def set_pair(state: State, index: int, value: int) -> None:
    """A 64-bit value in two scalar registers of every wave."""
    state.s[index], state.s[index + 1] = value & 0xFFFFFFFF, (value >> 32) & 0xFFFFFFFF


def pair(state: State, index: int) -> int:
    """The 64-bit value of two scalar registers of wave 0."""
    return int(state.s[index][0, 0]) | int(state.s[index + 1][0, 0]) << 32


def execute(state: State, text: str, memory: list[np.ndarray] = ()) -> list[tuple]:
    """Execute one or more lines of assembly; returns (addresses, size, lanes) of each memory access.

    memory: uint8 arrays (sizes multiples of 4) that global instructions may touch.
    """
    ranges = [Allocation.of(f"m{k}", data) for k, data in enumerate(memory)]
    context = Context(Memory(ranges), _raise)
    accesses: list[tuple] = []
    with np.errstate(all="ignore"):
        for line in parse_lines(text):
            instruction = parse_instruction(line)
            step = bind(state, instruction, context, lambda *access: accesses.append(access))
            if ENGINE[0] == "numpy" or instruction.kind.startswith("VMEM"):  # whose accesses are returned
                step()
            else:
                _execute_fast(state, instruction, step)
    return accesses


ENGINE = ["numpy"]  # which engine `execute` uses; see the fixture of that name


def _execute_fast(state: State, instruction: Instruction, step: Callable) -> None:
    """One instruction by the fast path, or by NumPy where the fast path leaves it."""
    program = straight(instruction.line.text)
    fast, plan = Fast(state), Plan(program)
    fast.begin(Memory([]), Counters.of(program))
    plan.begin_block(0)
    plan.add(0, fast.encoder, step)
    fast.use(plan)
    at, stop = np.zeros(state.waves, np.int64), np.zeros(state.waves, np.int64)
    waves = np.arange(state.waves) if state.group is None else np.flatnonzero(state.group)
    fast.run(waves, at, stop, np.zeros(state.waves, np.int64), 100)
    left = stop == Stop.NUMPY
    if left.any():
        group = state.group
        state.set_group(None if left.all() else left[:, None])
        step()
        state.set_group(group)


def lanes(values: list, dtype: str) -> np.ndarray:
    """Values repeated over the 64 lanes, as the bits of a register [1, 64]."""
    filled = np.resize(np.array(values, dtype), 64)
    bits = filled.view(f"u{filled.itemsize}")
    return bits.astype(np.uint32)[None, :] if filled.itemsize < 4 else bits[None, :]


SENTINEL = 0xA5A5A5A5  # what a lane that is off must keep
# EXEC of wave 0, 1, 2, ... when not every lane is on: none, the first, the last, all but one, every other.
_PARTIAL = [0, 1, 1 << 63, ALL >> 1, 0x5555555555555555, 0xFFFF0000FFFF0000]


def _place(state: State, file: np.ndarray, index: int, bits: np.ndarray) -> None:
    """Store values of 16, 32 or 64 bits in the registers of `file` from `index`, one a lane (or a wave)."""
    padded = np.resize(bits, file[index].size).reshape(file[index].shape)
    if bits.itemsize == 8:
        file[index], file[index + 1] = padded & 0xFFFFFFFF, padded >> np.uint64(32)
    else:
        # What lies above a 16-bit value must not matter.
        file[index] = padded.astype(np.uint32) | (0xDEAD0000 if bits.itemsize == 2 else 0)


def _bits(values: np.ndarray | list) -> np.ndarray:
    array = np.ascontiguousarray(values)
    return array.view(f"u{array.itemsize}").reshape(-1)


def _read(state: State, out: str) -> np.ndarray:
    if out == "mask":
        words = np.concatenate([state.s[0], state.s[1]], axis=1)
        return np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").astype(bool).reshape(-1)
    dtype = np.dtype(out)
    if dtype.itemsize == 8:
        return (
            (state.v[0].astype(np.uint64) | state.v[1].astype(np.uint64) << np.uint64(32)).view(dtype).ravel()
        )
    return state.v[0].astype(f"u{dtype.itemsize}").view(dtype).ravel()


def run_lanes(text: str, *sources, out: str = "u4", old=None, setup=None) -> np.ndarray:
    """Execute `text` once for each element of the sources and return the results, one a source element.

    Source k lies in v[2k+2] (and the register above it, for 64 bits); results are read from v0 (v[0:1]), or
    for out="mask" from s[0:1]. `old` is what v0 holds before. setup(state) may set scalar registers.
    Runs twice, with every lane on and with some off: those that are on must agree, the others stay.
    """
    arrays = [_bits(source) for source in sources]
    count = max(array.size for array in arrays)
    full, partial = (
        _run_once(text, arrays, -(-count // 64), out, old, setup, some) for some in (False, True)
    )
    active = np.concatenate([[mask >> lane & 1 for lane in range(64)] for mask in _masks(full.size // 64)])
    active = active.astype(bool)
    as_bits = (lambda x: x) if out == "mask" else _bits
    np.testing.assert_array_equal(as_bits(full)[active], as_bits(partial)[active], err_msg=text)
    kept = np.zeros(full.size, bool) if out == "mask" else _kept(out, old, full.size)
    np.testing.assert_array_equal(
        as_bits(partial)[~active], kept[~active], err_msg=f"{text}: lanes that are off"
    )
    return full[:count]


def _masks(waves: int) -> list[int]:
    return [_PARTIAL[wave % len(_PARTIAL)] for wave in range(waves)]


def _kept(out: str, old, size: int) -> np.ndarray:
    if old is not None:
        return np.resize(_bits(old), size)
    width = np.dtype(out).itemsize
    return np.full(size, SENTINEL | SENTINEL << 32, np.uint64).astype(f"u{width}")


def _run_once(text: str, arrays: list, waves: int, out: str, old, setup, some_off: bool) -> np.ndarray:
    state = make_state(waves)
    state.v[:2] = SENTINEL
    if old is not None:
        _place(state, state.v, 0, _bits(old))
    for k, array in enumerate(arrays):
        _place(state, state.v, 2 * k + 2, array)
    if setup is not None:
        setup(state)
    if some_off:
        masks = np.array(_masks(waves), np.uint64)[:, None]
        state.s[EXEC], state.s[EXEC + 1] = masks & 0xFFFFFFFF, masks >> np.uint64(32)
        state.exec_changed()
    execute(state, text)
    return _read(state, out)


def run_waves(text: str, *sources, scc: int = 0, old=None) -> tuple[list[int], list[int]]:
    """Execute scalar `text` once for each element of the sources, a wave each.

    Source k lies in s[2k+2] (and the one above); returns the values of s[0:1] and SCC of each wave. s1 is 0
    before, so a 32-bit result reads as itself. EXEC is 0 throughout: scalar instructions must ignore it.
    """
    arrays = [_bits(source) for source in sources]
    waves = max(array.size for array in arrays)
    state = make_state(waves)
    set_exec(state, 0)
    state.scc[...] = bool(scc)
    if old is not None:
        _place(state, state.s, 0, _bits(old))
    for k, array in enumerate(arrays):
        _place(state, state.s, 2 * k + 2, array)
    execute(state, text)
    low, high = (state.s[k][:, 0].tolist() for k in (0, 1))
    return [a | b << 32 for a, b in zip(low, high, strict=True)], state.scc[:, 0].astype(int).tolist()


# Integers at which something changes: signs, carries, shift counts at and above the width.
EDGES32 = [0, 1, 2, 7, 15, 16, 31, 32, 33, 63, 64, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x12345678,
           0x7FFFFFFF, 0x80000000, 0x80000001, 0xDEADBEEF, 0xFFFF8000, 0xFFFFFFFE, 0xFFFFFFFF]  # fmt: skip
EDGES64 = [0, 1, 63, 64, 1 << 31, (1 << 32) - 1, 1 << 32, 0x0123456789ABCDEF, (1 << 63) - 1, 1 << 63,
           0xFEDCBA9876543210, ALL - 1, ALL]  # fmt: skip


def pairs(left: list[int], right: list[int], *dtypes: str) -> tuple[np.ndarray, np.ndarray]:
    """Every element of one list with every one of the other, as two arrays."""
    first, second = dtypes or ("u4", "u4")
    return np.repeat(np.array(left, first), len(right)), np.tile(np.array(right, second), len(left))


def signed(value: int, bits: int = 32) -> int:
    """The two's complement meaning of `bits` bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


# Fraction bits (the leading one included) and the exponents of the smallest and largest normal number.
_FLOATS = {"f2": (11, -14, 15), "f4": (24, -126, 127), "f8": (53, -1022, 1023)}


def rounded(value: Fraction, kind: str) -> float:
    """An exact value rounded once to float16, float32 or float64, ties to even; infinite if it overflows."""
    precision, lowest, highest = _FLOATS[kind]
    if value == 0:
        return 0.0
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent += (size >= Fraction(2) ** (exponent + 1)) - (size < Fraction(2) ** exponent)
    step = Fraction(2) ** (max(exponent, lowest) - precision + 1)
    result = round(size / step) * step
    sign = -1.0 if value < 0 else 1.0
    return sign * (math.inf if result >= Fraction(2) ** (highest + 1) else float(result))


def exactly(function: Callable, kind: str, *values: float) -> float:
    """An arithmetic function of floats as IEEE 754 has it: exact, then rounded once to `kind`.

    Infinities, NaNs and the sign of an exact zero are Python's own.
    """
    if all(math.isfinite(value) for value in values):
        exact = function(*map(Fraction, values))
        if exact != 0:
            result = rounded(exact, kind)
            return result if result else math.copysign(0.0, exact)
    return function(*values)


def assert_same_floats(got: np.ndarray, expected: list[float], inputs: list = ()) -> None:
    """Equal to the bit, but for the payload of a NaN."""
    with np.errstate(over="ignore"):
        wanted = np.array(expected, np.float64).astype(got.dtype)
    different = _bits(got) != _bits(wanted)
    different &= ~(np.isnan(got) & np.isnan(wanted))
    where = np.flatnonzero(different)
    assert not where.size, [(got[k], wanted[k], [x[k] for x in inputs]) for k in where[:5]]


# Floats at which something changes: zeros, denormals, halfway cases, the ends of the range.
_EVERYWHERE = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, math.inf, -math.inf, math.nan]
EDGES_FLOAT = {
    "f2": [*_EVERYWHERE, 3.140625, 65504.0, -65504.0, 2.0**-14, 2.0**-24, -(2.0**-24), 2.0**-14 - 2.0**-24,
           1024.5, 2047.0, -7.0],
    "f4": [*_EVERYWHERE, 3.1415927, (2 - 2.0**-23) * 2.0**127, -(2 - 2.0**-23) * 2.0**127, 2.0**-126,
           2.0**-149, -(2.0**-149), 2.0**-126 - 2.0**-149, 8388609.0, 16777215.0, -4194304.5, 1 + 2.0**-23,
           2.0**64, 2.0**-64, 2.0**126, -(2.0**-100)],
    "f8": [*_EVERYWHERE, math.pi, sys.float_info.max, -sys.float_info.max, 2.0**-1022, 5e-324, -5e-324,
           4503599627370497.5, 1 + 2.0**-52, 2.0**600, 2.0**-600, -(2.0**-1000), 2.0**1022, 1e16 / 3],
}  # fmt: skip


def float_edges(kind: str, count: int) -> list[np.ndarray]:
    """All combinations of `count` edge values as arrays of float16, float32 or float64."""
    rows = list(itertools.product(EDGES_FLOAT[kind], repeat=count))
    return [np.array(column).astype(kind) for column in zip(*rows, strict=True)]


def straight(text: str) -> Program:
    """A program of one block."""
    instructions = [parse_instruction(line) for line in parse_lines(text)]
    blocks = [Block(0, tuple(instructions))]
    return Program("k", text, "gfx942", instructions, blocks, {}, 0, {}, {})


def execute_text(
    text: str, arguments: list[tuple], faults: Faults, grid: tuple = (1, 1, 1), lds_bytes: int = 0
) -> None:
    """Launch a kernel's assembly with 4 waves a workgroup. arguments: (name, Triton's type, value)."""
    program = parse_program(text)
    kernarg = pack(arguments, program.metadata, grid, 256)
    call = Call(program, grid, kernarg, tensors(arguments), 4, lds_bytes)
    run_call(call, Counters.of(program), faults)


def _raise(error: Exception, instruction: object) -> None:
    raise error
