"""Registers of one wave: read a row's sources, write its results for the lanes that are on."""

from __future__ import annotations

import numpy as np

from labkit.emulator.native.bits import lane, numbers, words
from labkit.emulator.native.integer import ROW
from labkit.emulator.native.memory import is_on
from labkit.emulator.native.operations import Result, Source
from labkit.emulator.state import LANES

U, L = np.uint32, np.uint64
_ONE, _ALL = L(1), L(0xFFFFFFFFFFFFFFFF)


@lane
def fetch_from_lanes(source, on, wave, chip, table, into):
    """A DPP source: of another lane, 0 where that does not exist or is off."""
    operand, lanes = words(into), numbers(table)
    register = words(chip.v + 4 * (source.at * chip.pitch + wave * LANES))
    shift, keep, flip = source.shift, source.keep, source.flip
    for i in range(chip.count):
        k = lanes[i]
        good = k >= 0 and is_on(on, k)
        operand[i] = ((register[L(k)] >> shift) & keep) ^ flip if good else U(0)


@lane
def lanes_with_source(on, table):
    """The lanes whose DPP source exists and is on, as bits."""
    lanes, good = numbers(table), L(0)
    for i in range(LANES):
        good |= L(lanes[i] >= 0 and is_on(on, lanes[i])) << L(i)
    return good


@lane
def fetch(source, wave, chip, into):
    """The address of one source of all lanes, its bits selected and its sign changed.

    That is its register where nothing is selected or changed, else `into`.
    """
    operand = words(into)
    shift, keep, flip = source.shift, source.keep, source.flip
    if source.kind == Source.VECTOR:
        place = chip.v + 4 * (source.at * chip.pitch + wave * LANES)
        if keep == U(0xFFFFFFFF) and flip == 0:
            return place
        register = words(place)
        for i in range(chip.count):
            operand[i] = ((register[i] >> shift) & keep) ^ flip
    elif source.kind == Source.MASK:
        mask = pair(source.at, wave, chip)
        for i in range(chip.count):
            operand[i] = U((mask >> L(i)) & _ONE)
    else:
        value = U(source.at) if source.kind == Source.CONSTANT else scalar(source.at, wave, chip)
        value = ((value >> shift) & keep) ^ flip
        for i in range(chip.count):
            operand[i] = value
    return into


@lane
def scalar(register, wave, chip):
    return words(chip.s)[L(register * chip.waves + wave)]


@lane
def pair(register, wave, chip):
    """64 bits of two scalar registers."""
    return L(scalar(register, wave, chip)) | (L(scalar(register + 1, wave, chip)) << L(32))


@lane
def set_scalar(register, value, wave, chip):
    words(chip.s)[L(register * chip.waves + wave)] = U(value)


@lane
def set_pair(register, value, wave, chip):
    set_scalar(register, value, wave, chip)
    set_scalar(register + 1, value >> L(32), wave, chip)


@lane
def scalar_source(source, width, wave, chip):
    if source.kind == Source.CONSTANT:
        return L(source.at) & (L(0xFFFFFFFF) if width == 32 else _ALL)
    return pair(source.at, wave, chip) if width == 64 else L(scalar(source.at, wave, chip))


@lane
def put(row, part, on, wave, chip):
    """A result of the lanes that are on into a vector register: the field `keep` of it."""
    values = words(chip.result + part * ROW)
    register = words(chip.v + 4 * ((row.target + part) * chip.pitch + wave * LANES))
    if on == _ALL and row.keep == 0xFFFFFFFF:
        for i in range(chip.count):
            register[i] = values[i]
        return
    keep, shift = U(row.keep), U(row.shift)
    for i in range(chip.count):
        bits = keep if (on >> L(i)) & _ONE else U(0)
        register[i] = (register[i] & ~bits) | (U(values[i] << shift) & bits)


@lane
def put_mask(part, register, on, wave, chip):
    """0 or 1 a lane as a lane mask, 0 for lanes that are off."""
    values, mask = words(chip.result + part * ROW), L(0)
    for i in range(chip.count):
        mask |= L(values[i]) << L(i)
    set_pair(register, mask & on, wave, chip)


@lane
def put_result(row, on, wave, chip):
    kind = row.result
    if kind == Result.MASK:
        put_mask(0, row.target, on, wave, chip)
        return
    put(row, 0, on, wave, chip)
    if kind == Result.PAIR or kind == Result.BOTH_PAIR:
        put(row, 1, on, wave, chip)
    if kind == Result.BOTH:
        put_mask(1, row.second, on, wave, chip)
    elif kind == Result.BOTH_PAIR:
        put_mask(2, row.second, on, wave, chip)
