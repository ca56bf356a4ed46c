"""What `labkit run` leaves behind: the summary, the index, pages that read offline, the exit status."""

from __future__ import annotations

import csv
import re

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from typer.testing import CliRunner

from labkit.batch.render import render, to_mathml
from labkit.batch.report import write_index, write_summary
from labkit.batch.runner import Outcome
from labkit.cli import app

GOOD = Outcome("a.ipynb", 3, 1.26, "passed", "")
BAD = Outcome("solutions/b.ipynb", 2, 0.5, "failed", 'code cell 1 raised ValueError: "<b>", no')


def test_summary_reads_back(tmp_path):
    path = write_summary([GOOD, BAD], tmp_path)
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["seconds"] for row in rows] == ["1.3", "0.5"]
    assert rows[1]["reason"] == BAD.reason
    assert list(tmp_path.iterdir()) == [path]


def test_index_links_each_page_and_escapes_reasons(tmp_path):
    (tmp_path / "a.html").touch()
    page = BeautifulSoup(write_index([GOOD, BAD], tmp_path).read_text(), "html.parser")
    assert [link["href"] for link in page.find_all("a")] == ["a.html", "solutions/b.ipynb"]
    assert 'failed: code cell 1 raised ValueError: "<b>", no' in page.get_text()
    assert "1 of 2" in page.title.get_text()


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    text = "Energy $E = mc^2$ costs `$5`.\n\n$$\\frac{1}{n}\\sum_i x_i^2$$\n"
    path = tmp_path_factory.mktemp("page") / "a.ipynb"
    nbformat.write(new_notebook(cells=[new_markdown_cell(text), new_code_cell("x = '$a$'")]), path)
    return BeautifulSoup(render(path).read_text(encoding="utf-8"), "html.parser")


def test_formulas_are_drawn_by_the_browser_itself(rendered):
    formulas = rendered.find_all("math")
    assert [formula["display"] for formula in formulas] == ["inline", "block"]
    assert formulas[1].find("mfrac").get_text() == "1n"
    assert "$5" in rendered.find("code").get_text()


def test_a_page_asks_for_nothing_from_the_network(rendered):
    fetched = [tag.get("src") or tag.get("href") for tag in rendered.find_all(["script", "link", "img"])]
    assert [address for address in fetched if address and not address.startswith("data:")] == []
    styles = "".join(style.get_text() for style in rendered.find_all("style"))
    assert re.findall(r"url\(['\"]?https?:", styles) == []


def test_a_formula_that_cannot_be_converted_shows_its_source():
    assert to_mathml("a_b_c", "inline") == "<code>a_b_c</code>"


def test_the_command_fails_unless_every_notebook_passed(tmp_path):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    for name, source in (("good", "1 + 1"), ("bad", "import sys; sys.exit(0)")):
        nbformat.write(new_notebook(cells=[new_code_cell(source)]), folder / f"{name}.ipynb")
    out = tmp_path / "out"
    both = CliRunner().invoke(app, ["run", str(folder), "--output", str(out)])
    assert both.exit_code == 1
    assert "1 of 2 passed" in both.output
    one = CliRunner().invoke(app, ["run", str(folder / "good.ipynb"), "--output", str(out)])
    assert one.exit_code == 0
    # The second run replaced the first one's results.
    assert sorted(path.name for path in out.glob("[!.]*")) == [
        "good.html",
        "good.ipynb",
        "index.html",
        "summary.csv",
    ]


def test_a_wrong_path_is_told_in_one_line(tmp_path):
    result = CliRunner().invoke(app, ["run", str(tmp_path / "absent")])
    assert result.exit_code == 2
    assert result.output.startswith("labkit: ")
