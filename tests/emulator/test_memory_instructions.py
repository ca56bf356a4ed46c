"""Each memory instruction: global, buffer, scalar and LDS, byte by byte against bytes objects."""

import math

import ml_dtypes
import numpy as np
import pytest

from labkit.emulator.lds_memory import LdsOutOfRange
from labkit.emulator.memory import OutOfRange
from labkit.emulator.state import State
from labkit.errors import UnsupportedInstruction
from tests.emulator.harness import ALL, execute, lanes, make_state, set_exec, set_pair

pytestmark = pytest.mark.usefixtures("engine")

OLD = 0xA5A5A5A5
MASKS = [ALL, 0, 1, ALL >> 1, 0x5555555555555555]
LOADS = {  # bytes, and how the value lies in the registers
    "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "ubyte": 1, "sbyte": 1, "ushort": 2, "sshort": 2,
}  # fmt: skip
STORES = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "byte": 1, "short": 2}


FORMS = ("global_load_{} {}, v[2:3], off", "global_load_{} {}, v2, s[4:5]", "flat_load_{} {}, v[2:3]")


def random_bytes(count):
    return np.random.default_rng(9).integers(0, 256, count, dtype=np.uint8)


def address_pair(state, index, addresses):
    """64-bit addresses of the lanes in two vector registers."""
    values = np.array(addresses, np.uint64)
    state.v[index], state.v[index + 1] = values & np.uint64(0xFFFFFFFF), values >> np.uint64(32)


def is_on(mask, lane):
    return bool(mask >> lane & 1)


def registers_of(kind, raw):
    """The dwords that a load of these bytes leaves."""
    is_signed = kind[0] == "s" and len(raw) < 4
    if len(raw) >= 4:
        return [int.from_bytes(raw[k : k + 4], "little") for k in range(0, len(raw), 4)]
    return [int.from_bytes(raw, "little", signed=is_signed) & 0xFFFFFFFF]


def registers(text, count):
    return f"v{text}" if count == 1 else f"v[{text}:{text + count - 1}]"


