"""Bytes and operations of one decoding step of Llama 3.1 405B on one of eight GPUs, and their time floors.

Decoding makes one token a sequence and step. Each GPU of a tensor-parallel group holds an eighth of every
weight matrix. All numbers are modelled: worked out from the model's shape and a chip's figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

# Llama 3.1 405B (its config.json on Hugging Face; the shapes a GPU are in the Hugging Face post on MI300
# kernels, July 2025).
HIDDEN, INTERMEDIATE, LAYERS = 16384, 53248, 126
HEADS, KV_HEADS, HEAD_SIZE = 128, 8, 128
GPUS = 8  # tensor parallel


@dataclass(frozen=True, slots=True)
class Operation:
    """One kernel's work for a layer on one GPU: bytes it must move, FLOPs it must do."""

    name: str
    group: str
    bytes: int
    flops: int


def layer_operations(batch: int, context: int) -> list[Operation]:
    """Every operation of one layer but the two all-reduces, in order.

    batch: sequences, one token each; context: tokens that each has in its cache. Weights, and activations
    that enter a matrix product, are FP8 (1 byte), the rest FP16 (2 bytes), the cache FP16.
    Raises ValueError for a batch below 1 or a negative context.
    """
    if batch < 1 or context < 0:
        raise ValueError(f"batch {batch} must be at least 1 and context {context} at least 0")
    heads, width = HEADS // GPUS, INTERMEDIATE // GPUS
    qkv = (heads + 2 * KV_HEADS // GPUS) * HEAD_SIZE
    # Read K and V of the context, once; two products of 2 FLOPs with each of the GPU's query heads.
    cache_bytes = batch * context * 2 * (KV_HEADS // GPUS) * HEAD_SIZE * 2
    attention_flops = batch * context * heads * HEAD_SIZE * 2 * 2
    # fp16 input and residual in, residual out, FP8 out.
    norm = Operation("residual + RMSNorm", "norms and SwiGLU", 7 * batch * HIDDEN, 8 * batch * HIDDEN)
    return [
        norm,
        _product("QKV projection", "attention's GEMMs", batch, qkv, HIDDEN),
        Operation(
            "attention", "attention", cache_bytes + 2 * batch * (qkv + heads * HEAD_SIZE), attention_flops
        ),
        _product("output projection", "attention's GEMMs", batch, HIDDEN, heads * HEAD_SIZE),
        norm,
        _product("gate and up projection", "MLP's GEMMs", batch, 2 * width, HIDDEN),
        # fp16 gate and up in, FP8 out.
        Operation("SwiGLU", "norms and SwiGLU", 5 * batch * width, 6 * batch * width),
        _product("down projection", "MLP's GEMMs", batch, HIDDEN, width),
    ]


def _product(name: str, group: str, m: int, n: int, k: int) -> Operation:
    """[m, k] x [k, n]: FP8 operands, FP16 result."""
    return Operation(name, group, n * k + m * k + 2 * m * n, 2 * m * n * k)


def floor_table(batch: int, context: int, terabytes: float, teraflops: float) -> pd.DataFrame:
    """A row an operation: operation, group, megabytes, gigaflops, floor in microseconds, what binds.

    terabytes, teraflops: a second, for example a chip's 5.3 and 2614.9. The floor is the longer of the time
    to move the bytes and the time to do the FLOPs: no kernel can be quicker, most are slower.
    """
    import pandas as pd

    rows = []
    for operation in layer_operations(batch, context):
        moving = operation.bytes / (terabytes * 1e6)
        computing = operation.flops / (teraflops * 1e6)
        rows.append(
            (
                operation.name,
                operation.group,
                operation.bytes / 1e6,
                operation.flops / 1e9,
                max(moving, computing),
                "bytes" if moving >= computing else "FLOPs",
            )
        )
    columns = ["operation", "group", "MB", "GFLOP", "floor (us, modelled)", "bound by"]
    return pd.DataFrame(rows, columns=columns)


def shares(batches: list[int], context: int, terabytes: float, teraflops: float) -> pd.DataFrame:
    """Share of each group in the layer's floor time, in percent: one row a batch size."""
    import pandas as pd

    rows = {}
    for batch in batches:
        table = floor_table(batch, context, terabytes, teraflops)
        times = table.groupby("group", sort=False)["floor (us, modelled)"].sum()
        rows[batch] = 100 * times / times.sum()
    return pd.DataFrame(rows).T.rename_axis("batch")
