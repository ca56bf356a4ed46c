"""The emulator's tests run on an emulated MI300X."""

import pytest

import labkit


@pytest.fixture
def mi300x():
    return labkit.start("MI300X", quiet=True)
