"""The lane that stores an element in the executed machine code is the one that the layout names."""

import re

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

import labkit

WIDTHS = {"dword": 1, "dwordx2": 2, "dwordx4": 4}


@triton.jit
def tile_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STRIDE: tl.constexpr):
    rows = tl.arange(0, ROWS)[:, None]
    columns = tl.arange(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + rows * STRIDE + columns)
    tl.store(out_ptr + rows * STRIDE + columns, x + 1.0)


def stores(executed):
    """(element number, lane) of every element that a traced wave stored, in the order of its registers."""
    registers = {}
    for step in executed:
        instruction = step.instruction.line.text
        if "_store_" in instruction:
            found = re.match(
                r"buffer_store_(\w+) \S+ (v\d+), s\[.*?\], 0 offen(?: offset:(\d+))?$", instruction
            )
            offsets = registers[found[2]].astype(np.int64) + int(found[3] or 0)
            for lane in np.flatnonzero(offsets < 2**31):
                if step.exec_mask >> int(lane) & 1:
                    first = int(offsets[lane]) // 4
                    yield from ((first + i, int(lane)) for i in range(WIDTHS[found[1]]))
        registers.update(step.written)


@pytest.mark.parametrize(
    "rows, columns, num_warps", [(16, 64, 4), (32, 32, 4), (8, 256, 8), (1, 1024, 4), (2, 16, 2)]
)
def test_who_stores(rows, columns, num_warps):
    labkit.start("MI300X")
    x, out = torch.zeros(rows * columns), torch.zeros(rows * columns)
    sizes = {"ROWS": rows, "COLUMNS": columns, "STRIDE": columns, "num_warps": num_warps}
    compiled = labkit.compile(tile_kernel, x, out, **sizes)
    name = re.search(r"buffer_store .*tensor<\d+x\d+xf32, (#\w+)>", compiled.stages["ttgir"])[1]
    owners = compiled.layouts()[name].owners((rows, columns))
    found = []
    for wave in range(num_warps):
        trace = labkit.trace(tile_kernel, (1,), args=(x, out), kwargs=sizes, wave=wave)
        found += [(element, wave, lane) for element, lane in stores(trace.executed)]
    named = zip(range(rows * columns), owners.wave.flat, owners.lane.flat, strict=True)
    assert sorted(found) == [(element, int(wave), int(lane)) for element, wave, lane in named]
    assert torch.equal(out, torch.ones(rows * columns))


def test_a_launch_and_compile_make_the_same_code():
    labkit.start("MI300X")
    x = torch.zeros(1024)
    with labkit.record() as launches:
        tile_kernel[(1,)](x, x, ROWS=16, COLUMNS=64, STRIDE=64)
    compiled = labkit.compile(tile_kernel, x, x, ROWS=16, COLUMNS=64, STRIDE=64)
    assert launches[0].compiled.stages == compiled.stages
