"""The other side: the same launches by Triton's interpreter, in a process of its own.

Run as `python -m labkit.bench.interpreter`, it prints a JSON list of seconds, one for each of
launches.COMPARED. TRITON_INTERPRET must be set before Triton is imported, hence the process.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

FP8 = "float8_e4m3fn"  # Triton 3.7.1's interpreter refuses MI300X's e4m3fnuz


def interpreter_seconds() -> list[float]:
    """Median seconds of each of launches.COMPARED in Triton's interpreter."""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-m", "labkit.bench.interpreter"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"Triton's interpreter failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def median_seconds(function: Callable[[], object], at_most: float = 5.0, least: int = 3) -> float:
    """The median of several runs after a first one: at least `least`, more while `at_most` seconds last."""
    function()
    seconds: list[float] = []
    while len(seconds) < least or (sum(seconds) < at_most and len(seconds) < 30):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def _main() -> None:
    import torch
    from triton.backends.compiler import GPUTarget

    from labkit.bench.launches import COMPARED
    from labkit.kernels import fp8, residual_rms_norm, swiglu

    # The interpreter has no chip whose FP8 format the kernels could ask for; MI355X's is the one it takes.
    for module in (fp8, residual_rms_norm, swiglu):
        module.current_target = lambda: GPUTarget("hip", "gfx950", 64)
    seconds = [
        median_seconds(timed.make(getattr(torch, FP8)), at_most=3.0, least=1 if "GEMM" in timed.name else 3)
        for timed in COMPARED
    ]
    print(json.dumps(seconds))


if __name__ == "__main__":
    _main()
