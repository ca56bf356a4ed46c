"""The pass trace: it joins up, ends where the compile ended, shows known effects, and fails plainly."""

import os
import re
import time
from types import SimpleNamespace

import pytest

from labkit.compiler import passes, triton_api
from labkit.compiler.diff import diff_html
from labkit.compiler.passes import Pass, parse_dump, pass_table
from labkit.errors import LabkitError


def test_each_pass_starts_where_the_last_one_ended(softmax):
    trace = softmax.passes()
    assert len(trace) > 40
    assert [step.number for step in trace] == list(range(len(trace)))
    assert all(one.after == two.before for one, two in zip(trace, trace[1:], strict=False))
    stages = [step.stage for step in trace]
    assert stages == sorted(stages, key=["ttir", "ttgir", "llir"].index)
    assert 5 < sum(step.changed for step in trace) < len(trace) / 2
    assert softmax.passes() is trace


def operations(ir):
    return re.findall(r"^ *(?:%\S+ = )?\"?([a-z_]+\.[\w.]+)", ir, re.MULTILINE)


def test_stages_end_on_what_the_compile_made(softmax):
    for stage in ("ttir", "ttgir"):
        last = [step for step in softmax.passes() if step.stage == stage][-1]
        assert len(operations(last.after)) > 15
        assert operations(last.after) == operations(softmax.stages[stage])
    assert "define amdgpu_kernel void @softmax_kernel" in softmax.passes()[-1].after


def changed(trace, name):
    return [step for step in trace if step.name == name and step.changed]


def test_known_effects(softmax, matmul):
    (layouts,) = changed(softmax.passes(), "convert-triton-to-tritongpu")
    assert "#ttg.blocked" not in layouts.before
    assert "#ttg.blocked" in layouts.after
    (mfma,) = changed(matmul.passes(), "tritonamdgpu-accelerate-matmul")
    assert "#ttg.amd_mfma" in mfma.diff()
    (buffers,) = changed(matmul.passes(), "tritonamdgpu-convert-buffer-ops")
    assert "amdg.buffer_load" in buffers.after
    assert "amdg.buffer_load" not in buffers.before
    assert not changed(softmax.passes(), "tritonamdgpu-accelerate-matmul")
    assert changed(softmax.passes(), "llvm-o3")


def test_no_locations_and_no_folders_are_left(softmax):
    texts = [step.before for step in softmax.passes()]
    assert not any("loc(" in text or "#di_" in text or "!dbg" in text for text in texts)
    assert not any("site-packages" in text or "sample.py" in text for text in texts)


def test_nvidia_too(add_cuda):
    trace = add_cuda.passes()
    assert changed(trace, "convert-triton-to-tritongpu")
    assert "ptx_kernel" in trace[-1].after


@pytest.mark.parametrize("name", ["add", "add_cuda"])
def test_compiled_in_an_environment_that_is_gone(name, request):
    """Triton's cache outlives the environment, whose paths its metadata hold."""
    kernel = request.getfixturevalue(name).triton
    gone = tuple((library, f"/gone/{library}.bc") for library, _ in kernel.metadata.extern_libs)
    old = SimpleNamespace(src=kernel.src, asm=kernel.asm, metadata=kernel.metadata._replace(extern_libs=gone))
    assert gone and passes.trace_passes(old)


def test_nothing_is_printed_and_no_child_is_left(add, capfd):
    passes.trace_passes(add.triton)
    assert capfd.readouterr() == ("", "")
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_table(softmax):
    table = pass_table(softmax.passes())
    assert len(table) == len(softmax.passes())
    quiet = table[~table["changed"]]
    assert (quiet["lines_added"] + quiet["lines_removed"]).sum() == 0
    busy = table[table["changed"]]
    assert (busy["lines_added"] + busy["lines_removed"]).min() > 0


