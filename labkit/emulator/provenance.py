"""Where addresses come from: which kernel arguments each access of a program may start at.

The program is followed along all its branches with what each register's value was made from. Where several
ways lead to one place, a register has the origins of all of them. In arithmetic a pointer plus a number is
the pointer, so what has no pointer in it drops out.

Lanes that EXEC turns off keep their old registers. So each vector register has two sets of origins: that of
the lanes that are on, and that of those that are off; where EXEC grows again, the two unite.
"""

from __future__ import annotations

import functools
import operator
import re
from dataclasses import dataclass

from labkit.emulator.dataflow import follow
from labkit.emulator.operands import EXEC, Constant, Operand, Register
from labkit.emulator.program import Instruction, Program

# What a register's value was made from, as bits. MEMORY: something loaded, or a 64-bit number that may be an
# address; SEGMENT: the address of the kernel arguments themselves. NARROW is no origin: as a lane mask, the
# value may leave lanes out. Above these, a bit for each kernel argument.
_MEMORY, _SEGMENT, _NARROW = 1, 2, 4
_FIRST_ARGUMENT = 3
_NUMBERS = _MEMORY | _NARROW  # what is no pointer to a known place

_Origins = dict[tuple[str, int], int]
_OFF = {"v": "v off", "a": "a off"}  # the name of a vector file for the lanes that are off

_SWAPS = r"v_swap|v_permlane\d+_swap"  # both operands are results, too
# These hand a value on; anything else computes.
_COPIES = re.compile(
    r"[vs]_mov|v_cndmask|s_cselect|s_cmov|v_(read|write)(first)?lane|v_accvgpr|ds_(b?permute|swizzle)|"
    + _SWAPS
)
_KEEPS = re.compile(r"v_writelane|v_fmac|v_mac|s_cmov|v_movrel|" + _SWAPS)  # the old value counts, too
_CARRIES = re.compile(r"v_(add|sub|subrev|addc|subb|subbrev)_co_|v_mad_[iu]64_|v_div_scale")
_LOADS = re.compile(r"ds_(read|\w+_rtn)")


@dataclass(frozen=True, slots=True)
class Origin:
    """What an address may be made from. arguments: by their numbers in the kernel's metadata.

    anything: it may also be an address that the kernel read from memory or was given as a number.
    segment: it may lie in the kernel arguments themselves.
    """

    arguments: frozenset[int]
    anything: bool
    segment: bool


def address_origins(program: Program) -> dict[int, Origin]:
    """The origin of each global memory access of a program, by its assembly line; found once."""
    if program.origins is not None:
        return program.origins
    found: dict[int, int] = {}
    words = _argument_words(program)

    def execute(block: int, instruction: Instruction, origins: _Origins) -> None:
        if instruction.kind.startswith(("VMEM", "SMEM")) and not instruction.operation.startswith("scratch"):
            found[instruction.line.number] = _address_origin(origins, instruction)
        if instruction.has_result:
            _assign(words, origins, instruction)

    follow(program, _at_start(program, words), execute, merge=operator.or_)
    program.origins = {line: _origin(bits) for line, bits in found.items()}
    return program.origins


def _origin(bits: int) -> Origin:
    pointers = bits >> _FIRST_ARGUMENT
    numbers = frozenset(number for number in range(pointers.bit_length()) if pointers >> number & 1)
    segment = bool(bits & _SEGMENT)
    # An address of which nothing is known (it came through LDS in pieces, say) may be any.
    return Origin(numbers, bool(bits & _MEMORY) or not (numbers or segment), segment)


