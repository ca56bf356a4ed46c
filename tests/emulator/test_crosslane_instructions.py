"""Instructions that take values from other lanes, lane by lane against what the ISA guide says."""

import numpy as np
import pytest

from labkit.errors import UnsupportedInstruction
from tests.emulator.harness import ALL, execute, lanes, make_state, set_exec, set_pair

pytestmark = pytest.mark.usefixtures("engine")

NUMBERS = list(range(100, 164))
OLD = 7
MASKS = [ALL, 0, 1, 1 << 63, ALL >> 1, 0x5555555555555555, 0x00FF00000000FFFF]


def is_on(mask, lane):
    return bool(mask >> lane & 1)


def _row_shift(n):
    """The source is n lanes away in the same row of 16, and there is none beyond the row."""
    return lambda lane: lane + n if 0 <= lane % 16 + n < 16 else None


# What each control reads: lane -> source lane, None where there is none (ISA guide, "DPP_CTRL").
CONTROLS = {
    "quad_perm:[0,1,2,3]": lambda lane: lane,
    "quad_perm:[1,0,3,2]": lambda lane: lane ^ 1,
    "quad_perm:[3,3,0,1]": lambda lane: lane // 4 * 4 + (3, 3, 0, 1)[lane % 4],
    "row_mirror": lambda lane: lane // 16 * 16 + 15 - lane % 16,
    "row_half_mirror": lambda lane: lane // 8 * 8 + 7 - lane % 8,
    **{f"row_shl:{n}": _row_shift(n) for n in (1, 4, 15)},
    **{f"row_shr:{n}": _row_shift(-n) for n in (1, 2, 8, 15)},
    **{f"row_ror:{n}": lambda lane, n=n: lane // 16 * 16 + (lane - n) % 16 for n in (1, 9, 15)},
    "wave_shl:1": lambda lane: lane + 1 if lane < 63 else None,
    "wave_shr:1": lambda lane: lane - 1 if lane else None,
    "wave_rol:1": lambda lane: (lane + 1) % 64,
    "wave_ror:1": lambda lane: (lane - 1) % 64,
    "row_bcast:15": lambda lane: lane // 16 * 16 - 1 if lane >= 16 else None,
    "row_bcast:31": lambda lane: 31 if lane >= 32 else None,
    **{f"row_newbcast:{n}": lambda lane, n=n: lane // 16 * 16 + n for n in (0, 7, 15)},
}


def dpp(control, exec_mask, rows, banks, bound):
    """The 64 results of v_mov_b32_dpp of NUMBERS onto OLD."""
    result = []
    for lane in range(64):
        source = CONTROLS[control](lane)
        there = source is not None and is_on(exec_mask, source)
        written = is_on(exec_mask, lane) and rows >> lane // 16 & 1 and banks >> lane // 4 % 4 & 1
        written = written and (there or bound)
        result.append((NUMBERS[source] if there else 0) if written else OLD)
    return result


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("bound", [False, True])
def test_dpp(control, bound):
    """A lane whose source is missing or off gets 0 with bound_ctrl, else it is not written (pitfall 6)."""
    for mask in MASKS:
        for rows, banks in ((15, 15), (0xA, 15), (0xC, 15), (15, 0xA), (15, 0x5), (0x3, 0x9)):
            state = make_state()
            state.v[0], state.v[1] = OLD, lanes(NUMBERS, "u4")
            set_exec(state, mask)
            text = f"v_mov_b32_dpp v0, v1 {control} row_mask:{rows:#x} bank_mask:{banks:#x}"
            execute(state, text + (" bound_ctrl:1" if bound else ""))
            assert state.v[0][0].tolist() == dpp(control, mask, rows, banks, bound), (text, hex(mask))


def test_dpp_moves_the_first_source_only():
    """v_sub of the neighbour's value and the lane's own; the destination is the source."""
    state = make_state()
    state.v[1] = lanes(NUMBERS, "u4")
    execute(state, "v_subrev_u32_dpp v1, v1, v1 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1")
    assert state.v[1][0].tolist() == [1 if lane % 16 else 100 + lane for lane in range(64)]


def test_dpp_with_signs():
    state = make_state()
    state.v[1] = lanes(NUMBERS, "f4")
    execute(state, "v_add_f32_dpp v0, -v1, |v1| quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf")
    assert state.v[0].view(np.float32)[0].tolist() == [-1.0, 1.0] * 32


def test_dpp_beside_a_lane_mask():
    state = make_state()
    state.v[1], state.v[2] = lanes(NUMBERS, "u4"), 5
    set_pair(state, 106, 0xF0)
    execute(state, "v_cndmask_b32_dpp v0, v1, v2, vcc row_shl:1 row_mask:0xf bank_mask:0xf bound_ctrl:1")
    shifted = [0 if lane % 16 == 15 else 101 + lane for lane in range(64)]
    assert state.v[0][0].tolist() == [5 if 4 <= lane < 8 else shifted[lane] for lane in range(64)]


def test_tritons_pair_of_half_row_shifts():
    """Two moves that swap groups of four: each writes its banks and must leave the other's (pitfall 6)."""
    state = make_state()
    state.v[1] = lanes(NUMBERS, "u4")
    execute(state, "v_mov_b32_dpp v2, v1 row_shr:4 row_mask:0xf bank_mask:0xa")
    execute(state, "v_mov_b32_dpp v2, v1 row_shl:4 row_mask:0xf bank_mask:0x5")
    assert state.v[2][0].tolist() == [100 + (lane ^ 4) for lane in range(64)]


@pytest.mark.parametrize("values", [list(range(64)), [3] * 64, [(k * 37) % 101 for k in range(64)]])
def test_a_wave_wide_sum_as_llvm_makes_it(values):
    state = make_state()
    state.v[2] = lanes(values, "u4")
    for control in ("row_shr:1", "row_shr:2", "row_shr:3"):
        execute(state, f"v_add_u32_dpp v1, v2, v1 {control} row_mask:0xf bank_mask:0xf bound_ctrl:1")
    execute(
        state,
        """
        v_add_u32_e32 v1, v1, v2
        v_add_u32_dpp v1, v1, v1 row_shr:4 row_mask:0xf bank_mask:0xe
        v_add_u32_dpp v1, v1, v1 row_shr:8 row_mask:0xf bank_mask:0xc
        v_add_u32_dpp v1, v1, v1 row_bcast:15 row_mask:0xa bank_mask:0xf
        v_add_u32_dpp v1, v1, v1 row_bcast:31 row_mask:0xc bank_mask:0xf
        v_readlane_b32 s0, v1, 63""",
    )
    assert state.s[0][0, 0] == sum(values)
    assert state.v[1][0].tolist() == np.cumsum(values).tolist()  # the same steps make a running sum


@pytest.mark.parametrize("mask", MASKS)
def test_readfirstlane(mask):
    """The lowest lane that is on, lane 0 where none is (pitfall 5)."""
    state = make_state()
    state.v[1] = lanes(NUMBERS, "u4")
    set_exec(state, mask)
    execute(state, "v_readfirstlane_b32 s0, v1")
    first = next((lane for lane in range(64) if is_on(mask, lane)), 0)
    assert state.s[0][0, 0] == NUMBERS[first]


@pytest.mark.parametrize("lane", [0, 5, 63, 64, 70])
def test_readlane_and_writelane_ignore_exec(lane):
    """A lane number in a scalar register counts by its low six bits."""
    state = make_state()
    state.v[1] = lanes(NUMBERS, "u4")
    state.s[4] = lane
    set_exec(state, 0)
    execute(state, "v_readlane_b32 s0, v1, s4\nv_writelane_b32 v1, 42, s4")
    assert state.s[0][0, 0] == NUMBERS[lane % 64]
    assert state.v[1][0].tolist() == [42 if k == lane % 64 else n for k, n in enumerate(NUMBERS)]


def test_lane_numbers_and_values_that_are_constants():
    state = make_state()
    state.v[1] = lanes(NUMBERS, "u4")
    execute(state, "v_readlane_b32 s0, v1, 63\nv_writelane_b32 v1, 17, 3")
    assert (state.s[0][0, 0], state.v[1][0, 3]) == (163, 17)


def test_waves_read_their_own_lanes():
    state = make_state(waves=3)
    state.v[1] = np.arange(192).reshape(3, 64)
    state.s[4] = np.array([[1], [2], [3]])
    state.s[126] = np.array([[0xFFFFFFFF], [0x10], [0]])
    state.s[127] = np.array([[0xFFFFFFFF], [0], [0x8]])
    state.exec_changed()
    execute(state, "v_readlane_b32 s0, v1, s4\nv_readfirstlane_b32 s1, v1")
    assert state.s[0][:, 0].tolist() == [1, 66, 131]
    assert state.s[1][:, 0].tolist() == [0, 68, 128 + 35]


ADDRESSES = [4 * ((lane * 7 + 3) % 64) for lane in range(64)]


@pytest.mark.parametrize("mask", MASKS)
def test_bpermute(mask):
    """Pull: lane i reads lane address / 4; from a lane that is off comes 0."""
    for offset in (0, 8, 256):
        state = make_state()
        state.v[0], state.v[1], state.v[2] = OLD, lanes(ADDRESSES, "u4"), lanes(NUMBERS, "u4")
        set_exec(state, mask)
        execute(state, f"ds_bpermute_b32 v0, v1, v2 offset:{offset}")
        for lane in range(64):
            source = (ADDRESSES[lane] + offset) // 4 % 64
            pulled = NUMBERS[source] if is_on(mask, source) else 0
            assert state.v[0][0, lane] == (pulled if is_on(mask, lane) else OLD)


@pytest.mark.parametrize("mask", MASKS)
def test_permute(mask):
    """Push: lane i sends to lane address / 4; a lane that nobody sends to gets 0."""
    state = make_state()
    state.v[0], state.v[1], state.v[2] = OLD, lanes(ADDRESSES, "u4"), lanes(NUMBERS, "u4")
    set_exec(state, mask)
    execute(state, "ds_permute_b32 v0, v1, v2")
    sent = {ADDRESSES[lane] // 4: NUMBERS[lane] for lane in range(64) if is_on(mask, lane)}
    assert state.v[0][0].tolist() == [sent.get(k, 0) if is_on(mask, k) else OLD for k in range(64)]


def test_permutes_ignore_the_low_bits_and_wrap():
    state = make_state()
    state.v[1], state.v[2] = 4 * 64 + 4 * 5 + 3, lanes(NUMBERS, "u4")
    execute(state, "ds_bpermute_b32 v0, v1, v2")
    assert (state.v[0] == 105).all()


SWIZZLES = {
    "swizzle(SWAP,16)": lambda lane: lane ^ 16,
    "swizzle(SWAP,1)": lambda lane: lane ^ 1,
    "swizzle(REVERSE,8)": lambda lane: lane // 8 * 8 + 7 - lane % 8,
    "swizzle(BROADCAST,32,5)": lambda lane: lane // 32 * 32 + 5,
    "swizzle(BROADCAST,4,1)": lambda lane: lane // 4 * 4 + 1,
    "swizzle(QUAD_PERM,3,2,0,0)": lambda lane: lane // 4 * 4 + (3, 2, 0, 0)[lane % 4],
    'swizzle(BITMASK_PERM,"01pi0")': lambda lane: lane // 32 * 32 + (lane % 32 & 0b00110 | 0b01000) ^ 0b00010,
    "0x401f": lambda lane: lane ^ 16,  # and 31, or 0, xor 16: the pattern of SWAP,16
    "0x8027": lambda lane: lane // 4 * 4 + (3, 1, 2, 0)[lane % 4],
    "0": lambda lane: lane // 32 * 32,
}


@pytest.mark.parametrize("pattern", SWIZZLES)
def test_swizzle(pattern):
    for mask in MASKS:
        state = make_state()
        state.v[0], state.v[1] = OLD, lanes(NUMBERS, "u4")
        set_exec(state, mask)
        execute(state, f"ds_swizzle_b32 v0, v1 offset:{pattern}")
        for lane in range(64):
            source = SWIZZLES[pattern](lane)
            value = NUMBERS[source] if is_on(mask, source) else 0
            assert state.v[0][0, lane] == (value if is_on(mask, lane) else OLD)


@pytest.mark.parametrize("mask", [ALL, 0, 0x0000FFFF0000FFFF, 0x00000000FFFFFFFF])
def test_permlane16_swap_of_gfx950(mask):
    """The odd rows of the first register change places with the even rows of the second (LLVM)."""
    state = make_state(fnuz=False)
    other = [1000 + n for n in NUMBERS]
    state.v[0], state.v[1] = lanes(NUMBERS, "u4"), lanes(other, "u4")
    set_exec(state, mask)
    execute(state, "v_permlane16_swap_b32_e32 v0, v1")
    for lane in range(64):
        first, second = (
            (other[lane - 16], other[lane]) if lane & 16 else (NUMBERS[lane], NUMBERS[(lane + 16) % 64])
        )
        if not is_on(mask, lane):
            first, second = NUMBERS[lane], other[lane]
        assert (state.v[0][0, lane], state.v[1][0, lane]) == (first, second)


@pytest.mark.parametrize(
    "text,names",
    [
        ("v_mov_b32_dpp v0, v1 row_share:1 row_mask:0xf bank_mask:0xf", "row_share"),
        ("v_mov_b32_dpp v0, v1 row_mask:0xf bank_mask:0xf", "DPP"),
        ("v_mov_b32_dpp v0, v1 row_shr:1 fi:1", "fi"),
        ("v_add_co_u32_dpp v0, vcc, v1, v2 row_shr:1", "DPP"),
        ("ds_swizzle_b32 v0, v1 offset:swizzle(ROTATE,0,3)", "ds_swizzle_b32"),
        ("ds_swizzle_b32 v0, v1 offset:0xc060", "ds_swizzle_b32"),
        ("ds_swizzle_b32 v0, v1 offset:0xe000", "ds_swizzle_b32"),
        ("ds_bpermute_b32 v0, v1, v2 gds", "gds"),
        ("v_permlane16_b32 v0, v1, s2, s3", "v_permlane16_b32"),
    ],
)
def test_what_is_not_implemented_is_refused(text, names):
    with pytest.raises(UnsupportedInstruction, match=names):
        execute(make_state(), text)
