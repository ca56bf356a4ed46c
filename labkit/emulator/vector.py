"""Vector instructions: the table that the vector_* modules fill, and how an entry is bound to registers.

An entry is a function from typed sources to typed results, `"f32 f32 -> f32"`; the operands of the text
follow that order, results first. The binder reads the sources, calls the function and stores the results
for the active lanes. What the signature can say besides a type:

- `old`: the destination's own earlier value is one more source (v_fmac);
- `vcc`: an implicit read of VCC as a lane mask (v_div_fmas).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labkit.emulator import crosslane
from labkit.emulator.access import DTYPES, Reader, reader, writer
from labkit.emulator.operands import VCC, Register, parse_list
from labkit.emulator.program import Instruction
from labkit.emulator.state import State

Step = Callable[[], None]


@dataclass(frozen=True, slots=True)
class VectorOperation:
    """One entry of the table. `mode`: the function also takes `saturate`, MODE.FP16_OVFL [W, 1]."""

    function: Callable
    sources: tuple[str, ...]
    results: tuple[str, ...]
    mode: bool = False


VECTOR: dict[str, VectorOperation] = {}
# Integer operation -> what it does with `clamp`, which saturates instead of wrapping around.
CLAMPED: dict[str, Callable] = {}


def vector(names: str, signature: str, *, mode: bool = False) -> Callable[[Callable], Callable]:
    """Enter a function under each of the blank-separated operation names."""

    def enter(function: Callable) -> Callable:
        sources, results = (tuple(side.split()) for side in signature.split("->"))
        for name in names.split():
            VECTOR[name] = VectorOperation(function, sources, results, mode)
        return function

    return enter


def bind_vector(state: State, instruction: Instruction) -> Step:
    """The step that executes a table instruction on `state`."""
    operation = VECTOR[instruction.operation]
    sources, writers = _operands(state, instruction, operation)
    function = operation.function
    if operation.mode:
        function = _with_mode(state, function)
    if "clamp" in instruction.modifiers and instruction.operation in CLAMPED:
        function = CLAMPED[instruction.operation]
    elif modifier := _output_modifier(instruction, operation):
        inner = function
        function = lambda *values: modifier(inner(*values))  # noqa: E731
    if len(writers) == 1:
        return _single_result(state, function, sources, writers[0])

    def step() -> None:
        results = function(*[read() for read in sources])
        mask = state.lane_mask()
        for write, result in zip(writers, results, strict=True):
            write(result, mask)

    return step


def _single_result(state: State, function: Callable, sources: list[Reader], write: Callable) -> Step:
    if len(sources) == 2:
        first, second = sources
        return lambda: write(function(first(), second()), state.lane_mask())
    if len(sources) == 1:
        (only,) = sources
        return lambda: write(function(only()), state.lane_mask())
    return lambda: write(function(*[read() for read in sources]), state.lane_mask())


def _operands(
    state: State, instruction: Instruction, operation: VectorOperation
) -> tuple[list[Reader], list[Callable]]:
    """Readers of the sources and writers of the results, as the encoding has them."""
    results = instruction.operands[: len(operation.results)]
    sources = list(instruction.operands[len(operation.results) :])
    kinds = [kind for kind in operation.sources if kind not in ("old", "vcc")]
    if len(sources) != len(kinds) or len(results) != len(operation.results):
        raise instruction.refuse(f"expected {len(operation.results)} results and {len(kinds)} sources")
    if instruction.encoding == "sdwa":
        readers = crosslane.sdwa_sources(state, instruction, sources, kinds)
        writers = crosslane.sdwa_results(state, instruction, results, operation.results)
    elif instruction.encoding == "dpp":
        readers, writers = crosslane.dpp(state, instruction, sources, kinds, results, operation.results)
    else:
        instruction.allow("clamp", "mul", "div", "op_sel")
        halves = _selected_halves(instruction, kinds, operation.results)
        readers = [
            crosslane.half_reader(state, instruction, operand, kind)
            if high
            else reader(state, instruction, operand, kind)
            for operand, kind, high in zip(sources, kinds, halves, strict=True)
        ]
        writers = [writer(state, instruction, r, k) for r, k in zip(results, operation.results, strict=True)]
    if "old" in operation.sources:
        kind = operation.results[0]
        readers.append(reader(state, instruction, results[0], "f16" if kind == "h16" else kind))
    if "vcc" in operation.sources:
        readers.append(reader(state, instruction, Register("s", VCC, 2), "mask"))
    return readers, writers


def _selected_halves(instruction: Instruction, kinds: list[str], results: tuple[str, ...]) -> list[int]:
    """op_sel of a 16-bit operation: which half each source reads. A high result half is refused."""
    if "op_sel" not in instruction.modifiers:
        return [0] * len(kinds)
    chosen = parse_list(instruction.modifiers["op_sel"])
    if any(DTYPES[kind].itemsize != 2 for kind in kinds) or len(chosen) > len(kinds) and chosen[len(kinds)]:
        raise instruction.refuse("this use of op_sel is not implemented")
    return list(chosen[: len(kinds)])


def _output_modifier(instruction: Instruction, operation: VectorOperation) -> Callable | None:
    """clamp (to 0..1), mul:2, mul:4 and div:2 of a floating-point result."""
    present = [name for name in ("mul", "div", "clamp") if name in instruction.modifiers]
    if not present:
        return None
    if operation.results != ("f32",):
        raise instruction.refuse(f"`{present[0]}` on a result that is not float32")
    factor = np.float32(1)
    if "mul" in present:
        factor = np.float32(int(instruction.modifiers["mul"]))
    elif "div" in present:
        factor = np.float32(1 / int(instruction.modifiers["div"]))
    if "clamp" not in present:
        return lambda x: x * factor
    # DX10_CLAMP is on in every kernel Triton makes: NaN clamps to 0.
    return lambda x: np.fmin(np.fmax(x * factor, np.float32(0)), np.float32(1))


def _with_mode(state: State, function: Callable) -> Callable:
    return lambda *values: function(*values, saturate=state.saturate())
