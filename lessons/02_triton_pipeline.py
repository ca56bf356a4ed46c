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
# # From Python to the bytes that a CU runs
#
# You write a Triton kernel in Python. A compute unit (CU) of an MI300X runs machine code. This notebook
# follows one kernel from the one to the other and looks at the program at each stop.
#
# - **0. One kernel, two roads**: compiled or interpreted, and why the results can differ.
# - **1. Front end**: from your syntax to Triton IR.
# - **2. make_ttir**: what the compiler tidies before it thinks of any chip.
# - **3. make_ttgir, layouts**: which lane owns which element, and what that costs.
#
# You need no GPU. Without one, an emulated MI300X executes the machine code on this CPU.
#
# Numbers here are **counted**: operations and lines in the compiler's texts, or instructions, bytes and
# cache lines in a launch on the emulated chip. Nothing is timed.
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

import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import triton
import triton.language as tl

from labkit import checks
from labkit.compiler.front_end import node_by_operation, operations
from labkit.compiler.layouts import parse_layouts
from labkit.compiler.passes import pass_table
from labkit.figures.ownership import lines_by_lane, owner_maps
from labkit.figures.pipeline import layout_picture, stage_timeline
from labkit.figures.stages import dialect_bars, rounding_picture, syntax_beside_ir, two_roads

device = labkit.start()
pd.set_option("display.max_colwidth", None)  # tables show their whole text

# %% tags=["parameters"]
block: int = 1024  # elements a program adds; a power of two
num_warps: int = 4  # waves in a workgroup; a power of two, 16 at most
side: int = 64  # rows and columns of the square tile in section 3; a power of two, 16 to 128

# %%
limits = {"block": (block, 64, 65536), "num_warps": (num_warps, 1, 16), "side": (side, 16, 128)}
for name, (value, least, most) in limits.items():
    if not least <= value <= most or value & (value - 1):
        raise ValueError(f"{name} is {value}; take a power of two from {least} to {most}")

# %% [markdown]
# ## 0. One kernel, two roads
#
# `@triton.jit` wraps your function in an object. Which class that object has is settled when the decorator
# runs:
#
# - **JITFunction** compiles the function. A launch runs machine code.
# - **InterpretedFunction**, if the environment variable `TRITON_INTERPRET` is 1, compiles nothing. Python
#   runs your function once for each program, and each `tl` function works on a NumPy array.
#
# **Predict:** how many stops lie between your six lines and the machine code? Does the program get longer
# or shorter on the way?


# %%
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


n = 4 * block
vector = torch.float32  # stands for an FP32 tensor where we only compile
compiled = labkit.compile(add_kernel, vector, vector, vector, n, BLOCK=block, num_warps=num_warps)
source, first_line = inspect.getsourcelines(add_kernel.fn)


def size(content):
    return f"{len(content.splitlines())} lines" if isinstance(content, str) else "a binary"


two_roads(
    {"Python": f"{len(source)} lines", **{stage: size(text) for stage, text in compiled.stages.items()}},
    makers=["ast_to_ttir,\nmake_ttir", "make_ttgir", "make_llir", "make_amdgcn", "make_hsaco"],
    title=f"{type(add_kernel).__name__} of {compiled.name}, compiled for {compiled.target} (lines counted)",
)

# %% [markdown]
# There are five stops, and each is a text that you can read but the last:
#
# | stop | what it is | what it knows |
# |---|---|---|
# | ttir | Triton IR (an *intermediate representation*) | whole blocks of elements, no chip |
# | ttgir | TritonGPU IR | which lane keeps which element |
# | llir | LLVM IR | what one lane does |
# | amdgcn | assembly | the instructions of gfx942, which is MI300X |
# | hsaco | a binary that the chip loads | bytes |
#
# The counts hold comments, source locations and data about the kernel. `amdgcn` is mostly that.
#
# ### Do both roads give the same numbers?
# For FP32 sums, yes. For FP8 look first. FP8 has 8 bits: in the format `fp8e4nv`, one for the sign, four
# for the exponent, three for the fraction. Its largest number is 448. Each FP32 number goes to a neighbour
# in a coarse grid.
#
# **Predict:** what should 1.9995 become? The grid has 1.875 and 2.0 near it. And 1000?


