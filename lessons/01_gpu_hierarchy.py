# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From one thread to 304 compute units
#
# A GPU is a machine of machines. This notebook starts with the smallest one, a thread that adds two numbers,
# and climbs from there.
#
# - **0. Where am I?** The chip, and what kinds of number you will meet.
# - **1. Thread**: four instructions, and the registers that they fill.
# - **2. Wave of 64**: lockstep, lanes that talk, and what a load costs.
#
# You need no GPU. Without one, an emulated MI300X executes the machine code on this CPU.
#
# **If labkit isn't installed**, as on a cloud that fetched this one file: clone the repository, run `pip
# install -e .` in it, and leave a torch or triton that is there as it is.

# %%
try:
    import labkit
except ModuleNotFoundError:
    raise RuntimeError(
        "labkit is not installed: clone the repository, then run `pip install -e .` in it"
    ) from None

import numpy as np
import pandas as pd
import torch
import triton
import triton.language as tl
from triton import knobs

from labkit import checks
from labkit.figures.control import with_slider
from labkit.figures.hierarchy import (
    exec_over_time,
    lines_against_stride,
    nested_gpu,
    reduction_tree,
    registers_over_time,
)
from labkit.hardware import chip

device = labkit.start()
pd.set_option("display.max_colwidth", None)  # tables show their whole text

# %% tags=["parameters"]
lane: int = 5  # the lane whose registers you watch, 0 to 63
largest_stride: int = 32  # widest gap between neighbouring lanes, in elements; a power of two

# %%
if not 0 <= lane < 64:
    raise ValueError(f"lane is {lane}; a wave has lanes 0 to 63")
if largest_stride < 1 or largest_stride & (largest_stride - 1):
    raise ValueError(f"largest_stride is {largest_stride}; take a power of two, such as 32")

# %% [markdown]
# ## 0. Where am I?
#
# The line above says which chip runs your kernels: a real one, or an emulated MI300X. The emulated chip
# executes the very machine code that Triton compiled for it, one instruction after the other. It can't tell
# you how long anything takes. It can tell you everything that happened.
#
# So four kinds of number appear in this course, and each table and axis says which it shows:
#
# | kind | where it comes from |
# |---|---|
# | **counted** | the emulator, while it executes your kernel |
# | **datasheet** | AMD's documents, with the source |
# | **modelled** | worked out from counts and the datasheet |
# | **measured** | a clock on a real GPU |
#
# **Predict:** an MI300X runs how many threads at once: about as many as a town, a city or a country has
# people?

# %%
mi300x = chip("MI300X")
xcds, cus = int(mi300x["xcds"]), int(mi300x["compute_units_per_xcd"])
simds, waves = int(mi300x["simds_per_compute_unit"]), int(mi300x["waves_per_simd"])
lanes, registers = int(mi300x["wave_lanes"]), int(mi300x["vgprs_per_lane_slot"])
nested_gpu(
    [
        ("GPU", xcds, 4, "XCDs"),
        ("XCD", cus, 6, "compute units"),
        ("Compute unit", simds * waves, simds, "waves, 8 on each SIMD"),
        ("Wave", lanes, 8, "lanes"),
        ("Lane", registers, 16, "vector registers"),
    ],
    title="MI300X, from the whole chip to one lane (datasheet)",
)

# %% [markdown]
# Read it from left to right. Each panel is a zoom into the orange cell of the one before.
#
# - A **lane** is what others call a thread: it runs your program on its own element.
# - A **wave** is 64 lanes that execute the same instruction together. NVIDIA calls it a warp.
# - A **compute unit** (CU) has four **SIMDs**, which issue instructions, and keeps up to 32 waves at hand.
# - An **XCD** is one die with 38 compute units and an L2 cache of its own. The GPU has 8 of them.

# %%
pd.DataFrame(
    [
        ("compute units", f"{xcds} x {cus}", xcds * cus),
        ("waves that can be resident", f"{xcds * cus} x {simds} x {waves}", xcds * cus * simds * waves),
        ("lanes that can be resident", f"... x {lanes}", xcds * cus * simds * waves * lanes),
        ("waves that can issue in one clock", f"{xcds * cus} x {simds}", xcds * cus * simds),
    ],
    columns=["what", "how", "number (from the datasheet)"],
)

# %% [markdown]
# A city: 622,592 lanes. You may read elsewhere that a compute unit holds 16 waves. That is one full
# **workgroup** (the lanes of one Triton program, at most 1024); the compute unit holds 32 waves. And
# resident is not running: a wave waits most of its life, for memory. The last row is what can start an
# instruction in the same clock.
#
# ## 1. Thread
#
# Here is the smallest useful kernel. Each lane adds one pair of numbers.
#
# **Predict:** how many machine instructions does one lane need for `x + y`?


# %%
@triton.jit
def add(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets)
    tl.store(out_ptr + offsets, x + y)


