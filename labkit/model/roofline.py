"""Time floors of a launch: how long each part of the chip needs at its peak, and which needs longest.

A floor is no forecast: no launch can be quicker than its longest floor, most are slower. Floors are modelled
from counts and the chip's figures (labkit.hardware); a part whose figure has no source has no row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from labkit.errors import LabkitError
from labkit.hardware import Chip, chip

if TYPE_CHECKING:
    import pandas as pd

    from labkit.emulator.counters import Counters
    from labkit.model.l2 import CacheTraffic

# Element types of a matrix instruction -> the figure with their peak, in TFLOP/s.
MATRIX_PEAKS = {
    "fp8": "fp8_peak",
    "int8": "int8_peak",
    "fp16": "fp16_peak",
    "tf32": "tf32_peak",
    "fp32": "fp32_peak",
    "fp64": "fp64_matrix_peak",
    "f8f6f4": "f8f6f4_peak",  # which no chip has a sourced figure of yet
}
_ELEMENTS = (("fp8", r"(fp8|bf8)"), ("int8", "i8"), ("fp16", r"b?f16(_1k)?"), ("tf32", "xf32"),
             ("fp32", "f32"), ("fp64", "f64"), ("f8f6f4", "f8f6f4"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Work:
    """What a launch must do. Bytes that pass each level, the least that are possible or are modelled.

    hbm_bytes: read and written; infinity_bytes: read through the Infinity Cache; l2_bytes: read from L2 by
    the L1s; l1_bytes: whole lines through vector L1; lds_cycles: summed over the compute units, conflicts
    included; vector_instructions: a wave's; matrix_flops: by a key of MATRIX_PEAKS.
    """

    hbm_bytes: float = 0
    infinity_bytes: float = 0
    l2_bytes: float = 0
    l1_bytes: float = 0
    lds_cycles: float = 0
    vector_instructions: float = 0
    matrix_flops: Mapping[str, float] = field(default_factory=dict)


def work_of(counters: Counters, traffic: CacheTraffic | None = None) -> Work:
    """The work of a launch as the emulator counted it.

    HBM: every byte touched is read or written once, or, with `traffic`, what the cache model gives. L2 and
    Infinity Cache are known with `traffic` only, as each XCD's different lines and as what L2 fetched.
    """
    tensors = counters.tensors
    hbm = float(tensors["bytes_read"].sum() + tensors["bytes_written"].sum())
    infinity = l2 = 0.0
    if traffic is not None:
        if traffic.recorded != traffic.workgroups:
            raise LabkitError(
                f"the cache model saw {traffic.recorded} of {traffic.workgroups} workgroups, so it has no "
                "bytes of the whole launch: record all lines, or leave traffic out"
            )
        hbm = float(traffic.hbm_read_bytes + traffic.hbm_write_bytes)
        infinity, l2 = float(traffic.infinity_bytes), float(traffic.line_bytes)
    flops: dict[str, float] = {}
    for mnemonic, count in counters.matrix()[["mnemonic", "flops"]].itertuples(index=False):
        element = matrix_element(mnemonic)
        # Half of the products of a sparse instruction are with a zero that is not stored.
        done = count / 2 if mnemonic.startswith("v_smfmac") else count
        flops[element] = flops.get(element, 0.0) + float(done)
    classes = counters.by("class").set_index("class")["executions"]
    return Work(
        hbm,
        infinity,
        l2,
        float(counters.memory["l1_bytes"].sum()),
        float(counters.lds["cycles"].sum()),
        float(classes.get("VALU", 0)),
        flops,
    )


def matrix_element(mnemonic: str) -> str:
    """Which of MATRIX_PEAKS a v_mfma or v_smfmac instruction counts for, by its sources' type.

    Raises LabkitError for one whose type has no peak here.
    """
    sources = re.sub(
        r"^v_(mfma_scale|mfma|smfmac)_[a-z]+\d+_\d+x\d+x\d+_?(\d+b_)?", "", mnemonic.removesuffix("_e64")
    )
    for name, pattern in _ELEMENTS:
        if re.fullmatch(rf"{pattern}(_{pattern})?", sources):
            return name
    raise LabkitError(f"{mnemonic}: labkit has no peak for this element type")


def floors(
    work: Work, *, terabytes: float | None = None, launch_us: float | None = None, chip_name: str = "MI300X"
) -> pd.DataFrame:
    """A row a part of the chip, the longest floor first: part, amount, unit, peak, peak's unit, floor, binds.

    terabytes: HBM bandwidth a second in place of the chip's datasheet figure, such as 4.3 that is reached.
    launch_us: what a launch costs at least on your machine, measured; there is no sourced figure of it.
    Raises LabkitError for a bandwidth that is not positive or a negative time.
    """
    import pandas as pd

    if (terabytes is not None and not terabytes > 0) or (launch_us is not None and not launch_us >= 0):
        raise LabkitError("pass a bandwidth above 0 TB/s, and a launch time of 0 us or more")
    rows = [row for row in _parts(work, chip(chip_name), terabytes) if row[1]]
    table = [(*row, row[1] / row[3] * row[5]) for row in rows]
    shown = [(part, amount, unit, peak, of, floor) for part, amount, unit, peak, of, _, floor in table]
    if launch_us is not None:
        shown.append(("launch", 1, "launch", launch_us, "us (measured)", launch_us))
    columns = ["part", "amount", "unit", "peak", "peak unit", "floor (us, modelled)"]
    frame = pd.DataFrame(shown, columns=columns)
    frame = frame.sort_values("floor (us, modelled)", ascending=False, kind="stable").reset_index(drop=True)
    return frame.assign(binds=[number == 0 for number in range(len(frame))])


def both_bandwidths(work: Work, chip_name: str = "MI300X") -> pd.DataFrame:
    """What binds and the longest floor, for HBM as the datasheet says and as others have reached it."""
    import pandas as pd

    figures, rows = chip(chip_name).figures, []
    for key in ("hbm_bandwidth", "hbm_plateau"):
        if key in figures:
            figure = figures[key]
            first = floors(work, terabytes=figure.value, chip_name=chip_name).iloc[0]
            rows.append((figure.value, figure.kind, first["part"], first["floor (us, modelled)"]))
    return pd.DataFrame(rows, columns=["HBM TB/s", "kind", "bound by", "floor (us, modelled)"])


def ridge(flops_peak: float, terabytes: float) -> float:
    """FLOP a byte from which `flops_peak` TFLOP/s bind and no longer `terabytes` TB/s."""
    return flops_peak / terabytes


def _parts(work: Work, figures: Chip, terabytes: float | None) -> Iterator[tuple]:
    """(part, amount, unit, peak, its unit, microseconds of amount / peak), of parts with a sourced peak."""

    def known(*keys: str) -> bool:
        return all(key in figures.figures for key in keys)

    per_tera = 1e-6  # bytes / (TB/s) or FLOP / (TFLOP/s), in microseconds
    if terabytes is not None or known("hbm_bandwidth"):
        peak = figures["hbm_bandwidth"] if terabytes is None else terabytes
        yield "HBM", work.hbm_bytes, "bytes", peak, "TB/s", per_tera
    if known("infinity_cache_bandwidth"):
        peak = figures["infinity_cache_bandwidth"]
        yield "Infinity Cache", work.infinity_bytes, "bytes", peak, "TB/s", per_tera
    if known("l2_bandwidth"):
        yield "L2", work.l2_bytes, "bytes", figures["l2_bandwidth"], "TB/s", per_tera
    if known("compute_units", "engine_clock"):
        cycles = figures["compute_units"] * figures["engine_clock"]  # of all units, a microsecond
        if known("l1_bytes_per_clock"):
            peak = cycles * figures["l1_bytes_per_clock"] / 1e6
            yield "vector L1", work.l1_bytes, "bytes", peak, "TB/s", per_tera
        yield "LDS", work.lds_cycles, "cycles", cycles, "cycles/us", 1.0
        # 256 FP32 operations a clock are 64 lanes of a packed multiply-add: one wave instruction a CU.
        if known("fp32_flop_per_clock"):
            yield "VALU", work.vector_instructions, "wave instructions", cycles, "instructions/us", 1.0
    for name, flops in work.matrix_flops.items():
        if name not in MATRIX_PEAKS:
            raise LabkitError(f"matrix_flops has {name!r}: choose from {', '.join(MATRIX_PEAKS)}")
        if known(MATRIX_PEAKS[name]):
            yield f"MFMA {name}", flops, "FLOP", figures[MATRIX_PEAKS[name]], "TFLOP/s", per_tera