# %%
@triton.jit
def to_fp8(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x.to(tl.float8e4nv), mask=offsets < n)


def run_compiled(numbers):
    x = numbers.to(device.torch_device)
    out = torch.empty(x.numel(), dtype=torch.float8_e4m3fn, device=x.device)
    to_fp8[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out.float().cpu().numpy()


# %% [markdown]
# The interpreter needs a process of its own: a process either interprets all its kernels or compiles all.
# So the next cell writes the same source to a file and runs it with `TRITON_INTERPRET=1`.

# %%
SCRIPT = f"""
import json, sys
import torch, triton
import triton.language as tl

{inspect.getsource(to_fp8.fn)}

x = torch.tensor(json.load(sys.stdin))
out = torch.empty(x.numel(), dtype=torch.float8_e4m3fn)
to_fp8[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
json.dump([type(to_fp8).__name__, out.float().tolist()], sys.stdout)
"""


def run_interpreted(numbers):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "interpreted.py")
        file.write_text(SCRIPT)
        child = subprocess.run(
            [sys.executable, file],
            input=json.dumps(numbers.tolist()),
            env={**os.environ, "TRITON_INTERPRET": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
    name, results = json.loads(child.stdout)
    return name, np.array(results, np.float32)


chosen = torch.tensor([0.3, 62.08, 1.9995, 126.24, 0.001, 1000.0])
sweep = 2.0 ** (torch.arange(-9 * 64, 9 * 64 + 1) / 64)
kind, interpreted = run_interpreted(torch.cat([chosen, sweep]))
executed = run_compiled(torch.cat([chosen, sweep]))
cast = chosen.to(torch.float8_e4m3fn).float()
few = len(chosen)
pd.DataFrame(
    {
        "FP32 number": chosen.numpy(),
        kind: interpreted[:few],
        type(to_fp8).__name__: executed[:few],
        "torch's cast on the CPU": cast.numpy(),
        "roads agree": interpreted[:few] == executed[:few],
    }
)

# %%
numbers = sweep.numpy()
wrong = int((interpreted[few:] != executed[few:]).sum())
rounding_picture(
    numbers,
    {"JITFunction": executed[few:], "InterpretedFunction": interpreted[few:]},
    smallest_normal=2.0**-6,
    largest=448.0,
    title=f"FP32 to fp8e4nv on both roads: {wrong} of {len(numbers)} numbers differ (counted)",
)

# %% [markdown]
# The blue points are the machine code. Between the dashed lines they stay close to 1: three fraction bits
# allow an error of 6 percent. Below, the steps of the grid stop shrinking, so the points spread. Above 448
# they fall, since every larger number becomes 448.
#
# **The interpreter isn't just different, it is wrong.** This is Triton 3.7.1:
#
# - **A carry is lost.** 1.9995 rounds up to 2.0, which has the next exponent. The interpreter puts the
#   carry in with *or* where it should add. If the exponent's last bit is already 1, the carry vanishes, and
#   1.0 is left. These are the crosses at 0.5, just before every second power of two.
# - **Small numbers are cut, not rounded.** The neighbour of 0.001 is 0.00195; it became 0.
# - **Large numbers aren't limited.** The exponent stops at its largest and the fraction stays: 1000 became
#   256, and some numbers just above 448 became NaN. The machine code saturates at 448.
#
# Triton's project has reports of this: [issue 8322](https://github.com/triton-lang/triton/issues/8322) for
# another FP8 format, and [pull request 11897](https://github.com/triton-lang/triton/pull/11897), which
# mends the carry. In 3.7.1 the interpreter can't make MI300X's own FP8 (`fp8e4b8`) at all.
#
# So use the interpreter to step through a kernel with `print` and a debugger. Don't take FP8 results from
# it.

# %% [markdown]
# ## 1. Front end: from syntax to Triton IR
#
# `ast_to_ttir` gets your function as an *abstract syntax tree* (AST): Python's own parse of the text. It
# walks the tree, and at each node it asks for the operations that do the node's work.
#
# **Predict:** how many operations does `x = tl.load(x_ptr + offsets, mask=mask)` become?

# %%
nodes = node_by_operation("".join(source), first_line, compiled.stages["ttir"])
lines = [
    (first_line + number, text)
    for number, text in enumerate(source)
    if first_line + number in set(nodes["source_line"])
]
syntax_beside_ir(
    lines, nodes, title="add_kernel: which node became which operations (read from the IR's locations)"
)

# %% [markdown]
# Three: `splat` makes a block out of the one pointer, `addptr` adds a block of offsets to it, `load`
# fetches. A line is one or more nodes, and a node is one or more operations. `x + y` costs one; the address
# arithmetic that you hardly see costs most.
#
# The links aren't guessed. Each operation carries the line and column that it came from, and the assembly
# still has them. A profiler or a listing finds your line that way:

# %%
print("\n".join(line for line in compiled.stages["ttir"].splitlines() if "tt.load" in line and "%x" in line))
listing = compiled.listing()
loads = listing[listing["class"] == "VMEM load"]
loads.assign(your_line=[source[number - first_line].strip() for number in loads["source_line"]])[
    ["assembly_line", "instruction", "your_line"]
]

# %% [markdown]
# ### What a compile does besides
# `kernel[grid](...)` looks for finished code first. What it looks up is made of the source, the types of
# the arguments, some facts about their values, the options, the target and Triton's version. If nothing is
# there, it compiles and keeps every stage in a folder (`TRITON_CACHE_DIR`).
#
# The *facts* are the surprising part: an integer that is a multiple of 16, and one that is 1, are noted,
# and so is a pointer aligned to 16 bytes.
#
# **Predict:** which of these launches compile anew after the first?


# %%
def told_about_n(ttir):
    argument = re.search(r"%n: i\d+ *(\{[^}]*\})?", ttir)
    if argument is None:
        return "it is 1, a constant"
    return "a multiple of 16" if "divisibility" in (argument[1] or "") else "nothing"


launches = {
    f"n = {n}": (n, {}),
    f"n = {2 * n}": (2 * n, {}),
    f"n = {n - 1}": (n - 1, {}),
    f"n = {n - 3}": (n - 3, {}),
    "n = 1": (1, {}),
    f"n = {n}, num_warps = {2 * num_warps}": (n, {"num_warps": 2 * num_warps}),
}
rows, seen = [], set()
for label, (count, options) in launches.items():
    code = labkit.compile(
        add_kernel, vector, vector, vector, count, BLOCK=block, **{"num_warps": num_warps, **options}
    )
    key = code.triton.metadata.hash
    rows.append((label, told_about_n(code.stages["ttir"]), "no" if key in seen else "yes"))
    seen.add(key)
pd.DataFrame(rows, columns=["launch, in this order", "told about n", "compiled anew"])

# %% [markdown]
# `n` itself isn't in the code, only what is known about it. A serving engine whose batch size takes the
# values 1, 8 and 16 pays for three compiles. `do_not_specialize` in `@triton.jit` switches the facts off
# for an argument; section 3 shows what that can cost.
#
# The options arrive as keyword arguments of the launch, and what you leave out gets a default. Then the
# target's back end loads its *dialects*: sets of operations that the program may use. `tt` is Triton's,
# `arith` holds arithmetic, `amdg` is for AMD GPUs only, `llvm` and `rocdl` are the last ones before LLVM
# takes over.

# %%
metadata = compiled.triton.metadata._asdict()
known = {
    "num_warps": "waves in a workgroup",
    "warp_size": "lanes in a wave",
    "num_stages": "loop turns in flight where a loop is pipelined",
    "waves_per_eu": "waves a SIMD that registers must leave room for; 0: no wish",
    "matrix_instr_nonkdim": "shape of the matrix instruction; 0: the compiler chooses",
    "enable_fp_fusion": "a * b + c may become one instruction with one rounding",
}
pd.DataFrame(
    [(name, str(metadata[name]), meaning) for name, meaning in known.items() if name in metadata],
    columns=["option", "value", "meaning"],
)

# %%
passes = compiled.passes()
moments = {
    "from the front end": passes[0].before,
    "after make_ttir": next(step.before for step in passes if step.stage == "ttgir"),
    "after make_ttgir": next(step.before for step in passes if step.stage == "llir"),
    "in make_llir, last MLIR": next(step.before for step in passes if step.name == "to-llvm-ir"),
}
counts = pd.DataFrame({name: operations(ir)["dialect"].value_counts() for name, ir in moments.items()}).T
counts = counts.fillna(0).astype(int)
order = [name for name in ("arith", "tt", "amdg") if name in counts]
dialect_bars(
    counts[order + [name for name in counts if name not in order]],
    title="add_kernel: operations by dialect, at four moments of one compile",
)

# %% [markdown]
# Half of what the front end wrote is gone after `make_ttir`: it had added checks for integer overflow that
# nobody reads. `make_ttgir` brings in `amdg`: the loads and stores became *buffer* operations, which only
# AMD has. Until here an operation speaks of a whole block. In `make_llir` everything is written out for one
# lane, and the program grows.

# %% [markdown]
# ## 2. make_ttir: tidying, with no chip in sight
#
# A *pass* is one rewrite of the whole program. This kernel has one line of work for each pass worth knowing
# here. It adds up the squares of each row, scaled.


# %%
@triton.jit
def square(value):
    return value * value


@triton.jit
def power_kernel(x_ptr, power_ptr, n_cols, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in tl.range(0, n_cols, BLOCK, loop_unroll_factor=2):
        columns = start + tl.arange(0, BLOCK)
        unread = columns * 3  # noqa: F841  nobody reads it
        gain = tl.sqrt(scale)  # the same in every turn
        x = tl.load(x_ptr + row * n_cols + columns, mask=columns < n_cols, other=0.0)
        total += tl.where(columns < n_cols, square(gain * x), 0.0)  # compares again, calls a function
    tl.store(power_ptr + row, tl.sum(total, axis=0))


generator = torch.Generator().manual_seed(0)
x = torch.randn(4, 1000, generator=generator).to(device.torch_device)
power = torch.empty(4, device=device.torch_device)
power_kernel[(4,)](x, power, x.shape[1], 0.25, BLOCK=256)
expected = 0.25 * x.double().square().sum(dim=1)
print("right to 6 digits:", torch.allclose(power.double(), expected, rtol=1e-6))

# %% [markdown]
# **Predict:** the whole compile, all stages together, is some 70 passes. How many of them change anything?

# %%
power_compiled = labkit.compile(power_kernel, vector, vector, 1000, 0.25, BLOCK=256)
power_passes = power_compiled.passes()
table = pass_table(power_passes)
stage_timeline(
    table,
    title=f"power_kernel: the {table['changed'].sum()} of {len(table)} passes that changed it (counted)",
)

# %% [markdown]
# Each bar is a pass, in order from the top. Most of the passes found nothing to do: they are for matrix
# products, pipelines or chips that this kernel doesn't use. The long bars at the bottom are `make_llir`,
# where one line for a block becomes many for a lane. The first group is `make_ttir`, and you can read what
# it did:


# %%
def changed(name):
    return next(step for step in power_passes if step.name == name and step.changed)


def calls(ir):
    return ir.count("tt.call")


ttir_steps = table[(table["stage"] == "ttir") & table["changed"]]
ttir_steps[["number", "name", "lines_added", "lines_removed", "description"]]

# %% [markdown]
# **Inlining, folding and dead code.** The next cell shows the entry in which the calls disappear. Find
# these three: `square` and `tl.sum` moved to where they were called; `unread` is gone; and so are the
# overflow checks.

# %%
max(power_passes, key=lambda step: calls(step.before) - calls(step.after))

# %% [markdown]
# It is listed as `canonicalize`, and `inline` itself shows no change. The inliner runs a canonicalize of
# its own on each function first and pastes the bodies in afterwards. The compiler prints the program
# *before* each pass, so the pasting shows under the last of those.
#
# **Common subexpressions.** You compare `columns < n_cols` twice. `cse` keeps one:

# %%
changed("cse")

# %% [markdown]
# **Loop-invariant code.** `gain` is the same in every turn, and so are `tl.arange` and the row's first
# address. They move out of the loop:

# %%
changed("triton-licm")

# %% [markdown]
# **Unrolling.** `loop_unroll_factor=2` asked for it. The body stands twice in the first loop, and a second
# loop does the turn that may be left over:

# %%
changed("triton-loop-unroll")

# %% [markdown]
# None of these passes knows a chip: there is no lane, no register and no wave in the text so far. All that
# you wrote for readability (a helper function, a repeated comparison, a constant inside the loop) costs
# nothing at run time.

# %% [markdown]
# ## 3. make_ttgir: who owns which element
#
# `make_ttgir` begins with a decision: it spreads each block over lanes. The result is a **layout**, a rule
# from an element to its owner: a wave, a lane (0 to 63) and a register of that lane. The layout for loads,
# stores and arithmetic is called **blocked**. It's four lists in the IR:

# %%
name, layout = next(iter(compiled.layouts().items()))
print(next(line for line in compiled.stages["ttgir"].splitlines() if line.startswith(name)))

# %% [markdown]
# Read from left to right: each lane keeps `sizePerThread` elements side by side; `threadsPerWarp` lanes lie
# side by side; then `warpsPerCTA` waves do (a *warp* is a wave, a *CTA* is a workgroup). `order` says which
# dimension runs fastest.
#
# **Predict**, with the numbers as they are by default: which lane and register keep element 6? And element
# 256?

# %%
owners = layout.owners((block,))
layout_picture(
    owners.wave,
    owners.lane,
    owners.register,
    title=f"add_kernel: owners of the first elements of {block} ({name})",
)

# %%
for element in (6, 256 % block):
    wave, lane, register = layout.owner(element, shape=(block,))
    print(f"element {element}: wave {wave}, lane {lane}, register {register}")

# %% [markdown]
# Four FP32 elements side by side are 16 bytes, the most that one load instruction fetches for a lane.
#
# ### What coalescing changed
# That layout isn't the first one. The compiler starts with a plain default, and the pass
# `tritongpu-coalesce` looks at the addresses of each load and store and chooses anew. To see it work, take
# a matrix that is stored *column by column*: neighbours in memory are neighbours in a column.
#
# From here on everything runs on the emulated MI300X, on a machine with a GPU too: only it counts.


# %%
@triton.jit
def double_kernel(x_ptr, out_ptr, stride, SIDE: tl.constexpr):
    rows = tl.arange(0, SIDE)[:, None]
    columns = tl.arange(0, SIDE)[None, :]
    offsets = rows + columns * stride
    tl.store(out_ptr + offsets, 2.0 * tl.load(x_ptr + offsets))


labkit.start("MI300X", quiet=True)


def on_a_cache_line(values):
    """A copy that begins at a multiple of 128 bytes, as a GPU's allocator gives it."""
    room = torch.zeros(values.numel() + 32)
    skipped = -room.data_ptr() % 128 // 4
    return room[skipped : skipped + values.numel()].copy_(values)


# Each element holds its own number, so that a value tells where it came from.
elements = on_a_cache_line(torch.arange(side * side, dtype=torch.float32))
doubled = on_a_cache_line(torch.zeros(side * side))
arguments = (elements, doubled, side)
double_compiled = labkit.compile(double_kernel, *arguments, SIDE=side, num_warps=num_warps)
step_of = {step.name: step for step in double_compiled.passes() if step.stage == "ttgir"}
programs = {
    "before": step_of["tritongpu-coalesce"].before,
    "after": step_of["tritongpu-remove-layout-conversions"].after,
}


def layout_of_load(ttgir):
    return parse_layouts(ttgir)[re.search(r"tt\.load .*, (#\w+)>", ttgir)[1]]


layouts = {moment: layout_of_load(ttgir) for moment, ttgir in programs.items()}
pd.DataFrame(
    {
        moment: (each.size_per_thread, each.threads_per_warp, each.warps_per_cta, each.order)
        for moment, each in layouts.items()
    },
    index=["sizePerThread", "threadsPerWarp", "warpsPerCTA", "order"],
)

# %% [markdown]
# `order` turned round: dimension 0, the rows, now runs fastest, as it does in memory. And a lane keeps
# several elements of a column. (The "after" is read one pass later, when the layout has spread to the rest
# of the program.)

# %%
owned = {moment: each.owners((side, side)) for moment, each in layouts.items()}
owner_maps(
    {f"{moment} coalescing": (o.wave, o.lane) for moment, o in owned.items()},
    title="double_kernel: the lane that owns each element (read from the IR)",
)

# %% [markdown]
# This is the upper left corner; the number is the lane. Before, a row belongs to one wave, and its lanes
# lie side by side. After, a lane keeps four elements of a column, the next lane goes on below, and each
# wave has some of the columns. Memory runs down the columns, too.
#
# **Predict:** a cache line has 128 bytes, 32 FP32 elements. How many lines does one load of one wave touch
# before, and how many after?


# %%
def lines_of_first_load(owners, width):
    """For each lane of wave 0, the cache lines of its first `width` registers; the stride is `side`."""
    rows, columns = np.indices(owners.lane.shape)
    line = (rows + columns * side) * 4 // 128
    first = (owners.wave == 0) & (owners.register < width)
    return [np.unique(line[first & (owners.lane == lane)]) for lane in range(64)]


lines_by_lane(
    {
        f"{moment} coalescing": lines_of_first_load(owned[moment], max(layouts[moment].size_per_thread))
        for moment in owned
    },
    title="One load of wave 0: the cache lines that each lane touches (from the layout)",
)

# %% [markdown]
# Before, each lane touches a line of its own and uses 4 bytes of it. After, 8 lanes share each line and use
# all of it. Now let the machine say so. `triton.compile` also takes IR, so both programs can go straight on
# to `make_llir` and run:


# %%
def run_ir(ttgir):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "double.ttgir")
        file.write_text(ttgir)
        kernel = triton.compile(str(file))
    doubled.zero_()
    kernel[(1, 1, 1)](*arguments)
    assert torch.equal(doubled, 2 * elements)
    return labkit.last_launch()


rows = {}
for moment, ttgir in programs.items():
    memory = run_ir(ttgir).counters.memory
    of_loads = memory[memory["kind"] == "load"]
    rows[f"{moment} coalescing"] = {
        "load instructions in the code": len(of_loads),
        "bytes a lane, each": of_loads["bytes_per_lane"].max(),
        "bytes asked for": of_loads["bytes_requested"].sum(),
        "cache lines touched": of_loads["lines_touched"].sum(),
        "cache lines at least": of_loads["bytes_requested"].sum() // 128,
    }
pd.DataFrame(rows).rename_axis("loads, counted on the emulated MI300X")

# %% [markdown]
# Same kernel, same result, same bytes asked for. One pass made the loads wide and brought the touched lines
# down to the least possible.
#
# ### Does the machine agree?
# The layout says which lane owns which element. Each element of the input holds its own number, so the
# registers can be asked: run each wave step by step, stop at its stores, and see which lane has which
# number.


# %%
def owners_in_the_machine():
    wave_of, lane_of = (np.full(side * side, -1) for _ in range(2))
    for wave in range(num_warps):
        trace = labkit.trace(
            double_kernel, (1,), args=arguments, kwargs={"SIDE": side, "num_warps": num_warps}, wave=wave
        )
        registers = {}
        for step in trace.executed:
            store = re.match(r"buffer_store_dword\w* v\[?(\d+):?(\d*)", step.instruction.line.text)
            if store:
                first, last = int(store[1]), int(store[2] or store[1])
                for number in range(first, last + 1):
                    numbers = (registers[f"v{number}"].view(np.float32) / 2).astype(int)
                    wave_of[numbers], lane_of[numbers] = wave, np.arange(64)
            registers.update(step.written)
    # Element (row, column) has the number row + column * side.
    return wave_of.reshape(side, side).T, lane_of.reshape(side, side).T


in_machine = owners_in_the_machine()
final = double_compiled.layouts()
stored = re.search(r"_store .*, (#\w+)>", double_compiled.stages["ttgir"])[1]
in_layout = final[stored].owners((side, side))
agree = (in_machine[0] == in_layout.wave) & (in_machine[1] == in_layout.lane)
print(f"{agree.sum():,} of {agree.size:,} elements are stored by the wave and lane that {stored} names")
owner_maps(
    {"layout, read from the IR": (in_layout.wave, in_layout.lane), "registers, executed code": in_machine},
    title="double_kernel: the lane that stores each element",
)

# %% [markdown]
# The two maps are the same: the four lists in the IR really are the addresses that the lanes compute.
#
# ### The compiler widens only what it can prove
# A wide load is right only if all its elements are inside the mask, and if its address is a multiple of its
# size. The compiler must know so before it sees a value. **Predict:** `n` is one less than before, so one
# element in thousands falls away. What happens to the loads?

# %%
rows = []
for count in (n, n - 1):
    code = labkit.compile(add_kernel, vector, vector, vector, count, BLOCK=block, num_warps=num_warps)
    mnemonics = code.listing().query("`class` == 'VMEM load'")["mnemonic"]
    rows.append(
        (f"n = {count}", told_about_n(code.stages["ttir"]), len(mnemonics), ", ".join(mnemonics.unique()))
    )
pd.DataFrame(rows, columns=["launch", "told about n", "loads in the code (counted)", "of the kind"])

# %% [markdown]
# Nothing is known about that `n`, so the mask might end between two elements of a lane, and each element
# gets a load of its own. Where *you* know more than the compiler can see, say it: `tl.multiple_of(value,
# 16)` returns the value with the promise that it is a multiple of 16. The promise isn't checked. If it's
# false, the results are wrong.
#
# ## Exercise: 128-bit loads by a hint
# Rows of unlike length lie in one pool. Row `r` starts at element `starts[r]` and has `lengths[r]` elements.
# Write, under `@triton.jit`,
#
# `kernel(pool_ptr, starts_ptr, lengths_ptr, out_ptr, BLOCK: tl.constexpr)`
#
# It sets `out[r, i] = 2 * pool[start + i]` for `i < length`, one row a program. `out` has `BLOCK` elements a
# row; leave the rest of a row as it is.
#
# Every start and every length is a multiple of 16. The compiler can't know, since they come from memory.
# Tell it, until a lane fetches its four elements with **one** load, a `dwordx4`.

# %%
kernel = None

### BEGIN SOLUTION


@triton.jit
def kernel(pool_ptr, starts_ptr, lengths_ptr, out_ptr, BLOCK: tl.constexpr):  # noqa: F811
    row = tl.program_id(0)
    # Both hints are needed: one for the address, one for the mask.
    start = tl.multiple_of(tl.load(starts_ptr + row), 16)
    length = tl.multiple_of(tl.load(lengths_ptr + row), 16)
    i = tl.arange(0, BLOCK)
    values = tl.load(pool_ptr + start + i, mask=i < length)
    tl.store(out_ptr + row * BLOCK + i, 2.0 * values, mask=i < length)


### END SOLUTION

# %%
wide_loads = checks.pipeline.wide_loads.check(kernel)
wide_loads

# %% [markdown]
# <details><summary>Why the solution works</summary>
#
# A load has two parts to prove. The address: `pool_ptr` is aligned to 16 bytes, `start` is a multiple of 16
# elements, and a lane's first `i` is a multiple of 4, so the sum is aligned. The mask: if `length` is a
# multiple of 16, it can't end inside a lane's four elements. With both facts the coalescing pass gives each
# lane four elements side by side, and the back end makes one `dwordx4` of them.
# </details>
#
# Blocked is one kind of layout. A block that passes through LDS gets a `#shared` layout, and the operands
# and result of a matrix instruction get `#amd_mfma`; they come later.

# %% [markdown]
# ## Where you are now
# - `@triton.jit` compiles; the interpreter is for stepping, not for FP8 results.
# - The front end turns each syntax node into operations that remember your line.
# - `make_ttir` tidies. Of some 70 passes a few change the program, and `compiled.passes()` shows each.
# - A layout names the wave, the lane and the register of each element, and the machine does as it says.
# - The compiler widens what it can prove. What it can't see, you can promise.

# %%
checks.progress_table("02_triton_pipeline")
