"""Turn Triton's assembly text into a program: instructions in straight-line blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from labkit.compiler.assembly import AsmLine, parse_descriptor, parse_lines, parse_metadata
from labkit.compiler.listing import instruction_class
from labkit.emulator.constant_tables import place_tables, read_tables
from labkit.emulator.operands import EXEC, Name, Operand, Register, parse_operand, split_operands
from labkit.errors import UnsupportedInstruction

# Suffixes that name an encoding, not an operation.
_ENCODING = re.compile(r"_(e32|e64|dpp|sdwa)$")
_READS_LDS = re.compile("read|rtn|permute|swizzle")
_NO_FALL_THROUGH = {"s_branch", "s_endpgm"}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `operation` is the mnemonic without its encoding suffix (`_e32`, `_dpp` ...)."""

    line: AsmLine
    mnemonic: str
    operation: str
    encoding: str
    operands: tuple[Operand, ...]
    modifiers: dict[str, str]
    kind: str  # its class, as labkit.compiler.listing names them

    def refuse(self, why: str) -> UnsupportedInstruction:
        """The error for a form that the emulator does not execute."""
        return UnsupportedInstruction(
            f"the emulator does not execute `{self.line.text}`: {why} "
            f"(assembly line {self.line.number}; {self.where}). "
            "Report it with the kernel, or run on a real GPU."
        )

    @property
    def where(self) -> str:
        """The kernel's own source line, as `file:line`."""
        if not self.line.source_line:
            return "no source line"
        return f"{self.line.source_file}:{self.line.source_line}"

    @property
    def has_result(self) -> bool:
        """Whether the first operand is a register that it writes: a store, branch or wait has none."""
        if not self.operands or not isinstance(self.operands[0], Register):
            return False
        if self.kind in ("VMEM store", "branch", "wait", "barrier", "other"):
            return False
        if self.kind == "VMEM load":
            return "lds" not in self.modifiers  # else the bytes go to LDS
        if self.kind == "VMEM atomic":
            return "sc0" in self.modifiers  # only then the old value comes back
        if self.kind == "LDS":
            return _READS_LDS.search(self.operation) is not None
        return not self.operation.startswith(("s_cmp", "s_bitcmp"))

    def allow(self, *names: str) -> None:
        """Refuse every modifier that is not in `names`: an ignored modifier is a wrong result."""
        for name in self.modifiers:
            if name not in names:
                raise self.refuse(f"modifier `{name}` is not implemented here")


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions that always run one after the other with the same EXEC.

    A block ends at a branch, a barrier, the program's end, a label, or a write of EXEC, so that one
    count of executions and of active lanes holds for all of its instructions.
    """

    first: int  # index of its first instruction in the program
    instructions: tuple[Instruction, ...]


@dataclass(slots=True)
class Program:
    """A kernel's machine code, ready to bind to registers.

    lds_bytes is not in the assembly (Triton allocates LDS at launch), so the launch adds it.
    """

    name: str
    text: str
    target: str
    instructions: list[Instruction]
    blocks: list[Block]
    block_of_label: dict[str, int]
    entry: int  # block where a wave starts
    descriptor: dict[str, int]
    metadata: dict
    tables: dict = field(default_factory=dict)  # name -> bytes (uint8) of the constants that its code reads
    bound: dict = field(default_factory=dict)  # machines by shape, so that a second launch binds nothing
    origins: dict | None = None  # where each access's address comes from, once provenance has found it

    @property
    def user_sgprs(self) -> dict[str, int]:
        """The first scalar register of each value that a wave finds at its start, by the value's name.

        "kernarg_preload" is where preloaded kernel arguments begin.
        """
        found, next_register = {}, 0
        for name, count in _USER_SGPRS:
            if self.descriptor.get(f"user_sgpr_{name}", 0):
                found[name] = next_register
                next_register += count
        return found | {"kernarg_preload": next_register}

    @property
    def vgprs(self) -> int:
        """Vector registers a lane that the program names, accumulation registers left out."""
        return max(self.descriptor.get("next_free_vgpr", 0), 1)


# In this order, each with its number of registers (LLVM AMDGPU usage guide, "SGPR register set up order").
_USER_SGPRS = (
    ("private_segment_buffer", 4),
    ("dispatch_ptr", 2),
    ("queue_ptr", 2),
    ("kernarg_segment_ptr", 2),
    ("dispatch_id", 2),
    ("flat_scratch_init", 2),
    ("private_segment_size", 1),
)


def parse_program(asm: str) -> Program:
    """Parse the text of one kernel. Raises UnsupportedInstruction for text that is no AMD kernel."""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    aligned: list[int] = []
    target = ""
    lines = parse_lines(asm)
    for line in lines:
        if line.kind == "instruction":
            instructions.append(parse_instruction(line))
        elif line.kind == "label":
            labels[line.text] = len(instructions)
        elif line.kind == "directive":
            if re.fullmatch(r"\.p2align\s+8", line.text):
                aligned.append(len(instructions))
            elif line.text.startswith(".amdgcn_target"):
                # "amdgcn-amd-amdhsa--gfx942"; Triton 3.9: "amdgpu9.42-amd-amdhsa-unknown-gfx942"
                target = re.search(r"-(gfx\w+)", line.text)[1]
    descriptor = parse_descriptor(asm)
    metadata = parse_metadata(asm)
    if not instructions or not metadata:
        raise UnsupportedInstruction("this text holds no AMD kernel: expected AMDGCN assembly from Triton")
    if tables := read_tables(lines, instructions):
        instructions = [place_tables(instruction, tables) for instruction in instructions]
    name = str(metadata["name"])
    entry = labels[name]
    if descriptor.get("user_sgpr_kernarg_preload_length", 0):
        # Firmware that preloads kernel arguments enters 256 bytes on, past the compatibility prologue.
        entry = next(index for index in aligned if index > entry)
    blocks, block_at = _split_into_blocks(instructions, set(labels.values()) | {entry})
    return Program(
        name,
        asm,
        target,
        instructions,
        blocks,
        {label: block_at[index] for label, index in labels.items() if index < len(instructions)},
        block_at[entry],
        descriptor,
        metadata,
        tables,
    )


def parse_instruction(line: AsmLine) -> Instruction:
    """Parse one instruction's text into operation, operands and modifiers."""
    match = _ENCODING.search(line.mnemonic)
    operation = line.mnemonic[: match.start()] if match else line.mnemonic
    texts, modifiers = split_operands(line.operands)
    return Instruction(
        line,
        line.mnemonic,
        operation,
        match[1] if match else "",
        tuple(parse_operand(text) for text in texts),
        modifiers,
        instruction_class(line.mnemonic),
    )


