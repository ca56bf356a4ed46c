"""labkit bench emulator: how fast this machine emulates, beside Triton's interpreter on the same launches.

These are times of this CPU at emulating. They say nothing about the chip.
"""

from __future__ import annotations

import platform
import resource
import time
from dataclasses import dataclass

import torch
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import labkit
from labkit.bench.interpreter import interpreter_seconds, median_seconds
from labkit.bench.launches import COMPARED, EVERY, RMS, Timed

_HEADINGS = ("wave instr.", "on, ms", "off, ms", "on/off", "us", "interp., ms", "interp./on")
FP8 = torch.float8_e4m3fnuz


@dataclass(frozen=True, slots=True)
class Measured:
    """Median seconds of one launch with counters and faults on, and off; what it executed."""

    timed: Timed
    on: float
    off: float
    wave_instructions: int


def measure(timed: Timed) -> Measured:
    """Time a launch with counters and faults on and off, turn about."""
    run = timed.make(FP8)
    on, off = [], []
    for _ in range(3):
        for seconds, settings in ((on, {}), (off, {"faults": "off", "counters": False})):
            labkit.start("MI300X", quiet=True, **settings)
            seconds.append(median_seconds(run, at_most=1.0, least=1))
    count = labkit.last_launch().counters.wave_instructions
    return Measured(timed, sorted(on)[1], sorted(off)[1], count)


def first_and_second() -> tuple[float, float]:
    """Seconds of a launch that must still parse and bind, and of the same launch again."""
    labkit.start("MI300X", quiet=True)
    run = RMS.make(FP8)
    times = []
    for _ in range(2):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times[0], times[1]


def bench_emulator() -> None:
    """Measure and print. Takes about two minutes, most of them in Triton's interpreter."""
    # One thread each: PyTorch's would wait for a core that the other side uses.
    torch.set_num_threads(1)
    console = Console(width=110)
    first, second = first_and_second()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    results = [measure(timed) for timed in EVERY]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    interpreter = dict(zip([timed.name for timed in COMPARED], interpreter_seconds(), strict=True))
    console.print(_table(results, interpreter))
    console.print(
        f"The same launch twice: {first * 1e3:.0f} ms with Triton's compiling, parsing and binding, then "
        f"{second * 1e3:.0f} ms.\n"
        f"Peak memory above what was there before: {peak / 1024:.0f} MiB, tensors included; the largest "
        f"weight has 208 MiB, and is made from one of 832 MiB.\n"
        f"Medians of this run on {platform.machine()}, torch {torch.__version__}. Times of this CPU at "
        "emulating, not of a GPU."
    )


def _table(results: list[Measured], interpreter: dict[str, float]) -> Table:
    table = Table(title="Emulated MI300X on this machine", box=SIMPLE_HEAD)
    table.add_column("launch", no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        other = interpreter.get(result.timed.name)
        table.add_row(
            result.timed.name,
            f"{result.wave_instructions:,}",
            f"{result.on * 1e3:.1f}",
            f"{result.off * 1e3:.1f}",
            f"{result.on / result.off:.2f}",
            f"{result.off / result.wave_instructions * 1e6:.3f}",
            "" if other is None else f"{other * 1e3:.0f}",
            "" if other is None else f"{other / result.on:.0f}x",
        )
    table.caption = (
        "on, off: counters and faults. us: a wave instruction when off. interp.: Triton's interpreter, "
        "same launch."
    )
    return table
