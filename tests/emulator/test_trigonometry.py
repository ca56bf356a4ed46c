"""sin and cos of large float64 numbers: v_trig_preop_f64 against mpmath, then whole kernels against it."""

import math
from fractions import Fraction

import mpmath  # torch brings it, with sympy
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given
from hypothesis import strategies as st
from triton.language.extra import libdevice

from tests.emulator.harness import run_lanes


def two_over_pi():
    """The first 1201 bits of the fraction of 2/pi, the most significant first."""
    with mpmath.workprec(1400):
        return bin(int(mpmath.floor(2 / mpmath.pi * mpmath.mpf(2) ** 1201)))[2:].zfill(1201)


BITS = two_over_pi() + "0" * 4000


def expected(exponent, number):
    """53 bits that begin where the argument's exponent and the number say, at their place in the fraction."""
    shift = 53 * (number % 32) + max(exponent - 1077, 0)
    exact = Fraction(int(BITS[shift : shift + 53], 2), 2 ** (53 + shift))
    if exponent >= 1968:
        exact *= 2**128
    steps = math.floor(exact * 2**1074)  # of the smallest denormal, toward zero
    return float(Fraction(steps, 2**1074))


def of_exponent(exponents, fraction=0):
    return (np.array(exponents, "u8") << np.uint64(52) | np.uint64(fraction)).view("f8")


EXPONENTS = [0, 1, 1023, 1076, 1077, 1078, 1130, 1500, 1966, 1967, 1968, 1969, 2000, 2046, 2047]


@pytest.mark.parametrize("number", [0, 1, 2, 3, 10, 22, 31, 32, 33, 0xFFFFFFE1])
def test_segments(number):
    a = of_exponent(EXPONENTS, 12345)
    got = run_lanes("v_trig_preop_f64 v[0:1], |v[2:3]|, v4", -a, np.full(a.size, number, "u4"), out="f8")
    assert got.tolist() == [expected(exponent, number) for exponent in EXPONENTS]


@given(st.lists(st.tuples(st.integers(0, 2047), st.integers(0, 40)), min_size=1, max_size=64))
def test_any_exponent(pairs):
    exponents, numbers = zip(*pairs, strict=True)
    got = run_lanes(
        "v_trig_preop_f64 v[0:1], v[2:3], v4", of_exponent(exponents), np.array(numbers, "u4"), out="f8"
    )
    assert got.tolist() == [expected(*pair) for pair in pairs]


def test_segments_add_up_to_two_over_pi():
    a = np.ones(3)
    got = run_lanes("v_trig_preop_f64 v[0:1], v[2:3], v4", a, np.arange(3, dtype="u4"), out="f8")
    with mpmath.workprec(200):
        error = 2 / mpmath.pi - sum(map(mpmath.mpf, got.tolist()))
        assert 0 <= error < mpmath.mpf(2) ** -159


@triton.jit
def wave_kernel(x_ptr, sine_ptr, cosine_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    tl.store(sine_ptr + at, libdevice.sin(x))
    tl.store(cosine_ptr + at, libdevice.cos(x))


@pytest.mark.parametrize("dtype,ulp", [(torch.float64, 2.0**-52), (torch.float32, 2.0**-23)], ids=str)
def test_sine_and_cosine_of_numbers_of_all_sizes(mi300x, dtype, ulp):
    """Within two units of the last place of 1, as the math library claims; 1e300 needs all of 2/pi."""
    largest = 300 if dtype == torch.float64 else 38
    sizes = [np.linspace(-20, 20, 120), -np.logspace(2, largest, 128), [0.0, -0.0, 1e22, math.pi] * 2]
    x = torch.from_numpy(np.concatenate(sizes)).to(dtype)
    sine, cosine = torch.zeros(2, 256, dtype=dtype)
    # With fusion on, LLVM fuses inside the math library's error-free sums: wrong on a real chip, too.
    wave_kernel[(1,)](x, sine, cosine, BLOCK=256, enable_fp_fusion=False)
    with mpmath.workprec(1300):
        for got, function in ((sine, mpmath.sin), (cosine, mpmath.cos)):
            wanted = [float(function(mpmath.mpf(value))) for value in x.double().tolist()]
            assert np.abs(got.double().numpy() - wanted).max() <= 2 * ulp
