"""Occupancy against LLVM's own comments, and against the architecture's figures worked by hand."""

from pathlib import Path

import pandas as pd
import pytest

from labkit.errors import LabkitError
from labkit.hardware import UnknownChip
from labkit.model.occupancy import occupancy, staircase

# What LLVM wrote into the assembly of kernels for gfx942: registers, LDS of the launch, and `; Occupancy:`.
KERNELS = pd.read_csv(Path(__file__).with_name("occupancy.tsv"), sep="\t")


def test_agrees_with_llvm_on_hundreds_of_kernels():
    assert len(KERNELS) > 300 and set(KERNELS["occupancy"]) == set(range(1, 9))
    assert (KERNELS["agprs"] > 0).sum() > 30 and (KERNELS["sgprs"] > 100).sum() > 30
    ours = [occupancy(*row[:5]).waves_by_registers for row in KERNELS.itertuples(index=False)]
    assert ours == KERNELS["occupancy"].tolist()


@pytest.mark.parametrize(
    "used,groups,limited",
    [
        ((32, 0, 30, 0, 256), 8, ["wave slots"]),
        ((32, 0, 30, 0, 1024), 2, ["wave slots"]),
        ((32, 0, 30, 0, 64), 32, ["wave slots"]),
        ((90, 0, 30, 0, 256), 5, ["vector registers"]),  # granted 96 of 512
        ((128, 128, 30, 0, 256), 2, ["vector registers"]),
        ((129, 4, 30, 0, 256), 3, ["vector registers"]),  # 132 + 4 is granted as 136, 512 // 136 = 3
        ((32, 0, 106, 0, 256), 7, ["scalar registers"]),  # 800 // 106
        ((32, 0, 30, 65536, 256), 1, ["LDS"]),
        ((32, 0, 30, 32768, 256), 2, ["LDS"]),
        ((32, 0, 30, 32769, 256), 1, ["LDS"]),  # granted 33,280
        ((128, 0, 30, 16384, 256), 4, ["vector registers", "LDS"]),
        # Three waves a SIMD are twelve a CU: a workgroup of eight fits once.
        ((168, 0, 30, 0, 512), 1, ["vector registers"]),
        ((256, 64, 30, 0, 1024), 0, ["vector registers"]),  # four waves a SIMD of 320: it cannot run
    ],
)
def test_limits_by_hand(used, groups, limited):
    found = occupancy(*used)
    assert found.workgroups_per_cu == groups and found.limited_by == limited
    assert found.waves_per_cu == groups * -(-used[4] // 64)


@pytest.mark.parametrize("used", [row[:5] for row in KERNELS.itertuples(index=False)][::7])
def test_the_next_step_is_a_step_and_the_first_one(used):
    """With what it asks for one workgroup more fits; with a granule more of one resource it does not."""
    now = occupancy(*used)
    at_most = {x.resource: x.at_most for x in now.limits}
    if None in at_most.values():
        assert (now.workgroups_per_cu + 1) * now.waves_per_workgroup > 32
        return
    vgprs = min(used[0], at_most["vector registers"])
    agprs = 0 if used[0] > vgprs else min(used[1], (at_most["vector registers"] - vgprs) // 4 * 4)
    sgprs = min(used[2], at_most["scalar registers"])
    lds = min(used[3], at_most["LDS"])
    assert occupancy(vgprs, agprs, sgprs, lds, used[4]).workgroups_per_cu > now.workgroups_per_cu
    more = at_most["vector registers"] + 1
    if more <= 512:
        worse = occupancy(min(more, 256), max(more - 256, 0), sgprs, lds, used[4])
        assert worse.workgroups_per_cu <= now.workgroups_per_cu


def test_next_step_in_words():
    assert occupancy(90, 0, 30, 20000, 256).next_step() == (
        "For 4 workgroups a compute unit: LDS 20000 -> 16384 bytes."
    )
    assert occupancy(100, 0, 30, 0, 256).next_step() == (
        "For 5 workgroups a compute unit: vector registers 100 -> 96 a lane."
    )
    assert "no more workgroups fit" in occupancy(64, 0, 30, 0, 256).next_step()


def test_table():
    table = occupancy(90, 0, 30, 20000, 256).table.set_index("resource")
    assert table["granted"].to_dict() == {
        "vector registers": 96,
        "scalar registers": 30,
        "LDS": 20480,
        "wave slots": 4,
    }
    assert table.index[table["limits"]].tolist() == ["LDS"]
    assert table["workgroups_per_cu"].tolist() == [5, 8, 3, 8]


def test_staircase_breaks_where_the_architecture_says():
    table = staircase()
    last = table.groupby("waves a SIMD")["vector registers a lane"].max().to_dict()
    assert last == {8: 64, 7: 72, 6: 80, 5: 96, 4: 128, 3: 168, 2: 256, 1: 512}


@pytest.mark.parametrize(
    "used",
    [(257, 0, 30, 0, 64), (0, -1, 30, 0, 64), (0, 0, 200, 0, 64), (0, 0, 0, 65537, 64), (0, 0, 0, 0, 1025)],
)
def test_out_of_range(used):
    with pytest.raises(LabkitError):
        occupancy(*used)


def test_a_chip_without_sourced_limits_is_refused():
    with pytest.raises(UnknownChip):
        occupancy(32, 0, 30, 0, 256, chip_name="H100")
