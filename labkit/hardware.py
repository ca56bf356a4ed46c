"""What the chips are: each figure with its unit, its kind and its source.

Kinds: "datasheet" is what the maker states; "published" is a measurement that somebody else published.
A figure that has no source here is absent; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labkit.errors import LabkitError

if TYPE_CHECKING:
    import pandas


class UnknownChip(LabkitError):
    """A chip, or a figure of a chip, that labkit has no source for."""


@dataclass(frozen=True)
class Figure:
    """One figure of a chip."""

    item: str
    value: float
    unit: str
    source: str
    kind: str = "datasheet"


@dataclass(frozen=True)
class Chip:
    """A chip: `chip["compute_units"]` is a number, `chip.figures` has units and sources beside it.

    fp8: its format of FP8 with four exponent bits, "" where it has none.
    """

    name: str
    vendor: str
    architecture: str
    fp8: str
    figures: Mapping[str, Figure]

    def __getitem__(self, key: str) -> float:
        """Return the value of one figure. Raises UnknownChip where labkit has none."""
        if key not in self.figures:
            known = ", ".join(self.figures) or "none"
            raise UnknownChip(f"labkit has no sourced figure {key!r} for {self.name}. It has: {known}.")
        return self.figures[key].value

    def as_table(self) -> pandas.DataFrame:
        """Return the figures as a DataFrame: item, value, unit, kind, source; indexed by key."""
        import pandas

        columns = ["item", "value", "unit", "kind", "source"]
        rows = [[getattr(figure, column) for column in columns] for figure in self.figures.values()]
        # Object values keep 304 an integer beside 5.3.
        index = pandas.Index(list(self.figures), name="key")
        return pandas.DataFrame(rows, columns=columns, index=index, dtype=object)


_ROCM = "ROCm documentation, MI300 architecture page"
_ROCM_TABLES = "ROCm documentation, GPU hardware specification tables"
_PEAKS = "ROCm documentation; AMD CDNA 3 white paper"
_TF32 = "ROCm documentation (the white paper prints 490.3)"
_PAPER = "AMD CDNA 3 white paper"
_ISA = "AMD CDNA 3 ISA guide"
_ISA_REGISTERS = "AMD CDNA 3 ISA guide 3.6.4; ROCm tables"
_ROCMINFO = "rocminfo on the chip (0x74a1); LLVM getMaxWavesPerEU"
_STREAM = "AMD acceptance thresholds for MI300X (BabelStream)"
_LLVM_LDS = "LLVM AMDGPU getLdsDwGranularity: 128 words"
_GEMM = "AMD, Max-Achievable FLOPs part 2 (hipBLASLt)"
_CACHE = "Chips and Cheese, second-hand"

_MI300X = {
    "xcds": Figure("accelerator dies (XCDs)", 8, "XCD", _ROCM),
    "compute_units_per_xcd": Figure("active compute units an XCD", 38, "CU", _ROCM),
    "physical_compute_units_per_xcd": Figure("physical compute units an XCD", 40, "CU", _ROCM),
    "compute_units": Figure("active compute units", 304, "CU", _ROCM),
    "simds_per_compute_unit": Figure("SIMDs a CU", 4, "SIMD", _ROCM),
    "wave_lanes": Figure("lanes of a wave", 64, "lane", _ROCM),
    "aces_per_xcd": Figure("asynchronous compute engines an XCD", 4, "ACE", _ROCM),
    "engine_clock": Figure("peak engine clock", 2100, "MHz", "rocminfo; AMD peak tables"),
    "fp8_peak": Figure("peak FP8, dense", 2614.9, "TFLOP/s", _PEAKS),
    "int8_peak": Figure("peak INT8, dense", 2614.9, "TOP/s", _PEAKS),
    "fp16_peak": Figure("peak FP16 and BF16, dense", 1307.4, "TFLOP/s", _PEAKS),
    "tf32_peak": Figure("peak TF32, dense", 653.7, "TFLOP/s", _TF32),
    "fp32_peak": Figure("peak FP32", 163.4, "TFLOP/s", _PEAKS),
    "fp64_vector_peak": Figure("peak FP64, vector", 81.7, "TFLOP/s", _PEAKS),
    "fp64_matrix_peak": Figure("peak FP64, matrix", 163.4, "TFLOP/s", _PEAKS),
    "fp8_flop_per_clock": Figure("FP8 operations a clock a CU", 4096, "FLOP/clk", _PEAKS),
    "fp16_flop_per_clock": Figure("FP16 operations a clock a CU", 2048, "FLOP/clk", _PEAKS),
    "fp32_flop_per_clock": Figure("FP32 operations a clock a CU", 256, "FLOP/clk", _PEAKS),
    "hbm_capacity": Figure("HBM3 capacity", 192, "GB", _PAPER),
    "hbm_stacks": Figure("HBM3 stacks", 8, "stack", _PAPER),
    "hbm_bandwidth": Figure("peak HBM3 bandwidth", 5.3, "TB/s", _PAPER),
    "infinity_cache_capacity": Figure("Infinity Cache, on the memory side", 256, "MB", _PAPER),
    "infinity_cache_ways": Figure("Infinity Cache associativity", 16, "way", _PAPER),
    "infinity_cache_channels": Figure("Infinity Cache channels", 128, "channel", _PAPER),
    "infinity_cache_bytes_per_clock": Figure("Infinity Cache bytes a clock a channel", 64, "B/clk", _PAPER),
    "infinity_cache_bandwidth": Figure("peak Infinity Cache bandwidth", 17.2, "TB/s", _PAPER),
    "l2_capacity": Figure("L2 an XCD, private to it", 4, "MB", _PAPER),
    "l2_ways": Figure("L2 associativity", 16, "way", _PAPER),
    "l2_channels": Figure("L2 channels an XCD", 16, "channel", _PAPER),
    "l2_bandwidth": Figure("peak L2 read bandwidth, all XCDs", 34.4, "TB/s", _PAPER),
    "l2_channel_capacity": Figure("L2 a channel", 256, "KB", _PAPER),
    "l2_read_bytes_per_clock": Figure("L2 read bytes a clock a channel", 128, "B/clk", _PAPER),
    "l2_write_bytes_per_clock": Figure("L2 write bytes a clock a channel", 64, "B/clk", _PAPER),
    "cache_line": Figure("cache line of L2 and vector L1", 128, "B", _PAPER),
    "l1_capacity": Figure("vector L1 a CU", 32, "KB", _PAPER),
    "l1_bytes_per_clock": Figure("vector L1 bytes a clock", 128, "B/clk", _PAPER),
    "scalar_l1_capacity": Figure("scalar L1, shared by 2 CUs", 16, "KB", _ROCM_TABLES),
    "instruction_cache_capacity": Figure("instruction cache, shared by 2 CUs", 64, "KB", _ROCM_TABLES),
    "lds_capacity": Figure("LDS a CU", 64, "KB", _ISA),
    "lds_banks": Figure("LDS banks", 32, "bank", _ISA),
    "lds_bank_width": Figure("width of an LDS bank", 4, "B", _ISA),
    "lds_granule": Figure("LDS is granted in steps of", 512, "B", _LLVM_LDS),
    "lds_cycles_per_access": Figure("cycles in which a wave's LDS access is served", 4, "clk", _ISA),
    "vgpr_file": Figure("vector registers a CU", 512, "KB", _ISA_REGISTERS),
    "vgprs_per_lane_slot": Figure("32-bit vector registers a lane slot", 512, "VGPR", _ISA_REGISTERS),
    "architectural_vgprs": Figure("most architectural VGPRs of a wave", 256, "VGPR", _ISA_REGISTERS),
    "accumulation_vgprs": Figure("most accumulation VGPRs of a wave", 256, "VGPR", _ISA_REGISTERS),
    "vgpr_granule": Figure("VGPRs are granted in steps of", 8, "VGPR", _ISA_REGISTERS),
    "sgprs_per_wave": Figure("scalar registers a wave, about", 102, "SGPR", _ROCM_TABLES),
    "sgpr_file": Figure("scalar registers a CU", 12.5, "KB", _ROCM_TABLES),
    "waves_per_simd": Figure("most waves a SIMD", 8, "wave", _ROCMINFO),
    "waves_per_compute_unit": Figure("most waves a CU", 32, "wave", _ROCMINFO),
    "work_items_per_compute_unit": Figure("most work-items a CU", 2048, "work-item", _ROCMINFO),
    "work_items_per_workgroup": Figure("most work-items a workgroup", 1024, "work-item", _ROCMINFO),
    "vector_loads_in_flight": Figure("vector loads in flight a wave (6-bit vmcnt)", 63, "load", _ISA),
    "fp8_largest": Figure("largest FP8 value (e4m3fnuz)", 240, "", _ISA),
    "stream_copy": Figure("BabelStream Copy", 4.18, "TB/s", _STREAM, "published"),
    "stream_mul": Figure("BabelStream Mul", 4.07, "TB/s", _STREAM, "published"),
    "stream_add": Figure("BabelStream Add", 3.92, "TB/s", _STREAM, "published"),
    "stream_triad": Figure("BabelStream Triad", 3.89, "TB/s", _STREAM, "published"),
    "stream_dot": Figure("BabelStream Dot", 3.66, "TB/s", _STREAM, "published"),
    "hbm_plateau": Figure("reached HBM bandwidth, about", 4.3, "TB/s", "arXiv 2510.27583", "published"),
    "infinity_cache_reached": Figure("reached Infinity Cache bandwidth", 11.9, "TB/s", _CACHE, "published"),
    "infinity_cache_latency": Figure("Infinity Cache latency", 218, "ns", _CACHE, "published"),
    "fp16_gemm": Figure("FP16 matrix product, hipBLASLt", 654, "TFLOP/s", _GEMM, "published"),
    "bf16_gemm": Figure("BF16 matrix product, hipBLASLt", 708, "TFLOP/s", _GEMM, "published"),
    "fp8_gemm": Figure("FP8 matrix product, hipBLASLt", 1273, "TFLOP/s", _GEMM, "published"),
}

# The others have only what a table that we read states; more comes with a source, or not at all.
_OCP_FP8 = {"fp8_largest": Figure("largest FP8 value (e4m3fn)", 448, "", "OCP 8-bit floating point")}
_ENDNOTE = "AMD CDNA 3 white paper, endnote MI325-001A"
_MI325X_SHEET = "AMD data sheet, quoted by awesomeagents.ai"
# Of the chip's dies, which are MI300X's, the white paper speaks as of the architecture.
_CDNA3 = [
    *(key for key in _MI300X if key.startswith(("infinity_cache_", "l1_", "l2_", "lds_", "scalar_l1"))),
    *("simds_per_compute_unit", "cache_line", "instruction_cache_capacity", "vgpr_file", "sgpr_file"),
    *("vgprs_per_lane_slot", "architectural_vgprs", "accumulation_vgprs", "vgpr_granule", "fp8_largest"),
]
_MI325X = {
    "xcds": Figure("accelerator dies (XCDs)", 8, "XCD", _ROCM_TABLES),
    "compute_units_per_xcd": Figure("active compute units an XCD", 38, "CU", _ROCM_TABLES),
    "compute_units": Figure("active compute units", 304, "CU", _ROCM_TABLES),
    "wave_lanes": Figure("lanes of a wave", 64, "lane", _ROCM_TABLES),
    "hbm_capacity": Figure("HBM3E capacity", 256, "GB", _ENDNOTE),
    "hbm_bandwidth": Figure("peak HBM3E bandwidth", 6.0, "TB/s", _ENDNOTE),
    "fp8_peak": Figure("peak FP8, dense", 2614.9, "TFLOP/s", _MI325X_SHEET, "published"),
    "fp16_peak": Figure("peak FP16 and BF16, dense", 1307.4, "TFLOP/s", _MI325X_SHEET, "published"),
    "tf32_peak": Figure("peak TF32, dense", 653.7, "TFLOP/s", _MI325X_SHEET, "published"),
    "fp32_peak": Figure("peak FP32", 163.4, "TFLOP/s", _MI325X_SHEET, "published"),
    **{key: _MI300X[key] for key in _CDNA3 if _MI300X[key].kind == "datasheet"},
}


def _mi350(gigahertz: float) -> dict[str, Figure]:
    """MI350X and MI355X differ in clock."""
    hot_chips = "AMD at Hot Chips 2025, reported by wccftech"
    isscc = "AMD at ISSCC 2026, reported by World Today News"
    return {
        "xcds": Figure("accelerator dies (XCDs)", 8, "XCD", _ROCM_TABLES),
        "compute_units_per_xcd": Figure("active compute units an XCD", 32, "CU", _ROCM_TABLES),
        "compute_units": Figure("active compute units", 256, "CU", _ROCM_TABLES),
        "wave_lanes": Figure("lanes of a wave", 64, "lane", _ROCM_TABLES),
        "engine_clock": Figure("peak engine clock", 1000 * gigahertz, "MHz", hot_chips, "published"),
        "fp8_flop_per_clock": Figure("FP8 operations a clock a CU", 8192, "FLOP/clk", isscc, "published"),
        "hbm_capacity": Figure("HBM3E capacity", 288, "GB", _ROCM_TABLES),
        "hbm_bandwidth": Figure("peak HBM3E bandwidth", 8.0, "TB/s", "Boston, on the MI355X", "published"),
        "infinity_cache_capacity": Figure("Infinity Cache", 256, "MB", _ROCM_TABLES),
        "l2_capacity": Figure("L2 an XCD, private to it", 4, "MB", _ROCM_TABLES),
        "l1_capacity": Figure("vector L1 a CU", 32, "KB", _ROCM_TABLES),
        "scalar_l1_capacity": Figure("scalar L1, shared by 2 CUs", 16, "KB", _ROCM_TABLES),
        "instruction_cache_capacity": Figure("instruction cache, shared by 2 CUs", 64, "KB", _ROCM_TABLES),
        "lds_capacity": Figure("LDS a CU", 160, "KB", _ROCM_TABLES),
        "vgpr_file": Figure("vector registers a CU", 512, "KB", _ROCM_TABLES),
        "sgpr_file": Figure("scalar registers a CU", 12.5, "KB", _ROCM_TABLES),
        **_OCP_FP8,
    }


_PAPER2 = "AMD CDNA 2 white paper"
_MI250X = {
    "gcds": Figure("accelerator dies (GCDs), each a device of its own", 2, "GCD", _PAPER2),
    "compute_units_per_gcd": Figure("active compute units a GCD", 110, "CU", _ROCM_TABLES),
    "compute_units": Figure("active compute units", 220, "CU", _ROCM_TABLES),
    "wave_lanes": Figure("lanes of a wave", 64, "lane", _ROCM_TABLES),
    "engine_clock": Figure("peak engine clock", 1700, "MHz", _PAPER2),
    "fp16_peak": Figure("peak FP16 and BF16", 383.0, "TFLOP/s", _PAPER2),
    "int8_peak": Figure("peak INT8", 383.0, "TOP/s", "AMD CDNA 3 white paper, endnotes"),
    "fp32_vector_peak": Figure("peak FP32, vector", 47.9, "TFLOP/s", "AMD CDNA 3 white paper, endnotes"),
    "fp32_matrix_peak": Figure("peak FP32, matrix", 95.7, "TFLOP/s", "AMD CDNA 3 white paper, endnotes"),
    "fp64_vector_peak": Figure("peak FP64, vector", 47.9, "TFLOP/s", _PAPER2),
    "fp64_matrix_peak": Figure("peak FP64, matrix", 95.7, "TFLOP/s", "AMD CDNA 3 white paper, endnotes"),
    "hbm_capacity": Figure("HBM2e capacity", 128, "GB", _PAPER2),
    "hbm_bandwidth": Figure("peak HBM2e bandwidth", 3.2, "TB/s", "LUMI-G documentation", "published"),
    "l2_capacity": Figure("L2 a GCD, private to it", 8, "MB", _ROCM_TABLES),
    "l1_capacity": Figure("vector L1 a CU", 16, "KB", _ROCM_TABLES),
    "scalar_l1_capacity": Figure("scalar L1, shared by 2 CUs", 16, "KB", _ROCM_TABLES),
    "instruction_cache_capacity": Figure("instruction cache, shared by 2 CUs", 32, "KB", _ROCM_TABLES),
    "lds_capacity": Figure("LDS a CU", 64, "KB", _ROCM_TABLES),
    "vgpr_file": Figure("vector registers a CU", 512, "KB", _ROCM_TABLES),
    "sgpr_file": Figure("scalar registers a CU", 12.5, "KB", _ROCM_TABLES),
}

# NVIDIA's streaming multiprocessor stands where a compute unit does, its warp where a wave does.
_HOPPER_PAPER = "NVIDIA H100 white paper, quoted by glennklockwood.com"
_HOPPER_GUIDE = "NVIDIA Hopper tuning guide 1.4.1"
_HOPPER = {
    "compute_units": Figure("streaming multiprocessors", 132, "SM", _HOPPER_PAPER),
    "wave_lanes": Figure("lanes of a warp", 32, "lane", "NVIDIA CUDA programming guide"),
    "fp8_peak": Figure("peak FP8, dense", 1978.9, "TFLOP/s", _HOPPER_PAPER),
    "int8_peak": Figure("peak INT8, dense", 1978.9, "TOP/s", _HOPPER_PAPER),
    "fp16_peak": Figure("peak FP16 and BF16, dense", 989.4, "TFLOP/s", _HOPPER_PAPER),
    "tf32_peak": Figure("peak TF32, dense", 494.7, "TFLOP/s", _HOPPER_PAPER),
    "fp32_peak": Figure("peak FP32", 66.9, "TFLOP/s", _HOPPER_PAPER),
    "fp64_vector_peak": Figure("peak FP64, vector", 33.5, "TFLOP/s", _HOPPER_PAPER),
    "fp64_matrix_peak": Figure("peak FP64, matrix", 66.9, "TFLOP/s", _HOPPER_PAPER),
    "l2_capacity": Figure("L2, shared by all SMs", 50, "MB", "NVIDIA, Hopper Architecture In-Depth"),
    "lds_capacity": Figure("shared memory an SM", 228, "KB", _HOPPER_GUIDE),
    "lds_per_workgroup": Figure("most shared memory of a block", 227, "KB", _HOPPER_GUIDE),
    "vgpr_file": Figure("registers an SM (64 K of 32 bits)", 256, "KB", _HOPPER_GUIDE),
    "registers_per_thread": Figure("most registers of a thread", 255, "register", _HOPPER_GUIDE),
    "waves_per_compute_unit": Figure("most warps an SM", 64, "warp", _HOPPER_GUIDE),
    "workgroups_per_compute_unit": Figure("most blocks an SM", 32, "block", _HOPPER_GUIDE),
    **_OCP_FP8,
}
_H100 = {
    **_HOPPER,
    "hbm_capacity": Figure("HBM3 capacity", 80, "GB", "NVIDIA data sheet, H100 SXM"),
    "hbm_bandwidth": Figure("peak HBM3 bandwidth", 3.35, "TB/s", "NVIDIA data sheet, H100 SXM"),
}
_H200 = {
    **_HOPPER,
    "hbm_capacity": Figure("HBM3e capacity", 141, "GB", "NVIDIA data sheet, H200 SXM"),
    "hbm_bandwidth": Figure("peak HBM3e bandwidth", 4.8, "TB/s", "NVIDIA data sheet, H200 SXM"),
}

CHIPS: dict[str, Chip] = {
    "MI300X": Chip("MI300X", "AMD", "gfx942", "e4m3fnuz", _MI300X),
    "MI325X": Chip("MI325X", "AMD", "gfx942", "e4m3fnuz", _MI325X),
    "MI350X": Chip("MI350X", "AMD", "gfx950", "e4m3fn", _mi350(2.2)),
    "MI355X": Chip("MI355X", "AMD", "gfx950", "e4m3fn", _mi350(2.4)),
    "MI250X": Chip("MI250X", "AMD", "gfx90a", "", _MI250X),
    "H100": Chip("H100", "NVIDIA", "sm_90", "e4m3fn", _H100),
    "H200": Chip("H200", "NVIDIA", "sm_90", "e4m3fn", _H200),
}


def chip(name: str) -> Chip:
    """Return the chip called `name`, in any case. Raises UnknownChip, which names the known ones."""
    found = CHIPS.get(name.upper())
    if found is None:
        raise UnknownChip(f"labkit knows no chip {name!r}. It knows: {', '.join(CHIPS)}.")
    return found


def waves_per_simd(registers: int) -> int:
    """Return how many waves a SIMD of gfx942 can hold when each uses `registers` vector registers a lane.

    `registers` counts architectural and accumulation registers together, 0 to 512. They are granted in
    eights out of 512, and 8 waves are the most (AMD CDNA 3 ISA guide 3.6.4; LLVM getMaxWavesPerEU).
    Raises ValueError outside 0 to 512.
    """
    mi300x = CHIPS["MI300X"]
    whole, granule = int(mi300x["vgprs_per_lane_slot"]), int(mi300x["vgpr_granule"])
    if not 0 <= registers <= whole:
        raise ValueError(f"a wave owns 0 to {whole} vector registers, not {registers}.")
    granted = max(-(-registers // granule) * granule, granule)
    return min(whole // granted, int(mi300x["waves_per_simd"]))
