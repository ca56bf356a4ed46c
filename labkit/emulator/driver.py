"""The Triton driver of the emulated chip: the one module here that knows Triton's driver protocol.

Triton asks the active driver for a target, compiles for it, loads the binary and calls the launcher. Ours
answers gfx942 (or gfx950), and its launcher executes the assembly text instead of the binary.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.compiler import CompiledKernel
from triton.runtime import driver as triton_driver
from triton.runtime.cache import get_cache_manager

from labkit.compiler import Compiled
from labkit.emulator.arguments import flatten, pack, tensors
from labkit.emulator.counters import Counters
from labkit.emulator.faults import Faults, check_mode
from labkit.emulator.launch import Call, Launch, check_grid, execute, interceptor, remember
from labkit.emulator.native.interpreter import prepare
from labkit.emulator.program import Program, parse_program
from labkit.errors import LabkitError
from labkit.hardware import chip

MAX_WORKGROUP = 1024  # work-items of a workgroup (rocminfo on the chip)
# LDS of a workgroup at most (LLVM AMDGPU: FeatureAddressableLocalMemorySize of each target).
_LDS_BYTES = {"gfx942": 65536, "gfx950": 163840}


class EmulatorDriver(DriverBase):
    """Makes `kernel[grid](*cpu_tensors)` run on an emulated `chip_name` ("MI300X", "MI355X")."""

    def __init__(self, chip_name: str, faults: str, counters: bool = True) -> None:
        super().__init__()
        self.chip_name, self.faults, self.counters = chip_name, faults, counters
        self.arch = chip(chip_name).architecture
        self.utils = _Utilities(chip_name)
        self.launcher_cls = functools.partial(_Launcher, chip_name)

    @classmethod
    def is_active(cls) -> bool:
        """Never chosen by itself: labkit.start() makes it current."""
        return False

    def get_current_target(self) -> GPUTarget:
        """What Triton compiles for: waves have 64 lanes."""
        return GPUTarget("hip", self.arch, 64)

    def get_active_torch_device(self) -> torch.device:
        """Where the tensors of a launch live."""
        return torch.device("cpu")

    def get_current_device(self) -> str:
        """Triton keys its compiled kernels by this, so it differs from a real GPU's number."""
        return f"emulated {self.arch}"

    def set_current_device(self, device: str) -> None:
        """There is one emulated chip at a time."""

    def get_current_stream(self, device: Any = None) -> int:
        """Launches run at once, one after the other."""
        return 0

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Only a launcher compiled from C needs this."""
        raise LabkitError(f"the emulated chip has no C launcher (asked for type {ty})")

    def get_benchmarker(self) -> Any:
        """For autotuned kernels: see _FirstValid."""
        return _FirstValid()

    def get_device_interface(self) -> Any:
        """Triton's timing helpers ask for this; time is not emulated."""
        raise LabkitError(
            "the emulated chip has no clock, so nothing can be timed on it: read "
            "labkit.last_launch().counters instead, or time on a real GPU"
        )

    def get_empty_cache_for_benchmark(self) -> Any:
        """As get_device_interface."""
        return self.get_device_interface()


class _Utilities:
    """What Triton calls `driver.utils`: device properties and loading."""

    def __init__(self, chip_name: str) -> None:
        figures = chip(chip_name)
        self._properties = {
            "max_shared_mem": int(figures["lds_capacity"] * 1024),
            "multiprocessor_count": int(figures["compute_units"]),
            "warpSize": 64,
            "arch": chip(chip_name).architecture,
        }

    def get_device_properties(self, device: Any) -> dict[str, Any]:
        """Properties that Triton and kernels' launch code read."""
        return self._properties

    def load_binary(self, name: str, kernel: bytes, shared: int, device: Any) -> tuple:
        """(module, function, registers, spills, most work-items): the launcher needs only the last.

        Triton loads again at every launch where the module is None.
        """
        return name, name, 0, 0, MAX_WORKGROUP

    def unload_module(self, module: Any) -> None:
        """Triton 3.9 calls this when a kernel goes; there is nothing to unload."""


