"""What a run leaves to look at: a table, summary.csv, and index.html with the rendered notebooks."""

from __future__ import annotations

import csv
import dataclasses
import io
from html import escape
from pathlib import Path

from labkit.batch.runner import Outcome

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>labkit run: {passed} of {total} passed</title>
<style>
body {{ font: 16px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
        color: #1b1b1b; background: #ffffff; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; padding: 0.4rem 0.8rem; border-bottom: 1px solid #767676; }}
td.number {{ text-align: right; }}
</style>
</head>
<body>
<h1>labkit run: {passed} of {total} notebooks passed</h1>
<p>Seconds are wall time on the machine that ran the notebooks.</p>
<table>
<thead><tr><th>Notebook</th><th>Code cells</th><th>Seconds</th><th>Result</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</body>
</html>
"""
_ROW = (
    '<tr><td><a href="{page}">{notebook}</a></td><td class="number">{cells}</td>'
    '<td class="number">{seconds:.1f}</td><td>{result}</td></tr>'
)


def write_text_whole(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part of it."""
    partial = path.with_name(f".{path.name}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def write_summary(outcomes: list[Outcome], folder: Path) -> Path:
    """Write summary.csv, one line a notebook, and return its path."""
    text = io.StringIO()
    names = [field.name for field in dataclasses.fields(Outcome)]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({**dataclasses.asdict(o), "seconds": f"{o.seconds:.1f}"} for o in outcomes)
    write_text_whole(folder / "summary.csv", text.getvalue())
    return folder / "summary.csv"


def write_index(outcomes: list[Outcome], folder: Path) -> Path:
    """Write index.html, which links each notebook's page, and return its path."""
    rows = "\n".join(_index_row(outcome, folder) for outcome in outcomes)
    passed = sum(outcome.result == "passed" for outcome in outcomes)
    write_text_whole(folder / "index.html", _PAGE.format(passed=passed, total=len(outcomes), rows=rows))
    return folder / "index.html"


def _index_row(outcome: Outcome, folder: Path) -> str:
    page = Path(outcome.notebook).with_suffix(".html").as_posix()
    target = page if (folder / page).exists() else outcome.notebook
    result = escape(f"{outcome.result}: {outcome.reason}".removesuffix(": "))
    values = {"notebook": escape(outcome.notebook), "cells": outcome.cells, "seconds": outcome.seconds}
    return _ROW.format(page=escape(target), result=result, **values)


def print_table(outcomes: list[Outcome], folder: Path) -> None:
    """Print the table of a run and where to look."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("Notebook")
    for name in ("Code cells", "Seconds"):
        table.add_column(name, justify="right")
    table.add_column("Result", overflow="fold")
    for outcome in outcomes:
        style = "green" if outcome.result == "passed" else "bold red"
        result = Text(f"{outcome.result}: {outcome.reason}".removesuffix(": "), style)
        table.add_row(outcome.notebook, str(outcome.cells), f"{outcome.seconds:.1f}", result)
    console = Console()
    console.print(table)
    passed = sum(outcome.result == "passed" for outcome in outcomes)
    console.print(f"{passed} of {len(outcomes)} passed. Read them: {folder / 'index.html'}", highlight=False)
