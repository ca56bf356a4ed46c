"""Planted errors in Triton kernels: each is found at its line, lane and address, its twin has no finding.

`first` is the element of `tensor` that the first faulty lane touches, counted from the tensor's own start.
"""

import inspect
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import triton

import labkit
from labkit.emulator.machine import numpy_only
from labkit.errors import MemoryFault
from tests.emulator import seeded_kernels as seeded

TRITON = tuple(int(part) for part in triton.__version__.split(".")[:2])
OUTSIDE, VIEW, MISALIGNED = "global access outside", "global access outside its view", "misaligned access"


@dataclass(frozen=True)
class Seed:
    """One kernel, how to launch it, and what must be found."""

    name: str
    grid: tuple
    arguments: Any  # function -> the kernel's arguments by name
    text: str  # of the line that has the fault
    tensor: str
    first: int
    workgroup: int
    wave: int
    lane: int | None
    kind: str = OUTSIDE
    block: int | None = 256
    size: int = 4  # bytes of what `first` counts

    @property
    def kernel(self):
        return getattr(seeded, f"seeded_{self.name}")

    def launch(self, bug):
        """Launch; returns the tensors and the findings."""
        arguments = self.arguments()
        options = {"BUG": bug} if self.block is None else {"BUG": bug, "BLOCK": self.block}
        try:
            self.kernel[self.grid](**arguments, **options)
        finally:
            found = labkit.last_launch().faults
        return arguments, found

    @property
    def line(self):
        lines, start = inspect.getsourcelines(self.kernel.fn)
        return start + next(k for k, line in enumerate(lines) if self.text in line)


def vector(n=1000, dtype=torch.float32):
    return {"x_ptr": torch.ones(n, dtype=dtype), "out_ptr": torch.zeros(n, dtype=dtype), "n": n}


def table(rows, columns, /, **more):
    x = torch.ones(rows, columns)
    return {"x_ptr": x, "out_ptr": torch.zeros(rows, columns), **more}


def strided():
    return table(4, 250, n_cols=250, stride=250)


def integers():
    return vector(dtype=torch.int32)


def tile(rows, columns):
    return table(rows, columns, rows=rows, columns=columns)


def product():
    a, b = torch.ones(16, 40), torch.ones(40, 16)
    return {"a_ptr": a, "b_ptr": b, "out_ptr": torch.zeros(16, 16), "K": 40}


def overflow():
    return {"x_ptr": torch.ones(1000), "out_ptr": torch.zeros(1), "a": 50_000, "b": 50_000, "scale": 10**7}


def scaled():
    return vector() | {"scale_ptr": torch.ones(1)}


def chosen():
    """x far from the small y, so that what lies past y is no part of x."""
    x, y = torch.ones(1 << 20), torch.ones(100)
    return {
        "x_ptr": x,
        "y_ptr": y,
        "which_ptr": torch.ones(1, dtype=torch.int32),
        "out_ptr": torch.zeros(200),
        "n": 200,
    }


def gathered():
    index = torch.arange(256)
    index[77] = 1 << 20
    return vector(256) | {"index_ptr": index}


def lengths():
    return {"lengths_ptr": torch.ones(5)[:4].clone(), "out_ptr": torch.zeros(4), "n": 4}


def halves():
    return {"x_ptr": torch.ones(256, dtype=torch.float16), "out_ptr": torch.zeros(256), "n": 256}


def histogram():
    x = torch.zeros(200, dtype=torch.int32)
    x[100] = 16
    return {"x_ptr": x, "out_ptr": torch.zeros(16, dtype=torch.int32), "n": 200, "bins": 16}


def locks():
    return {"locks_ptr": torch.zeros(4, dtype=torch.int32), "out_ptr": torch.zeros(4, dtype=torch.int32)}


