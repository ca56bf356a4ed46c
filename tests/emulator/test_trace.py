"""labkit.trace: every step of one wave, its EXEC, and what it wrote."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

import labkit
from labkit.errors import LabkitError, LaunchError, MemoryFault
from tests.emulator import kernels
from tests.emulator.harness import straight

pytestmark = pytest.mark.usefixtures("mi300x")


def trace_add(n=100, **which):
    x, y, out = torch.arange(512.0), torch.arange(512.0) * 100, torch.full((512,), -1.0)
    found = labkit.trace(kernels.add_kernel, (2,), (x, y, out, n), {"BLOCK": 256}, **which)
    return found, out


def test_steps_stand_in_order_with_their_lines():
    found, out = trace_add()
    steps = found.table
    assert steps["instruction"].iloc[-1] == "s_endpgm"
    kinds = [step.instruction.kind for step in found.executed]
    assert kinds.index("VMEM load") < kinds.index("VMEM store")
    lines = set(steps["source_line"]) - {0}
    assert lines <= set(range(8, 13))  # the body of add_kernel
    assert out[:100].tolist() == [101.0 * k for k in range(100)]
    assert (out[256:] == -1).all()  # the other workgroup did not run


def step_of(found, mnemonic, nth=0):
    return [step for step in found.executed if step.instruction.mnemonic.startswith(mnemonic)][nth]


def test_registers_of_a_lane():
    found, _ = trace_add(wave=1)
    values = found.lane(3)
    sums = values[values["instruction"].str.contains("add_f32")]
    assert sums["access"].tolist() == ["read", "read", "written"]
    assert sums["type"].tolist() == ["f32", "f32", "f32"]
    assert sums["value"].tolist() == [67.0, 6700.0, 6767.0]  # wave 1, lane 3


def test_the_masked_tail_of_a_vector_add():
    found, _ = trace_add(wave=1)  # elements 64 to 127, of which 100 and more are masked
    lanes = np.arange(64)
    inside = lanes < 36
    add = step_of(found, "v_add_f32")
    x, y = (value.values for value in add.reads)
    assert x.tolist() == np.where(inside, 64 + lanes, 0).tolist()
    assert y.tolist() == np.where(inside, 100 * (64 + lanes), 0).tolist()
    assert add.writes[0].values.tolist() == np.where(inside, 101 * (64 + lanes), 0).tolist()
    for mnemonic, nth, tensor in (
        ("buffer_load", 0, "x_ptr"),
        ("buffer_load", 1, "y_ptr"),
        ("buffer_store", 0, "out_ptr"),
    ):
        (access,) = step_of(found, mnemonic, nth).accesses
        assert (access.lanes == inside).all()
        assert set(access.tensors[inside]) == {tensor}
        assert access.offsets[inside].tolist() == [256 + 4 * lane for lane in range(36)]
        assert access.lines == [(tensor, 2), (tensor, 3)]  # bytes 256 to 399
        assert (access.space, access.size) == ("global", 4)


def test_a_table_says_it_in_words():
    found, _ = trace_add(wave=1)
    table = found.table.set_index("step")
    add, load = step_of(found, "v_add_f32").number, step_of(found, "buffer_load").number
    assert table.loc[add, "written"].endswith("= 6464, 6565, 6666, ... 0 (f32)")
    assert table.loc[load, "memory"] == "x_ptr + 256, 260, 264, ... 396: 4 bytes in 36 lanes, 2 cache lines"
    compare = table[table["instruction"].str.startswith("v_cmp_gt_i32")].iloc[0]
    assert compare["written"] == "vcc = 0x0000000fffffffff (mask of 36 lanes)"
    assert "s8 = 100 (i32)" in compare["read"]


def test_a_reduction_goes_through_lds():
    x, out = torch.arange(256.0), torch.zeros(1)
    arguments = (kernels.reduce_kernel, (1,), (x, out, 256, "sum", 256))
    of_wave = labkit.trace(*arguments, wave=2)
    (access,) = step_of(of_wave, "ds_write_b32").accesses
    # One lane writes, or all write the same: Triton's releases differ.
    assert (access.space, set(access.offsets[access.lanes].tolist())) == ("LDS", {8})
    address, data = step_of(of_wave, "ds_write_b32").reads
    assert (address.in_lane(0), data.in_lane(0), data.typed.type) == (8, sum(range(128, 192)), "f32")
    of_first = labkit.trace(*arguments)
    read = step_of(of_first, "ds_read_b32")
    assert read.accesses[0].offsets[read.lanes][:4].tolist() == [0, 4, 8, 12]
    sums = [float(sum(range(start, start + 64))) for start in (0, 64, 128, 192)]
    assert read.writes[0].values[:4].tolist() == sums
    # Where the total comes through LDS (not in Triton 3.9), that it is a float is known from the tensor that
    # it is stored to.
    assert step_of(of_first, "ds_read_b32", -1).writes[0].typed.type == "f32"
    (total,) = [read for read in step_of(of_first, "global_store").reads if read.typed.type == "f32"]
    assert total.in_lane(0) == sum(range(256))


@triton.jit
def two_sides(x_ptr, y_ptr, out_ptr):
    lane = tl.arange(0, 64)
    a = tl.load(x_ptr + lane, mask=lane < 24, other=0.0)
    b = tl.load(y_ptr + lane, mask=lane >= 24, other=0.0)
    tl.store(out_ptr + lane, a + b, mask=lane < 56)


def test_a_divergent_kernel():
    x, y, out = torch.arange(64.0), torch.arange(64.0) + 1000, torch.zeros(64)
    with triton.knobs.amd.scope():
        triton.knobs.amd.use_buffer_ops = False
        found = labkit.trace(two_sides, (1,), (x, y, out), {"num_warps": 1})
    low = (1 << 24) - 1
    first, second = (step_of(found, "global_load", k) for k in (0, 1))
    assert (first.exec_mask, second.exec_mask) == (low, ((1 << 64) - 1) ^ low)
    assert step_of(found, "global_store").exec_mask == (1 << 56) - 1
    save = step_of(found, "s_and_saveexec_b64")
    saved, on, _ = save.writes
    assert (saved.text(save.lanes).split(" = ")[1], on.text(save.lanes)) == (
        "0xffffffffffffffff (mask of 64 lanes)",
        "exec = 0x0000000000ffffff (mask of 24 lanes)",
    )
    assert first.writes[0].values[:24].tolist() == list(range(24))
    assert second.writes[0].values[24:].tolist() == list(range(1024, 1064))
    assert "24, 25, 26" not in first.writes[0].text(first.lanes)  # lanes that are off are not told
    assert found.exec_lanes()[first.number].sum() == 24


@triton.jit
def scale_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, (tl.load(x_ptr + offsets).to(tl.float32) * 2).to(out_ptr.dtype.element_ty))


def test_fp8_operands():
    numbers = [k / 16 for k in range(256)]
    x = torch.tensor(numbers).to(torch.float8_e4m3fnuz)
    exact = x.float().tolist()
    out = torch.zeros(256, dtype=torch.float16)
    found = labkit.trace(scale_kernel, (1,), (x, out), {"BLOCK": 256, "num_warps": 1})
    (loaded,) = step_of(found, "buffer_load_dword").writes
    assert loaded.typed.type == "e4m3fnuz x4"
    assert [loaded.in_lane(lane) for lane in range(64)] == [
        tuple(exact[4 * k : 4 * k + 4]) for k in range(64)
    ]
    upper = step_of(found, "v_cvt_pk_f32_fp8_sdwa")
    assert upper.reads[0].typed.type == "e4m3fnuz x2 in bits 31:16"
    assert upper.reads[0].in_lane(5) == upper.writes[0].in_lane(5) == tuple(exact[22:24])
    stored = step_of(found, "buffer_store").reads[-1]
    assert stored.typed.type == "f16 x4"
    assert stored.in_lane(5) == tuple(2 * number for number in exact[20:24])


def test_conversion_to_fp8():
    x, out = torch.arange(256.0) - 100, torch.zeros(256, dtype=torch.float8_e4m3fnuz)
    found = labkit.trace(scale_kernel, (1,), (x, out), {"BLOCK": 256, "num_warps": 1})
    rounded = (2 * x).clamp(-240, 240).to(torch.float8_e4m3fnuz).float().tolist()
    stored = step_of(found, "buffer_store").reads[-1]
    assert stored.typed.type == "e4m3fnuz x4"
    assert stored.in_lane(7) == tuple(rounded[28:32])


@triton.jit
def product_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, x * x)


def test_packed_half_operands():
    x, out = torch.arange(128).half(), torch.zeros(128).half()
    found = labkit.trace(product_kernel, (1,), (x, out), {"BLOCK": 128, "num_warps": 1})
    multiply = step_of(found, "v_pk_mul_f16")
    assert multiply.reads[0].typed.type == multiply.writes[0].typed.type == "f16 x2"
    assert multiply.reads[0].in_lane(9) == (18.0, 19.0)
    assert multiply.writes[0].in_lane(9) == (324.0, 361.0)
    store = step_of(found, "buffer_store_dword")
    assert store.reads[-1].in_lane(9) == (324.0, 361.0)


def test_bfloat16_is_read_as_such_from_memory_and_as_bits_by_a_shift():
    x, out = torch.arange(128).bfloat16(), torch.zeros(128).bfloat16()
    found = labkit.trace(product_kernel, (1,), (x, out), {"BLOCK": 128, "num_warps": 1})
    (loaded,) = step_of(found, "buffer_load_dword").writes
    assert (loaded.typed.type, loaded.in_lane(1)) == ("bf16 x2", (2.0, 3.0))
    shift = step_of(found, "v_lshlrev_b32_e32", 1)
    assert shift.reads[0].in_lane(1) == 0x40404000  # 3.0 and 2.0: 0x4040, 0x4000


def test_a_matrix_instruction():
    x, y = torch.randint(-4, 5, (32, 32)).half(), torch.randint(-4, 5, (32, 32)).half()
    out = torch.zeros(32, 32)
    found = labkit.trace(kernels.matmul_kernel, (1, 1), (x, y, out, 32, 32, 32, 32, 32, 32), {"num_warps": 1})
    mfma = [step for step in found.executed if step.instruction.kind == "MFMA"]
    assert mfma[-1].reads[0].typed.type == "f16 x4"
    result = mfma[-1].writes[0]
    assert sorted(result.values.ravel().tolist()) == sorted((x.float() @ y.float()).ravel().tolist())


def test_another_workgroup_and_wave():
    found, out = trace_add(n=400, workgroup=(1, 0, 0), wave=2)
    assert (found.workgroup, found.wave) == ((1, 0, 0), 2)
    assert (out[:256] == -1).all()
    assert out[256:400].tolist() == [101.0 * k for k in range(256, 400)]


def test_exec_lanes_follow_the_mask():
    out = torch.zeros(4)
    found = labkit.trace(kernels.reduce_kernel, (1,), (torch.ones(64), out, 64, "sum", 64), {"num_warps": 1})
    lanes = found.exec_lanes()
    assert lanes.shape == (len(found.executed), 64)
    assert lanes[0].all()
    assert np.flatnonzero(lanes[-1]).tolist() == [0]  # one lane stores the sum
    assert out[0] == 64


def test_stores_and_waits_write_no_register_and_a_compare_only_scc():
    found, _ = trace_add()
    for step in found.executed:
        if step.instruction.kind in ("VMEM store", "wait"):
            assert step.written == {}
    loop = labkit.trace(
        kernels.uneven_loop_kernel, (1,), (torch.tensor([3], dtype=torch.int32), torch.zeros(1))
    )
    compares = [step for step in loop.executed if step.instruction.operation.startswith("s_cmp")]
    assert compares and all(set(step.written) == {"scc"} for step in compares)


def rand(*shape):
    return torch.rand(*shape)


RUNS = {
    "softmax": (kernels.softmax_kernel, lambda: (rand(900), rand(900), 900, 900), {"BLOCK": 1024}),
    "matmul": (
        kernels.matmul_kernel,
        lambda: (rand(32, 48), rand(48, 32), rand(32, 32), 32, 32, 48, 32, 32, 16),
        {},
    ),
    "sort": (kernels.sort_kernel, lambda: (rand(256), rand(256)), {"BLOCK": 256}),
    "scan": (kernels.scan_kernel, lambda: (rand(8, 64), rand(8, 64)), {"ROWS": 8, "COLUMNS": 64}),
    "transpose": (
        kernels.transpose_kernel,
        lambda: (rand(64, 32), rand(64, 32)),
        {"ROWS": 64, "COLUMNS": 32},
    ),
    "atomics": (kernels.atomic_kernel, lambda: (rand(100), rand(7), 100), {"OP": "add", "BLOCK": 128}),
    "ticket": (kernels.ticket_kernel, lambda: (torch.zeros(1, dtype=torch.int32), torch.zeros(1)), {}),
    "random": (kernels.random_kernel, lambda: (rand(256), 7), {"BLOCK": 256}),
    "division": (
        kernels.binary_kernel,
        lambda: (rand(99), rand(99), rand(99), 99),
        {"OP": "div", "BLOCK": 128},
    ),
    "division of 64-bit integers": (
        kernels.binary_kernel,
        lambda: (torch.arange(99), torch.arange(99) + 3, torch.arange(99), 99),
        {"OP": "floordiv", "BLOCK": 128},
    ),
    "sine": (kernels.unary_kernel, lambda: (rand(99) * 1e6, rand(99), 99), {"OP": "sin", "BLOCK": 128}),
    "double": (
        kernels.unary_kernel,
        lambda: (rand(99).double(), rand(99).double(), 99),
        {"OP": "exp", "BLOCK": 128},
    ),
    "uneven loop": (
        kernels.uneven_loop_kernel,
        lambda: (torch.tensor([5], dtype=torch.int32), torch.zeros(1)),
        {},
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_register_holds_what_the_last_step_that_wrote_it_left(name):
    """So no step writes what the trace doesn't tell, and none reads beside what it tells."""
    kernel, arguments, constants = RUNS[name]
    found = labkit.trace(kernel, (1,), arguments(), constants, wave=1)
    held = {}
    for step in found.executed:
        for value in step.reads:
            for (file, number), bits in zip(value.typed.register.parts, value.bits, strict=True):
                expected = held.get((file, number), bits)
                assert (bits == expected).all(), (step.number, step.instruction.line.text, file, number)
                assert bits.shape == ((64,) if file in "va" else (1,))
        for value in step.writes:
            held.update(zip(value.typed.register.parts, value.bits, strict=True))
    masks = [step.exec_mask for step in found.executed]
    changes = [k for k in range(1, len(masks)) if masks[k] != masks[k - 1]]
    assert all("exec_lo" in found.executed[k - 1].written for k in changes)
    assert not any(
        value.typed.element == "raw" for step in found.executed for value in (*step.reads, *step.writes)
    )


