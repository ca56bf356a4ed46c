"""The kernels run on the emulated MI300X, whose FP8 is e4m3fnuz."""

import pytest

import labkit


@pytest.fixture
def mi300x():
    return labkit.start("MI300X")