@pytest.mark.parametrize("kind", LOADS)
@pytest.mark.parametrize("step,offset", [(16, 0), (17, 3), (20, -5)])
def test_global_load(kind, step, offset):
    """Aligned and not, with an offset before and after, by each addressing mode."""
    data, size = random_bytes(2048), LOADS[kind]
    count = max(size // 4, 1)
    modifier = f" offset:{offset}" if offset else ""
    for mask in MASKS:
        for form in FORMS if offset >= 0 else FORMS[:2]:  # a flat offset has no sign
            state = make_state()
            state.v[8:12] = OLD
            at = [64 + step * lane for lane in range(64)]
            if "s[4:5]" in form:
                state.v[2] = lanes(at, "u4")
                set_pair(state, 4, data.ctypes.data)
            else:
                address_pair(state, 2, [data.ctypes.data + x for x in at])
            set_exec(state, mask)
            ((_, told, active),) = execute(state, form.format(kind, registers(8, count)) + modifier, [data])
            for lane in range(64):
                start = at[lane] + offset
                expected = (
                    registers_of(kind, data[start : start + size].tobytes())
                    if is_on(mask, lane)
                    else [OLD] * count
                )
                assert [int(state.v[8 + k][0, lane]) for k in range(count)] == expected
            assert (told, int(active.sum())) == (size, mask.bit_count())


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("step,offset", [(16, 0), (17, 3), (20, -5)])
def test_global_store(kind, step, offset):
    size = STORES[kind]
    count = max(size // 4, 1)
    for mask in MASKS:
        for form in ("global_store_{} v[2:3], {}, off", "global_store_{} v2, {}, s[4:5]"):
            data = random_bytes(2048)
            expected = bytearray(data.tobytes())
            state = make_state()
            words = np.random.default_rng(1).integers(0, 1 << 32, (4, 64), dtype=np.uint32)
            state.v[8:12, 0] = words
            at = [64 + step * lane for lane in range(64)]
            if "s[4:5]" in form:
                state.v[2] = lanes(at, "u4")
                set_pair(state, 4, data.ctypes.data)
            else:
                address_pair(state, 2, [data.ctypes.data + x for x in at])
            set_exec(state, mask)
            text = form.format(kind, registers(8, count)) + (f" offset:{offset}" if offset else "")
            execute(state, text, [data])
            for lane in range(64):
                if is_on(mask, lane):
                    start = at[lane] + offset
                    expected[start : start + size] = np.ascontiguousarray(words[:, lane]).tobytes()[:size]
            assert data.tobytes() == bytes(expected)


def test_the_vector_offset_is_unsigned():
    """A 32-bit offset beside a scalar base counts from 0 to 2^32 - 1."""
    data = random_bytes(64)
    state = make_state()
    state.v[2] = 0xFFFFFFF0
    set_pair(state, 4, data.ctypes.data + 16 - (1 << 32))
    execute(state, "global_load_dword v0, v2, s[4:5]", [data])
    assert (state.v[0] == int.from_bytes(data[:4].tobytes(), "little")).all()


def test_half_register_loads_and_stores():
    """d16 forms fill or read one half and keep the other."""
    data = np.array([0x80, 0x7F, 0x01, 0xFF], np.uint8)
    cases = {"short_d16": 0xA5A57F80, "short_d16_hi": 0x7F80A5A5, "ubyte_d16": 0xA5A50080,
             "ubyte_d16_hi": 0x0080A5A5, "sbyte_d16": 0xA5A5FF80, "sbyte_d16_hi": 0xFF80A5A5}  # fmt: skip
    for kind, expected in cases.items():
        state = make_state()
        state.v[0] = OLD
        address_pair(state, 2, [data.ctypes.data] * 64)
        set_exec(state, 2)
        execute(state, f"global_load_{kind} v0, v[2:3], off", [data])
        assert state.v[0][0, :3].tolist() == [OLD, expected, OLD], kind
    for kind, expected in {"short_d16_hi": [0x34, 0x12, 1, 255], "byte_d16_hi": [0x34, 0x7F, 1, 255]}.items():
        memory = data.copy()
        state = make_state()
        state.v[0] = 0x12345678
        address_pair(state, 2, [memory.ctypes.data] * 64)
        execute(state, f"global_store_{kind} v[2:3], v0, off", [memory])
        assert memory.tolist() == expected


def test_loads_into_accumulation_registers():
    data = random_bytes(256)
    state = make_state()
    state.v[2] = lanes([4 * lane for lane in range(64)], "u4")
    set_pair(state, 4, data.ctypes.data)
    execute(state, "global_load_dword a3, v2, s[4:5]\nglobal_store_dword v2, a3, s[4:5]", [data])
    assert state.a[3][0].tolist() == data.view("u4").tolist()


# Data in accumulation registers a4.. to LDS or memory, and back from there to a8..; v2 addresses the lane.
ACCUMULATION = [
    ("ds_write_b32 v2, a4", "ds_read_b32 a8, v2", 1),
    ("ds_write_b64 v2, a[4:5]", "ds_read_b64 a[8:9], v2", 2),
    ("ds_write_b96 v2, a[4:6]", "ds_read_b96 a[8:10], v2", 3),
    ("ds_write_b128 v2, a[4:7]", "ds_read_b128 a[8:11], v2", 4),
    ("ds_write2_b32 v2, a4, a5 offset1:1", "ds_read2_b32 a[8:9], v2 offset1:1", 2),
    ("ds_write2_b64 v2, a[4:5], a[6:7] offset1:1", "ds_read2_b64 a[8:11], v2 offset1:1", 4),
    ("ds_add_u32 v2, a4", "ds_add_rtn_u32 a8, v2, a5", 1),
    ("ds_add_u64 v2, a[4:5]", "ds_wrxchg_rtn_b64 a[8:9], v2, a[6:7]", 2),
    ("global_store_dword v2, a4, s[4:5]", "global_atomic_add a8, v2, a5, s[4:5] sc0", 1),
    ("global_atomic_swap_x2 v2, a[4:5], s[4:5]", "global_load_dwordx2 a[8:9], v2, s[4:5]", 2),
]


@pytest.mark.parametrize("store,load,count", ACCUMULATION)
@pytest.mark.parametrize("mask", MASKS)
def test_data_in_accumulation_registers(store, load, count, mask):
    words = np.random.default_rng(6).integers(0, 1 << 32, (4, 64), dtype=np.uint32)
    state, memory = make_state(), np.zeros(1024, np.uint8)
    state.a[4:8, 0], state.a[8:12], state.v[:] = words, OLD, 0xDEAD
    state.v[2] = lanes([16 * lane for lane in range(64)], "u4")
    set_pair(state, 4, memory.ctypes.data)
    set_exec(state, mask)
    execute(state, f"{store}\n{load}", [memory])
    on = np.array([is_on(mask, lane) for lane in range(64)])
    np.testing.assert_array_equal(state.a[8 : 8 + count, 0], np.where(on, words[:count], OLD))
    assert (np.delete(state.v, 2, axis=0) == 0xDEAD).all()


def test_lanes_exchange_accumulation_registers():
    state = make_state(fnuz=False)
    state.a[4], state.v[:] = lanes(list(range(64)), "u4"), 0xDEAD
    state.v[2] = lanes([4 * (lane ^ 1) for lane in range(64)], "u4")
    execute(
        state, "ds_bpermute_b32 a8, v2, a4\nds_permute_b32 a9, v2, a4\nds_swizzle_b32 a10, a4 offset:0x041F"
    )
    for register in (8, 9, 10):
        assert state.a[register][0].tolist() == [lane ^ 1 for lane in range(64)]
    state.lds[0, :256] = np.arange(256)
    state.v[2] = lanes([8 * lane for lane in range(16)], "u4")
    execute(state, "ds_read_b64_tr_b16 a[8:9], v2\nds_read_b64_tr_b16 v[8:9], v2")
    np.testing.assert_array_equal(state.a[8:10], state.v[8:10])


def test_a_result_may_be_the_address():
    data = random_bytes(1024)
    state = make_state()
    address_pair(state, 2, [data.ctypes.data + 16 * lane for lane in range(64)])
    execute(state, "global_load_dwordx4 v[0:3], v[2:3], off", [data])
    assert state.v[:4, 0].T.ravel().tolist() == data.view("u4").tolist()


@pytest.mark.parametrize(
    "text",
    [
        "global_load_dword v0, v[2:3], off",
        "global_store_dwordx2 v[2:3], v[0:1], off",
        "global_atomic_add v[2:3], v0, off",
    ],
)
@pytest.mark.parametrize("at", [-4, -1, 61, 64, 1 << 40])
def test_an_access_outside_every_tensor_is_a_fault(text, at):
    """Nothing is touched, and the lane is named; a lane that is off may hold any address (pitfall 5)."""
    if "atomic" in text:
        at = {-1: -4, 61: 64}.get(at, at)  # else it is misaligned, which is another fault
    data = random_bytes(64)
    before = data.tobytes()
    state = make_state()
    address_pair(state, 2, [data.ctypes.data + (at if lane == 40 else 0) for lane in range(64)])
    with pytest.raises(OutOfRange) as caught:
        execute(state, text, [data])
    assert np.flatnonzero(caught.value.lanes[0]).tolist() == [40]
    assert data.tobytes() == before
    set_exec(state, ALL ^ 1 << 40)
    execute(state, text, [data])


@pytest.mark.parametrize("mask", MASKS)
def test_lanes_may_touch_different_tensors(mask):
    """Odd lanes the first, even lanes the second; lanes that are off neither."""
    before = [random_bytes(256), random_bytes(256)[::-1].copy()]
    first, second = (data.copy() for data in before)
    state = make_state()
    state.v[0], state.v[4] = OLD, 77
    address_pair(state, 2, [(first if lane % 2 else second).ctypes.data + 4 * lane for lane in range(64)])
    set_exec(state, mask)
    execute(state, "global_load_dword v0, v[2:3], off\nglobal_store_dword v[2:3], v4, off", [first, second])
    for lane in range(64):
        old = int(before[1 - lane % 2].view("u4")[lane])
        assert state.v[0][0, lane] == (old if is_on(mask, lane) else OLD)
        assert (first if lane % 2 else second).view("u4")[lane] == (77 if is_on(mask, lane) else old)


# Buffer instructions


def buffer_state(data, size=None, offsets=None):
    """A resource in s[4:7] over `data` as Triton makes them, the lanes' offsets in v2."""
    state = make_state()
    set_pair(state, 4, data.ctypes.data | 0x1234 << 48)  # the stride bits above the address do not count
    state.s[6], state.s[7] = data.size if size is None else size, 0x27000
    state.v[2] = lanes([4 * lane for lane in range(64)] if offsets is None else offsets, "u4")
    return state


@pytest.mark.parametrize("kind", LOADS)
def test_buffer_load_and_its_range(kind):
    """Lanes beyond num_records read 0, also by Triton's offset 0x80000000 (pitfall 13)."""
    data, size = random_bytes(2048), LOADS[kind]
    count = max(size // 4, 1)
    for mask in MASKS:
        offsets = [0x80000000 if lane % 5 == 0 else 16 * lane for lane in range(64)]
        state = buffer_state(data, offsets=offsets)
        state.v[8:12] = OLD
        set_exec(state, mask)
        ((_, _, active),) = execute(
            state, f"buffer_load_{kind} {registers(8, count)}, v2, s[4:7], 0 offen", [data]
        )
        for lane in range(64):
            raw = bytes(size) if lane % 5 == 0 else data[16 * lane : 16 * lane + size].tobytes()
            expected = registers_of(kind, raw) if is_on(mask, lane) else [OLD] * count
            assert [int(state.v[8 + k][0, lane]) for k in range(count)] == expected
            assert active[0, lane] == (is_on(mask, lane) and lane % 5 != 0)


@pytest.mark.parametrize("kind", STORES)
def test_buffer_store_and_its_range(kind):
    data, size = random_bytes(2048), STORES[kind]
    count = max(size // 4, 1)
    expected = bytearray(data.tobytes())
    offsets = [0x80000000 if lane % 5 == 0 else 16 * lane for lane in range(64)]
    state = buffer_state(data, offsets=offsets)
    words = np.random.default_rng(1).integers(0, 1 << 32, (4, 64), dtype=np.uint32)
    state.v[8:12, 0] = words
    execute(state, f"buffer_store_{kind} {registers(8, count)}, v2, s[4:7], 0 offen", [data])
    for lane in range(64):
        if lane % 5:
            expected[16 * lane : 16 * lane + size] = np.ascontiguousarray(words[:, lane]).tobytes()[:size]
    assert data.tobytes() == bytes(expected)


@pytest.mark.parametrize(
    "operands,first",
    [
        ("v2, s[4:7], 0 offen", 0),
        ("v2, s[4:7], 0 offen offset:64", 64),
        ("v2, s[4:7], s10 offen offset:8", 40),
        ("v2, s[4:7], 16 offen sc0 nt", 16),
        ("off, s[4:7], s10 offset:8", 40),
        ("off, s[4:7], 0", 0),
    ],
)
def test_buffer_offsets_add_up(operands, first):
    data = random_bytes(512)
    state = buffer_state(data)
    state.s[10] = 32
    execute(state, f"buffer_load_dword v0, {operands}", [data])
    words = data.view("u4")
    expected = [int(words[first // 4 + (lane if "v2" in operands else 0)]) for lane in range(64)]
    assert state.v[0][0].tolist() == expected


def test_inside_the_resource_but_outside_the_tensor_is_a_fault():
    """Triton's num_records is 0x7ffffffe, so only the tensor tells (pitfall 13)."""
    data = random_bytes(256)
    state = buffer_state(
        data, size=0x7FFFFFFE, offsets=[4 * lane + (256 if lane == 9 else 0) for lane in range(64)]
    )
    with pytest.raises(OutOfRange) as caught:
        execute(state, "buffer_load_dword v0, v2, s[4:7], 0 offen", [data])
    assert np.flatnonzero(caught.value.lanes[0]).tolist() == [9]


def test_buffer_atomics_out_of_range_vanish():
    data = np.zeros(256, np.uint8)
    state = buffer_state(data, size=0x7FFFFFFE, offsets=[8 if lane % 2 else 0x80000000 for lane in range(64)])
    state.v[1] = lanes([1.5], "f4")
    execute(state, "buffer_atomic_add_f32 v1, v2, s[4:7], 0 offen", [data])
    assert data.view("f4")[2] == 48
    assert np.count_nonzero(data.view("f4")) == 1
    execute(state, "buffer_atomic_add_f32 v1, v2, s[4:7], 0 offen sc0", [data])
    returned = state.v[1].view(np.float32)[0]
    assert returned[0::2].tolist() == [0] * 32
    assert sorted(returned[1::2].tolist()) == [48 + 1.5 * k for k in range(32)]


# Atomics

M32, M64 = (1 << 32) - 1, ALL


def _signed(x, bits):
    return x - (1 << bits) if x >> (bits - 1) else x


ATOMICS = {
    "swap": lambda old, x, bits: x,
    "add": lambda old, x, bits: old + x,
    "sub": lambda old, x, bits: old - x,
    "smin": lambda old, x, bits: min(_signed(old, bits), _signed(x, bits)),
    "umin": lambda old, x, bits: min(old, x),
    "smax": lambda old, x, bits: max(_signed(old, bits), _signed(x, bits)),
    "umax": lambda old, x, bits: max(old, x),
    "and": lambda old, x, bits: old & x,
    "or": lambda old, x, bits: old | x,
    "xor": lambda old, x, bits: old ^ x,
    # Count up to the operand and start again; count down and wrap to it (ISA guide).
    "inc": lambda old, x, bits: 0 if old >= x else old + 1,
    "dec": lambda old, x, bits: x if old == 0 or old > x else old - 1,
}
DS_NAMES = {
    "swap": "wrxchg_rtn_b", "add": "add_u", "sub": "sub_u", "smin": "min_i", "umin": "min_u", "smax": "max_i",
    "umax": "max_u", "and": "and_b", "or": "or_b", "xor": "xor_b", "inc": "inc_u", "dec": "dec_u",
}  # fmt: skip
OPERANDS = {
    32: [1, 0, 5, M32, 0x80000000, 0x7FFFFFFF, 100],
    64: [1, 0, M32, M64, 1 << 63, (1 << 63) - 1, 1 << 40],
}
OLDS = {32: [0, 5, M32, 0x80000001, 77], 64: [0, 5, M64, (1 << 63) + 1, 1 << 33]}


def serial(name, bits, targets, olds, operands, mask):
    """Lanes one after the other, lowest first: memory afterwards, and what each lane found."""
    memory, found = list(olds), {}
    for lane in range(64):
        if is_on(mask, lane):
            found[lane] = memory[targets[lane]]
            memory[targets[lane]] = (
                ATOMICS[name](memory[targets[lane]], operands[lane], bits) & (1 << bits) - 1
            )
    return memory, found


def atomic_case(state, bits):
    """Operands in v[8:9], five elements, and many lanes on each of them."""
    operands = [OPERANDS[bits][(lane * 3) % 7] for lane in range(64)]
    values = np.array(operands, np.uint64)
    state.v[8], state.v[9] = values & np.uint64(M32), values >> np.uint64(32)
    state.v[10:12] = OLD
    return operands, [(lane * lane) % 5 for lane in range(64)]


def check_atomic(state, memory, expected, bits, returns, mask):
    wanted, found = expected
    assert memory == wanted
    for lane in range(64):
        got = int(state.v[10][0, lane]) | (int(state.v[11][0, lane]) << 32 if bits == 64 else 0)
        kept = OLD | (OLD << 32 if bits == 64 else 0)
        assert got == (found[lane] if returns and lane in found else kept)


@pytest.mark.parametrize("name", ATOMICS)
@pytest.mark.parametrize("bits", [32, 64])
def test_global_atomics(name, bits):
    for returns in (False, True):
        for mask in MASKS:
            state = make_state()
            operands, targets = atomic_case(state, bits)
            data = np.array(OLDS[bits], f"u{bits // 8}")
            state.v[2] = lanes([bits // 8 * t for t in targets], "u4")
            set_pair(state, 4, data.ctypes.data)
            set_exec(state, mask)
            result, source = ("v[10:11]", "v[8:9]") if bits == 64 else ("v10", "v8")
            text = f"global_atomic_{name}{'_x2' if bits == 64 else ''}"
            text += f" {result}, v2, {source}, s[4:5] sc0" if returns else f" v2, {source}, s[4:5]"
            execute(state, text, [data.view("u1")])
            expected = serial(name, bits, targets, OLDS[bits], operands, mask)
            check_atomic(state, data.tolist(), expected, bits, returns, mask)


@pytest.mark.parametrize("name", ATOMICS)
@pytest.mark.parametrize("bits", [32, 64])
def test_lds_atomics(name, bits):
    for returns in (True,) if name == "swap" else (False, True):
        for mask in MASKS:
            state = make_state()
            operands, targets = atomic_case(state, bits)
            memory = state.lds[0, 32 : 32 + 5 * bits // 8].view(f"u{bits // 8}")
            memory[:] = OLDS[bits]
            state.v[2] = lanes([bits // 8 * t for t in targets], "u4")
            set_exec(state, mask)
            operation = (
                DS_NAMES[name] if name == "swap" or not returns else DS_NAMES[name].replace("_", "_rtn_")
            )
            result, data = ("v[10:11]", "v[8:9]") if bits == 64 else ("v10", "v8")
            text = f"ds_{operation}{bits} {result + ', ' if returns else ''}v2, {data} offset:32"
            execute(state, text)
            check_atomic(
                state,
                memory.tolist(),
                serial(name, bits, targets, OLDS[bits], operands, mask),
                bits,
                returns,
                mask,
            )


@pytest.mark.parametrize("bits", [32, 64])
def test_compare_and_swap(bits):
    """The global form has the new value first, then the expected one; ds_cmpst has it the other way."""
    dtype, step = f"u{bits // 8}", bits // 8
    new, expected, both, found = "v[8:9]", "v[10:11]", "v[8:11]", "v[20:21]"
    if bits == 32:
        new, expected, both, found = "v8", "v9", "v[8:9]", "v20"
    state = make_state()
    state.v[8], state.v[bits // 32 + 8] = 100, 7
    state.v[2] = lanes([0, step, 2 * step], "u4")
    set_exec(state, 0b111)
    data = np.array([7, 8, 7], dtype)
    set_pair(state, 4, data.ctypes.data)
    suffix = "_x2" if bits == 64 else ""
    execute(state, f"global_atomic_cmpswap{suffix} {found}, v2, {both}, s[4:5] sc0", [data.view("u1")])
    assert data.tolist() == [100, 8, 100]
    assert state.v[20][0, :3].tolist() == [7, 8, 7]
    execute(state, f"global_atomic_cmpswap{suffix} v2, {both}, s[4:5]", [data.view("u1")])
    assert data.tolist() == [100, 8, 100]
    memory = state.lds[0, : 3 * step].view(dtype)
    memory[:] = [7, 8, 7]
    execute(state, f"ds_cmpst_rtn_b{bits} {found}, v2, {expected}, {new}")
    assert memory.tolist() == [100, 8, 100]
    assert state.v[20][0, :3].tolist() == [7, 8, 7]
    execute(state, f"ds_cmpst_b{bits} v2, {new}, {expected}")
    assert memory.tolist() == [7, 8, 7]


def test_float_atomics():
    """64 lanes on one address: the sum of exact values; a rounded sum goes lane by lane, lowest first."""
    data = np.zeros(64, np.uint8)
    state = make_state()
    set_pair(state, 4, data.ctypes.data)
    state.v[1] = lanes([float(2**k % 1009) for k in range(64)], "f4")
    execute(
        state, "global_atomic_add_f32 v2, v1, s[4:5]\nglobal_atomic_add_f32 v3, v2, v1, s[4:5] sc0", [data]
    )
    total = sum(2**k % 1009 for k in range(64))
    assert data.view("f4")[0] == 2 * total
    assert state.v[3].view(np.float32)[0, 0] == total
    state.v[1] = lanes([0.1], "f4")
    execute(state, "global_atomic_add_f32 v2, v1, s[4:5] offset:4", [data])
    running = np.float32(0)
    for _ in range(64):
        running += np.float32(0.1)
    assert data.view("f4")[1] == running
    state.lds[0, :4] = 0
    execute(state, "ds_add_f32 v2, v1\nds_add_rtn_f32 v3, v2, v1")
    assert state.v[3].view(np.float32)[0, 0] == running


def test_double_precision_atomics():
    data = np.array([1.5, 10.0, math.nan]).view("u1")
    state = make_state()
    set_pair(state, 4, data.ctypes.data)
    set_exec(state, 0b111)
    values = np.array([2.0, 20.0, 3.0] + [0.0] * 61).view("u8")
    state.v[8], state.v[9] = values & np.uint64(M32), values >> np.uint64(32)
    state.v[2] = lanes([0, 8, 16], "u4")
    execute(state, "global_atomic_max_f64 v2, v[8:9], s[4:5]", [data])
    assert data.view("f8").tolist() == [2.0, 20.0, 3.0]
    execute(
        state, "global_atomic_add_f64 v2, v[8:9], s[4:5]\nglobal_atomic_min_f64 v2, v[8:9], s[4:5]", [data]
    )
    assert data.view("f8").tolist() == [2.0, 20.0, 3.0]


@pytest.mark.parametrize("kind,dtype", [("f16", "f2"), ("bf16", ml_dtypes.bfloat16)])
def test_packed_half_atomics(kind, dtype):
    data = np.array([1.0, 256.0, 0, 0], dtype).view("u1")
    state = make_state()
    set_pair(state, 4, data.ctypes.data)
    state.v[1] = np.array([0.5, 1.0], dtype).view("u4")[0]
    set_exec(state, 0b11)
    execute(state, f"global_atomic_pk_add_{kind} v2, v1, s[4:5]", [data])
    # bfloat16 has 8 bits: 257 is halfway and goes to the even 256, twice.
    assert data.view(dtype).astype("f4").tolist() == [2.0, 258.0 if kind == "f16" else 256.0, 0, 0]


# Scalar loads


@pytest.mark.parametrize("count", [1, 2, 4, 8, 16])
@pytest.mark.parametrize(
    "offset,skip", [("0x8", 8), ("s20", 12), ("-4", -4), ("0xb", 8), ("s20 offset:0x4", 16)]
)
def test_scalar_load(count, offset, skip):
    """EXEC plays no part, and the two low bits of the address do not count."""
    data = random_bytes(256)
    state = make_state()
    set_exec(state, 0)
    state.s[20] = 12
    set_pair(state, 2, data.ctypes.data + 32)
    width = f"x{count} s[40:{39 + count}]" if count > 1 else " s40"
    execute(state, f"s_load_dword{width}, s[2:3], {offset}", [data])
    assert state.s[40 : 40 + count, 0, 0].tolist() == data.view("u4")[8 + skip // 4 :][:count].tolist()


def test_scalar_load_over_its_own_base():
    data = random_bytes(64)
    state = make_state()
    set_pair(state, 2, data.ctypes.data)
    execute(state, "s_load_dwordx4 s[0:3], s[2:3], 0x0", [data])
    assert state.s[:4, 0, 0].tolist() == data.view("u4")[:4].tolist()


# LDS

DS_READS = {"b32": 4, "b64": 8, "b96": 12, "b128": 16, "u8": 1, "i8": 1, "u16": 2, "i16": 2}
DS_WRITES = {"b32": 4, "b64": 8, "b96": 12, "b128": 16, "b8": 1, "b16": 2}


@pytest.mark.parametrize("kind", DS_READS)
@pytest.mark.parametrize("step,offset", [(16, 0), (48, 256), (17, 3)])
def test_ds_read(kind, step, offset):
    size = DS_READS[kind]
    count = max(size // 4, 1)
    for mask in MASKS:
        state = make_state()
        state.lds[0] = random_bytes(4096)
        state.v[8:12], state.v[2] = OLD, lanes([step * lane for lane in range(64)], "u4")
        set_exec(state, mask)
        execute(state, f"ds_read_{kind} {registers(8, count)}, v2" + (f" offset:{offset}" if offset else ""))
        for lane in range(64):
            raw = state.lds[0, step * lane + offset :][:size].tobytes()
            expected = (
                registers_of("s" if kind[0] == "i" else "u", raw) if is_on(mask, lane) else [OLD] * count
            )
            assert [int(state.v[8 + k][0, lane]) for k in range(count)] == expected


@pytest.mark.parametrize("kind", DS_WRITES)
@pytest.mark.parametrize("step,offset", [(16, 0), (48, 256), (17, 3)])
def test_ds_write(kind, step, offset):
    size = DS_WRITES[kind]
    count = max(size // 4, 1)
    for mask in MASKS:
        state = make_state()
        expected = bytearray(state.lds[0].tobytes())
        words = np.random.default_rng(1).integers(0, 1 << 32, (4, 64), dtype=np.uint32)
        state.v[8:12, 0], state.v[2] = words, lanes([step * lane for lane in range(64)], "u4")
        set_exec(state, mask)
        execute(state, f"ds_write_{kind} v2, {registers(8, count)}" + (f" offset:{offset}" if offset else ""))
        for lane in range(64):
            if is_on(mask, lane):
                start = step * lane + offset
                expected[start : start + size] = np.ascontiguousarray(words[:, lane]).tobytes()[:size]
        assert state.lds[0].tobytes() == bytes(expected)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("strided", ["", "st64"])
def test_two_reads_and_two_writes(bits, strided):
    """Offsets count elements, with st64 64 of them: x8 then means 8 * 64 * 8 bytes (pitfall 14)."""
    size = bits // 8
    unit = size * (64 if strided else 1)
    one, two = ("v[8:9]", "v[10:11]") if bits == 64 else ("v8", "v9")
    first, second = (1, 3) if strided else (2, 130)
    state = make_state(waves=1)
    words = np.random.default_rng(1).integers(0, 1 << 32, (4, 64), dtype=np.uint32)
    state.v[8:12, 0], state.v[2] = words, lanes([size * lane for lane in range(64)], "u4")
    expected = bytearray(4096)
    execute(state, f"ds_write2{strided}_b{bits} v2, {one}, {two} offset0:{first} offset1:{second}")
    for place, rows in ((first, words[: size // 4]), (second, words[size // 4 : size // 2])):
        for lane in range(64):
            start = size * lane + unit * place
            expected[start : start + size] = np.ascontiguousarray(rows[:, lane]).tobytes()
    assert state.lds[0].tobytes() == bytes(expected)
    # The result holds the address register, which must be read first.
    result = "v[0:3]" if bits == 64 else "v[2:3]"
    execute(state, f"ds_read2{strided}_b{bits} {result}, v2 offset0:{first} offset1:{second}")
    at = 0 if bits == 64 else 2
    np.testing.assert_array_equal(state.v[at : at + size // 2, 0], words[: size // 2])


def test_a_pair_with_one_offset_left_out():
    state = make_state(lds_bytes=8192)
    state.lds[0] = random_bytes(8192)
    execute(state, "ds_read2_b64 v[4:7], v2 offset1:16\nds_read2st64_b64 v[8:11], v2 offset1:8")
    words = state.lds[0].view("u4")
    assert state.v[4:8, 0, 0].tolist() == [*words[0:2], *words[32:34]]
    assert state.v[8:12, 0, 0].tolist() == [*words[0:2], *words[1024:1026]]


def test_ds_halves():
    state = make_state()
    state.lds[0, :4] = [0x80, 0x7F, 0x01, 0xFF]
    cases = {"u16_d16": 0xA5A57F80, "u16_d16_hi": 0x7F80A5A5, "u8_d16": 0xA5A50080, "u8_d16_hi": 0x0080A5A5,
             "i8_d16": 0xA5A5FF80, "i8_d16_hi": 0xFF80A5A5}  # fmt: skip
    for kind, expected in cases.items():
        state.v[0] = OLD
        execute(state, f"ds_read_{kind} v0, v2")
        assert (state.v[0] == expected).all(), kind
    state.v[0] = 0x12345678
    execute(state, "ds_write_b16_d16_hi v2, v0 offset:8\nds_write_b8_d16_hi v2, v0 offset:12")
    assert state.lds[0, 8:14].tolist() == [0x34, 0x12, 0, 0, 0x34, 0]


def test_workgroups_have_lds_of_their_own():
    state = State(4, 2, 16, 0, 1024, True)
    state.reset()
    state.v[2] = 4 * np.arange(64)
    state.v[3] = np.arange(4)[:, None] // 2 + 10
    execute(state, "ds_write_b32 v2, v3\nds_read_b32 v4, v2")
    assert state.v[4][:, 0].tolist() == [10, 10, 11, 11]
    assert state.lds.view("u4")[:, :64].tolist() == [[10] * 64, [11] * 64]


@pytest.mark.parametrize(
    "text",
    [
        "ds_read_b128 v[8:11], v2",
        "ds_write_b32 v2, v8 offset:12",
        "ds_add_u32 v2, v8",
        "ds_read2st64_b64 v[8:11], v2 offset1:7",
    ],
)
@pytest.mark.parametrize("address", [4096, 4094, 0xFFFFFFF0])
def test_lds_outside_the_allocation_is_a_fault(text, address):
    state = make_state(lds_bytes=4096)
    state.v[2] = lanes([0] * 20 + [address] + [0] * 43, "u4")
    with pytest.raises(LdsOutOfRange) as caught:
        execute(state, text)
    assert np.flatnonzero(caught.value.lanes[0]).tolist() == [20]
    set_exec(state, 0)
    execute(state, text)


@pytest.mark.parametrize(
    "text,names",
    [
        ("buffer_load_dword v0, v2, s[4:7], 0 idxen", "idxen"),
        ("buffer_load_ushort v2, s[4:7], 0 offen lds", "width"),
        ("buffer_store_dword v2, s[4:7], 0 offen lds", "lds"),
        ("buffer_load_format_x v0, v2, s[4:7], 0 offen", "buffer_load_format_x"),
        ("buffer_load_dword v0, v2, s[4:5], 0 offen", "buffer resource"),
        ("global_load_lds_dword v[2:3], off", "global_load_lds_dword"),
        ("global_load_dword v0, v[2:3], off scale_offset", "scale_offset"),
        ("global_atomic_fmin v[2:3], v0, off", "global_atomic_fmin"),
        ("ds_min_f32 v2, v8", "ds_min_f32"),
        ("ds_read_b32 v0, v2 gds", "gds"),
        ("ds_append v0", "ds_append"),
        ("ds_read_addtid_b32 v0", "ds_read_addtid_b32"),
        ("s_load_dword s0, s[2:3], 0x0 nv", "nv"),
        ("s_buffer_load_dword s0, s[4:7], 0x0", "s_buffer_load_dword"),
    ],
)
def test_what_is_not_implemented_is_refused(text, names):
    with pytest.raises(UnsupportedInstruction, match=names):
        execute(make_state(), text, [np.zeros(16, np.uint8)])