class _Launcher:
    """Runs one compiled kernel. Triton makes one for each and calls it at every launch."""

    def __init__(self, chip_name: str, src: Any, metadata: Any) -> None:
        self.chip_name = chip_name
        self.signature = src.signature
        # A kernel compiled from edited IR has no Python function, so its arguments are numbered.
        self.names = list(src.fn.arg_names) if hasattr(src, "fn") else [str(key) for key in src.signature]
        self.kernel = _compiled_kernel(src, metadata)
        self.compiled = Compiled.from_triton(self.kernel)
        self.num_warps, self.lds_bytes = metadata.num_warps, metadata.shared

    @functools.cached_property
    def program(self) -> Program:
        """The parsed machine code; parsed at the first launch."""
        return parse_program(self.kernel.asm["amdgcn"])

    def __call__(self, *args: Any) -> None:
        grid_x, grid_y, grid_z, _stream, _function, _packed, launch_metadata, enter, leave, *values = args
        grid = check_grid((grid_x, grid_y, grid_z))
        arguments = flatten(self.names, list(self.signature.values()), values)
        kernarg = pack(arguments, self.program.metadata, grid, self.num_warps * 64)
        types = {name: kind for name, kind, _ in arguments}
        memory = tensors(arguments)
        call = Call(self.program, grid, kernarg, memory, self.num_warps, self.lds_bytes, types)
        if enter is not None:
            enter(launch_metadata)
        # Triton keeps this launcher when start() is called again, so the mode is the driver's of now.
        faults = Faults(getattr(triton_driver.active, "faults", "raise"))
        watch = interceptor.get()
        if watch is not None:
            watch(call, faults)
        else:
            self._execute(call, arguments, faults)
        if leave is not None:
            leave(launch_metadata)

    def _execute(self, call: Call, arguments: list[tuple[str, str, Any]], faults: Faults) -> None:
        """Run the launch and remember it, also where a fault ends it."""
        counters = Counters.of(self.program, getattr(triton_driver.active, "counters", True))
        described = {name: _describe(value) for name, _, value in arguments}
        try:
            execute(call, counters, faults)
        finally:
            remember(
                Launch(
                    self.program.name,
                    call.grid,
                    self.compiled,
                    counters,
                    self.chip_name,
                    described,
                    faults.findings,
                )
            )


def _describe(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    return repr(value)


def _compiled_kernel(src: Any, metadata: Any) -> CompiledKernel:
    """The kernel with the text of its stages, from Triton's cache.

    The launcher protocol passes the binary only; the metadata's hash leads to the rest.
    """
    group = get_cache_manager(metadata.hash).get_group(f"{src.name[:150]}.json")
    if group is None:
        raise LabkitError(
            f"Triton's cache has lost kernel `{src.name}`: run the cell again, and set TRITON_CACHE_DIR "
            "to a folder that nothing else cleans"
        )
    return CompiledKernel(src, group, metadata.hash)


class _FirstValid:
    """Stands in for a benchmark: the first configuration that launches wins, and the rest are not tried.

    An autotuner gives each configuration to do_bench as a closure; a time of 0 for the first that runs and
    infinity for the others makes it choose the same one everywhere, always.
    """

    def __init__(self) -> None:
        self._settled_at: int | None = None

    def __call__(self, kernel_call: Any, quantiles: Any = None, **_: Any) -> list[float]:
        tuner, config = (inspect.getclosurevars(kernel_call).nonlocals.get(key) for key in ("self", "config"))
        finished = len(getattr(tuner, "cache", ()))  # one more entry after each tuning
        count = len(quantiles) if quantiles else 1
        if self._settled_at == finished:
            return [float("inf")] * count
        kernel_call()
        self._settled_at = finished
        print(f"labkit: no clock on the emulated chip, so autotuning takes the first valid config: {config}")
        return [0.0] * count


def activate(chip_name: str, faults: str, counters: bool = True) -> EmulatorDriver:
    """Make an emulated chip Triton's current device, ready to run.

    faults: one of labkit.emulator.faults.MODES; counters: whether memory accesses are counted.
    """
    current = EmulatorDriver(chip_name, check_mode(faults), counters)
    prepare()
    triton_driver.set_active(current)
    return current
