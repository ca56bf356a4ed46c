"""Kernels that never end are told from those that are merely long, and where the loop is."""

import inspect
from dataclasses import dataclass
from typing import Any

import pytest
import torch

import labkit
from labkit.compiler.assembly import parse_lines
from labkit.emulator.deciding import Passed, deciding
from labkit.emulator.faults import Faults
from labkit.emulator.machine import limit_instructions, numpy_only
from labkit.emulator.program import parse_instruction
from labkit.errors import EndlessKernel
from tests.emulator import seeded_kernels as seeded
from tests.emulator.test_seeded_assembly import START, launch

pytestmark = pytest.mark.usefixtures("mi300x")
PROVED, WAITS = "nothing that decides whether it goes on changes", "all waves that are left read the same"


SUSPECTED = 1 << 12


@pytest.fixture(autouse=True)
def suspicion(monkeypatch):
    """Earlier than by default, so that the tests are short and look more often."""
    monkeypatch.setattr("labkit.emulator.machine._SUSPICIOUS", SUSPECTED)


def integer(value=0):
    return torch.tensor([value], dtype=torch.int32)


@dataclass(frozen=True)
class Seed:
    """A kernel whose BUG makes it endless; without it, `out` becomes `result`."""

    name: str
    grid: tuple
    arguments: Any
    why: str
    result: Any
    options: Any = None

    def launch(self, bug):
        kernel, arguments = getattr(seeded, f"seeded_{self.name}"), self.arguments()
        kernel[self.grid](**arguments, BUG=bug, **(self.options or {}))
        return arguments["out_ptr"]


def collatz():
    return {"x_ptr": torch.arange(1, 257, dtype=torch.int32), "out_ptr": torch.zeros(256, dtype=torch.int32)}


def collatz_turns():
    turns = []
    for x in range(1, 257):
        turns.append(0)
        while x != 1:
            x, turns[-1] = x // 2 if x % 2 == 0 else 3 * x + 1, turns[-1] + 1
    return turns


SEEDS = [
    Seed(
        "forgotten_increment",
        (300,),
        lambda: {"x_ptr": torch.ones(9), "out_ptr": torch.zeros(1), "n": 9},
        PROVED,
        9,
    ),
    Seed(
        "inner_loop", (2,), lambda: {"x_ptr": torch.ones(12), "out_ptr": torch.zeros(1), "n": 3}, PROVED, 36
    ),
    # 2^-149 is the smallest float, and half of it rounds to 0.
    Seed("halving", (1,), lambda: {"x_ptr": torch.ones(1), "out_ptr": integer()}, PROVED, 150),
    Seed("divergent", (1,), collatz, WAITS, collatz_turns(), {"BLOCK": 256}),
    Seed("spin", (2,), lambda: {"flag_ptr": integer(), "out_ptr": integer()}, WAITS, 7),
    Seed("lock", (3,), lambda: {"lock_ptr": integer(), "out_ptr": integer()}, WAITS, 3),
]


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_an_endless_kernel_is_found_at_its_loop(seed):
    kernel = getattr(seeded, f"seeded_{seed.name}")
    lines, start = inspect.getsourcelines(kernel.fn)
    with pytest.raises(EndlessKernel, match=seed.why) as caught:
        seed.launch(bug=True)
    place = str(caught.value).split("in the loop at ")[1].split(",")[0]
    file, number = place.split(":")
    loop = next(k for k, line in enumerate(lines, start) if "while" in line)
    if seed.name == "divergent":  # its maximum over the waves is Triton's own code
        assert file.endswith(".py")
    else:
        assert file == "seeded_kernels.py" and loop <= int(number) < start + len(lines)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_without_the_error_it_ends(seed):
    expected = torch.as_tensor(seed.result)
    assert torch.equal(seed.launch(bug=False).to(torch.float64), expected.to(torch.float64).reshape(-1))
    assert labkit.last_launch().faults == []


def test_a_counter_that_runs_for_ever_comes_to_the_limit():
    arguments = {"out_ptr": integer(), "n": 7}
    with (
        limit_instructions(1_000_000),
        pytest.raises(EndlessKernel, match=r"ran 1,000,000 .*seeded_kernels\.py:"),
    ):
        seeded.seeded_never_true[(2,)](**arguments, BUG=True)
    seeded.seeded_never_true[(2,)](**arguments, BUG=False)
    assert int(arguments["out_ptr"]) == 7


# Each of these runs for longer than it takes to be suspected, which the last line of each test makes sure of.


def instructions_of_a_wave(waves):
    return labkit.last_launch().counters.wave_instructions / waves


def test_a_long_loop_ends():
    out = torch.zeros(1)
    seeded.long_loop[(1,)](torch.ones(4), out, 10_000)
    assert float(out) == 10_000
    assert instructions_of_a_wave(4) > 2 * SUSPECTED


def test_who_waits_for_a_slow_one_is_not_endless():
    flag, out = integer(), integer()
    seeded.slow_handshake[(2,)](flag, out, 20_000)
    value = 1
    for turn in range(20_000):
        value = (value * 5 + turn) & 0xFFFF
    assert int(out) == value | 1
    assert instructions_of_a_wave(8) > 2 * SUSPECTED


def test_tickets_from_memory_come_to_an_end():
    counter, out = integer(), integer()
    seeded.tickets[(1,)](counter, out, 600)
    assert (int(counter), int(out)) == (601, 600)
    assert instructions_of_a_wave(4) > SUSPECTED


def test_many_barriers_are_not_many_instructions():
    out = torch.zeros(1)
    seeded.many_barriers[(1,)](torch.ones(256), out, 1000, BLOCK=256)
    assert float(out) == 256 * 1000 - 1000 * 999 / 2
    assert labkit.last_launch().counters.wave_instructions > 4 * 1000