def test_a_view_is_told_by_the_byte_in_its_storage():
    x = torch.arange(300.0)
    found = labkit.trace(product_kernel, (1,), (x[8:], torch.zeros(64)), {"BLOCK": 64, "num_warps": 1})
    (access,) = step_of(found, "buffer_load").accesses
    assert access.offsets.tolist() == [32 + 4 * lane for lane in range(64)]
    assert access.lines == [("x_ptr", 0), ("x_ptr", 1), ("x_ptr", 2)]


def test_an_access_with_two_offsets():
    x = rand(64, 64).half()
    found = labkit.trace(
        kernels.matmul_kernel, (1, 1), (x, x, torch.zeros(64, 64), 64, 64, 64, 64, 64, 64), {"num_warps": 4}
    )
    pairs = [
        step for step in found.executed if step.instruction.operation.startswith(("ds_read2", "ds_write2"))
    ]
    assert pairs
    for step in pairs:
        first, second = step.accesses
        unit = 4 if step.instruction.operation.endswith("b32") else 8
        unit *= 64 if "st64" in step.instruction.operation else 1
        modifiers = step.instruction.modifiers
        apart = int(modifiers.get("offset1", "0")) - int(modifiers.get("offset0", "0"))
        assert set((second.offsets - first.offsets).tolist()) == {unit * apart}


