"""Assembly text: hand-written lines, and real kernels against PyYAML and the ELF's own line table."""

import inspect
import io
import itertools
import subprocess
import sys

import pytest
import yaml
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from labkit.compiler.assembly import parse_descriptor, parse_lines, parse_metadata
from tests.compiler import sample

TEXT = """\
\t.text
add:                                    ; @add
; %bb.1:
\ts_nop 0
\t.file\t1 "/some/dir" "a;b.py"
\t.file\t2 "/lib" "standard.py"
\t.loc\t1 7 36 is_stmt 1                  ; a;b.py:7:36
\tv_add_f32_e32 v1, v2, v3
\t.loc\t2 293 36                        ; standard.py:293:36 @[ kern.py:20:47 ]
\ts_waitcnt vmcnt(0) lgkmcnt(0)
\t.loc\t2 170 27                        ; standard.py:170:27 @[ standard.py:191:40 @[ kern.py:9:19 ] ]
\ts_barrier

.LBB0_3:                                ; =>This Inner Loop Header: Depth=1
\t.loc\t2 0 40 is_stmt 0                ; standard.py:0:40
\ts_cbranch_scc1 .LBB0_3                ; 4-byte Folded Spill
\t.p2align\t8
\t.ascii\t"x;y:"
; Kernel info:
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .name:           add
...
\t.end_amdgpu_metadata
"""


def test_kinds_and_numbers():
    found = [(line.number, line.kind) for line in parse_lines(TEXT)]
    kinds = {number: kind for number, kind in found if kind != "directive"}
    assert kinds == {
        **{2: "label", 3: "block", 4: "instruction", 8: "instruction", 10: "instruction", 12: "instruction"},
        **{14: "label", 16: "instruction", 19: "comment", 21: "metadata", 22: "metadata", 23: "metadata"},
        24: "metadata",
    }
    assert [number for number, kind in found if kind == "directive"] == [
        1,
        5,
        6,
        7,
        9,
        11,
        15,
        17,
        18,
        20,
        25,
    ]


def test_texts():
    lines = {line.number: line for line in parse_lines(TEXT)}
    assert lines[2].text == "add"
    assert lines[3].text == "%bb.1"
    assert lines[14].text == ".LBB0_3"
    assert lines[18].text == '.ascii\t"x;y:"'
    assert (lines[10].mnemonic, lines[10].operands) == ("s_waitcnt", "vmcnt(0) lgkmcnt(0)")
    assert (lines[16].text, lines[16].operands) == ("s_cbranch_scc1 .LBB0_3", ".LBB0_3")
    assert (lines[12].mnemonic, lines[12].operands) == ("s_barrier", "")


def places(line):
    source = (line.source_file, line.source_line, line.source_column)
    return source, (line.inlined_file, line.inlined_line, line.inlined_column)


def test_source_is_the_outermost_call_site():
    lines = {line.number: line for line in parse_lines(TEXT)}
    assert places(lines[4]) == (("", 0, 0), ("", 0, 0))
    assert places(lines[8]) == (("a;b.py", 7, 36), ("a;b.py", 7, 36))
    assert places(lines[10]) == (("kern.py", 20, 47), ("standard.py", 293, 36))
    assert places(lines[12]) == (("kern.py", 9, 19), ("standard.py", 170, 27))
    assert places(lines[16]) == (("", 0, 0), ("", 0, 0))


@pytest.mark.parametrize("text", ["", "\n\n", "\t.loc 1\n", "\t.loc\t9 4 2\n\ts_nop 0\n"])
def test_odd_texts(text):
    assert all(line.source_file == "" for line in parse_lines(text))


@given(st.text(max_size=200))
def test_any_text_is_read(text):
    assert all(0 < line.number <= len(text.splitlines()) for line in parse_lines(text))


def test_descriptor():
    text = (
        "\t.amdhsa_code_object_version 5\n\t\t.amdhsa_kernarg_size 40\n.amdhsa_x 0x1f\n.amdhsa_y max(a, b)\n"
    )
    assert parse_descriptor(text) == {"kernarg_size": 40, "x": 31}


def test_metadata_as_pyyaml_reads_it(softmax, matmul):
    for compiled in (softmax, matmul):
        asm = compiled.stages["amdgcn"]
        block = asm.split(".amdgpu_metadata\n")[1].split("\t.end_amdgpu_metadata")[0]
        kernel = yaml.safe_load(block)["amdhsa.kernels"][0]
        expected = {name.removeprefix("."): value for name, value in kernel.items()}
        expected["args"] = [{k.removeprefix("."): v for k, v in arg.items()} for arg in kernel[".args"]]
        assert parse_metadata(asm) == expected


def test_metadata_of_other_text():
    assert parse_metadata("\ts_nop 0\n") == {}


def test_innermost_lines_are_those_of_the_elf(softmax):
    dwarf = ELFFile(io.BytesIO(softmax.stages["hsaco"])).get_dwarf_info()
    unit = next(dwarf.iter_CUs())
    program = dwarf.line_program_for_CU(unit)
    states = [entry.state for entry in program.get_entries() if entry.state and not entry.state.end_sequence]
    table = [state.line for state in states]
    # Line 0 also stands for the padding before the real entry, where the text has a directive only.
    ours = [line.inlined_line for line in parse_lines(softmax.stages["amdgcn"]) if line.kind == "instruction"]
    squeezed = [[line for line, _ in itertools.groupby(filter(None, lines))] for lines in (table, ours)]
    assert len(squeezed[0]) > 20
    assert squeezed[0] == squeezed[1]


def test_stores_come_from_the_line_of_the_store(softmax):
    source, first = inspect.getsourcelines(sample.softmax_kernel.fn)
    line = first + next(i for i, text in enumerate(source) if "tl.store" in text)
    stores = [row for row in parse_lines(softmax.stages["amdgcn"]) if "_store_" in row.mnemonic]
    assert stores
    assert {(row.source_file, row.source_line) for row in stores} == {("sample.py", line)}


def test_needs_neither_torch_nor_triton_nor_pandas():
    code = (
        "import sys, labkit.compiler.assembly, labkit.compiler.listing\n"
        "print([m for m in ('torch', 'triton', 'pandas', 'numpy', 'matplotlib') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
