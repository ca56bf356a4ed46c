"""A launch's Python arguments as the kernel's argument bytes and the memory that they point to."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import torch

from labkit.emulator.memory import Allocation
from labkit.errors import LaunchError

_SCALARS = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp32": np.float32,
    "f32": np.float32,
    "fp64": np.float64,
}


def flatten(names: list[str], kinds: list[Any], values: list[Any]) -> list[tuple[str, str, Any]]:
    """(name, type, value) of every argument that the kernel receives.

    Tuples are opened, tensor descriptors taken apart, constants left out.
    """
    flat = []
    for name, kind, value in zip(names, kinds, values, strict=True):
        if isinstance(kind, (tuple, list)):
            inner = [f"{name}[{index}]" for index in range(len(kind))]
            flat += flatten(inner, list(kind), list(value))
        elif kind.startswith("tensordesc"):
            flat += _parts_of_descriptor(name, kind, value)
        elif kind != "constexpr":
            flat.append((name, kind, value))
    return flat


def _parts_of_descriptor(name: str, kind: str, descriptor: Any) -> list[tuple[str, str, Any]]:
    """What Triton's AMD launcher passes for a TensorDescriptor: its parts, the shape and strides twice.

    kind: as Triton writes it, "tensordesc<fp32[16, 32]>". The last flag came with Triton 3.7.
    """
    element = kind.removeprefix("tensordesc<").partition("[")[0]
    shape = [(f"{name}.shape[{k}]", size) for k, size in enumerate(descriptor.shape)]
    strides = [(f"{name}.strides[{k}]", step) for k, step in enumerate(descriptor.strides)]
    flags = [(f"{name}.padding", descriptor.padding == "nan")]
    if hasattr(descriptor, "round_f32_to_tf32"):
        flags.append((f"{name}.round_f32_to_tf32", descriptor.round_f32_to_tf32))
    return [
        (name, f"*{element}", descriptor.base),
        *((part, "i64", value) for part, value in shape + strides),
        *((part, "i1", value) for part, value in flags),
        *((part, "i32", value) for part, value in shape),
        *((part, "i64", value) for part, value in strides),
    ]


def pack(
    arguments: list[tuple[str, str, Any]],
    metadata: dict[str, Any],
    grid: tuple[int, int, int],
    work_items: int,
) -> np.ndarray:
    """The kernel argument segment (uint8): each value at the offset that the code object's metadata gives.

    Of the hidden arguments, those that tell the launch's shape are filled (tl.num_programs reads them); the
    rest stay zero.
    """
    size = -(-int(metadata["kernarg_segment_size"]) // 4) * 4
    segment = np.zeros(max(size, 4), np.uint8)
    for (name, kind, value), slot in zip(arguments, metadata["args"], strict=False):
        raw = _bytes(name, kind, value, slot["size"])
        segment[slot["offset"] : slot["offset"] + slot["size"]] = raw
    shape = _launch_shape(grid, work_items)
    for slot in metadata["args"]:
        value = shape.get(slot["value_kind"], 0)
        if value:
            raw = np.frombuffer(value.to_bytes(slot["size"], "little"), np.uint8)
            segment[slot["offset"] : slot["offset"] + slot["size"]] = raw
    return segment


def _launch_shape(grid: tuple[int, int, int], work_items: int) -> dict[str, int]:
    """The hidden arguments about the launch, by the kind that metadata names (LLVM, code object v5)."""
    sizes = (work_items, 1, 1)
    shape = {f"hidden_block_count_{axis}": count for axis, count in zip("xyz", grid, strict=True)}
    shape |= {f"hidden_group_size_{axis}": size for axis, size in zip("xyz", sizes, strict=True)}
    shape["hidden_grid_dims"] = 3
    return shape


def _bytes(name: str, kind: str, value: Any, size: int) -> np.ndarray:
    if kind.startswith("*"):
        return np.array([_address(name, value)], np.uint64).view(np.uint8)
    if kind in _SCALARS:
        return np.array([value], _SCALARS[kind]).view(np.uint8)
    return np.frombuffer((int(value) & (1 << 8 * size) - 1).to_bytes(size, "little"), np.uint8)


def _address(name: str, value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    tensor = _tensor(value)
    if tensor.device.type != "cpu":
        raise LaunchError(
            f"argument `{name}` is on device `{tensor.device}`, but the emulated chip works on CPU tensors: "
            f"pass {name}.cpu(), or make tensors with device=labkit.start().torch_device"
        )
    return value.data_ptr()


def _tensor(value: Any) -> Any:
    """The torch tensor itself, also of triton.reinterpret's wrapper."""
    tensor = value if hasattr(value, "untyped_storage") else getattr(value, "base", None)
    if tensor is None or not hasattr(value, "data_ptr"):
        raise LaunchError(f"expected a tensor, got {type(value).__name__}")
    return tensor


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A tensor argument's memory: its own bytes are [base, end), in a storage that may be larger.

    number: its place among the kernel's arguments.
    """

    number: int
    name: str
    base: int
    end: int
    storage_base: int
    storage_end: int


def tensors(arguments: list[tuple[str, str, Any]]) -> list[TensorArgument]:
    """The tensors among the arguments that have memory. arguments: (name, Triton's type, value)."""
    found = []
    for number, (name, kind, value) in enumerate(arguments):
        if not kind.startswith("*") or value is None or isinstance(value, int):
            continue
        tensor = _tensor(value)
        storage = tensor.untyped_storage()
        if not storage.nbytes():
            continue
        size = tensor.element_size()
        last = sum((count - 1) * stride for count, stride in zip(tensor.shape, tensor.stride(), strict=True))
        start, stop = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        base = start + tensor.storage_offset() * size
        end = base + (last + 1) * size if tensor.numel() else base
        if size < 4:
            # Triton changes a small element atomically through the word that holds it.
            base, end = max(base & ~3, start), min(-(-end // 4) * 4, stop)
        found.append(TensorArgument(number, name, base, end, start, stop))
    return found


def living_tensor(address: int) -> Allocation | None:
    """The storage of a CPU tensor of this process that holds `address`, whether it was an argument or not."""
    for candidate in gc.get_objects():
        # Not isinstance: it would ask lazy modules and proxies for their class.
        if not issubclass(type(candidate), torch.Tensor) or candidate.device.type != "cpu":
            continue
        try:
            storage = candidate.untyped_storage()
        except (NotImplementedError, RuntimeError):  # sparse and meta tensors have none
            continue
        if storage.data_ptr() <= address < storage.data_ptr() + storage.nbytes():
            return Allocation.at("a tensor that is no argument", storage.data_ptr(), storage.nbytes())
    return None