DUMP = """\
noise before
// labkit: stage ttir
// -----// IR Dump Before Inliner (inline) ('builtin.module' operation) //----- //
#loc = loc("/tmp/a (1)/k.py":3:0)
module { op loc("x"(#loc)) }
// -----// IR Dump Before CSEPass: cse{a=1 b=} ('tt.func' operation: @f) //----- //
module { op loc(callsite(#loc at #loc1)) }
// labkit: stage llir
// -----// IR Dump Before LLVMDIScope (enable-line-info) ('builtin.module' operation) //----- //
module { op2 }
// labkit: text mlir
module { op2 loc(fused<#di>[#loc9]) }
// labkit: text llvm
define void @f() !dbg !5 {
!5 = distinct !DISubprogram(name: "f")
// labkit: stage amdgcn
"""


def test_dump_of_both_forms():
    trace = parse_dump(DUMP, final="define void @f() #0 {")
    assert [(step.name, step.stage, step.scope, step.changed) for step in trace] == [
        ("inline", "ttir", "", False),
        ("cse", "ttir", "@f", True),
        ("enable-line-info", "llir", "", False),
        ("to-llvm-ir", "llir", "", True),
        ("llvm-o3", "llir", "", True),
    ]
    assert trace[0].before == "module { op }"
    assert trace[-1].before == "define void @f() {"


def test_unknown_header_is_kept_whole():
    (step,) = parse_dump("// -----// IR Dump Before What is this? //----- //\nmodule\n", final="x")
    assert (step.name, step.scope, step.description) == ("What is this?", "", "")


def test_no_dump_no_passes():
    assert parse_dump("", final="x") == []


def make(before, after):
    return Pass(0, "cse", "ttir", "", "\n".join(before), "\n".join(after))


def removed_and_added(step):
    return [line for line in step.diff().splitlines()[3:] if line[0] != " "]


def test_diff_leaves_out_renumbering():
    step = make(["%0 = one", "%1 = other", "%2 = two %1"], ["%0 = other", "%1 = two %0"])
    assert removed_and_added(step) == ["-%0 = one"]


def test_diff_follows_a_layout_that_changes_its_name():
    before = ["#blocked = A", "#blocked1 = B", "load #blocked", "store #blocked1"]
    step = make(before, ["#blocked = B", "store #blocked"])
    assert removed_and_added(step) == ["-#blocked = A", "-load #blocked"]


def test_diff_shows_names_where_nothing_else_changed():
    step = make(["%0 = two %a", "end"], ["%0 = two %b", "end"])
    assert "-%0 = two %a" in step.diff()
    assert make(["same"], ["same"]).diff() == ""


def test_html_is_escaped_and_bounded():
    step = make(["a"], [f"tensor<{i}> & more" for i in range(1000)])
    page = diff_html(step.diff(), "title", max_lines=50)
    assert "tensor&lt;0&gt; &amp; more" in page
    assert "tensor<" not in page
    assert "952 more lines" in page
    assert "No change" in make(["a"], ["a"])._repr_html_()


def test_described(softmax):
    steps = {step.name: step.description for step in softmax.passes()}
    assert all(steps[name].endswith(".") for name in ("cse", "tritongpu-coalesce", "llvm-o3"))


def test_child_that_fails(add, monkeypatch):
    def fail(kernel):
        raise RuntimeError("pass X broke")

    monkeypatch.setattr(triton_api, "compile_again", fail)
    with pytest.raises(LabkitError, match="pass X broke"):
        passes.trace_passes(add.triton)


def test_child_that_hangs(add, monkeypatch):
    monkeypatch.setattr(triton_api, "compile_again", lambda kernel: time.sleep(60))
    monkeypatch.setattr(passes, "TIME_LIMIT_SECONDS", 0.2)
    started = time.monotonic()
    with pytest.raises(LabkitError, match="stopped"):
        passes.trace_passes(add.triton)
    assert time.monotonic() - started < 10


def test_system_without_fork(add, monkeypatch):
    monkeypatch.delattr(os, "fork")
    with pytest.raises(LabkitError, match="fork"):
        passes.trace_passes(add.triton)
