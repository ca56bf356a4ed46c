"""What Triton made of a kernel: stages, compiler passes, assembly listing, registers, layouts."""

from __future__ import annotations

from labkit.compiler.stages import Compiled, compile

__all__ = ["Compiled", "compile"]