def grouped():
    """The last 200 elements of large tensors: nothing else lies right behind them."""
    tensors = [torch.ones(1 << 16) for _ in range(3)]
    grouped.alive = tensors
    pointers = torch.tensor([x.data_ptr() + 4 * ((1 << 16) - 200) for x in tensors])
    return {"pointers_ptr": pointers, "out_ptr": torch.zeros(3, 256), "n": 200}


def view_within():
    return {"x_ptr": torch.ones(1000)[100:300], "out_ptr": torch.zeros(200), "n": 200}


def view_at_the_end():
    return {"x_ptr": torch.ones(300)[100:], "out_ptr": torch.zeros(200), "n": 200}


def out_is_a_view():
    return {"x_ptr": torch.ones(200), "out_ptr": torch.zeros(300)[50:250], "n": 200}


def counts():
    return {"x_ptr": torch.zeros(201, dtype=torch.int32), "n": 200}


# 1000 = 3 * 256 + 3 * 64 + 40: element 1000 belongs to workgroup 3, wave 3, lane 40. A tile of 16 x 16 puts
# four rows of it into each wave.
SEEDS = [
    Seed("mask_off_by_one", (4,), vector, "x = tl.load", "x_ptr", 1000, 3, 3, 40),
    Seed("mask_forgotten", (4,), vector, "tl.store", "out_ptr", 1000, 3, 3, 40),
    Seed("mask_before_shift", (4,), vector, "right = tl.load", "x_ptr", 1000, 3, 3, 39),
    Seed("left_neighbour", (4,), vector, "left = tl.load", "x_ptr", -1, 0, 0, 0),
    Seed("negative_in_64_bits", (4,), vector, "x = tl.load", "x_ptr", -1, 3, 3, 39),
    Seed("reversed", (4,), vector, "x = tl.load", "x_ptr", 1000, 0, 0, 0),
    Seed("wrong_stride", (4,), strided, "x = tl.load", "x_ptr", 1000, 3, 3, 40),
    Seed("next_row", (4,), lambda: table(4, 250, n_cols=250), "tl.store", "out_ptr", 1000, 3, 0, 0),
    Seed("shifted_twice", (4,), vector, "x = tl.load", "x_ptr", 1024, 2, 0, 0),
    Seed("tile_rows", (2,), lambda: tile(20, 10), "x = tl.load", "x_ptr", 200, 1, 1, 0, block=16),
    Seed("tile_columns", (1,), lambda: tile(5, 10), "tl.store", "out_ptr", 50, 0, 1, 10, block=16),
    Seed("masks_exchanged", (1,), lambda: tile(5, 12), "x = tl.load", "x_ptr", 60, 0, 1, 16, block=16),
    # Its store runs along columns: four of them in each wave, and column 6 is the first too far.
    Seed("transposed", (1,), lambda: tile(6, 10), "tl.store", "out_ptr", 60, 0, 1, 32, block=16),
    pytest.param(
        Seed("block_pointer", (4,), vector, "tl.load(block)", "x_ptr", 1000, 3, 3, 40),
        marks=pytest.mark.skipif(TRITON >= (3, 9), reason="this Triton has no block pointers"),
    ),
    Seed("one_turn_too_many", (1,), lambda: vector(1024), "total +=", "x_ptr", 1024, 0, 0, 0),
    Seed("inner_dimension", (1,), product, "b = tl.load", "b_ptr", 640, 0, 2, 0, block=16),
    # 2,500,000,000 - 2^32 = -1,794,967,296, and the division rounds to 0.
    Seed("index_overflow", (1,), overflow, "tl.load", "x_ptr", -179, 0, 0, None, block=None),
    Seed("wrong_argument", (4,), scaled, "tl.store", "scale_ptr", 1, 0, 0, 1),
    Seed("chosen_argument", (1,), chosen, "tl.load(source_ptr", "y_ptr", 100, 0, 1, 36),
    Seed("gather", (1,), gathered, "tl.load(x_ptr", "x_ptr", 1 << 20, 0, 1, 13),
    Seed("scalar_load", (4,), lengths, "tl.load", "lengths_ptr", 4, 3, 0, None, block=None),
    Seed("wider_type", (1,), halves, "x = tl.load(x_ptr.to", "x_ptr", 128, 0, 2, 0),
    Seed("histogram", (1,), histogram, "tl.atomic_add", "out_ptr", 16, 0, 1, 36),
    Seed("atomic_unmasked", (4,), integers, "tl.atomic_max", "out_ptr", 1000, 3, 3, 40),
    Seed("compare_and_swap", (4,), locks, "tl.atomic_cas", "locks_ptr", 4, 2, 0, 0, block=None),
    Seed("view", (1,), view_within, "x = tl.load", "x_ptr", 200, 0, 3, 8, VIEW),
    Seed("view", (1,), view_at_the_end, "x = tl.load", "x_ptr", 200, 0, 3, 8),
    # Within its storage, but a buffer instruction takes a negative offset for a huge one and stores nothing.
    Seed("store_before_view", (1,), out_is_a_view, "tl.store", "out_ptr", -2, 0, 0, 0),
    # Two bytes on: counted in halves.
    Seed("misaligned_atomic", (1,), counts, "tl.atomic_add", "x_ptr", 1, 0, 0, 0, MISALIGNED, size=2),
]  # fmt: skip


