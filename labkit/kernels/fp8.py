"""FP8 for the chip that is here: the format, a cast that saturates, and the same cast in PyTorch.

MI300X (gfx942) has e4m3fnuz: largest value 240, no negative zero, no infinity, and 0x80 is NaN.
MI350X, MI355X (gfx950) and NVIDIA from Ada on have OCP e4m3fn: largest value 448, no infinity.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget


@dataclass(frozen=True)
class Fp8Format:
    """An eight-bit float with four exponent and three mantissa bits, as torch and Triton name it."""

    name: str
    torch_dtype: torch.dtype
    triton_dtype: tl.dtype
    largest: float


E4M3FNUZ = Fp8Format("e4m3fnuz", torch.float8_e4m3fnuz, tl.float8e4b8, 240.0)
E4M3FN = Fp8Format("e4m3fn", torch.float8_e4m3fn, tl.float8e4nv, 448.0)

# AMD chips whose conversion instructions write FP8, and what they write (CDNA 3 and CDNA 4 ISA guides).
_AMD_FORMATS = {"gfx942": E4M3FNUZ, "gfx950": E4M3FN}
# NVIDIA converts to FP8 from compute capability 8.9 on (PTX ISA, cvt).
_FIRST_CUDA_ARCH = 89


def current_target() -> GPUTarget:
    """The target that Triton compiles for now: backend, architecture and wave (warp) size."""
    return triton.runtime.driver.active.get_current_target()


def fp8_format(target: GPUTarget | None = None) -> Fp8Format:
    """Return the FP8 format of `target`, or of the current target.

    Raises ValueError where the chip has no FP8 conversion.
    """
    target = target or current_target()
    if target.backend == "cuda" and int(target.arch) >= _FIRST_CUDA_ARCH:
        return E4M3FN
    # An AMD architecture may carry features, as in gfx942:sramecc+:xnack-.
    architecture = str(target.arch).split(":")[0]
    if target.backend == "hip" and architecture in _AMD_FORMATS:
        return _AMD_FORMATS[architecture]
    raise ValueError(
        f"{target.backend} {target.arch} has no FP8 conversion. Leave out `scale` to get the input's dtype, "
        "or run on gfx942 (MI300X), gfx950 (MI355X) or NVIDIA from compute capability 8.9 on."
    )


@triton.jit
def saturating_cast(x, DTYPE: tl.constexpr):
    """Cast fp32 `x` to the FP8 type DTYPE: beyond its largest value it stops there, NaN stays NaN."""
    LIMIT: tl.constexpr = 448.0 if tl.float8e4nv == DTYPE else 240.0
    # The default clamp turns NaN into the lower limit, which would hide a broken layer.
    return tl.clamp(x, -LIMIT, LIMIT, propagate_nan=tl.PropagateNan.ALL).to(DTYPE)


def saturating_cast_reference(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """`saturating_cast` in PyTorch, for the tensor `x` of any shape and float type."""
    limit = torch.finfo(dtype).max
    return x.clamp(-limit, limit).to(dtype)


def check_scale(scale: torch.Tensor, device: torch.device) -> None:
    """Refuse a scale that is not one fp32 number on `device`: ValueError or TypeError."""
    if scale.dtype != torch.float32:
        raise TypeError(f"scale has dtype {scale.dtype}; pass it as torch.float32.")
    if scale.numel() != 1:
        raise ValueError(f"scale has {scale.numel()} elements; these kernels take one for the whole tensor.")
    if scale.device != device:
        raise ValueError(f"scale is on {scale.device} and the input on {device}; move it with scale.to(...).")
