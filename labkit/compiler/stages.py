"""Compile a kernel for any target on any machine, and hold what each stage made."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from labkit.compiler import triton_api
from labkit.compiler.layouts import Blocked, parse_layouts
from labkit.compiler.listing import listing
from labkit.compiler.registers import Registers, read_occupancy, read_registers
from labkit.errors import LabkitError

if TYPE_CHECKING:
    import pandas as pd

    from labkit.compiler.passes import Pass

_TEXT_STAGES = ("ttir", "ttgir", "llir", "amdgcn", "ptx")
_BINARY_STAGES = ("hsaco", "cubin")


def compile(kernel: Any, *args: Any, target: str = "gfx942", **kwargs: Any) -> Compiled:
    """Compile `kernel` as `kernel[grid](*args, **kwargs)` would on `target`, without launching it.

    kernel: decorated with @triton.jit, also under @triton.heuristics or @triton.autotune; of an autotuned
    kernel the first configuration is compiled, and `note` of the result says so.
    args, kwargs: as in a launch. A tensor may be on any device, "meta" included; a torch.dtype stands for
    a tensor of that type, aligned to 16 bytes and smaller than 2 GB.
    target: "gfx90a", "gfx942", "gfx950", "gfx1100" or "sm_90". No GPU is needed for any of them.

    Raises LabkitError for an unknown target, LaunchError for something that isn't a kernel,
    EnvironmentProblem where Triton's cache can't be written; Triton's CompilationError as it is.
    """
    compiled_kernel, note = triton_api.compile_for(kernel, args, kwargs, triton_api.gpu_target(target))
    return Compiled(compiled_kernel, note)


class Compiled:
    """What Triton made of one kernel for one target and one set of arguments.

    name: of the kernel. target: "gfx942", ... note: what the reader should know about how it was
    compiled, or "". stages: by name, in order: "ttir", "ttgir", "llir", then "amdgcn" (text) and "hsaco"
    (bytes) for AMD, "ptx" and "cubin" for NVIDIA. triton: Triton's own CompiledKernel.
    """

    def __init__(self, compiled_kernel: Any, note: str = "") -> None:
        self.triton = compiled_kernel
        self.note = note
        self.name: str = compiled_kernel.metadata.name
        self.target = triton_api.target_name(compiled_kernel.metadata.target)
        self.stages: dict[str, str | bytes] = {
            stage: compiled_kernel.asm[stage]
            for stage in _TEXT_STAGES + _BINARY_STAGES
            if stage in compiled_kernel.asm
        }

    @classmethod
    def from_triton(cls, compiled_kernel: Any) -> Compiled:
        """Wrap the CompiledKernel that a launch or Triton's `warmup` returns."""
        return cls(compiled_kernel)

    @property
    def num_warps(self) -> int:
        """Waves in a workgroup (Triton's num_warps)."""
        return self.triton.metadata.num_warps

    @cached_property
    def registers(self) -> Registers:
        """Registers, LDS and scratch, read from the assembly. LabkitError for a target that isn't AMD's."""
        return read_registers(self._amdgcn(), lds_bytes=self.triton.metadata.shared)

    @property
    def occupancy(self) -> int:
        """Waves a SIMD as LLVM prints it: limited by registers; LDS is not counted."""
        return read_occupancy(self._amdgcn())

    def listing(self) -> pd.DataFrame:
        """One row an instruction: see `labkit.compiler.listing.listing` for the columns."""
        return listing(self._amdgcn())

    def passes(self) -> list[Pass]:
        """Every compiler pass in order, with the IR before and after. Compiles once more; then cached."""
        return self._passes

    def layouts(self) -> dict[str, Blocked]:
        """The blocked layouts of the TTGIR by name, such as "#blocked"; other kinds are left out."""
        return parse_layouts(str(self.stages["ttgir"]))

    @cached_property
    def _passes(self) -> list[Pass]:
        from labkit.compiler.passes import trace_passes

        return trace_passes(self.triton)

    def _amdgcn(self) -> str:
        text = self.stages.get("amdgcn")
        if not isinstance(text, str):
            raise LabkitError(
                f"{self.name} was compiled for {self.target}, which has no AMD assembly. "
                'Compile it with target="gfx942" to read its listing and registers.'
            )
        return text

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {len(content):,}" for name, content in self.stages.items())
        note = f" {self.note}" if self.note else ""
        return f"<{self.name} for {self.target}, {self.num_warps} waves: {sizes} characters or bytes.{note}>"
