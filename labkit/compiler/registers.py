"""Registers, LDS and occupancy of a compiled kernel, read from its assembly text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from labkit.compiler.assembly import parse_metadata
from labkit.errors import LabkitError


@dataclass(frozen=True, slots=True)
class Registers:
    """What one wave of the kernel takes (registers, scratch) and one workgroup (LDS).

    vgprs and agprs: architectural and accumulation vector registers, 32 bits for each lane.
    vgprs_total: both together as the hardware grants them, before rounding up to eights.
    sgprs: scalar registers, VCC and the like included. scratch_bytes: private memory a lane.
    vgpr_spills, sgpr_spills: registers that the compiler had to keep in memory.
    """

    vgprs: int
    agprs: int
    vgprs_total: int
    sgprs: int
    lds_bytes: int
    scratch_bytes: int
    vgpr_spills: int
    sgpr_spills: int


def read_registers(asm: str, lds_bytes: int) -> Registers:
    """Registers of AMDGCN text. `lds_bytes` is Triton's own figure: the text holds 0, since Triton
    asks for LDS at launch. Raises LabkitError if the text isn't a whole AMDGCN module.
    """
    metadata = parse_metadata(asm)
    if "vgpr_count" not in metadata:
        raise LabkitError("This assembly has no .amdgpu_metadata block: read registers of an AMD target.")
    total = metadata["vgpr_count"]
    agprs = metadata.get("agpr_count", 0)
    return Registers(
        vgprs=_kernel_info(asm, "NumVgprs", default=total),
        agprs=agprs,
        vgprs_total=total,
        sgprs=metadata["sgpr_count"],
        lds_bytes=lds_bytes,
        scratch_bytes=metadata["private_segment_fixed_size"],
        vgpr_spills=metadata["vgpr_spill_count"],
        sgpr_spills=metadata["sgpr_spill_count"],
    )


def read_occupancy(asm: str) -> int:
    """Waves a SIMD, by LLVM's own comment in the text. It counts registers, not LDS.

    `labkit.hardware.waves_per_simd` says the same from `vgprs_total`.

    Raises LabkitError if the text has no such comment.
    """
    occupancy = _kernel_info(asm, "Occupancy", default=0)
    if not occupancy:
        raise LabkitError("This assembly has no '; Occupancy:' comment: only AMD targets have one.")
    return occupancy


def _kernel_info(asm: str, name: str, default: int) -> int:
    """A number of the `; Kernel info:` comments; the last one, as helper functions come first."""
    found = re.findall(rf"^; {name}: (\d+)", asm, re.MULTILINE)
    return int(found[-1]) if found else default
