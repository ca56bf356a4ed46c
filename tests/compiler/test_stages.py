"""Compiling: the same code as a launch makes, every target, every kind of argument, plain errors."""

import pytest
import torch
import triton
from triton.compiler.errors import CompilationError
from triton.runtime.driver import driver

import labkit
from labkit.compiler import triton_api
from labkit.errors import EnvironmentProblem, LabkitError, LaunchError
from tests.compiler import sample


def mnemonics(compiled):
    return set(compiled.listing()["mnemonic"])


class RecordingDriver:
    """Triton's own launch path up to the launcher, without labkit: what would have been launched."""

    def __init__(self):
        self.utils = self
        self.binaries = []

    def get_current_target(self):
        return triton_api.gpu_target("gfx942")

    def get_current_device(self):
        return "recording"

    def get_current_stream(self, device):
        return 0

    def get_device_properties(self, device):
        return {"max_shared_mem": 65536}

    def load_binary(self, name, binary, shared, device):
        self.binaries.append(binary)
        return None, None, 0, 0, 1024

    def unload_module(self, module):
        pass

    def launcher_cls(self, source, metadata):
        return lambda *args: None


@pytest.fixture
def recording(monkeypatch):
    recorder = RecordingDriver()
    monkeypatch.setattr(driver, "_active", recorder)
    return recorder