# AMD's machine code is what this section is about, so it runs on the emulated chip wherever you are.
emulated = labkit.start("MI300X", quiet=True)
x, y = torch.arange(64.0), 100 * torch.arange(64.0)
out = torch.empty(64)
add[(1,)](x, y, out, BLOCK=64, num_warps=1)

launch = labkit.last_launch()
listing = launch.compiled.listing()
work = listing[listing["class"].isin(["VMEM load", "VALU", "VMEM store"])]
work[["source_line", "instruction", "class"]]

# %% [markdown]
# Find the four that matter: `buffer_load_dword` twice, `v_add_f32`, `buffer_store_dword`. A **dword** is 32
# bits. Names that begin with `v_` act on vector registers, one value a lane. The first line or two work out
# the address: the lane's number times 4 bytes.
#
# Everything else in the listing is scalar: it happens once for the whole wave.

# %%
counted = launch.counters.instructions.groupby("class")["executions"].sum()
pd.DataFrame({"class": counted.index, "wave instructions (counted)": counted.to_numpy()})

# %% [markdown]
# Now watch one lane. `labkit.trace` runs one workgroup and writes down every register that an instruction
# changes.

# %%
trace = labkit.trace(add, (1,), (x, y, out), {"BLOCK": 64, "num_warps": 1})


def vector_registers(trace, lane):
    """After each step that touches a vector register: what the lane's registers hold."""
    held, rows, labels = {}, [], []
    for step in trace.executed:
        loaded = any(word in step.instruction.mnemonic for word in ("load", "f32"))
        for name, bits in step.written.items():
            if name.startswith("v") and bits.size == lanes:
                value = bits[lane : lane + 1]
                held[name] = f"{value.view('f4')[0]:g}" if loaded else f"{value[0]} (integer)"
        if step.instruction.kind in ("VALU", "VMEM load", "VMEM store"):
            rows.append(dict(held))
            labels.append(step.instruction.line.text)
    names = sorted(held)
    return [[row.get(name, "") for name in names] for row in rows], labels, names


def draw_registers(lane):
    cells, labels, names = vector_registers(trace, lane)
    title = f"The vector registers of lane {lane}, step by step"
    return registers_over_time(cells, labels, names, title=title)


with_slider(draw_registers, "lane", range(lanes), lane)

# %% [markdown]
# Read it downwards. Lane 5 computes the byte offset 20, loads 5 and 500, adds them, and stores 505. All 64
# lanes did the same in the same steps, each with its own values. Move the slider above the picture to watch
# another one: which numbers change, and which stay? (Where you see no slider, change `lane` at the top.)
#
# A lane can have 512 such registers, 32 bits each: 256 architectural ones (`v0`...) and 256 accumulation
# registers (`a0`...), which matrix instructions like to use. "At most 256", which you may read, counts only
# the first half. This kernel needs very few:

# %%
used = launch.compiled.registers
pd.DataFrame(
    [
        ("vector registers", used.vgprs, int(mi300x["architectural_vgprs"])),
        ("accumulation registers", used.agprs, int(mi300x["accumulation_vgprs"])),
        ("scalar registers, one set a wave", used.sgprs, int(mi300x["sgprs_per_wave"])),
    ],
    columns=["kind", "used by this kernel (from the compiler)", "most a wave can have (datasheet)"],
)

# %% [markdown]
# ## 2. Wave of 64
#
# ### Lockstep
# The 64 lanes of a wave share one program counter. They can't go different ways. So what happens where your
# code treats lanes differently?
#
# The wave keeps a register named **EXEC**: 64 bits, one for each lane. An instruction acts only on the lanes
# whose bit is 1. The kernel below loads from `x` in the first 24 lanes and from `y` in the others.
#
# **Predict:** does the wave skip the second load in lanes that took the first? How many load instructions
# does the wave execute?


# %%
@triton.jit
def two_sides(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    a = tl.load(x_ptr + lane, mask=lane < 24, other=0.0)
    b = tl.load(y_ptr + lane, mask=lane >= 24, other=0.0)
    tl.store(out_ptr + lane, a + b, mask=lane < 56)


with knobs.amd.scope():
    # Triton can also mask a lane by giving it an address out of range. Here it shall use EXEC.
    knobs.amd.use_buffer_ops = False
    sides = labkit.trace(two_sides, (1,), (x, y, out), {"BLOCK": 64, "num_warps": 1})

exec_over_time(
    sides.exec_lanes(),
    [step.instruction.line.text for step in sides.executed],
    title="EXEC, lane by lane, as one wave runs",
)

# %% [markdown]
# Time runs down. `v_cmp` compares and writes one bit for each lane. `s_and_saveexec` saves EXEC and turns off
# the lanes whose bit is 0: 24 lanes are left, and they load. `s_or ... exec` turns all on again. Then the
# other 40 load. **The wave executed both sides.** Half-empty loads cost a slot like full ones: lanes that are
# off do nothing, and take their time.
#
# ### Lanes talk
# `tl.sum` adds 64 numbers that lie in 64 lanes. No memory is needed: an instruction with **DPP** (data
# parallel primitives) takes an operand from a neighbouring lane.
#
# **Predict:** one number a lane. How many additions does the wave need to sum all 64: 63, 32 or 6?


# %%
@triton.jit
def total(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK)), 0))


