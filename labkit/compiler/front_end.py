"""Operations of MLIR text with the source position each carries, and the syntax node that made each."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

# `%x, %y = tt.load ...`, `scf.for ...`, `"tt.reduce"(...)`; neither `module {` nor `} {tt.num_stages = 1`.
_OPERATION = re.compile(r'^\s*(?:%[^=]+? = )?"?([a-z]\w*)\.([\w.]+)')
_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_REFERENCE = re.compile(r"loc\((#loc\d*)\)$")
_POSITION = re.compile(r'^"[^"]*":(\d+):(\d+)$')
_POSITION_OF_MODULE = re.compile(r'^#loc = loc\("[^"]*":\d+:1\)$', re.MULTILINE)
# Nodes that share their first column, as the two of `a * b + c`, are told apart by what was emitted.
_OPERATORS = {"mul": ast.Mult, "add": ast.Add, "sub": ast.Sub, "div": ast.Div, "rem": ast.Mod}


def operations(ir: str) -> pd.DataFrame:
    """One row an operation of MLIR text, in order: dialect, operation, source_line, source_column.

    Line and column are as the text gives them: of the outermost call where code was inlined, and 0 where
    the text has no locations or says "unknown".
    """
    import pandas as pd

    aliases = dict(_ALIAS.findall(ir))
    rows = []
    for line in ir.splitlines():
        if found := _OPERATION.match(line):
            reference = _REFERENCE.search(line)
            rows.append((found[1], f"{found[1]}.{found[2]}", *_position(reference, aliases)))
    return pd.DataFrame(rows, columns=["dialect", "operation", "source_line", "source_column"])


def _position(reference: re.Match | None, aliases: dict[str, str]) -> tuple[int, int]:
    body = aliases.get(reference[1], "") if reference else ""
    while found := re.search(r"#loc\d*(?=\)*$)", body):  # a name, or the last caller, leads further
        body = aliases.get(found[0], "")
    position = _POSITION.match(body)
    return (int(position[1]), int(position[2])) if position else (0, 0)


def node_by_operation(source: str, first_line: int, ttir: str) -> pd.DataFrame:
    """Which syntax node of a kernel's source became which operations of its Triton IR.

    source: of the function, decorator included, as `inspect.getsource` gives it. first_line: the number
    that its first line has in its file. One row a node, in the order of the operations: source_line (in
    the file), node ("BinOp Add"), code (the node's text), operations (a list of names).
    """
    import pandas as pd

    tree, table = ast.parse(source), operations(ttir)
    # Up to 3.7 Triton gives an operation the position of the node's last operand, columns from 0; 3.9 the
    # node's own, columns from 1. The function starts at its file's first column and tells which.
    own = _POSITION_OF_MODULE.search(ttir) is not None
    body = table[(table["source_line"] > 0) & (table["operation"] != "tt.return")]
    groups: dict[ast.AST, tuple[int, list[str]]] = {}
    for row in body.itertuples():
        at = (row.source_line - first_line + 1, row.source_column - own)
        node = _own_node(tree, at, row.operation) if own else _parent(tree, at)
        if node is not None:
            groups.setdefault(node, (row.source_line, []))[1].append(row.operation)
    rows = [
        (line, _label(node), ast.get_source_segment(source, node) or "", names)
        for node, (line, names) in groups.items()
    ]
    return pd.DataFrame(rows, columns=["source_line", "node", "code", "operations"])


def _starting_at(tree: ast.AST, at: tuple[int, int]) -> list[ast.expr]:
    """The expressions that begin at (line, column), outermost first."""
    return [
        node for node in ast.walk(tree) if isinstance(node, ast.expr) and (node.lineno, node.col_offset) == at
    ]


def _parent(tree: ast.AST, at: tuple[int, int]) -> ast.AST | None:
    """The node whose operand is the outermost expression at `at`."""
    inner = next(iter(_starting_at(tree, at)), None)
    return next((node for node in ast.walk(tree) if inner in ast.iter_child_nodes(node)), None)


def _own_node(tree: ast.AST, at: tuple[int, int], operation: str) -> ast.AST | None:
    found = _starting_at(tree, at)
    kind = next((kind for name, kind in _OPERATORS.items() if f".{name}" in operation), None)
    fitting = [node for node in found if kind and isinstance(getattr(node, "op", None), kind)]
    return next(iter(fitting or found), None)


def _label(node: ast.AST) -> str:
    """The node's class with what makes it particular: "BinOp Add", "Compare Lt", "Call tl.load"."""
    name = type(node).__name__
    if isinstance(node, ast.BinOp):
        return f"{name} {type(node.op).__name__}"
    if isinstance(node, ast.Compare):
        return f"{name} {type(node.ops[0]).__name__}"
    return f"{name} {ast.unparse(node.func)}" if isinstance(node, ast.Call) else name