def test_a_part_of_a_trace():
    found, _ = trace_add()
    part = found[7:10]
    assert [step.number for step in part.executed] == [7, 8, 9]
    assert part.table["step"].tolist() == [7, 8, 9]
    assert str(part) == "add_kernel, workgroup (0, 0, 0), wave 0: 3 steps"
    with pytest.raises(LabkitError, match=r"trace\[first:last\]"):
        found[3]


def test_a_notebook_shows_a_short_table():
    loop = labkit.trace(kernels.loop_kernel, (1,), (rand(4096), torch.zeros(1), 4096), {"BLOCK": 256})
    shown = loop._repr_html_()
    assert shown.count("<tr>") == 41  # a head and 40 steps
    assert f"{len(loop)} steps" in shown and "trace[40:] has the rest" in shown
    assert len(shown) < 60_000


def test_a_register_by_name():
    found, _ = trace_add(wave=1)
    written = found.register("v1")
    assert [step.instruction.operation for step, _ in written] == [
        "v_lshlrev_b32",
        "buffer_load_dword",
        "v_add_f32",
    ]
    assert written[-1][1].in_lane(1) == 101 * 65
    with pytest.raises(LabkitError, match=r"no step wrote v99; these were written: v0, v1, v2"):
        found.register("v99")
    for name in ("s2", "vcc", "v", "", None):
        with pytest.raises(LabkitError, match="is not a vector register"):
            found.register(name)
    assert found.memory_step(written[1][0].number) is written[1][0]
    # Which number a step has depends on the release of Triton.
    steps = (step for step in found.executed if step.instruction.mnemonic.startswith("buffer_"))
    touching = ", ".join(str(step.number) for step in steps)
    with pytest.raises(LabkitError, match=f"step 0 touches no memory; these do: {touching}"):
        found.memory_step(0)