# With ones as input, a lane's partial sum tells how many inputs it holds.
ones = torch.ones(64)
summing = labkit.trace(total, (1,), (ones, out), {"BLOCK": 64, "num_warps": 1})
additions = [step for step in summing.executed if step.instruction.operation == "v_add_f32"]
summed = np.array([next(iter(step.written.values())).view(np.float32) for step in additions])
moves = [step.instruction.line.text.split(" row_mask")[0] for step in additions]
reduction_tree(
    np.vstack([np.ones(lanes), summed]).round().astype(int),
    ["input", *moves],
    title="A sum of 64 numbers: inputs in each lane's partial sum",
)

# %%
out[0].item(), len(additions)

# %% [markdown]
# Six: each addition doubles what the last lane of a group holds. `row_shr:8` reads from 8 lanes to the left,
# inside a row of 16; four such steps leave a row's sum in its last lane. `row_bcast` hands it on to the next
# rows. Lane 63 ends with all 64, and `v_readlane` fetches it from there. (One of the six moves its operand
# with a `v_mov_b32_dpp` first, so its addition shows no `row_`. It makes some lanes count an input twice, but
# nobody reads those.)
#
# ### What a load costs
# A wave's load asks for 64 addresses at once. The memory system answers in **cache lines** of 128 bytes. If
# the 64 addresses lie side by side, 4 bytes each, two lines hold them all. That is a **coalesced** load.
#
# **Predict:** let neighbouring lanes read elements that are 2, 4, ... 32 apart. How many lines does one load
# touch?


# %%
@triton.jit
def strided_copy(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets * stride))


count = 4096
strides = [2**power for power in range(largest_stride.bit_length())]
source, target = torch.randn(count * strides[-1]), torch.empty(count)
touched, least = [], []
for stride in strides:
    strided_copy[(count // 256,)](source, target, stride, BLOCK=256)
    loads = labkit.last_launch().counters.memory.query("kind == 'load'")
    touched.append(loads["lines_touched"].sum() / loads["executions"].sum())
    least.append(loads["minimum_lines"].sum() / loads["executions"].sum())
lines_against_stride(strides, touched, least, title="Cache lines that one load of a wave touches")

# %% [markdown]
# The bytes that you asked for stay the same: 64 x 4. The lines double with the stride until every lane
# has one of its own. At stride 32 the chip moves 64 lines of 128 bytes to give you 256 bytes: 32 times
# too much.
#
# A lane can also load more than one element at once: 2 or 4 dwords, so 8 or 16 bytes. Triton does so when a
# lane owns elements that lie side by side.


# %%
@triton.jit
def copy(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


rows = []
for block in (256, 512, 1024):
    copy[(count // block,)](source, target, BLOCK=block)
    loads = labkit.last_launch().counters.memory.query("kind == 'load'").iloc[0]
    rows.append((block // 256, loads["mnemonic"], loads["executions"], loads["bytes_requested"]))
pd.DataFrame(
    rows, columns=["elements a lane", "instruction", "wave instructions (counted)", "bytes loaded (counted)"]
)

# %% [markdown]
# The same 16 KB with a quarter of the instructions. A wave can have 63 loads under way at most, so wide loads
# are how few waves keep much data moving. Aim for 16 bytes a lane.
#
# ## Exercise: mask the tail
# Add two vectors of any length `n`. The last program owns more offsets than there are elements left: no
# lane may touch memory behind element `n - 1`. And where the compiler can prove it, each lane should load
# 16 bytes at once.
#
# Write `kernel(x_ptr, y_ptr, out_ptr, n, BLOCK)`. It is launched with `BLOCK = 1024` and as many programs as
# `n` needs. The check runs it for several `n`, and reads what the machine code did.

# %%
kernel = None

### BEGIN SOLUTION


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):  # noqa: F811
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


### END SOLUTION

# %%
masked_tail = checks.hierarchy.masked_tail.check(kernel)
masked_tail

# %% [markdown]
# <details><summary>Why it works</summary>
#
# A lane owns four neighbouring elements. Their offsets share one comparison with `n` whenever `n` is a
# multiple of 4, and Triton knows that for an `n` that is a multiple of 16. Then four loads become one of 16
# bytes. For any other `n` the four may differ, and each element gets its own load: right, but narrow.
# </details>
#
# ## Where you are now
# - A lane has up to 512 registers and does four instructions' work to add two numbers.
# - 64 lanes march in lockstep. EXEC turns lanes off; both sides of a difference are executed.
# - Lanes hand values to each other without memory, so 64 numbers are summed in 6 additions.
# - Memory answers in lines of 128 bytes. Neighbouring lanes should read neighbouring elements, 16 bytes each.
#
# Next, in the sections to come: workgroups and LDS, the XCDs and their caches, and the whole chip.

# %%
checks.progress_table("01_gpu_hierarchy")
