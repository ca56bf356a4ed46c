"""Compiled samples that several tests read; compiling does not change them."""

import pytest

import labkit
from tests.compiler import sample


@pytest.fixture(scope="session")
def add():
    args, kwargs = sample.add_args()
    return labkit.compile(sample.add_kernel, *args, **kwargs)


@pytest.fixture(scope="session")
def softmax():
    x = sample.torch.zeros(3000)
    return labkit.compile(sample.softmax_kernel, x, x, 1000, BLOCK=1024)


@pytest.fixture(scope="session")
def matmul():
    args, kwargs = sample.matmul_args()
    return labkit.compile(sample.matmul_kernel, *args, **kwargs)


@pytest.fixture(scope="session")
def add_cuda():
    args, kwargs = sample.add_args()
    return labkit.compile(sample.add_kernel, *args, target="sm_90", **kwargs)