def test_one_register_of_several():
    x = torch.arange(1024.0)
    found = labkit.trace(product_kernel, (1,), (x, torch.zeros(1024)), {"BLOCK": 1024, "num_warps": 1})
    load = step_of(found, "buffer_load_dwordx4")
    third = load.writes[0].typed.register.index + 2
    step, value = found.register(f"v{third}")[0]
    assert step is load
    assert value.values.tolist() == [4.0 * lane + 2 for lane in range(64)]


@triton.jit
def beyond_kernel(x_ptr, out_ptr):
    lane = tl.arange(0, 64)
    tl.store(out_ptr + lane, tl.load(x_ptr + lane + 900_000))


def test_a_fault_ends_a_trace_or_is_told_as_start_says():
    arguments = (beyond_kernel, (1,), (torch.zeros(64), torch.ones(64)), {"num_warps": 1})
    with pytest.raises(MemoryFault, match="global_load|buffer_load"):
        labkit.trace(*arguments)
    labkit.start("MI300X", quiet=True, faults="report")
    found = labkit.trace(*arguments)
    assert [fault.kind for fault in found.faults] == ["global access outside"]
    assert not step_of(found, "buffer_load").accesses[0].lanes.any()
    assert "Fault: " in found._repr_html_()


def test_a_workgroup_outside_the_grid():
    with pytest.raises(LaunchError, match=r"\(5, 0, 0\) is not in the grid \(2, 1, 1\)"):
        trace_add(workgroup=(5, 0, 0))


