"""Where addresses come from: code by hand, on a kernel with the arguments x, y (pointers), n and address."""

import pytest

from labkit.emulator.program import Block, parse_program
from labkit.emulator.provenance import address_origins
from tests.emulator.harness import straight

X, Y = 0, 1
ARGUMENTS = [
    {"offset": 0, "size": 8, "value_kind": "global_buffer"},
    {"offset": 8, "size": 8, "value_kind": "global_buffer"},
    {"offset": 16, "size": 4, "value_kind": "by_value"},
    {"offset": 24, "size": 8, "value_kind": "by_value"},
]
LOAD = """
s_load_dwordx4 s[4:7], s[0:1], 0x0
s_load_dword s8, s[0:1], 0x10
s_load_dwordx2 s[10:11], s[0:1], 0x18
"""
AT_X = "v_mov_b32_e32 v2, s4\nv_mov_b32_e32 v3, s5\n"
AT_Y = "v_mov_b32_e32 v2, s6\nv_mov_b32_e32 v3, s7\n"
USE = "global_load_dword v9, v[2:3], off\n"


def given(program, **at_start):
    """The program with what it finds at its start: by default the kernel arguments' address, in s[0:1]."""
    program.metadata["args"] = ARGUMENTS
    names = at_start or {"kernarg_segment_ptr": 1}
    program.descriptor.update({f"user_sgpr_{name}": value for name, value in names.items()})
    return program


def origin(text, program=straight):
    """(arguments, anything) of the last access of `text`."""
    found = address_origins(given(program(LOAD + text)))
    last = found[max(found)]
    return set(last.arguments), last.anything


def branching(text):
    """A program of `text` cut into blocks as the emulator does."""
    head = '\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\nk:\n'
    tail = "\ts_endpgm\n\t.amdgpu_metadata\n---\namdhsa.kernels:\n  - .name: k\n...\n\t.end_amdgpu_metadata\n"
    return parse_program(head + text + tail)


@pytest.mark.parametrize(
    "access",
    [
        "global_load_dword v9, v[2:3], off",
        "global_store_dword v[2:3], v9, off",
        "global_atomic_add v[2:3], v9, off",
        "global_atomic_add v9, v[2:3], v8, off sc0",
        "buffer_load_dword v9, v12, s[4:7], 0 offen",
        "buffer_store_dword v9, v12, s[4:7], 0 offen",
        "buffer_load_dword v12, s[4:7], 0 offen lds",
        "global_load_dword v9, v12, s[4:5]",
        "global_store_dword v12, v9, s[4:5]",
        "s_load_dword s9, s[4:5], 0x0",
    ],
)
def test_the_address_alone_decides(access):
    """v9 holds a loaded value and v8 a pointer to y; neither makes the address."""
    text = "s_mov_b64 s[6:7], 0\nv_mov_b32_e32 v8, s6\nglobal_load_dwordx2 v[9:10], v[2:3], off\n"
    assert origin(AT_X + text + access) == ({X}, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (AT_X + USE, ({X}, False)),
        (AT_X + AT_Y + USE, ({Y}, False)),  # overwritten
        # A pointer and a loaded index: the pointer.
        (
            "global_load_dwordx2 v[4:5], v[6:7], off\n" + AT_X + "v_lshlrev_b64 v[4:5], 2, v[4:5]\n"
            "v_lshl_add_u64 v[2:3], v[2:3], 0, v[4:5]\n" + USE,
            ({X}, False),
        ),
        (
            AT_X + "v_add_co_u32_e32 v2, vcc, v2, v4\nv_addc_co_u32_e32 v3, vcc, v3, v5, vcc\n" + USE,
            ({X}, False),
        ),
        # s[0:1] only takes the carry.
        ("v_mad_u64_u32 v[2:3], s[0:1], v4, v5, s[4:5]\n" + USE, ({X}, False)),
        # A choice of two.
        (
            AT_X + "v_mov_b32_e32 v4, s6\nv_mov_b32_e32 v5, s7\nv_cmp_eq_u32_e32 vcc, s8, v0\n"
            "v_cndmask_b32_e32 v2, v2, v4, vcc\nv_cndmask_b32_e32 v3, v3, v5, vcc\n" + USE,
            ({X, Y}, False),
        ),
        # A choice of an argument and a pointer from memory, moved by an index: still both.
        (
            "global_load_dwordx2 v[4:5], v[6:7], off\n" + AT_X + "v_cndmask_b32_e32 v2, v2, v4, vcc\n"
            "v_cndmask_b32_e32 v3, v3, v5, vcc\nv_lshl_add_u64 v[2:3], v[8:9], 2, v[2:3]\n" + USE,
            ({X}, True),
        ),
        ("global_load_dwordx2 v[2:3], v[6:7], off\n" + USE, (set(), True)),
        ("ds_read_b64 v[2:3], v6\n" + USE, (set(), True)),
        ("v_mov_b32_e32 v2, s10\nv_mov_b32_e32 v3, s11\n" + USE, (set(), True)),  # a number as a pointer
        ("v_mov_b32_e32 v2, 0\nv_mov_b32_e32 v3, 0\n" + USE, (set(), True)),  # nothing is known
        # From one lane to all, and through another lane's register.
        (AT_X + "v_readfirstlane_b32 s12, v2\nv_readfirstlane_b32 s13, v3\ns_load_dword s9, s[12:13], 0x0",
         ({X}, False)),
        (AT_X + "ds_bpermute_b32 v2, v6, v2\nds_bpermute_b32 v3, v6, v3\n" + USE, ({X}, False)),
        ("v_writelane_b32 v6, s4, 0\nv_writelane_b32 v6, s7, 1\nv_readlane_b32 s12, v6, 0\n"
         "s_load_dword s9, s[12:13], 0x0", ({X, Y}, False)),
        # The kernel arguments at an offset that is not in the text may bring any of them.
        ("s_add_u32 s12, s0, s8\ns_addc_u32 s13, s1, 0\ns_load_dwordx2 s[4:5], s[12:13], 0x0\n"
         "s_load_dword s9, s[4:5], 0x0", ({X, Y}, True)),
    ],
)  # fmt: skip
def test_what_an_address_is_made_from(text, expected):
    assert origin(text) == expected


