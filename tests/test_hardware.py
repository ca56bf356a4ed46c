"""The chip's figures must agree with each other, and each must say where it comes from."""

import subprocess
import sys

import pytest

from labkit.hardware import CHIPS, UnknownChip, chip, waves_per_simd

MI300X = chip("MI300X")


@pytest.mark.parametrize(("name", "units"), [("MI300X", 304), ("MI350X", 256), ("MI355X", 256)])
def test_compute_units_add_up(name, units):
    figures = chip(name)
    assert figures["compute_units"] == figures["xcds"] * figures["compute_units_per_xcd"] == units


@pytest.mark.parametrize("kind", ["fp8", "fp16", "fp32"])
def test_peak_is_units_times_operations_times_clock(kind):
    operations = MI300X["compute_units"] * MI300X[f"{kind}_flop_per_clock"] * MI300X["engine_clock"] * 1e6
    assert operations / 1e12 == pytest.approx(MI300X[f"{kind}_peak"], abs=0.05)


def test_cache_and_register_figures_add_up():
    each_clock = MI300X["infinity_cache_channels"] * MI300X["infinity_cache_bytes_per_clock"]
    bandwidth = each_clock * MI300X["engine_clock"] * 1e6 / 1e12
    assert bandwidth == pytest.approx(MI300X["infinity_cache_bandwidth"], abs=0.05)
    assert MI300X["l2_channels"] * MI300X["l2_channel_capacity"] == MI300X["l2_capacity"] * 1024
    lane_slots = MI300X["simds_per_compute_unit"] * MI300X["wave_lanes"]
    assert lane_slots * MI300X["vgprs_per_lane_slot"] * 4 == MI300X["vgpr_file"] * 1024
    assert MI300X["architectural_vgprs"] + MI300X["accumulation_vgprs"] == MI300X["vgprs_per_lane_slot"]


def test_other_chips_add_up():
    for name in ("MI325X", "MI350X", "MI355X"):
        assert chip(name)["compute_units"] == chip(name)["xcds"] * chip(name)["compute_units_per_xcd"]
    mi250x, mi355x = chip("MI250X"), chip("MI355X")
    assert mi250x["compute_units"] == mi250x["gcds"] * mi250x["compute_units_per_gcd"] == 220
    # 1024 operations a clock a CU (four matrix cores of 256), at 1700 MHz.
    assert mi250x["fp16_peak"] == pytest.approx(220 * 1024 * 1.7e9 / 1e12, abs=0.05)
    # AMD speaks of five petaflops.
    eight_bit = mi355x["compute_units"] * mi355x["fp8_flop_per_clock"] * mi355x["engine_clock"] * 1e6
    assert eight_bit == pytest.approx(5e15, rel=0.01)
    for name in ("H100", "H200"):
        # Each halving of the bits doubles a tensor core's rate.
        assert chip(name)["fp8_peak"] == pytest.approx(2 * chip(name)["fp16_peak"], abs=0.2)
        assert chip(name)["fp16_peak"] == pytest.approx(2 * chip(name)["tf32_peak"], abs=0.2)
    assert chip("MI325X")["l2_ways"] == 16 and chip("MI325X")["hbm_bandwidth"] == 6.0
    assert "fp8_peak" not in mi250x.figures and mi250x.fp8 == ""


def test_more_figures_add_up():
    clock = MI300X["engine_clock"] * 1e6
    l2 = MI300X["xcds"] * MI300X["l2_channels"] * MI300X["l2_read_bytes_per_clock"] * clock
    assert l2 / 1e12 == pytest.approx(MI300X["l2_bandwidth"], abs=0.05)
    # 800 scalar registers a SIMD of four.
    assert MI300X["sgpr_file"] * 1024 == MI300X["simds_per_compute_unit"] * 800 * 4
    assert MI300X["lds_banks"] * MI300X["lds_bank_width"] == 128
    assert MI300X["infinity_cache_channels"] * 2 == MI300X["infinity_cache_capacity"]  # 2 MB a channel


def test_resident_work():
    assert MI300X["waves_per_simd"] * MI300X["simds_per_compute_unit"] == MI300X["waves_per_compute_unit"]
    assert MI300X["waves_per_compute_unit"] * MI300X["wave_lanes"] == MI300X["work_items_per_compute_unit"]
    # The seed said 311,296: it took one full workgroup for all that a CU holds.
    assert MI300X["compute_units"] * MI300X["work_items_per_compute_unit"] == 622_592


# Breakpoints of the ISA guide's allocation rule worked out by hand, and one register beyond each.
@pytest.mark.parametrize(
    ("registers", "waves"),
    [(0, 8), (1, 8), (64, 8), (65, 7), (72, 7), (73, 6), (80, 6), (81, 5), (96, 5), (97, 4), (128, 4)]
    + [(129, 3), (168, 3), (169, 2), (256, 2), (257, 1), (512, 1)],
)
def test_waves_per_simd(registers, waves):
    assert waves_per_simd(registers) == waves


@pytest.mark.parametrize("registers", [-1, 513])
def test_waves_per_simd_refuses(registers):
    with pytest.raises(ValueError, match="0 to 512"):
        waves_per_simd(registers)


def test_unknown_chip_and_figure_name_what_is_known():
    with pytest.raises(UnknownChip, match=r"MI300A.*MI300X.*H200"):
        chip("MI300A")
    with pytest.raises(UnknownChip, match=r"l2_latency.*MI300X.*l2_capacity"):
        MI300X["l2_latency"]
    assert chip("mi300x") is MI300X


@pytest.mark.parametrize("name", CHIPS)
def test_each_figure_names_its_kind_and_source(name):
    table = chip(name).as_table()
    assert list(table.columns) == ["item", "value", "unit", "kind", "source"]
    assert set(table["kind"]) <= {"datasheet", "published"}
    assert (table["source"].str.len() > 0).all()
    assert not table["item"].duplicated().any()


def test_import_is_light():
    code = "import sys, labkit.hardware; print(sorted({'torch', 'triton', 'pandas'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