@pytest.mark.parametrize("workgroup", ["x", (), (0, 0, 0, 0), (1.5, 0, 0), None])
def test_a_workgroup_that_is_none(workgroup):
    with pytest.raises(LaunchError, match="pass its number in each dimension"):
        trace_add(workgroup=workgroup)


def test_a_workgroup_may_leave_out_what_is_zero():
    assert trace_add(workgroup=1)[0].workgroup == trace_add(workgroup=(1, 0))[0].workgroup == (1, 0, 0)


@pytest.mark.parametrize("wave", [4, -1, 1.0, "0"])
def test_a_wave_that_the_workgroup_does_not_have(wave):
    with pytest.raises(LaunchError, match="wave .* does not exist: choose one from 0 to 3; .* has 4 waves"):
        trace_add(wave=wave)


def test_a_lane_that_a_wave_does_not_have():
    found, _ = trace_add()
    with pytest.raises(LaunchError, match="lane 64 does not exist: choose one from 0 to 63"):
        found.lane(64)


def test_arguments_that_are_no_tuple():
    with pytest.raises(LaunchError, match="pass the kernel's arguments as a tuple"):
        labkit.trace(kernels.add_kernel, (1,), torch.ones(4))


def test_a_launch_that_did_not_reach_the_emulator():
    class Elsewhere:
        def __getitem__(self, grid):
            return lambda *args, **kwargs: None

    with pytest.raises(LabkitError, match="cannot be traced"):
        labkit.trace(Elsewhere(), (1,))


