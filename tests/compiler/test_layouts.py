"""Blocked layouts against cases worked by hand and against Triton's own linear layouts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.compiler.layouts import Blocked, parse_layouts, tensor_shapes
from labkit.errors import LabkitError


def test_parsed_from_the_ir(add, matmul):
    assert parse_layouts(add.stages["ttgir"]) == {"#blocked": Blocked((4,), (64,), (4,), (0,))}
    assert add.layouts() == parse_layouts(add.stages["ttgir"])
    assert tensor_shapes(add.stages["ttgir"], "#blocked") == [(1024,)]
    for name, layout in matmul.layouts().items():
        assert int(np.prod(layout.threads_per_warp)) == 64
        assert all(len(shape) == 2 for shape in tensor_shapes(matmul.stages["ttgir"], name))


def test_shapes_of_pointers_and_of_one_name_only():
    text = (
        "tensor<8x4x!tt.ptr<f16>, #blocked1> tensor<16xi32, #blocked> tensor<8x4xf8E4M3FNUZ, #blocked1> "
        "tensor<2x!tt.ptr<f16, 1>, #blocked> tensor<32xi1, #ttg.slice<{dim = 0, parent = #blocked}>>"
    )
    assert tensor_shapes(text, "#blocked1") == [(8, 4)]
    assert tensor_shapes(text, "#blocked") == [(16,), (2,)]


def test_by_hand():
    # Eight neighbours a lane, 16 lanes across, 4 down, then four waves down: a tile of 16 x 128.
    layout = Blocked((1, 8), (4, 16), (4, 1), (1, 0))
    assert layout.tile == (16, 128)
    shape = (32, 256)
    assert layout.owner(0, 0, shape=shape) == (0, 0, 0)
    assert layout.owner(0, 7, shape=shape) == (0, 0, 7)
    assert layout.owner(0, 8, shape=shape) == (0, 1, 0)
    assert layout.owner(1, 0, shape=shape) == (0, 16, 0)
    assert layout.owner(4, 0, shape=shape) == (1, 0, 0)
    assert layout.owner(0, 128, shape=shape) == (0, 0, 8)
    assert layout.owner(16, 0, shape=shape) == (0, 0, 16)
    assert layout.owner(31, 255, shape=shape) == (3, 63, 31)
    assert layout.copies(shape) == 1
    assert layout.copies((16, 1)) == 16
    assert layout.owner(15, 0, shape=(32, 1)) == (3, 48, 0)
    assert layout.owner(16, 0, shape=(32, 1)) == (0, 0, 1)


@pytest.mark.parametrize("shape", [(16,), (16, 24), (0, 16), (16, 16, 16)])
def test_shape_that_does_not_fit(shape):
    with pytest.raises(LabkitError, match="doesn't fit"):
        Blocked((1, 8), (4, 16), (4, 1), (1, 0)).owners(shape)


def test_field_that_is_missing():
    with pytest.raises(LabkitError, match="threadsPerWarp"):
        parse_layouts("#blocked = #ttg.blocked<{sizePerThread = [1], warpsPerCTA = [4], order = [0]}>")


@st.composite
def layouts(draw):
    rank = draw(st.integers(1, 3))
    parts = [split(draw, rank, bits) for bits in (draw(st.integers(0, 4)), 6, draw(st.integers(0, 3)))]
    order = tuple(draw(st.permutations(range(rank))))
    shape = tuple(2 ** draw(st.integers(0, 7 if rank < 3 else 4)) for _ in range(rank))
    return Blocked(*parts, order), shape


def split(draw, rank, bits):
    cuts = sorted(draw(st.integers(0, bits)) for _ in range(rank - 1))
    return tuple(2 ** (high - low) for low, high in zip([0, *cuts], [*cuts, bits], strict=True))


def lowest_owners(linear, shape):
    """(wave, lane, register) of each element by the bases of a linear layout; the lowest of several."""
    found = {}
    # Triton 3.9 leaves out the registers that only hold copies (a base of zeros), earlier ones list them.
    registers = [base for base in linear.reg_bases if any(base)]
    levels = (linear.warp_bases, linear.lane_bases, registers)
    for place in np.ndindex(*(2 ** len(bases) for bases in levels)):
        index = np.zeros(len(shape), dtype=int)
        for number, bases in zip(place, levels, strict=True):
            for bit, base in enumerate(bases):
                if number >> bit & 1:
                    index ^= base
        found.setdefault(tuple(index), place)
    return found


@settings(max_examples=25, deadline=None)
@given(layouts())
def test_as_triton_lays_it_out(case):
    layout, shape = case
    ir = pytest.importorskip("triton._C.libtriton").ir
    gluon_ir = pytest.importorskip("triton._C.libtriton").gluon_ir
    context = ir.context()
    ir.load_dialects(context)
    builder = gluon_ir.GluonOpBuilder(context)
    fields = (layout.size_per_thread, layout.threads_per_warp, layout.warps_per_cta, layout.order)
    attribute = builder.get_blocked_layout(*map(list, fields), [])
    expected = lowest_owners(builder.to_linear_layout(attribute, list(shape)), shape)
    owners = layout.owners(shape)
    found = {i: (owners.wave[i], owners.lane[i], owners.register[i]) for i in np.ndindex(*shape)}
    assert found == expected
