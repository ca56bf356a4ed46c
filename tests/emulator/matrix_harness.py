"""Registers of matrix instructions, for tests: values go in and come out as each lane holds them.

Which row a lane's result belongs to is AMD's matrix instruction calculator's formula for D[i][j].block.
"""

import numpy as np

from tests.emulator.harness import execute, make_state, set_exec


def span(first, count):
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def place(state, first, lanes):
    """Values [64, n] in registers from `first`; returns how the text names them."""
    words = np.ascontiguousarray(lanes).view(np.uint32)
    state.v[first : first + words.shape[1], 0] = words.T
    return span(first, words.shape[1])


def held(state, first, count, dtype):
    """[64, count] values of wave 0 in the registers from `first`."""
    words = count * np.dtype(dtype).itemsize // 4
    return np.ascontiguousarray(state.v[first : first + words, 0].T).view(dtype)


def run(mnemonic, left, right, source, results, dtype, modifiers=""):
    """D as [64, results] from A's and B's [64, n] as the lanes hold them. EXEC is 0: it must not matter."""
    state = make_state(fnuz=False)
    a, b = place(state, 0, left), place(state, 8, right)
    words = results * np.dtype(dtype).itemsize // 4
    c = place(state, 16, source) if isinstance(source, np.ndarray) else source
    set_exec(state, 0)
    execute(state, f"v_mfma_{mnemonic} {span(40, words)}, {a}, {b}, {c}{modifiers}")
    return held(state, 40, results, dtype)


def row32(size, register, lane):
    """The row of a 32-bit result of a 16x16 or 32x32 form."""
    return (
        4 * (lane // 16) + register if size == 16 else 8 * (register // 4) + 4 * (lane // 32) + register % 4
    )