def test_loads_of_the_kernel_arguments_stay_in_them():
    for found in address_origins(given(straight(LOAD))).values():
        assert found.segment and not found.arguments and not found.anything


def test_the_kernel_arguments_after_other_values():
    """Triton 3.9 asks for the dispatch's and the queue's pointers and for the dispatch's number, too."""
    text = "".join(f"s_load_dword s16, s[{first}:{first + 1}], 0x0\n" for first in (4, 8, 10))
    names = ("dispatch_ptr", "queue_ptr", "kernarg_segment_ptr", "dispatch_id")
    program = given(straight(text), **(dict.fromkeys(names, 1) | {"kernarg_preload_length": 4}))
    segment, x, y = address_origins(program).values()
    assert segment.segment and not segment.arguments
    assert (x.arguments, x.segment) == ({X}, False) and (y.arguments, y.segment) == ({Y}, False)


CHOOSE = "s_cmp_eq_u32 s8, 0\ns_cbranch_scc1 .other\n" + AT_X + "s_branch .use\n.other:\n" + AT_Y + ".use:\n"


def test_two_ways_to_one_place():
    assert origin(CHOOSE + USE, branching) == ({X, Y}, False)


def masked(inside, after):
    """`inside` runs on some lanes only, `after` on all again."""
    return f"{AT_X}s_and_saveexec_b64 s[12:13], vcc\n{inside}s_or_b64 exec, exec, s[12:13]\n{after}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (masked(AT_Y + USE, ""), {Y}),  # the lanes that are on have y alone
        (masked(AT_Y, USE), {X, Y}),  # the others have kept x
        (masked(AT_Y, AT_Y + USE), {Y}),
        (masked("", AT_Y + masked("", USE)), {X}),
        # All lanes are on after the first mask, so nothing of it is left at the end of the second.
        (masked(AT_Y, AT_Y + "s_and_saveexec_b64 s[12:13], vcc\ns_or_b64 exec, exec, s[12:13]\n" + USE), {Y}),
        # One half of the lanes, then the other.
        (AT_X + "s_and_saveexec_b64 s[12:13], vcc\ns_xor_b64 s[12:13], exec, s[12:13]\n" + AT_Y
         + "s_andn2_saveexec_b64 s[12:13], s[12:13]\n" + USE, {X, Y}),
    ],
)  # fmt: skip
def test_lanes_that_are_off_keep_their_pointers(text, expected):
    assert origin(text, branching) == (expected, False)


def test_blocks_are_cut_at_exec():
    assert len(branching(LOAD + masked(AT_Y, USE)).blocks) == 3 and isinstance(straight("").blocks[0], Block)
