"""The launches that the benchmarks time: the three fused kernels at Llama 3.1 405B's sizes, eight GPUs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from labkit.kernels.residual_rms_norm import residual_rms_norm
from labkit.kernels.skinny_gemm import skinny_gemm
from labkit.kernels.swiglu import swiglu

# Columns and rows of the weight that one of eight GPUs holds (hidden 16384, intermediate 53248; q, k and v
# of 128 + 8 + 8 heads of 128).
GEMM_SHAPES = {"QKV": (2304, 16384), "O": (16384, 2048), "Gate/Up": (13312, 16384), "Down": (16384, 6656)}


@dataclass(frozen=True, slots=True)
class Timed:
    """A launch by name; `make` sets up its tensors for an FP8 type and returns what runs it."""

    name: str
    make: Callable[[torch.dtype], Callable[[], object]]


def _rms(fp8: torch.dtype) -> Callable[[], object]:
    generator = torch.Generator().manual_seed(0)
    x, residual = (torch.randn(32, 16384, generator=generator).half() for _ in range(2))
    weight, scale = torch.randn(16384, generator=generator).half(), torch.full((1,), 0.05)
    return lambda: residual_rms_norm(x, residual, weight, scale=scale)


def _swiglu(fp8: torch.dtype) -> Callable[[], object]:
    x = torch.randn(32, 2 * 6656, generator=torch.Generator().manual_seed(0)).half()
    scale = torch.full((1,), 0.05)
    return lambda: swiglu(x, scale=scale)


def _gemm(name: str, rows: int = 16) -> Callable[[torch.dtype], Callable[[], object]]:
    columns, inner = GEMM_SHAPES[name]

    def make(fp8: torch.dtype) -> Callable[[], object]:
        generator = torch.Generator().manual_seed(0)
        a = torch.randn(rows, inner, generator=generator).to(fp8)
        weight = torch.randn(columns, inner, generator=generator).to(fp8)
        scale = torch.ones(1)
        return lambda: skinny_gemm(a, weight, scale)

    return make


RMS = Timed("residual RMSNorm + FP8, [32, 16384]", _rms)
SWIGLU = Timed("SwiGLU + FP8, [32, 2x6656]", _swiglu)
GEMMS = [Timed(f"skinny GEMM {name}, M = 16", _gemm(name)) for name in GEMM_SHAPES]
COMPARED = [RMS, SWIGLU, GEMMS[0]]  # with Triton's interpreter, which takes too long for the others
EVERY = [RMS, SWIGLU, *GEMMS]
