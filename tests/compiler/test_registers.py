"""Registers against the kernel descriptor in the ELF, and occupancy against the datasheet's table."""

import io

import pytest
import torch
from elftools.elf.elffile import ELFFile

import labkit
from labkit.compiler.registers import read_occupancy, read_registers
from labkit.errors import LabkitError
from labkit.hardware import waves_per_simd
from tests.compiler import sample

SHAPES = [
    (16, 64, 64),
    (32, 32, 128),
    (64, 64, 64),
    (64, 128, 32),
    (128, 128, 32),
    (128, 128, 64),
    (256, 64, 32),
]


def kernels():
    for block in (64, 1024, 8192):
        for dtype in (torch.float32, torch.float16):
            args, kwargs = sample.add_args(block=block, dtype=dtype)
            yield labkit.compile(sample.add_kernel, *args, **kwargs, num_warps=1)
    x = torch.zeros(64)
    for block in (256, 4096, 16384):
        yield labkit.compile(sample.softmax_kernel, x, x, 1000, BLOCK=block, num_warps=4)
    for shape in SHAPES:
        args, kwargs = sample.matmul_args(*shape)
        for num_warps in (4, 8):
            yield labkit.compile(sample.matmul_kernel, *args, **kwargs, num_warps=num_warps)


def granted_registers(compiled):
    """Vector registers by the descriptor: 6 bits of COMPUTE_PGM_RSRC1 hold (granted / 8) - 1."""
    elf = ELFFile(io.BytesIO(compiled.stages["hsaco"]))
    symbol = elf.get_section_by_name(".dynsym").get_symbol_by_name(f"{compiled.name}.kd")[0]
    section = elf.get_section(symbol["st_shndx"])
    start = symbol["st_value"] - section["sh_addr"] + 48
    return (int.from_bytes(section.data()[start : start + 4], "little") % 64 + 1) * 8


def test_many_kernels():
    seen = set()
    for compiled in kernels():
        registers = compiled.registers
        assert granted_registers(compiled) == max(-(-registers.vgprs_total // 8) * 8, 8)
        assert compiled.occupancy == waves_per_simd(registers.vgprs_total)
        # Accumulation registers start at a multiple of four.
        assert registers.vgprs_total in (registers.vgprs, -(-registers.vgprs // 4) * 4 + registers.agprs)
        seen.add(compiled.occupancy)
    assert len(seen) >= 4  # the samples reach far apart, so that agreement means something


def test_lds_and_spills(softmax, matmul):
    assert softmax.registers.lds_bytes == 4 * 4  # one float a wave
    # Both operands stand in LDS, fp16: 16 x 64 and 64 x 64.
    assert matmul.registers.lds_bytes == 2 * (16 * 64 + 64 * 64)
    assert (matmul.registers.vgpr_spills, matmul.registers.scratch_bytes) == (0, 0)


def test_text_without_metadata():
    with pytest.raises(LabkitError, match="amdgpu_metadata"):
        read_registers("s_endpgm\n", lds_bytes=0)
    with pytest.raises(LabkitError, match="Occupancy"):
        read_occupancy("s_endpgm\n")


def test_only_amd_has_registers(add_cuda):
    with pytest.raises(LabkitError, match="sm_90"):
        _ = add_cuda.registers
