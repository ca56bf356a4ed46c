"""Turns executed notebooks into HTML that reads without a network: styles, pictures and formulas inside."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

# nbconvert's addresses of scripts that a page would fetch.
_FETCHED = ("mathjax_url", "require_js_url", "jquery_url", "mermaid_js_url")


def to_mathml(latex: str, display: str) -> str:
    """Return MathML for a formula; `display` is "inline" or "block". Browsers draw it by themselves.

    A formula that can't be converted comes back as its LaTeX source.
    """
    try:
        return convert(latex.strip(), display=display)
    except Exception:  # latex2mathml has no common base for its errors, and IndexError is among them
        return f"<code>{escape(latex)}</code>"


class _Renderer(IPythonRenderer):
    def block_math(self, body: str) -> str:
        return to_mathml(body, "block")

    def inline_math(self, body: str) -> str:
        return to_mathml(body, "inline")

    def latex_environment(self, name: str, body: str) -> str:
        return to_mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", "block")


class OfflineExporter(HTMLExporter):
    """nbconvert's HTML, with formulas as MathML instead of a script that must be fetched."""

    def default_filters(self) -> Iterator[tuple[str, Any]]:
        """Get nbconvert's filters, with ours for markdown cells."""
        yield from super().default_filters()
        yield ("markdown2html", _markdown_to_html)


def _markdown_to_html(source: str) -> str:
    return MarkdownWithMath(renderer=_Renderer(escape=False)).render(source)


def render(notebook: Path) -> Path:
    """Write the HTML of an executed notebook beside it and return its path."""
    nowhere: dict[str, Any] = dict.fromkeys(
        ("mathjax_url", "require_js_url", "jquery_url", "mermaid_js_url"), ""
    )
    html, _ = OfflineExporter(**nowhere).from_notebook_node(nbformat.read(notebook, as_version=4))
    # The template loads MathJax whatever the address is; an empty one would ask for the page itself.
    html = html.replace('<script src="">', "<script>")
    page = notebook.with_suffix(".html")
    page.write_text(html, encoding="utf-8")
    return page