ASSEMBLY = {
    "a branch to itself": ".again:\ns_branch .again",
    "a condition that stays": """
        s_mov_b32 s14, 0
        .again:
        s_add_u32 s15, s15, 1
        s_cmp_eq_u32 s14, 0
        s_cbranch_scc1 .again""",
    "a mask that stays": """
        v_cmp_eq_u32_e32 vcc, 0, v2
        .again:
        v_add_u32_e32 v5, 1, v5
        s_cbranch_vccnz .again""",
    "two turns in exchange": """
        s_mov_b32 s14, 1
        .again:
        s_xor_b32 s14, s14, 1
        s_cmp_lt_u32 s14, 2
        s_cbranch_scc1 .again""",
    "a barrier in the loop": ".again:\ns_barrier\ns_branch .again",
    "one wave of four": """
        s_cmp_lg_u32 s12, 0x100
        s_cbranch_scc1 .out
        .again:
        s_branch .again
        .out:
        s_nop 0""",
    "some lanes": """
        v_mov_b32_e32 v5, v2
        v_cmp_ne_u32_e32 vcc, 0, v5
        s_and_saveexec_b64 s[14:15], vcc
        .again:
        v_and_b32_e32 v5, 0xfc, v5
        v_cmp_ne_u32_e32 vcc, 0, v5
        s_and_b64 exec, exec, vcc
        s_cbranch_execnz .again""",
}


@pytest.mark.parametrize("path", ["fast", "numpy"])
@pytest.mark.parametrize("name", ASSEMBLY)
def test_endless_machine_code(name, path):
    with pytest.raises(EndlessKernel, match=PROVED):
        if path == "fast":
            launch(START + ASSEMBLY[name])
        else:
            with numpy_only():
                launch(START + ASSEMBLY[name])


def test_a_wave_that_waits_at_a_barrier_for_one_that_never_comes():
    text = "s_cmp_lg_u32 s12, 0\ns_cbranch_scc1 .wait\n.again:\ns_branch .again\n.wait:\ns_barrier"
    with pytest.raises(EndlessKernel, match=PROVED):
        launch(START + text)


def registers(text, forever, all_lanes=True):
    path = [Passed(parse_instruction(line), all_lanes, fnuz=True) for line in parse_lines(text)]
    found = deciding(path, forever=forever)
    return found and ({f"{file}{number}" for file, number in found[0]}, found[1])


@pytest.mark.parametrize(
    ("text", "first", "forever"),
    [
        # The sum in s4 decides nothing, the counter in s5 does, by its step in s6 and its end in s7.
        (
            "s_add_u32 s4, s4, s5\ns_add_u32 s5, s5, s6\ns_cmp_lt_u32 s5, s7\ns_cbranch_scc1 .again",
            {"s5", "s6", "s7"},
            {"s5", "s6", "s7"},
        ),
        # Set in the loop itself: what it was before does not matter.
        ("s_mov_b32 s5, 0\ns_cmp_lt_u32 s5, s7\ns_cbranch_scc1 .again", {"s7"}, {"s7"}),
        # s6 decides in the turn after next.
        (
            "s_cmp_lt_u32 s4, 9\ns_cbranch_scc1 .again\ns_mov_b32 s4, s5\ns_mov_b32 s5, s6",
            {"s4"},
            {"s4", "s5", "s6"},
        ),
        # EXEC says which lanes are compared.
        (
            "v_add_u32_e32 v1, v2, v3\nv_cmp_lt_u32_e32 vcc, v1, v4\ns_cbranch_vccnz .again",
            {"v2", "v3", "v4", "s126", "s127"},
            {"v2", "v3", "v4", "s126", "s127"},
        ),
    ],
)
def test_what_decides(text, first, forever):
    assert registers(text, False) == (first, [])
    assert registers(text, True) == (forever, [])


@pytest.mark.parametrize(
    ("write", "all_lanes", "kept"),
    [
        ("v_mov_b32_e32 v1, v2", True, False),
        ("v_mov_b32_e32 v1, v2", False, True),  # lanes that are off keep what they had
        ("v_writelane_b32 v1, s2, 3", True, True),
        ("v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xa bank_mask:0xf", True, True),
        ("v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf", True, True),
        ("v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1", True, False),
        ("v_mov_b32_dpp v1, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", True, False),
        ("global_load_short_d16 v1, v[2:3], off", True, True),
        ("global_load_dword v1, v[2:3], off", True, False),
    ],
)
def test_what_a_register_held_before_counts_unless_all_of_it_is_replaced(write, all_lanes, kept):
    found, _ = registers(f"{write}\nv_cmp_eq_u32_e32 vcc, 0, v1\ns_cbranch_vccnz .again", False, all_lanes)
    assert ("v1" in found) == kept


def test_what_decides_through_memory():
    text = (
        "global_load_dword v1, v[2:3], off\nglobal_load_dword v9, v[2:3], off\nv_readfirstlane_b32 s4, v1\n"
    )
    found, loads = registers(text + "s_cmp_eq_u32 s4, 0\ns_cbranch_scc1 .again", True)
    assert loads == [0] and {"v2", "v3"} <= found and "v9" not in found


def test_what_is_not_known_decides_nothing():
    assert registers("s_memtime s[4:5]\ns_cmp_eq_u32 s4, 0\ns_cbranch_scc1 .again", True) is None


def test_off_looks_for_endless_loops_too():
    assert Faults("off").findings == []
    with pytest.raises(EndlessKernel):
        launch(START + ".again:\ns_branch .again", "off")
