"""Triton's random numbers against its generator, Philox 4x32-10, worked in Python integers.

The rounds and constants are those of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011); the
counter is (offset, 0, 0, 0) and the key the seed's two halves, as Triton's documentation of tl.randint4x and
its language/random.py say.
"""

import math

import pytest
import torch
import triton
import triton.language as tl

# The first known answer of the authors' library (Random123, kat_vectors): counter and key 0.
KNOWN = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
LOW = 0xFFFFFFFF


def philox(seed: int, offset: int, rounds: int = 10) -> list[int]:
    """Four random words."""
    c, key = [offset & LOW, 0, 0, 0], [seed & LOW, seed >> 32 & LOW]
    for _ in range(rounds):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [second >> 32 ^ c[1] ^ key[0], second & LOW, first >> 32 ^ c[3] ^ key[1], first & LOW]
        key = [key[0] + 0x9E3779B9 & LOW, key[1] + 0xBB67AE85 & LOW]
    return c


@triton.jit
def numbers_kernel(words_ptr, uniform_ptr, normal_ptr, seed, first, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b, c, d = tl.randint4x(seed, first + at)
    tl.store(words_ptr + at, a)
    tl.store(words_ptr + N + at, b)
    tl.store(words_ptr + 2 * N + at, c)
    tl.store(words_ptr + 3 * N + at, d)
    tl.store(uniform_ptr + at, tl.rand(seed, first + at))
    tl.store(normal_ptr + at, tl.randn(seed, first + at))


def uniform(word: int) -> float:
    """A word as Triton makes it a float32 in [0, 1): its sign folded, times a little less than 2**-31."""
    signed = word - (1 << 32) if word >> 31 else word
    return float(torch.tensor(-signed - 1 if signed < 0 else signed).float() * 4.6566127342e-10)


def test_the_reference_gives_the_known_answer():
    assert philox(0, 0) == KNOWN


@pytest.mark.usefixtures("no_finding")
@pytest.mark.parametrize("seed", [0, 1234, -7, (1 << 40) + 5])
def test_random_numbers(seed):
    n, first = 128, 2**31 - 100  # offsets wrap around the sign of int32
    words = torch.zeros(4, n, dtype=torch.int32)
    flat, normal = torch.zeros(n), torch.zeros(n)
    numbers_kernel[(1,)](words, flat, normal, seed, first, N=n)
    expected = [philox(seed, first + k) for k in range(n)]
    assert [[word & LOW for word in row] for row in words.T.tolist()] == expected
    assert flat.tolist() == [uniform(row[0]) for row in expected]
    # Box and Muller's transform; float32's log, sqrt and cos are good to a few of its last places.
    box = [
        math.sqrt(-2 * math.log(max(uniform(row[0]), 1.0e-7))) * math.cos(2 * math.pi * uniform(row[1]))
        for row in expected
    ]
    torch.testing.assert_close(normal.double(), torch.tensor(box).double(), rtol=1e-5, atol=4e-6)