def test_a_function_that_is_no_kernel():
    with pytest.raises(LaunchError, match="expected a function decorated with @triton.jit"):
        labkit.trace(len, (1,))


@pytest.mark.parametrize(
    ("text", "has_result"),
    [
        ("v_add_f32 v0, v1, v2", True),
        ("ds_read_b32 v0, v1", True),
        ("ds_bpermute_b32 v0, v1, v2", True),
        ("ds_add_rtn_u32 v0, v1, v2", True),
        ("ds_add_u32 v0, v1", False),  # v0 is its address
        ("ds_write_b32 v0, v1", False),
        ("buffer_load_dword v0, s[0:3], 0 offen", True),
        ("buffer_load_dword v0, s[0:3], 0 offen lds", False),  # likewise: the bytes go to LDS
        ("global_atomic_add v0, v[2:3], v4, off sc0", True),
        ("global_atomic_add v[2:3], v4, off", False),
        ("s_cmp_eq_u32 s0, s1", False),
        ("s_waitcnt vmcnt(0)", False),
    ],
)
def test_what_an_instruction_writes_is_its_first_operand_or_nothing(text, has_result):
    (instruction,) = straight(text).instructions
    assert instruction.has_result == has_result


@triton.jit
def reach_kernel(x_ptr, y_ptr, out_ptr, distance, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    tl.store(out_ptr + lane, tl.load(x_ptr + distance + lane) + tl.load(y_ptr + lane))


def test_without_faults_a_trace_holds_no_access_to_its_argument():
    labkit.start("MI300X", faults="off", quiet=True)
    memory = np.zeros(128, np.float32)  # two tensors that know nothing of each other, a fixed distance apart
    x, y, out = torch.from_numpy(memory[:64]), torch.from_numpy(memory[64:]), torch.zeros(64)
    y.copy_(torch.arange(64.0))
    found = labkit.trace(reach_kernel, (1,), (x, y, out, 64), {"BLOCK": 64, "num_warps": 1})
    assert found.faults == []
    assert out.tolist() == [2.0 * lane for lane in range(64)]