@pytest.fixture(params=["fast", "numpy"], autouse=True)
def path(request):
    """The compiled path, in which a wave runs as far as it gets, and NumPy's, in which all go together."""
    with numpy_only() if request.param == "numpy" else nullcontext():
        yield request.param


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"{seed.name}-{seed.arguments.__name__}")
def test_a_planted_error_is_found(seed):
    labkit.start("MI300X", faults="report", quiet=True)
    arguments, (finding,) = seed.launch(bug=True)
    assert (finding.kind, finding.source_line, finding.tensor) == (seed.kind, seed.line, seed.tensor)
    assert finding.source.startswith("seeded_kernels.py:")
    assert finding.address == arguments[seed.tensor].data_ptr() + seed.size * seed.first
    assert (finding.workgroup, finding.wave, finding.lane) == ((seed.workgroup, 0, 0), seed.wave, seed.lane)
    assert finding.soft == (seed.kind == VIEW)
    labkit.start("MI300X", faults="raise", quiet=True)
    if finding.soft:
        seed.launch(bug=True)
    else:
        with pytest.raises(MemoryFault, match=f"{finding.source}: .*`{seed.tensor}`"):
            seed.launch(bug=True)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"{seed.name}-{seed.arguments.__name__}")
def test_without_the_error_there_is_no_finding(seed):
    labkit.start("MI300X", faults="report", quiet=True)
    assert seed.launch(bug=False)[1] == []


def test_a_pointer_that_leads_into_another_argument_names_both():
    labkit.start("MI300X", faults="report", quiet=True)
    arguments = gathered()
    x, out = arguments["x_ptr"], arguments["out_ptr"]
    arguments["index_ptr"][77] = (out.data_ptr() - x.data_ptr()) // 4 + 5
    seeded.seeded_gather[(1,)](**arguments, BUG=True, BLOCK=256)
    (finding,) = labkit.last_launch().faults
    assert (finding.kind, finding.tensor, finding.lane) == (OUTSIDE, "x_ptr", 13)
    assert finding.address == out.data_ptr() + 20
    assert "in the memory of `out_ptr`" in finding.message and "`x_ptr`" in finding.message
    assert out[77] == 0  # nothing was read there


def test_views_of_one_storage_may_reach_each_other():
    labkit.start("MI300X", faults="raise", quiet=True)
    both = torch.arange(400.0)
    seeded.seeded_view[(1,)](both[:200], both[200:], 200, BUG=True, BLOCK=256)
    (finding,) = labkit.last_launch().faults
    assert finding.soft and "only a hint" in finding.message and "`x_ptr`" in finding.message
    assert "<p>Hint: " in labkit.last_launch()._repr_html_()
    assert torch.equal(both[200:], torch.arange(200.0))