def _argument_words(program: Program) -> dict[int, int]:
    """The origin that each word of the kernel arguments stands for; those of plain numbers are left out."""
    words = {}
    for number, slot in enumerate(program.metadata.get("args", [])):
        pointer = slot["value_kind"] == "global_buffer"
        if pointer or (slot["value_kind"] == "by_value" and slot["size"] == 8):
            origin = 1 << _FIRST_ARGUMENT + number if pointer else _MEMORY
            words |= {slot["offset"] // 4 + k: origin for k in (0, 1)}
    return words


def _at_start(program: Program, words: dict[int, int]) -> _Origins:
    """What the hardware has put into registers before the first instruction: every lane is on."""
    at, descriptor = program.user_sgprs, program.descriptor
    first = descriptor.get("user_sgpr_kernarg_preload_offset", 0)
    origins = {("s", EXEC): 0, ("s", EXEC + 1): 0}
    for k in range(descriptor.get("user_sgpr_kernarg_preload_length", 0)):
        if first + k in words:
            origins["s", at["kernarg_preload"] + k] = words[first + k] | _NARROW
    if (pointer := at.get("kernarg_segment_ptr")) is not None:
        origins |= {("s", pointer + k): _SEGMENT | _NARROW for k in (0, 1)}
    return origins


def _address_origin(origins: _Origins, instruction: Instruction) -> int:
    """Of its registers without its result or data: those don't make the address."""
    operands = [operand for operand in instruction.operands if isinstance(operand, Register)]
    if instruction.operation.startswith("buffer"):
        data_first = "lds" not in instruction.modifiers
        return _computed(origins, operands[data_first:])
    operands = operands[instruction.has_result :]
    if instruction.kind in ("VMEM store", "VMEM atomic"):
        del operands[1]  # address, data, base
    return _computed(origins, operands)


def _of(origins: _Origins, operand: Register) -> int:
    return functools.reduce(operator.or_, (origins.get(part, 0) for part in operand.parts), 0)


def _united(origins: _Origins, operands: list[Register]) -> int:
    """Any of the operands, as after a choice between them."""
    return functools.reduce(operator.or_, (_of(origins, operand) for operand in operands), 0)


def _computed(origins: _Origins, operands: list[Register]) -> int:
    """The pointers among the operands, or, where there are none, all of them."""
    each = [_of(origins, operand) for operand in operands]
    pointers = [one for one in each if one & ~_NUMBERS]
    return functools.reduce(operator.or_, pointers or each, 0)


def _assign(words: dict[int, int], origins: _Origins, instruction: Instruction) -> None:
    operation = instruction.operation
    target, *sources = [operand for operand in instruction.operands if isinstance(operand, Register)]
    whole = _gives_whole_mask(origins, instruction)
    if _CARRIES.match(operation):
        carry = sources.pop(0)
        origins.update(dict.fromkeys(carry.parts, _NARROW))
    if instruction.kind == "SMEM":
        each = _loaded_words(words, origins, instruction, len(target.parts))
    else:
        if instruction.kind.startswith("VMEM") or _LOADS.match(operation):
            origin = _MEMORY
        elif operation.startswith(("v_cmp", "s_cmp")):
            origin = 0
        else:
            kept = [target] if _KEEPS.match(operation) or instruction.encoding == "dpp" else []
            copies = kept or _COPIES.match(operation)
            origin = (_united if copies else _computed)(origins, [*kept, *sources])
            # Once an offset is added it no longer says which argument a load of it brings.
            origin |= _MEMORY if origin & _SEGMENT and not copies else 0
        each = [origin] * len(target.parts)
    targets = [target, *sources[:1]] if re.match(_SWAPS, operation) else [target]
    saved = origins[("s", EXEC)]
    for register in targets:
        for part, origin in zip(register.parts, each, strict=True):
            origins[part] = origin | _NARROW if register.file == "s" else origin & ~_NARROW
    if "saveexec" in operation:
        origins.update(dict.fromkeys(target.parts, saved))
        _change_lanes(origins, instruction, whole)
    elif target.file == "s" and target.index == EXEC:
        _change_lanes(origins, instruction, whole)
    elif target.file == "s" and whole:
        origins.update({part: origins[part] & ~_NARROW for part in target.parts})


def _loaded_words(
    words: dict[int, int], origins: _Origins, instruction: Instruction, count: int
) -> list[int]:
    """The origins of what a scalar load brings: known where it reads the kernel arguments."""
    base, offset = instruction.operands[1:]
    if not isinstance(base, Register) or not _of(origins, base) & _SEGMENT:
        return [_MEMORY] * count
    if _of(origins, base) & ~_NARROW == _SEGMENT and isinstance(offset, Constant):
        first = (int(offset.value) + int(instruction.modifiers.get("offset", "0"), 0)) // 4
        return [words.get(first + k, 0) for k in range(count)]
    return [functools.reduce(operator.or_, words.values(), _MEMORY)] * count


def _gives_whole_mask(origins: _Origins, instruction: Instruction) -> bool:
    """Whether its result (EXEC, of a saveexec) surely has every lane that the wave started with."""
    sources: list[Operand] = list(instruction.operands[1:])
    if instruction.operation == "s_mov_b64":
        return _is_whole(origins, sources[0])
    if instruction.operation == "s_or_saveexec_b64":
        sources.append(Register("s", EXEC, 2))
    elif instruction.operation != "s_or_b64":
        return False
    return any(_is_whole(origins, source) for source in sources)


def _is_whole(origins: _Origins, mask: Operand) -> bool:
    if isinstance(mask, Constant):
        return mask.value == -1
    return isinstance(mask, Register) and not any(origins.get(part, _NARROW) & _NARROW for part in mask.parts)


def _change_lanes(origins: _Origins, instruction: Instruction, whole: bool) -> None:
    """EXEC changes: lanes that go off take their registers along, lanes that come on bring theirs."""
    exec_parts = Register("s", EXEC, 2).parts
    origins.update(dict.fromkeys(exec_parts, 0 if whole else _NARROW))
    narrower = instruction.operation == "s_and_saveexec_b64" or (
        instruction.operation in ("s_and_b64", "s_andn2_b64")
        and Register("s", EXEC, 2) in instruction.operands[1:2]
    )
    vectors = {part for part in origins if part[0] in _OFF}
    vectors |= {(part[0].removesuffix(" off"), part[1]) for part in origins if part[0] in _OFF.values()}
    for file, number in vectors:
        on, off = (file, number), (_OFF[file], number)
        both = origins.get(on, 0) | origins.get(off, 0)
        if not narrower:
            origins[on] = both
        origins[off] = 0 if whole else both
