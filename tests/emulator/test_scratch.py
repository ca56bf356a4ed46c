"""Scratch memory: each lane's own, at a fixed offset or at an address in registers."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import labkit
from labkit.errors import UnsupportedInstruction
from tests.emulator import kernels
from tests.emulator.harness import ALL, execute, make_state, set_exec
from tests.emulator.matrix_harness import span

WORDS = np.random.default_rng(4).integers(0, 1 << 32, (4, 64), dtype=np.uint32)
MASKS = [0, 1, 1 << 63, ALL >> 1, ALL, 0x0F0F]
# How a store and a load name their address, and the registers that hold it: v2 = 4 * lane, s4 = 64.
FORMS = {"off, off": 0, "off, off offset:16": 16, "off, s4": 64, "off, s4 offset:-4": 60,
         "v2, off": "lane",
         "v2, off offset:8": "lane+8", "v2, s4": "lane+64", "v2, s4 offset:12": "lane+76"}  # fmt: skip


def address(form, lane):
    kind = FORMS[form]
    if isinstance(kind, int):
        return kind
    return 4 * lane + int(kind.removeprefix("lane") or 0)


def texts(form, count):
    """The store of v[8..] and the load to v[20..]."""
    width = f"x{count}" if count > 1 else ""
    at, rest = form.split(", ", 1)
    yield f"scratch_store_dword{width} {at}, {span(8, count)}, {rest}"
    yield f"scratch_load_dword{width} {span(20, count)}, {form}"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("mask", MASKS)
def test_store_and_load(form, count, mask):
    """Memory is zero at first; a lane that is off leaves its own alone, and is not loaded into."""
    state = make_state()
    state.v[8:12, 0], state.v[20:24] = WORDS, 7
    state.v[2, 0], state.s[4] = 4 * np.arange(64), 64
    store, load = texts(form, count)
    set_exec(state, mask)
    execute(state, store)
    set_exec(state, ALL)
    on = np.array([mask >> lane & 1 for lane in range(64)], bool)
    execute(state, load)
    np.testing.assert_array_equal(state.v[20 : 20 + count, 0], np.where(on, WORDS[:count], 0))
    state.v[20:24] = 7
    set_exec(state, mask)
    execute(state, load)
    np.testing.assert_array_equal(state.v[20 : 20 + count, 0], np.where(on, WORDS[:count], 7))


@given(st.lists(st.integers(0, 15), min_size=64, max_size=64), st.integers(0, ALL))
def test_each_lane_at_its_own_address(places, mask):
    """As 64 dicts of Python: v2 picks the dword to write, v3 the one to read."""
    state = make_state()
    state.v[2, 0] = 4 * np.array(places)
    state.v[3, 0] = 4 * np.array(places[::-1])
    state.v[8, 0] = WORDS[0]
    set_exec(state, mask)
    execute(state, "scratch_store_dword v2, v8, off")
    set_exec(state, ALL)
    execute(state, "scratch_load_dword v3, v3, off")  # over its own address
    for lane in range(64):
        memory = {places[lane]: int(WORDS[0, lane])} if mask >> lane & 1 else {}
        assert state.v[3, 0, lane] == memory.get(places[::-1][lane], 0)


def test_each_form_reaches_the_same_memory():
    state = make_state()
    state.v[8, 0], state.v[2], state.s[4] = WORDS[0], 40, 24
    execute(state, "scratch_store_dword off, v8, off offset:64")
    for number, form in enumerate(["v2, s4", "v2, off offset:24", "off, s4 offset:40"]):
        execute(state, f"scratch_load_dword v{20 + number}, {form}")
    assert (state.v[20:23, 0] == WORDS[0]).all()


def test_waves_with_scalar_addresses_of_their_own():
    state = make_state(waves=3)
    state.v[8] = np.arange(3)[:, None] + 10
    state.s[4, :, 0] = [0, 8, 16]
    execute(state, "scratch_store_dword off, v8, s4\nscratch_load_dword v9, off, off offset:8")
    assert state.v[9][:, 0].tolist() == [0, 11, 0]


def test_accumulation_registers_spill():
    state = make_state()
    state.a[4:8, 0], state.s[4] = WORDS, 48
    execute(state, "scratch_store_dwordx4 off, a[4:7], s4\nscratch_load_dwordx4 v[0:3], off, off offset:48")
    np.testing.assert_array_equal(state.v[0:4, 0], WORDS)


def test_a_kernel_that_spills_far(mi300x):
    """One wave holds a 256 x 256 sum: its spills lie beyond what an immediate offset reaches."""
    generator = torch.Generator().manual_seed(2)
    a, b = (torch.randn(*shape, generator=generator).half() for shape in ((256, 64), (64, 256)))
    out = torch.zeros(256, 256)
    kernels.matmul_kernel[(1,)](a, b, out, 256, 256, 64, 256, 256, 32, num_warps=1)
    text = labkit.last_launch().compiled.stages["amdgcn"]
    assert re.search(r"scratch_store_\w+ off, \S+ s\d+", text)
    torch.testing.assert_close(out.double(), a.double() @ b.double(), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    "text,names",
    [
        ("scratch_load_ubyte v0, off, off", "scratch_load_ubyte"),
        ("scratch_load_dword v0, off, off nt", "nt"),
        ("scratch_load_dword v0, off, off offset:2", "multiple of 4"),
        ("scratch_store_dword off, 0, off", "registers of data"),
    ],
)
def test_what_is_not_implemented_is_refused(text, names):
    with pytest.raises(UnsupportedInstruction, match=names):
        execute(make_state(), text)
