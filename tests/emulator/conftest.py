"""The emulator's tests run on an emulated MI300X."""

import pytest
from hypothesis import settings

import labkit
from tests.emulator import harness

# The same inputs in every run, and no time limit an example: a shared machine is slow now and then.
settings.register_profile("labkit", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("labkit")


@pytest.fixture
def mi300x():
    return labkit.start("MI300X", quiet=True)


@pytest.fixture(scope="module", params=["numpy", "fast"])
def engine(request):
    """Runs a module's tests of instructions twice: by the NumPy steps, and by the fast path where it can."""
    harness.ENGINE[0] = request.param
    yield request.param
    harness.ENGINE[0] = "numpy"


@pytest.fixture
def no_finding():
    """An emulated MI300X that must run the test's kernels without a finding of a fault."""
    labkit.start("MI300X", faults="report", quiet=True)
    with labkit.record() as launches:
        yield
    assert launches
    assert [finding for launch in launches for finding in launch.faults] == []
