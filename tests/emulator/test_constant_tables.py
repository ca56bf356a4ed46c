"""Tables beside a kernel's code: Bessel functions against mpmath, and the distances that lead to a table."""

import mpmath  # torch brings it, with sympy
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

import labkit
from labkit.compiler.assembly import parse_lines
from labkit.emulator.constant_tables import place_tables, read_tables
from labkit.emulator.program import parse_instruction
from labkit.errors import UnsupportedInstruction
from tests.emulator.harness import execute, make_state, set_pair


@triton.jit
def bessel_kernel(x_ptr, out_ptr, ORDER: tl.constexpr, BLOCK: tl.constexpr):
    """Rows of out: the Bessel functions J and Y of an order, 0 or 1."""
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    if ORDER == 0:
        tl.store(out_ptr + at, libdevice.j0(x))
        tl.store(out_ptr + BLOCK + at, libdevice.y0(x))
    else:
        tl.store(out_ptr + at, libdevice.j1(x))
        tl.store(out_ptr + BLOCK + at, libdevice.y1(x))


@pytest.mark.parametrize("dtype,bound", [(torch.float32, 2e-6), (torch.float64, 4e-15)], ids=str)
@pytest.mark.parametrize("order", [0, 1])
def test_bessel_functions(mi300x, dtype, bound, order):
    """Small, middling and large arguments read other parts of the tables."""
    x = torch.cat([torch.linspace(0.5, 12, 96), torch.linspace(15, 90, 32)]).to(dtype)
    out = torch.zeros(2, 128, dtype=dtype)
    bessel_kernel[(1,)](x, out, ORDER=order, BLOCK=128, enable_fp_fusion=False)
    assert "s_getpc_b64" in labkit.last_launch().compiled.stages["amdgcn"]
    for got, function in zip(out.double(), (mpmath.besselj, mpmath.bessely), strict=True):
        wanted = [float(function(order, value)) for value in x.double().tolist()]
        assert np.abs(got.numpy() - wanted).max() <= bound


CODE = """
s_getpc_b64 s[0:1]
s_add_u32 s0, s0, numbers@rel32@lo+8
s_addc_u32 s1, s1, numbers@rel32@hi+16
s_load_dwordx2 s[2:3], s[0:1], 0x0
numbers:
.long 7
.long 0xfffffffe ; a comment
.quad -1
.size numbers, 16
"""


def parsed(text):
    lines = parse_lines(text)
    return lines, [parse_instruction(line) for line in lines if line.kind == "instruction"]


def test_the_distance_leads_to_the_table():
    """+8 and +16 are 4 bytes into it: the literals lie 4 and 12 bytes after the code's own address."""
    lines, instructions = parsed(CODE)
    tables = read_tables(lines, instructions)
    assert tables["numbers"].tobytes() == bytes([7, 0, 0, 0, 0xFE, *[0xFF] * 11])
    low, high = (place_tables(instructions[k], tables).operands[2].value for k in (1, 2))
    assert low | high << 32 == tables["numbers"].ctypes.data + 4


def test_the_code_stands_at_zero():
    state = make_state(waves=2)
    set_pair(state, 4, 0x123456789ABCDEF0)
    state.set_group(np.array([[True], [False]]))
    execute(state, "s_getpc_b64 s[4:5]")
    assert state.s[4][:, 0].tolist() == [0, 0x9ABCDEF0] and state.s[5][:, 0].tolist() == [0, 0x12345678]


def test_a_name_that_is_no_table_is_refused():
    lines, instructions = parsed("s_add_u32 s0, s0, helper@rel32@lo+4\nhelper:\ns_endpgm")
    with pytest.raises(UnsupportedInstruction, match="`helper` is not a table"):
        read_tables(lines, instructions)