def _split_into_blocks(
    instructions: list[Instruction], starts: set[int]
) -> tuple[list[Block], dict[int, int]]:
    blocks: list[Block] = []
    block_at: dict[int, int] = {}
    current: list[Instruction] = []
    for index, instruction in enumerate(instructions):
        if index in starts and current:
            blocks.append(Block(index - len(current), tuple(current)))
            current = []
        if not current:
            block_at[index] = len(blocks)
        current.append(instruction)
        if _ends_block(instruction):
            blocks.append(Block(index + 1 - len(current), tuple(current)))
            current = []
    if current:
        blocks.append(Block(len(instructions) - len(current), tuple(current)))
    return blocks, block_at


def _ends_block(instruction: Instruction) -> bool:
    return (
        instruction.kind in ("branch", "barrier")
        or instruction.operation in _NO_FALL_THROUGH
        or "saveexec" in instruction.operation
        or _writes_exec(instruction)
    )


def _writes_exec(instruction: Instruction) -> bool:
    first = instruction.operands[0] if instruction.operands else None
    return isinstance(first, Register) and first.file == "s" and first.index in (EXEC, EXEC + 1)


def branch_target(instruction: Instruction) -> str:
    """The label that a branch names."""
    label = instruction.operands[0]
    if not isinstance(label, Name):
        raise instruction.refuse("a branch to something that is no label")
    return label.text


def successors(program: Program, number: int) -> Iterator[int]:
    """The blocks that may run after block `number`."""
    last = program.blocks[number].instructions[-1]
    if last.operation == "s_endpgm":
        return
    if last.kind == "branch":
        yield program.block_of_label[branch_target(last)]
    if last.operation != "s_branch" and number + 1 < len(program.blocks):
        yield number + 1
