"""The one place where the compiler room touches Triton's private names (3.6 to 3.9).

A Triton release that renames one of them breaks this file and no other. Triton loads on first use.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labkit.errors import EnvironmentProblem, LabkitError, LaunchError

# Target name -> the three fields of Triton's GPUTarget: back end, architecture, lanes in a wave.
TARGETS = {
    "gfx90a": ("hip", "gfx90a", 64),
    "gfx942": ("hip", "gfx942", 64),
    "gfx950": ("hip", "gfx950", 64),
    "gfx1100": ("hip", "gfx1100", 32),
    "sm_90": ("cuda", 90, 32),
}

# What the system says of a folder that can't be written, is full, or is no folder at all.
_UNWRITABLE = frozenset(
    getattr(errno, name) for name in ("EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "ENOTDIR", "EEXIST")
)


def gpu_target(name: str) -> Any:
    """Triton's GPUTarget for a name such as "gfx942"; raises LabkitError for a name not in TARGETS."""
    if name not in TARGETS:
        raise LabkitError(f"labkit compiles for {', '.join(TARGETS)}, not for {name!r}. Pass one as target=.")
    from triton.backends.compiler import GPUTarget

    return GPUTarget(*TARGETS[name])


def target_name(target: Any) -> str:
    """The name of a GPUTarget: "gfx942", or "sm_90" for CUDA's 90."""
    return f"sm_{target.arch}" if target.backend == "cuda" else str(target.arch)


def compile_for(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any], target: Any) -> tuple[Any, str]:
    """Compile as a launch with these arguments would on `target`: (CompiledKernel, note for the reader).

    The note says which configuration of an autotuned kernel was taken; else it is empty. Compile errors
    pass through as Triton raised them.
    """
    # As labkit.start() does: Triton 3.9 warns where this is unset, and 3.10 has another default.
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    function, kwargs, note = _unwrap(kernel, args, kwargs)
    with active_driver(_TargetDriver(target)), cache_errors():
        # warmup is run() without the launch, so specialization cannot differ from a launch's.
        return function.warmup(*args, grid=(1,), **kwargs), note


def compile_again(compiled_kernel: Any) -> Any:
    """Compile a CompiledKernel's own source once more, with the same target and options."""
    import triton

    target = compiled_kernel.metadata.target
    # Metadata holds the options beside other things, and went through JSON, which has no tuples.
    options = {name: _tuples(value) for name, value in compiled_kernel.metadata._asdict().items()}
    # The cache may be of another environment, gone since: what is left out, the backend finds in its own.
    libraries = dict(options.get("extern_libs") or ())
    options["extern_libs"] = {name: path for name, path in libraries.items() if Path(path).exists()}
    with active_driver(_TargetDriver(target)):
        return triton.compile(compiled_kernel.src, target=target, options=options)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


@contextmanager
def cache_errors() -> Iterator[None]:
    """Turn a cache folder that can't be written into an EnvironmentProblem that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        raise EnvironmentProblem(
            f"Triton can't write its cache ({error.strerror}: {error.filename}). "
            "Set TRITON_CACHE_DIR to a folder that you can write to, with space left, and start again."
        ) from error


def _unwrap(kernel: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any], str]:
    """The JITFunction under @triton.autotune and @triton.heuristics, with their values in kwargs."""
    from triton.runtime.autotuner import Autotuner, Heuristics
    from triton.runtime.jit import JITFunction

    notes = []
    kwargs = dict(kwargs)
    while not isinstance(kernel, JITFunction):
        if isinstance(kernel, Autotuner):
            chosen, note = _first_config(kernel, args, kwargs)
            kwargs.update(chosen)
            notes.append(note)
        elif isinstance(kernel, Heuristics):
            for name, rule in kernel.values.items():
                kwargs[name] = rule({**dict(zip(kernel.arg_names, args, strict=False)), **kwargs})
        else:
            raise LaunchError(_not_a_kernel(kernel))
        kernel = kernel.fn
    return kernel, kwargs, " ".join(notes)


def _first_config(tuner: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[dict[str, Any], str]:
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))  # where pruning functions look for them
    try:
        config = tuner.prune_configs(kwargs)[0]
    finally:
        tuner.nargs = None
    chosen = config.all_kwargs()
    if both := sorted(chosen.keys() & kwargs.keys()):
        raise LaunchError(f"{', '.join(both)}: set by the autotuner's configurations, so don't pass it, too.")
    return chosen, f"Autotuned: took the first of {len(tuner.configs)} configurations ({config})."


def _not_a_kernel(kernel: Any) -> str:
    if type(kernel).__name__ == "InterpretedFunction":
        return (
            "This kernel was decorated while TRITON_INTERPRET=1 was set, so there is nothing to compile. "
            "Unset it, restart, and define the kernel again."
        )
    return f"Expected a function decorated with @triton.jit, got {type(kernel).__name__}."


class _TargetDriver:
    """What Triton asks a driver for while it compiles: the target, and nothing of a device."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> str:
        # JITFunction keys its cache by device: a name of our own keeps apart what a real device compiled.
        return f"labkit {target_name(self._target)}"

    def get_current_stream(self, device: Any) -> int:
        return 0


@contextmanager
def active_driver(driver: Any) -> Iterator[None]:
    """Make `driver` Triton's active one for a while, and put back what was there, even if nothing was."""
    from triton.runtime.driver import driver as config

    before = config._active
    config.set_active(driver)
    try:
        yield
    finally:
        config._active = before


def watch_stages(target: Any, on_stage: Callable[[str], None]) -> None:
    """Call on_stage(name) before each stage of every later compile in this process. Not undone.

    For a child process that traces one compile.
    """
    from triton.compiler.compiler import make_backend

    backend_class = type(make_backend(target))
    add_stages = backend_class.add_stages

    def add_watched(self: Any, stages: dict[str, Callable], *args: Any) -> None:
        add_stages(self, stages, *args)
        for name, stage in list(stages.items()):
            stages[name] = _announced(name, stage, on_stage)

    backend_class.add_stages = add_watched


def _announced(name: str, stage: Callable, on_stage: Callable[[str], None]) -> Callable:
    def run(source: Any, metadata: dict) -> Any:
        on_stage(name)
        return stage(source, metadata)

    return run


def watch_llvm(on_text: Callable[[str, str], None]) -> None:
    """Report the texts that no IR dump shows, in every later compile in this process. Not undone.

    on_text("mlir", text) is the LLVM dialect after the last MLIR pass; on_text("llvm", text) is the
    LLVM IR that goes into O3. Where this Triton has other names for the two steps, nothing is reported.
    """
    from triton._C.libtriton import llvm

    for name, label in (("to_module", "mlir"), ("optimize_module", "llvm")):
        if hasattr(llvm, name):
            setattr(llvm, name, _reported(getattr(llvm, name), label, on_text))


def _reported(function: Callable, label: str, on_text: Callable[[str, str], None]) -> Callable:
    def run(module: Any, *args: Any, **kwargs: Any) -> Any:
        on_text(label, str(module))
        return function(module, *args, **kwargs)

    return run


def dump_every_pass(cache_folder: str) -> None:
    """Make this process compile from scratch into `cache_folder`, and print the IR before every MLIR pass.

    The dump goes to file descriptor 2. Not undone: for a child process.
    """
    os.environ["MLIR_ENABLE_DUMP"] = "1"
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    os.environ["TRITON_CACHE_DIR"] = cache_folder