x = torch.zeros(4096)
LAUNCHES = {
    "plain": (sample.add_kernel, (x, x, x, 1000), {"BLOCK": 1024}),
    "one": (sample.add_kernel, (x, x, x, 1), {"BLOCK": 64}),
    "divisible": (sample.add_kernel, (x, x, x, 4096), {"BLOCK": 1024, "num_warps": 8}),
    "unaligned": (sample.add_kernel, (x[1:], x, x, 1000), {"BLOCK": 1024}),
    "long": (sample.add_kernel, (x, x, x, 2**40), {"BLOCK": 1024}),
    "tuple and None": (sample.gather_kernel, ((x, x), x, None), {}),
    "tuple and bias": (sample.gather_kernel, ((x, x), x, x), {"width": 48, "BLOCK": 32}),
    "options": (sample.matmul_kernel, *sample.matmul_args()),
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_same_binary_as_a_launch(name, recording):
    kernel, args, kwargs = LAUNCHES[name]
    kernel[(3,)](*args, **kwargs)
    compiled = labkit.compile(kernel, *args, **kwargs)
    assert compiled.stages["hsaco"] == recording.binaries[-1]
    assert driver._active is recording


def test_from_triton_is_the_same(recording, add):
    kernel, args, kwargs = LAUNCHES["plain"]
    launched = labkit.compiler.Compiled.from_triton(kernel[(3,)](*args, **kwargs))
    assert launched.stages == add.stages
    assert (launched.name, launched.target, launched.num_warps) == ("add_kernel", "gfx942", 4)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1100"])
def test_amd_targets(target):
    args, kwargs = sample.add_args()
    compiled = labkit.compile(sample.add_kernel, *args, target=target, **kwargs)
    assert compiled.target == target
    assert list(compiled.stages) == ["ttir", "ttgir", "llir", "amdgcn", "hsaco"]
    # Triton 3.9 writes the first part of the name in another way; the chip stands at its end in all.
    assert compiled.stages["amdgcn"].splitlines()[0].endswith(f'-{target}"')
    assert compiled.stages["hsaco"].startswith(b"\x7fELF")
    assert compiled.occupancy == (16 if target == "gfx1100" else 8)


def test_nvidia_target(add_cuda):
    assert list(add_cuda.stages) == ["ttir", "ttgir", "llir", "ptx", "cubin"]
    assert ".target sm_90" in add_cuda.stages["ptx"]


def test_alignment_reaches_the_code():
    aligned = labkit.compile(sample.add_kernel, x, x, x, 4096, BLOCK=1024)
    unaligned = labkit.compile(sample.add_kernel, x[1:], x, x, 4096, BLOCK=1024)
    loads = [table[table["class"] == "VMEM load"] for table in (aligned.listing(), unaligned.listing())]
    assert set(loads[0]["mnemonic"]) == {"buffer_load_dwordx4"}
    assert "buffer_load_dword" in set(loads[1]["mnemonic"])


def test_stand_ins_for_tensors():
    real = labkit.compile(sample.add_kernel, x, x, x, 1000, BLOCK=1024)
    types = labkit.compile(sample.add_kernel, *[torch.float32] * 3, 1000, BLOCK=1024)
    meta = torch.empty(4096, device="meta")
    assert types.stages["amdgcn"] == real.stages["amdgcn"]
    assert labkit.compile(sample.add_kernel, meta, meta, meta, 1000, BLOCK=1024).stages == real.stages


def test_over_2_gb_there_are_no_buffer_operations():
    small, large = (torch.empty(size, device="meta") for size in (4096, 2**30))
    names = [mnemonics(labkit.compile(sample.add_kernel, t, t, t, 1000, BLOCK=1024)) for t in (small, large)]
    assert any(name.startswith("buffer_load") for name in names[0])
    assert not any(name.startswith("buffer_") for name in names[1])


def autotuned(**options):
    configs = [triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((256, 2), (512, 8))]
    return triton.autotune(configs, key=["n"], **options)(sample.add_kernel)


def test_autotuned_takes_the_first_and_says_so():
    compiled = labkit.compile(autotuned(), x, x, x, 1000)
    assert compiled.num_warps == 2
    assert "first of 2 configurations" in compiled.note
    assert "BLOCK: 256" in compiled.note
    plain = labkit.compile(sample.add_kernel, x, x, x, 1000, BLOCK=256, num_warps=2)
    assert compiled.stages == plain.stages
    assert plain.note == ""


def test_autotuned_takes_the_first_that_is_left():
    prune = {
        "early_config_prune": lambda configs, args, **kwargs: [c for c in configs if c.num_warps > args["n"]]
    }
    assert labkit.compile(autotuned(prune_configs_by=prune), x, x, x, 4).num_warps == 8


def test_autotuned_with_a_value_that_it_sets():
    with pytest.raises(LaunchError, match="BLOCK"):
        labkit.compile(autotuned(), x, x, x, 1000, BLOCK=64)


def test_heuristics():
    rule = {"BLOCK": lambda args: triton.next_power_of_2(args["n"])}
    compiled = labkit.compile(triton.heuristics(rule)(sample.add_kernel), x, x, x, 1000)
    assert "tensor<1024xf32" in compiled.stages["ttir"]


def test_unknown_target_names_the_known_ones():
    with pytest.raises(LabkitError, match="gfx90a, gfx942, gfx950, gfx1100, sm_90"):
        labkit.compile(sample.add_kernel, x, x, x, 1000, BLOCK=1024, target="MI300X")


def test_not_a_kernel():
    with pytest.raises(LaunchError, match=r"@triton\.jit, got function"):
        labkit.compile(mnemonics, x)


def test_interpreted_kernel():
    from triton.runtime.interpreter import InterpretedFunction

    with pytest.raises(LaunchError, match="TRITON_INTERPRET"):
        labkit.compile(InterpretedFunction(sample.add_kernel.fn), x, x, x, 1000, BLOCK=1024)


def test_compile_errors_pass_through_and_the_driver_comes_back(recording):
    with pytest.raises(CompilationError, match="no_such_name"):
        labkit.compile(sample.broken_kernel, x, BLOCK=64)
    assert driver._active is recording


def test_cache_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(EnvironmentProblem, match="TRITON_CACHE_DIR"):
        labkit.compile(sample.add_kernel, x, x, x, 1000, BLOCK=2, num_warps=1)


def test_repr_names_what_it_is(add):
    assert "add_kernel for gfx942, 4 waves" in repr(add)
