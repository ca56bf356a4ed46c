"""Time floors against the arithmetic of the datasheet."""

import pytest
import torch

import labkit
from labkit.errors import LabkitError
from labkit.model.l2 import simulate
from labkit.model.roofline import Work, both_bandwidths, floors, matrix_element, ridge, work_of
from tests.emulator import kernels


def floor_of(work, part, **options):
    return floors(work, **options).set_index("part").loc[part, "floor (us, modelled)"]


@pytest.mark.parametrize(
    "work,part,microseconds",
    [
        (Work(hbm_bytes=5.3e9), "HBM", 1000),
        (Work(infinity_bytes=17.2e6), "Infinity Cache", 1),
        (Work(l2_bytes=34.4e6), "L2", 1),
        (Work(l1_bytes=304 * 128 * 2100), "vector L1", 1),
        (Work(lds_cycles=304 * 2100), "LDS", 1),
        (Work(vector_instructions=304 * 2100), "VALU", 1),
        (Work(matrix_flops={"fp8": 2614.9e6}), "MFMA fp8", 1),
        (Work(matrix_flops={"fp16": 1307.4e6}), "MFMA fp16", 1),
        (Work(matrix_flops={"fp32": 163.4e6}), "MFMA fp32", 1),
        (Work(matrix_flops={"fp64": 163.4e6}), "MFMA fp64", 1),
    ],
)
def test_each_part_at_its_peak(work, part, microseconds):
    assert floor_of(work, part) == pytest.approx(microseconds)
    assert floors(work)["part"].tolist() == [part]


def test_a_multiply_add_a_lane_reaches_half_the_vector_peak():
    """163.4 TFLOP/s need packed instructions, 4 operations a lane; a plain one does 2 in the same time."""
    instructions = 1e6
    assert instructions * 64 * 4 / floor_of(
        Work(vector_instructions=instructions), "VALU"
    ) / 1e6 == pytest.approx(163.4, abs=0.05)


def test_the_longest_floor_binds():
    work = Work(hbm_bytes=1e9, matrix_flops={"fp8": 1e12})
    table = floors(work)
    assert table["part"].tolist() == ["MFMA fp8", "HBM"] and table["binds"].tolist() == [True, False]
    assert floors(work, launch_us=1000.0)["part"][0] == "launch"


def test_the_reached_bandwidth_is_another_floor():
    table = both_bandwidths(Work(hbm_bytes=43e9))
    assert table["HBM TB/s"].tolist() == [5.3, 4.3] and table["kind"].tolist() == ["datasheet", "published"]
    assert table["floor (us, modelled)"].tolist() == pytest.approx([43e3 / 5.3, 1e4])
    assert set(table["bound by"]) == {"HBM"}


def test_ridge():
    assert ridge(2614.9, 5.3) == pytest.approx(493, abs=1)


def test_parts_without_a_sourced_peak_have_no_row():
    work = Work(hbm_bytes=1, infinity_bytes=1, l2_bytes=1, vector_instructions=1, matrix_flops={"f8f6f4": 1})
    assert floors(work, chip_name="MI355X")["part"].tolist() == ["HBM"]


@pytest.mark.parametrize(
    "mnemonic,element",
    [
        ("v_mfma_f32_16x16x32_fp8_fp8", "fp8"),
        ("v_mfma_f32_32x32x16_bf8_fp8", "fp8"),
        ("v_mfma_f32_32x32x8_f16", "fp16"),
        ("v_mfma_f32_16x16x16_bf16", "fp16"),
        ("v_mfma_f32_32x32x4_2b_bf16_1k", "fp16"),
        ("v_mfma_f32_16x16x8_xf32", "tf32"),
        ("v_mfma_f32_4x4x1_16b_f32", "fp32"),
        ("v_mfma_f64_16x16x4_f64", "fp64"),
        ("v_mfma_i32_16x16x32_i8", "int8"),
        ("v_smfmac_f32_16x16x64_fp8_bf8", "fp8"),
        ("v_mfma_scale_f32_32x32x64_f8f6f4", "f8f6f4"),
    ],
)
def test_matrix_elements(mnemonic, element):
    assert matrix_element(mnemonic) == element


def test_an_unknown_matrix_element_is_refused():
    with pytest.raises(LabkitError, match="no peak"):
        matrix_element("v_mfma_f32_16x16x4_q7")


def test_work_of_a_launch():
    labkit.start("MI300X", quiet=True)
    n = 1 << 16
    x, y, out = torch.ones(n), torch.ones(n), torch.empty(n)
    with labkit.record_lines() as launches:
        kernels.add_kernel[(n // 1024,)](x, y, out, n, BLOCK=1024)
    counters = labkit.last_launch().counters
    tensors = 3 * 4 * n
    work, modelled = work_of(counters), work_of(counters, simulate(launches[0], workgroups_per_cu=2))
    # The arguments themselves are read too, some 40 bytes.
    assert tensors <= work.hbm_bytes < tensors + 64 and work.l1_bytes == tensors
    assert modelled.hbm_bytes == tensors == modelled.l2_bytes and modelled.infinity_bytes == tensors * 2 // 3
    assert work.lds_cycles == 0 and work.matrix_flops == {}
    vector = counters.by("class").set_index("class")["executions"]["VALU"]
    assert work.vector_instructions == vector
    assert floors(work)["part"][0] == "HBM"


def test_matrix_flops_of_a_launch():
    labkit.start("MI300X", quiet=True)
    a, b, out = torch.ones(64, 64).half(), torch.ones(64, 64).half(), torch.empty(64, 64)
    kernels.matmul_kernel[(2, 2)](a, b, out, 64, 64, 64, 32, 32, 32, num_warps=1)
    work = work_of(labkit.last_launch().counters)
    assert work.matrix_flops == {"fp16": 2 * 64**3}
    assert work.lds_cycles > 0


def test_a_launch_recorded_in_part_gives_no_bytes():
    labkit.start("MI300X", quiet=True)
    x, out = torch.ones(1 << 18), torch.empty(1 << 18)
    with labkit.record_lines(most=10) as launches:
        kernels.add_kernel[(256,)](x, x, out, 1 << 18, BLOCK=1024)
    traffic = simulate(launches[0], workgroups_per_cu=1)
    with pytest.raises(LabkitError, match="32 of 256 workgroups"):
        work_of(labkit.last_launch().counters, traffic)


@pytest.mark.parametrize("options", [{"terabytes": 0}, {"terabytes": -1.0}, {"launch_us": -1}])
def test_impossible_peaks(options):
    with pytest.raises(LabkitError, match="above 0"):
        floors(Work(hbm_bytes=1), **options)
