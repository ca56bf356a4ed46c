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
# # Three kernels that serve Llama 3.1 405B
#
# A large model writes one token at a time. Three small kernels around its matrix products cost more than
# they should. This notebook shows why, and fuses them until each byte moves once.
#
# - **0. Where a token's time goes**: bytes and operations of one layer.
# - **1. FP8 on this chip**: eight bits, two formats, and how to fit numbers in.
# - **2. Residual + RMSNorm + FP8**: from three kernels to one.
# - **3. SwiGLU + FP8**: fewer instructions for the same bytes.
# - **A first look at the third one**, a matrix product with few rows.
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

import ml_dtypes
import numpy as np
import pandas as pd
import torch
import triton
import triton.language as tl

from labkit import checks
from labkit.figures.control import with_slider
from labkit.figures.fused import bytes_an_element, number_lines, round_trip_error, share_bars
from labkit.hardware import chip
from labkit.kernels.residual_rms_norm import residual_rms_norm, residual_rms_norm_reference
from labkit.kernels.skinny_gemm import skinny_gemm
from labkit.kernels.swiglu import swiglu
from labkit.model.decode import floor_table, shares

device = labkit.start()
pd.set_option("display.max_colwidth", None)  # tables show their whole text
pd.set_option("display.precision", 2)

# %% tags=["parameters"]
batch: int = 8  # sequences that are decoded together; rows of the tensors below
hidden: int = 16384  # width of the model
context: int = 2048  # tokens in each sequence's cache

# %%
if batch < 1 or context < 0:
    raise ValueError(f"batch is {batch} and context {context}; take at least 1 and 0")
if not 1 <= hidden <= 65536:
    raise ValueError(f"hidden is {hidden}; take 1 to 65536, the widest row that the fused kernel keeps")

# %% [markdown]
# ## 0. Where a token's time goes
#
# Llama 3.1 405B runs on eight MI300X. Each holds an eighth of every weight matrix; that is called **tensor
# parallel**. To write one token for each sequence, a GPU reads all its weights once.
#
# How long must that take at least? Moving bytes and doing arithmetic each have a limit, and the slower one
# sets a **floor**. No kernel can be quicker. The floor is modelled: bytes and FLOPs come from the model's
# shape, the limits from the chip. For memory we take 4.3 TB/s, the most that others have reached on an
# MI300X (of 5.3 TB/s in the datasheet).
#
# **Predict:** which part of a layer takes most of that time? What share do the norms and SwiGLU have?

# %%
mi300x = chip("MI300X")
reached, peak = mi300x["hbm_plateau"], mi300x["fp8_peak"]
share_bars(
    shares([1, 8, 32, 128], context, reached, peak),
    title="Floors of one layer, one of eight GPUs, without the two all-reduces (modelled)",
)

# %%
floor_table(batch, context, reached, peak).round(3)

# %% [markdown]
# The MLP's weights lead. By their bytes, the norms and SwiGLU are 2 % of the floor at batch 32. Yet before
# they were fused, RMSNorm and SwiGLU took **15 %** of a decoding step at batch 32 on MI300X (published:
# Hugging Face, July 2025). The difference isn't bytes that must move. It is bytes that move twice, kernels
# that are launched one by one, and lanes that load 2 bytes at a time. That can be mended.
#
# Two all-reduces a layer, between the GPUs, are left out here: labkit has no sourced figure for the links.
#
# ## 1. FP8 on this chip
#
# FP8 stores a number in 8 bits. MI300X has a format of its own, **e4m3fnuz**: 1 sign bit, 4 exponent bits, 3
# fraction bits. MI355X and NVIDIA GPUs use **e4m3fn**, with the same split but another range.
#
# **Predict:** both have 256 bit patterns. Which one reaches further up, and what does it pay for it?

# %%
patterns = np.arange(256, dtype=np.uint8)
formats = {"e4m3fnuz (MI300X)": ml_dtypes.float8_e4m3fnuz, "e4m3fn (MI355X, NVIDIA)": ml_dtypes.float8_e4m3fn}
every = {name: patterns.view(dtype).astype(np.float64) for name, dtype in formats.items()}
number_lines(
    {name: v[np.isfinite(v) & (v > 0)] for name, v in every.items()},
    title="Every positive value of two FP8 formats",
)

# %%
pd.DataFrame(
    {
        name: {
            "largest": f"{np.nanmax(v):g}",
            "smallest above zero": f"{v[v > 0].min():.3g}",
            "bit patterns that are NaN": ", ".join(f"{p:#04x}" for p in patterns[np.isnan(v)]),
            "bit patterns that are zero": ", ".join(f"{p:#04x}" for p in patterns[v == 0]),
            "what 1000 becomes in a plain cast (NumPy)": str(np.float32(1000).astype(formats[name])),
        }
        for name, v in every.items()
    }
)