@pytest.mark.parametrize("pointer", ["in memory", "as a number"])
def test_a_pointer_past_the_end_of_a_tensor_that_is_no_argument(pointer):
    labkit.start("MI300X", faults="report", quiet=True)
    if pointer == "in memory":
        arguments, options = grouped(), {"BUG": True, "BLOCK": 256}
        seeded.seeded_grouped[(3,)](**arguments, **options)
        end, lines = grouped.alive[0].data_ptr() + 4 * (1 << 16), seeded.seeded_grouped
    else:
        x = torch.ones(1 << 16)
        address = x.data_ptr() + 4 * ((1 << 16) - 200)
        seeded.seeded_number_as_pointer[(1,)](address, torch.zeros(256), 200, BUG=True, BLOCK=256)
        end, lines = x.data_ptr() + 4 * (1 << 16), seeded.seeded_number_as_pointer
    (finding,) = labkit.last_launch().faults
    assert (finding.kind, finding.workgroup, finding.wave, finding.lane) == (OUTSIDE, (0, 0, 0), 3, 8)
    assert finding.address == end and finding.source_line == line_of(lines, "x = tl.load")


def line_of(kernel, text):
    lines, start = inspect.getsourcelines(kernel.fn)
    return start + next(k for k, line in enumerate(lines) if text in line)


@pytest.mark.parametrize("kernel", [seeded.seeded_grouped, seeded.seeded_number_as_pointer])
def test_pointers_from_elsewhere_within_their_tensors(kernel):
    labkit.start("MI300X", faults="report", quiet=True)
    if kernel is seeded.seeded_grouped:
        kernel[(3,)](**grouped(), BUG=False, BLOCK=256)
    else:
        x, out = torch.rand(200), torch.zeros(256)
        kernel[(1,)](x.data_ptr(), out, 200, BUG=False, BLOCK=256)
        assert torch.equal(out[:200], x)
    assert labkit.last_launch().faults == []


def test_a_scalar_load_from_a_pointer_that_is_not_aligned():
    """Bytes 0, 1, 2, ... as numbers of four bytes each, from byte 1 on: element 3 begins at byte 13."""
    labkit.start("MI300X", faults="report", quiet=True)
    memory = np.arange(64, dtype=np.uint8)
    memory = memory if memory.ctypes.data % 4 == 0 else pytest.fail("NumPy aligns its arrays")
    x = torch.frombuffer(memory, dtype=torch.int32, offset=1, count=8)
    out = torch.zeros(1, dtype=torch.int32)
    seeded.seeded_misaligned_scalar[(1,)](x, out)
    (finding,) = labkit.last_launch().faults
    assert (finding.kind, finding.tensor, finding.lane) == (MISALIGNED, "x_ptr", None)
    assert finding.address == memory.ctypes.data + 13
    assert finding.source_line == line_of(seeded.seeded_misaligned_scalar, "tl.load")
    assert int(out[0]) == int.from_bytes(bytes([12, 13, 14, 15]), "little")  # the two low bits don't count
    seeded.seeded_misaligned_scalar[(1,)](torch.arange(8, dtype=torch.int32), out)
    assert labkit.last_launch().faults == [] and int(out[0]) == 3


def test_vector_loads_and_stores_need_no_alignment():
    labkit.start("MI300X", faults="report", quiet=True)
    source, target = np.arange(1025, dtype=np.uint8), np.zeros(1025, np.uint8)
    x = torch.frombuffer(source, dtype=torch.int32, offset=1, count=256)
    out = torch.frombuffer(target, dtype=torch.int32, offset=1, count=256)
    seeded.seeded_view[(1,)](x, out, 256, BUG=False, BLOCK=256)
    assert labkit.last_launch().faults == [] and target[1:].tolist() == source[1:].tolist()
