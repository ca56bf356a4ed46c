"""The emulated MI355X (gfx950): its own instructions, and OCP FP8 in place of FNUZ."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

import labkit
from labkit.kernels.residual_rms_norm import residual_rms_norm, residual_rms_norm_reference
from labkit.kernels.swiglu import swiglu, swiglu_reference
from tests.emulator import kernels
from tests.emulator.harness import ALL, execute, lanes, make_state, set_exec, set_pair
from tests.emulator.test_kernels import BLOCK, GRID, N, assert_same, values

pytestmark = pytest.mark.usefixtures("engine")

HALVES = [torch.float16, torch.bfloat16]


@pytest.fixture(autouse=True)
def mi355x():
    yield labkit.start("MI355X", quiet=True)
    labkit.start("MI300X", quiet=True)


@pytest.mark.parametrize("narrow", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
@pytest.mark.parametrize("wide", [*HALVES, torch.float32], ids=str)
def test_fp8_conversions(wide, narrow):
    x = (torch.randn(N, generator=torch.Generator().manual_seed(3)) * 20).to(wide)
    out = torch.zeros(N).to(narrow)
    kernels.convert_kernel[GRID](x, out, N, BLOCK)
    assert_same(out.float(), x.to(narrow).float())
    back = torch.zeros(N, dtype=wide)
    kernels.convert_kernel[GRID](out, back, N, BLOCK)
    assert_same(back, out.to(wide))


@pytest.mark.parametrize("op", ["and", "or", "xor"])
def test_bit_operations(op):
    x, y = values(torch.int32), values(torch.int32, 2 * N)[N:].contiguous()
    out = torch.zeros(N, dtype=torch.int32)
    kernels.binary_kernel[GRID](x, y, out, N, op, BLOCK)
    assert_same(out, {"and": x & y, "or": x | y, "xor": x ^ y}[op])


@pytest.mark.parametrize("dtype", [*HALVES, torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
@pytest.mark.parametrize("tile", [(16, 16, 32), (32, 32, 32), (64, 64, 128)])
def test_matrix_multiplication(dtype, tile):
    m, n, k = 70, 90, 160
    generator = torch.Generator().manual_seed(5)
    a, b = torch.randn(m, k, generator=generator).to(dtype), torch.randn(k, n, generator=generator).to(dtype)
    out = torch.zeros(m, n)
    kernels.matmul_kernel[(-(-m // tile[0]), -(-n // tile[1]))](a, b, out, m, n, k, *tile)
    wanted = a.float().double() @ b.float().double()
    torch.testing.assert_close(out.double(), wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32], ids=str)
def test_fused_kernels(dtype):
    generator = torch.Generator().manual_seed(7)
    x, residual = (torch.randn(5, 1400, generator=generator).to(dtype) for _ in range(2))
    weight, scale = torch.randn(1400, generator=generator).to(dtype), torch.tensor([0.07])
    wanted, _ = residual_rms_norm_reference(x, residual, weight, scale=scale, fp8_dtype=torch.float8_e4m3fn)
    got = residual_rms_norm(x, residual.clone(), weight, scale=scale)
    assert got.dtype == torch.float8_e4m3fn
    # One FP8 step at most, where the two sums round a value to either side of a midpoint.
    assert_one_step_apart(got, wanted)
    assert_one_step_apart(swiglu(x, scale), swiglu_reference(x, scale, torch.float8_e4m3fn))


def assert_one_step_apart(got, wanted):
    steps = got.view(torch.uint8).int() - wanted.view(torch.uint8).int()
    assert steps.abs().max() <= 1
    assert (steps != 0).float().mean() < 0.01


SCALED = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "bf16": torch.bfloat16, "e2m1": None}
FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def scaled_operand(form, rows, k, generator):
    """(what the kernel reads, [rows, k or k/2]; scales [rows, k/32], none for bf16; the values meant)."""
    codes = torch.randint(0, 16, (rows, k), generator=generator)
    values = FP4[codes & 7] * (1 - 2 * (codes >> 3))
    scales = torch.randint(120, 134, (rows, k // 32), generator=generator, dtype=torch.uint8)
    if form == "bf16":
        return values.bfloat16(), None, values.double()
    stored = values.to(SCALED[form]) if form != "e2m1" else (codes[:, ::2] | codes[:, 1::2] << 4).byte()
    return stored, scales, values.double() * 2.0 ** (scales.double() - 127).repeat_interleave(32, 1)


@pytest.mark.parametrize("left", SCALED)
@pytest.mark.parametrize("right", SCALED)
@pytest.mark.parametrize("m,n,k", [(32, 32, 128), (16, 16, 256)])
def test_scaled_matrix_multiplication(left, right, m, n, k):
    """Triton places values and scales for the chip's instruction: only its layout gives this product."""
    generator = torch.Generator().manual_seed(9)
    a, a_scale, wide_a = scaled_operand(left, m, k, generator)
    b, b_scale, wide_b = scaled_operand(right, n, k, generator)
    out = torch.zeros(m, n)
    a, b = (x.view(torch.uint8) if x.itemsize == 1 else x for x in (a, b.T.contiguous()))
    kernels.scaled_matmul_kernel[(1,)](a, a_scale, b, b_scale, out, m, n, k, left, right)
    torch.testing.assert_close(out.double(), wide_a @ wide_b.T, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("table", [0x78, 0xEC, 0x01])
def test_bitop3_reads_its_truth_table(table):
    """Bits 7 to 0 of the sources run through all rows of the table: a = 0xF0, b = 0xCC, c = 0xAA."""
    state = make_state(fnuz=False)
    state.v[1], state.v[2], state.v[3] = 0xF0, 0xCC, 0xAA
    execute(state, f"v_bitop3_b32 v0, v1, v2, v3 bitop3:{table:#x}")
    assert (state.v[0] & 0xFF == table).all()


@pytest.mark.parametrize("name,wanted", [("maximum3", 3.0), ("minimum3", -2.0)])
def test_three_way_extremes_propagate_nan(name, wanted):
    state = make_state(fnuz=False)
    nan = float("nan")
    state.v[1] = lanes([3.0, nan, 1.0, 0.0, 3.0], "f4")
    state.v[2] = lanes([-2.0, 1.0, nan, -0.0, -2.0], "f4")
    state.v[3] = lanes([1.0, 1.0, 1.0, -0.0, nan], "f4")
    execute(state, f"v_{name}_f32 v0, v1, v2, v3")
    got = state.v[0].view(np.float32)[0, :5]
    assert got[0] == wanted
    assert np.isnan(got[[1, 2, 4]]).all()
    assert got[3] == 0 and np.signbit(got[3]) == (name == "minimum3")  # -0 is below +0


@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("mask", [ALL, 0, 1, 1 << 63, ALL >> 1, 0xFFFF0000FFFF, 0x5555555555555555])
def test_permlane_swap(width, mask):
    """Odd rows of the first register change places with even rows of the second, where a lane is on."""
    state = make_state(fnuz=False)
    first, second = list(range(64)), list(range(100, 164))
    state.v[0], state.v[1] = lanes(first, "u4"), lanes(second, "u4")
    set_exec(state, mask)
    execute(state, f"v_permlane{width}_swap_b32_e32 v0, v1")
    wanted_first, wanted_second = list(first), list(second)
    for lane in range(64):
        if mask >> lane & 1 and lane // width % 2:
            wanted_first[lane] = second[lane - width]
        if mask >> lane & 1 and not lane // width % 2:
            wanted_second[lane] = first[lane + width]
    assert state.v[0][0].tolist() == wanted_first
    assert state.v[1][0].tolist() == wanted_second


@pytest.mark.parametrize("bits,rows", [(16, 4), (8, 8), (4, 16)])
def test_transposed_read(bits, rows):
    """A tile of `rows` x 16 elements, read row by row: lane c of 16 gets column c. Lanes off keep theirs."""
    state = make_state(fnuz=False)
    tile = np.random.default_rng(8).integers(0, 1 << bits, (4, rows, 16))  # one for each 16 lanes
    flat = tile.ravel()
    data = flat[::2] | flat[1::2] << 4 if bits == 4 else flat
    raw = data.astype("u1" if bits == 4 else f"u{bits // 8}").view("u1")
    state.lds[0, : raw.size] = raw
    state.v[4], state.v[0:2] = lanes([8 * lane for lane in range(64)], "u4"), 7
    on = ALL & ~(1 << 5)
    set_exec(state, ALL)
    execute(state, f"ds_read_b64_tr_b{bits} v[2:3], v4")
    set_exec(state, on)
    execute(state, f"ds_read_b64_tr_b{bits} v[0:1], v4 offset:0")
    for lane in range(64):
        value = sum(int(x) << bits * k for k, x in enumerate(tile[lane // 16, :, lane % 16]))
        assert int(state.v[2, 0, lane]) | int(state.v[3, 0, lane]) << 32 == value
    assert (state.v[0:2, 0, 5] == 7).all()


@triton.jit
def packed_rows_kernel(a_ptr, b_ptr, scale_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """tl.dot_scaled of FP4 whose pairs lie along the rows of A and the columns of B, not along K."""
    rows, columns, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + k[None, :] * (M // 2) + tl.arange(0, M // 2)[:, None])
    b = tl.load(b_ptr + k[:, None] * (N // 2) + tl.arange(0, N // 2)[None, :])
    ones = tl.load(scale_ptr + rows[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    out = tl.dot_scaled(a, ones, "e2m1", b, ones, "e2m1", lhs_k_pack=False, rhs_k_pack=False)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], out)


def test_fp4_packed_along_rows():
    """Triton transposes in LDS by ds_read_b64_tr_b4: only its true pattern gives this product."""
    codes = torch.randint(
        0, 16, (2, 128, 64), generator=torch.Generator().manual_seed(1)
    )  # [k, row or column]
    a, b = (x[:, ::2] | x[:, 1::2] << 4 for x in codes)
    scales, out = torch.full((64, 4), 127, dtype=torch.uint8), torch.zeros(64, 64)
    packed_rows_kernel[(1,)](a.byte(), b.byte(), scales, out, 64, 64, 128)
    assert "ds_read_b64_tr_b4" in labkit.last_launch().compiled.stages["amdgcn"]
    left, right = (FP4[x & 7] * (1 - 2 * (x >> 3)) for x in codes)
    assert torch.equal(out, left.T @ right)


@pytest.mark.parametrize("width,size", [("dword", 4), ("dwordx4", 16)])
def test_a_load_may_go_straight_to_lds(width, size):
    """To M0 + the constant + lane * size; masked lanes write 0 there, lanes that are off nothing."""
    state = make_state(fnuz=False)
    data = np.arange(64 * size, dtype=np.uint32).astype(np.uint8)
    set_pair(state, 4, data.ctypes.data)
    state.s[6], state.s[124] = 0x7FFFFFFE, 512
    state.v[1] = lanes([size * (63 - lane) for lane in range(64)], "u4")  # the lanes in reverse
    state.v[1][0, 3] = 0x80000000
    state.lds[:] = 0xAA
    set_exec(state, ALL & ~(1 << 7))
    execute(state, f"buffer_load_{width} v1, s[4:7], 0 offen lds", [data])
    got = state.lds[0, 512 : 512 + 64 * size].reshape(64, size)
    for lane in range(64):
        wanted = {3: [0] * size, 7: [0xAA] * size}.get(lane, data.reshape(64, size)[63 - lane].tolist())
        assert got[lane].tolist() == wanted
    assert (state.lds[0, :512] == 0xAA).all()