# %% [markdown]
# Both lines hold 8 values in each doubling. `e4m3fn` is the same line moved up by one doubling, since its
# exponent counts from another start. `fnuz` stands for "finite, no negative zero": the pattern 0x80, which
# is -0 elsewhere, is its only NaN.
#
# Numbers beyond the largest have no home: a plain cast in NumPy or PyTorch makes them NaN. So you do two
# things. You **divide by a scale**, chosen so that the tensor's values fill the range. And you **saturate**:
# what is still too large becomes the largest value.

# %%
x = np.geomspace(2.0**-14, 400.0, 4000).astype(np.float32)


def round_trip(x, dtype, scale):
    largest = float(ml_dtypes.finfo(dtype).max)
    back = np.clip(x / scale, -largest, largest).astype(dtype).astype(np.float32) * scale
    return 100 * np.abs(back - x) / x


fnuz = ml_dtypes.float8_e4m3fnuz


def draw_errors(scale):
    return round_trip_error(
        x,
        {f"scale {s:g}": round_trip(x, fnuz, s) for s in (1.0, scale)},
        title="Error of float32 to e4m3fnuz and back, saturated (computed)",
    )


with_slider(draw_errors, "second scale", [2.0**k for k in range(-4, 5) if k], 2.0)

# %% [markdown]
# In the middle the error stays below 6.25 %: half of the gap between neighbours. At the left end numbers fall
# below the smallest steps and lose all; at the right end they are cut off. Scale 2 moves the whole window up.
# The slider tries other scales: which one loses nothing at the right end? What does it lose at the left?
#
# ## 2. Residual + RMSNorm + FP8
#
# Before each matrix product, a layer does three things with a row of 16,384 numbers:
#
# 1. add what the last block computed to the **residual**, the running sum: `s = x + r`;
# 2. **RMSNorm**: divide by the root of the mean of squares, multiply by a weight: `y = s / rms(s) * w`;
# 3. **quantize** to FP8: `saturate(y / scale)`.
#
# Written one after the other, as most would:


# %%
@triton.jit
def add_residual(x_ptr, r_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    s = tl.load(x_ptr + i, mask=i < n) + tl.load(r_ptr + i, mask=i < n)
    tl.store(r_ptr + i, s, mask=i < n)


@triton.jit
def rms_norm(s_ptr, w_ptr, y_ptr, columns, eps, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < columns
    s = tl.load(s_ptr + tl.program_id(0) * columns + i, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + i, mask=mask, other=0.0)
    y = s * tl.rsqrt(tl.sum(s * s, axis=0) / columns + eps) * w
    tl.store(y_ptr + tl.program_id(0) * columns + i, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def quantize(y_ptr, out_ptr, scale_ptr, n, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + i, mask=i < n).to(tl.float32) / tl.load(scale_ptr)
    tl.store(out_ptr + i, tl.clamp(y, -LARGEST, LARGEST).to(out_ptr.dtype.element_ty), mask=i < n)


# %% [markdown]
# **Predict:** for one element, how many bytes do these three kernels load and store? How few could it be?

# %%
labkit.start("MI300X", quiet=True)  # this part counts, so it runs on the emulated chip wherever you are
torch.manual_seed(0)
x16, residual = torch.randn(batch, hidden).half(), torch.randn(batch, hidden).half()
weight, scale = torch.randn(hidden).half(), torch.tensor([0.05])
elements = batch * hidden


def unfused(x, r):
    y, out = torch.empty_like(x), torch.empty(x.shape).to(torch.float8_e4m3fnuz)
    blocks = (triton.cdiv(elements, 2048),)
    add_residual[blocks](x, r, elements, BLOCK=2048)
    rms_norm[(batch,)](r, weight, y, hidden, 1e-5, BLOCK=triton.next_power_of_2(hidden), num_warps=16)
    quantize[blocks](y, out, scale, elements, LARGEST=240.0, BLOCK=2048)
    return out


with labkit.record() as three:
    apart = unfused(x16, residual.clone())
with labkit.record() as one:
    together = residual_rms_norm(x16, residual.clone(), weight, 1e-5, scale)


def moved(launches):
    """Bytes an element that the launches asked to load and to store."""
    memory = pd.concat([launch.counters.memory for launch in launches])
    total = memory.groupby("kind")["bytes_requested"].sum()
    return total["load"] / elements, total["store"] / elements


versions = {"three kernels": three, "one fused kernel": one}
loaded, stored = zip(*[moved(launches) for launches in versions.values()], strict=True)
bytes_an_element(
    list(versions), loaded, stored, 7, title=f"Residual + RMSNorm + FP8, {batch} x {hidden}: bytes an element"
)

# %%
rows = []
for name, launches in versions.items():
    counters = [launch.counters for launch in launches]
    rows.append((name, len(launches), sum(c.wave_instructions for c in counters)))
pd.DataFrame(rows, columns=["version", "launches", "wave instructions (counted)"])

# %% [markdown]
# The floor is 7 bytes: 2 for the input, 2 for the residual, 2 to write it back, 1 for the FP8 result. The
# fused kernel keeps the row in registers between the two passes over it, so nothing is read twice. What it
# asks for above 7 is the weight (2 bytes: every row asks for it, and after the first row it comes from a
# cache) and the scale (a quarter of a byte).
#
# Are the results right? A float64 reference decides:

# %%
reference, _ = residual_rms_norm_reference(
    x16.double(), residual.double(), weight.double(), 1e-5, scale.double(), torch.float8_e4m3fnuz
)


def differing(got):
    return f"{100 * (got.float() != reference.float()).float().mean():.2f} %"


pd.DataFrame(
    [("three kernels", differing(apart)), ("one fused kernel", differing(together))],
    columns=["version", "FP8 values that differ from the float64 reference (counted)"],
)

# %% [markdown]
# The three kernels round to FP16 twice on the way. The fused one rounds the sum once, as the residual that is
# stored must be, and keeps fp32 from there. **Fusing is also more exact.**
#
# What is it worth on the chip? These times were **published** by Hugging Face (July 2025, one MI300X); labkit
# did not measure them. The floor beside them is modelled: 7 bytes an element at 4.3 TB/s.

# %%
published = {  # rows: (torch, vLLM, their fused kernel), microseconds, fp16 [rows, 16384]
    1: (38.90, 5.51, 4.18),
    8: (43.89, 5.72, 4.39),
    32: (55.23, 6.09, 4.72),
    256: (119.73, 11.88, 10.74),
    2048: (671.51, 81.21, 73.35),
}
pd.DataFrame(
    [(rows, *times, 7 * rows * 16384 / (reached * 1e6)) for rows, times in published.items()],
    columns=[
        "rows",
        "torch (published, us)",
        "vLLM (published, us)",
        "fused HIP (published, us)",
        "floor (modelled, us)",
    ],
)

# %% [markdown]
# At 2048 rows the published kernel comes near its floor. At 1 row the floor is a few hundredths of a
# microsecond, and nobody gets near: launching a kernel and waiting for memory once takes longer. There, fewer
# launches count more than fewer bytes.
#
# ## 3. SwiGLU + FP8
#
# The MLP multiplies two halves of one tensor: `silu(gate) * up`, with `silu(g) = g / (1 + exp(-g))`. Then FP8
# again. The floor is 5 bytes a result: 2 and 2 in, 1 out.
#
# **Predict:** the chip has an instruction for 2^x, none for e^x. Does it matter which one you write?


# %%
@triton.jit
def swiglu_exp(x_ptr, scale_ptr, out_ptr, columns, blocks, BLOCK: tl.constexpr):
    row, block = tl.program_id(0) // blocks, tl.program_id(0) % blocks
    i = block * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(x_ptr + row * 2 * columns + i, mask=i < columns, other=0.0).to(tl.float32)
    up = tl.load(x_ptr + row * 2 * columns + columns + i, mask=i < columns, other=0.0).to(tl.float32)
    y = gate / (1.0 + tl.exp(-gate)) * up / tl.load(scale_ptr)
    y = tl.clamp(y, -240.0, 240.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + row * columns + i, y.to(tl.float8e4b8), mask=i < columns)


columns = 6656  # 53248 / 8, what one of eight GPUs holds
both = torch.randn(batch, 2 * columns).half()
out = torch.empty(batch, columns).to(torch.float8_e4m3fnuz)
blocks = triton.cdiv(columns, 512)
with labkit.record() as launches:
    swiglu_exp[(batch * blocks,)](both, scale, out, columns, blocks, BLOCK=512, num_warps=1)
    same = swiglu(both, scale)

rows = []
for name, launch in zip(("exp, as in the formula", "exp2, as in labkit"), launches, strict=True):
    memory = launch.counters.memory["bytes_requested"].sum()
    arithmetic = launch.counters.instructions.query("`class` == 'VALU'")["executions"].sum()
    rows.append((name, memory / (batch * columns), 64 * arithmetic / (batch * columns)))
pd.DataFrame(
    rows, columns=["version", "bytes a result (counted)", "vector instructions a result (counted)"]
).round(2)

# %% [markdown]
# `exp` costs more: the compiler multiplies by log2(e) and guards against results too small for the unit,
# before it uses the very same `v_exp_f32`. In the `exp2` form you do the multiplication yourself, and a gate
# so negative gives zero either way. (What lies above 5 bytes is the scale, which each lane asks for.)
#
# Two more instructions help. A **packed** one, `v_pk_mul_f32`, does two multiplications. A packed conversion,
# `v_cvt_pk_fp8_f32`, turns two fp32 numbers into two FP8 bytes. Find them:

# %%
found = launches[1].compiled.listing().query("mnemonic.str.contains('_pk_|exp_f32|dwordx')")
found["mnemonic"].value_counts().rename("in the code of one program (counted)").to_frame()

# %% [markdown]
# Each lane has 8 results: 8 exponentials, 4 packed conversions, two loads of 16 bytes and one store of 8.
#
# ## A first look at the skinny matrix product
#
# The third kernel multiplies FP8 weights with a few rows. At 16 rows, each weight byte is used 16 times and
# never again: memory is the limit, not arithmetic. The work is done by **MFMA** (matrix fused multiply-add)
# instructions; a whole wave holds the small matrices in its registers.

# %%
generator = torch.Generator().manual_seed(1)
a = torch.randn(16, 1024, generator=generator).to(torch.float8_e4m3fnuz)
w = torch.randn(256, 1024, generator=generator).to(torch.float8_e4m3fnuz)
product = skinny_gemm(a, w, torch.tensor([1.0]))
exact = a.double() @ w.double().T
launch = labkit.last_launch()
matrix = launch.counters.instructions.query("`class` == 'MFMA'")
pd.DataFrame(
    [
        ("instruction", matrix["mnemonic"].iloc[0]),
        ("executed by waves (counted)", matrix["executions"].sum()),
        ("weight bytes", w.numel()),
        ("bytes loaded (counted)", launch.counters.memory.query("kind == 'load'")["bytes_requested"].sum()),
        (
            "largest error against float64, of values up to 120",
            f"{(product.double() - exact).abs().max():.3f}",
        ),
    ],
    columns=["what", "value"],
)

# %% [markdown]
# It is a first version: one program walks all of K, and no work is split. Making it fast is a later section.
#
# ## Exercise: saturate rightly
# Write the cast to FP8 yourself: `out = fp8(x / scale)`. Numbers beyond `LARGEST` become `LARGEST` with their
# sign. NaN stays NaN: a model that went wrong should show it.
#
# Write `kernel(x_ptr, scale_ptr, out_ptr, n, LARGEST, BLOCK)`; `out_ptr.dtype.element_ty` is the FP8 type.

# %%
kernel = None

### BEGIN SOLUTION


@triton.jit
def kernel(x_ptr, scale_ptr, out_ptr, n, LARGEST: tl.constexpr, BLOCK: tl.constexpr):  # noqa: F811
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i, mask=i < n) / tl.load(scale_ptr)
    # The default clamp would turn NaN into -LARGEST.
    y = tl.clamp(y, -LARGEST, LARGEST, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


### END SOLUTION

# %%
saturate = checks.fused.saturate.check(kernel)
saturate

# %% [markdown]
# <details><summary>Why it works</summary>
#
# Divide first, then limit, then cast: the limit belongs to the format, so it applies to the scaled number.
# `tl.clamp` takes the middle of three numbers. With a NaN among them the chip's `v_med3_f32` gives the
# smallest, so the compiler must guard it; `propagate_nan` asks for that.
#
# Does the check pass without any clamp? It does: Triton's own cast saturates. On MI300X it sets the mode bit
# FP16_OVFL at the kernel's start, and then the conversion instruction limits by itself. PyTorch's cast gives
# NaN. A clamp says what you mean, wherever the code ends up.
# </details>
#
# ## Where you are now
# - By bytes, norms and SwiGLU are a few percent of a decoding step. Unfused, they cost several times that.
# - FP8 needs a scale and saturation; MI300X's format ends at 240.
# - Fusing three kernels leaves one load and one store of each value, and less rounding.
# - The same bytes can cost more or fewer instructions: exp2, packed math, wide loads.

# %%
checks.progress_table("03_fused_kernels")
