"""Operations of IR text and the syntax nodes that they came from."""

import inspect

from labkit.compiler.front_end import node_by_operation, operations
from tests.compiler import sample

# What Triton 3.9 writes: columns from 1, and each operation where its own node begins.
OWN_POSITIONS = """\
#loc = loc("k.py":4:1)
module {
  tt.func public @k(%x: i32 loc("x"(#loc))) {
    %a = arith.muli %x, %x : i32 loc(#loc2)
    %b = arith.addi %a, %x : i32 loc(#loc2)
    tt.call @f(%b) : (i32) -> () loc(#loc3)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc1 = loc("k.py":5:9)
#loc2 = loc("b"(#loc1))
#loc3 = loc("k.py":6:5)
"""
OWN_SOURCE = "@jit\ndef k(x):\n    b = x * x + x\n    f(b)\n"


def node_table(kernel, compiled):
    lines, first = inspect.getsourcelines(kernel.fn)
    table = node_by_operation("".join(lines), first, compiled.stages["ttir"])
    return first, {
        row.code: (row.source_line - first, row.node, row.operations) for row in table.itertuples()
    }


def test_each_node_of_a_vector_add(add):
    _, nodes = node_table(sample.add_kernel, add)
    # By hand, from what each expression has to do; the program number times BLOCK is one operation.
    assert nodes["tl.program_id(0)"] == (2, "Call tl.program_id", ["tt.get_program_id"])
    assert nodes["tl.program_id(0) * BLOCK"] == (2, "BinOp Mult", ["arith.muli"])
    assert nodes["offsets < n"] == (3, "Compare Lt", ["tt.splat", "arith.cmpi"])
    assert nodes["x_ptr + offsets"] == (4, "BinOp Add", ["tt.splat", "tt.addptr"])
    assert nodes["tl.load(y_ptr + offsets, mask=mask)"] == (5, "Call tl.load", ["tt.load"])
    assert nodes["x + y"] == (6, "BinOp Add", ["arith.addf"])
    assert nodes["tl.store(out_ptr + offsets, x + y, mask=mask)"] == (6, "Call tl.store", ["tt.store"])


def test_no_operation_is_lost(add):
    _, nodes = node_table(sample.add_kernel, add)
    placed = operations(add.stages["ttir"]).query("source_line > 0 and operation != 'tt.return'")
    assert sum(len(names) for _, _, names in nodes.values()) == len(placed) >= 15


def test_positions_of_the_nodes_themselves():
    table = node_by_operation(OWN_SOURCE, 3, OWN_POSITIONS)
    found = [(row.source_line, row.node, row.code, row.operations) for row in table.itertuples()]
    assert found == [
        (5, "BinOp Mult", "x * x", ["arith.muli"]),
        (5, "BinOp Add", "x * x + x", ["arith.addi"]),
        (6, "Call f", "f(b)", ["tt.call"]),
    ]


def test_operations_of_text_without_locations(softmax):
    table = operations(softmax.passes()[0].before)
    assert {"tt.load", "tt.store", "math.exp", "tt.reduce"} <= set(table["operation"])
    assert set(table["dialect"]) >= {"tt", "arith", "math"}
    assert not table["source_line"].any()


def test_inlined_code_gets_the_line_of_its_call():
    ir = (
        '    %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({\n    }) : (tensor<64xf32>) -> f32 loc(#loc9)\n'
        "    %1 = arith.addf %a, %b : f32 loc(#loc3)\n"
        '#loc1 = loc("standard.py":293:36)\n#loc2 = loc("mine.py":20:47)\n'
        "#loc3 = loc(callsite(#loc1 at #loc2))\n"
    )
    table = operations(ir)
    assert list(table["operation"]) == ["tt.reduce", "arith.addf"]
    assert table.loc[1, ["source_line", "source_column"]].tolist() == [20, 47]


def test_what_is_no_operation():
    assert operations(
        "module {\n  } {tt.num_stages = 1 : i32}\n  ^bb0(%a: f32):\n#blocked = #ttg.blocked<{}>"
    ).empty
