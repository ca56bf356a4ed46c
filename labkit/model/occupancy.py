"""How many waves a compute unit holds at a time, which resource limits it, and what one more workgroup needs.

Registers are granted to a wave, LDS to a workgroup, and a workgroup is resident whole or not at all. By
registers alone the result is LLVM's `; Occupancy:` comment, which knows neither LDS asked for at launch nor
that workgroups come whole. Sources: AMD CDNA 3 ISA guide 3.6.4; LLVM AMDGPU (GCNSubtarget, AMDGPUBaseInfo).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from labkit.errors import LabkitError
from labkit.hardware import chip, waves_per_simd
from labkit.model import whole

if TYPE_CHECKING:
    import pandas as pd

    from labkit.compiler.registers import Registers

_ACCUMULATION_GRANULE = 4  # accumulation registers begin at a multiple of it (ISA guide, ACCUM_OFFSET)
WAVE_SLOTS = "wave slots"


@dataclass(frozen=True, slots=True)
class Limit:
    """One resource: what a wave or workgroup uses and is granted, and how many workgroups a CU then holds.

    at_most: what it may use for the CU to hold one workgroup more than it does now; None where none can be.
    """

    resource: str
    unit: str
    used: int
    granted: int
    workgroups_per_cu: int
    at_most: int | None


@dataclass(frozen=True, slots=True)
class Occupancy:
    """waves_by_registers: waves a SIMD as LLVM counts them; the rest counts whole workgroups on a CU."""

    waves_by_registers: int
    waves_per_workgroup: int
    workgroups_per_cu: int
    limits: tuple[Limit, ...]

    @property
    def waves_per_cu(self) -> int:
        """Resident waves of a CU, on its four SIMDs together."""
        return self.workgroups_per_cu * self.waves_per_workgroup

    @property
    def limited_by(self) -> list[str]:
        """The resources that leave no room for one workgroup more."""
        short = [limit.resource for limit in self.limits if limit.workgroups_per_cu == self.workgroups_per_cu]
        return [WAVE_SLOTS] if WAVE_SLOTS in short else short

    @property
    def table(self) -> pd.DataFrame:
        """A row a resource: used, granted, unit, workgroups_per_cu, limits, next_step_at_most.

        next_step_at_most: what it may use for one workgroup more; <NA> where the most waves are resident.
        """
        import pandas as pd

        short = self.limited_by
        rows = [
            (x.resource, x.used, x.granted, x.unit, x.workgroups_per_cu, x.resource in short, x.at_most)
            for x in self.limits
        ]
        columns = ["resource", "used", "granted", "unit", "workgroups_per_cu", "limits", "next_step_at_most"]
        return pd.DataFrame(rows, columns=columns).astype({"next_step_at_most": "Int64"})

    def next_step(self) -> str:
        """What one workgroup more needs, in a sentence."""
        if any(limit.at_most is None for limit in self.limits):
            return (
                f"A compute unit holds {self.waves_per_cu} waves of this kernel, and no more workgroups fit."
            )
        needs = [
            f"{x.resource} {x.used} -> {x.at_most} {x.unit}"
            for x in self.limits
            if x.at_most is not None and x.used > x.at_most
        ]
        return f"For {self.workgroups_per_cu + 1} workgroups a compute unit: {'; '.join(needs)}."


def occupancy(
    vgprs: int, agprs: int, sgprs: int, lds_bytes: int, workgroup_size: int, chip_name: str = "MI300X"
) -> Occupancy:
    """Occupancy of a kernel whose waves use so many registers and whose workgroups so much LDS.

    vgprs, agprs: architectural and accumulation registers a lane, 0 to 256 each; sgprs: scalar registers a
    wave with VCC and the like; lds_bytes: LDS a workgroup; workgroup_size: work-items.
    Raises LabkitError where a number is out of range or a workgroup needs more LDS than a CU has, UnknownChip
    where the chip's limits have no source.
    """
    figures = chip(chip_name)
    lds = int(figures["lds_capacity"] * 1024)
    total = _together(whole("vgprs", vgprs, 0, 256), whole("agprs", agprs, 0, 256))
    whole("sgprs", sgprs, 0, 112)
    whole("workgroup_size", workgroup_size, 1, 1024)
    if whole("lds_bytes", lds_bytes, 0) > lds:
        raise LabkitError(f"lds_bytes={lds_bytes}: a compute unit of {chip_name} has {lds}; use less LDS")
    waves = -(-workgroup_size // int(figures["wave_lanes"]))
    simds, most = int(figures["simds_per_compute_unit"]), int(figures["waves_per_simd"])
    scalars = int(figures["sgpr_file"] * 1024) // 4 // simds  # of a SIMD
    granule, whole_file = int(figures["vgpr_granule"]), int(figures["vgprs_per_lane_slot"])
    vector, scalar = waves_per_simd(total), min(most, scalars // max(sgprs, 1))
    lds_granted = _up(lds_bytes, int(figures["lds_granule"]))
    slots = simds * most // waves
    by_lds = lds // lds_granted if lds_granted else slots
    counts = [vector * simds // waves, scalar * simds // waves, by_lds, slots]
    groups = min(counts)
    each = -(-(groups + 1) * waves // simds)  # waves a SIMD with one workgroup more
    fits = each <= most
    vector_granted = max(_up(total, granule), granule)
    uses = [
        ("vector registers", "a lane", total, vector_granted, _down(whole_file // each, granule)),
        ("scalar registers", "a wave", sgprs, sgprs, scalars // each),
        ("LDS", "bytes", lds_bytes, lds_granted, _down(lds // (groups + 1), int(figures["lds_granule"]))),
        (WAVE_SLOTS, "waves a workgroup", waves, waves, simds * most // (groups + 1)),
    ]
    limits = tuple(
        Limit(name, unit, used, granted, count, at_most if fits else None)
        for (name, unit, used, granted, at_most), count in zip(uses, counts, strict=True)
    )
    return Occupancy(min(vector, scalar), waves, groups, limits)


def of_kernel(registers: Registers, num_warps: int, chip_name: str = "MI300X") -> Occupancy:
    """Occupancy of a compiled kernel: its `compiled.registers` and its number of waves a workgroup."""
    return occupancy(
        registers.vgprs, registers.agprs, registers.sgprs, registers.lds_bytes, 64 * num_warps, chip_name
    )


def staircase() -> pd.DataFrame:
    """Waves a SIMD of gfx942 for every number of vector registers a lane, 1 to 512."""
    import pandas as pd

    rows = [(registers, waves_per_simd(registers)) for registers in range(1, 513)]
    return pd.DataFrame(rows, columns=["vector registers a lane", "waves a SIMD"])


def _together(vgprs: int, agprs: int) -> int:
    """Registers that a wave owns in the unified file."""
    return _up(vgprs, _ACCUMULATION_GRANULE) + agprs if agprs else vgprs


def _up(number: int, step: int) -> int:
    return -(-number // step) * step


def _down(number: int, step: int) -> int:
    return number // step * step
