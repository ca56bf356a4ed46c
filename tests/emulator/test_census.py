"""Every instruction that a census of Triton's own output found on gfx942 and gfx950 has an implementation.

census.tsv holds an example of each mnemonic of each target, and one for each modifier that the example lacks
and the census saw with it.
"""

from pathlib import Path

import pytest

from labkit.compiler.assembly import parse_lines
from labkit.emulator.bind import bind
from labkit.emulator.global_memory import Context
from labkit.emulator.machine import CONTROL
from labkit.emulator.memory import Memory
from labkit.emulator.program import parse_instruction
from labkit.emulator.state import State
from labkit.errors import UnsupportedInstruction

CENSUS = [line.split("\t") for line in Path(__file__).with_name("census.tsv").read_text().splitlines()]


@pytest.fixture(scope="module", params=["gfx942", "gfx950"])
def target(request):
    return request.param


def test_each_form_binds(target):
    state = State(1, 1, 512, 512, lds_bytes=4096, fnuz=target == "gfx942")
    refused = []
    for where, text in CENSUS:
        (line,) = parse_lines(text)
        instruction = parse_instruction(line)
        if where != target or instruction.operation in CONTROL:
            continue
        try:
            bind(state, instruction, Context(Memory([]), None), lambda *access: None)
        except UnsupportedInstruction as error:
            refused.append(str(error))
    assert refused == []


def test_the_census_is_whole(target):
    """The census counted 266 mnemonics a target."""
    mnemonics = {text.split()[0] for where, text in CENSUS if where == target}
    assert len(mnemonics) == 266
