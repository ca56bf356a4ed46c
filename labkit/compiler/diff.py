"""What differs between two texts of IR, for reading: as a unified diff and as static HTML."""

from __future__ import annotations

import difflib
import html
import re
from collections.abc import Iterator

_VALUE = re.compile(r"%[\w$.-]+(?::\d+)?(?:#\d+)?")
_ALIAS = re.compile(r"^(#\w+) = (.+)$")
_ALIAS_USE = re.compile(r"#[A-Za-z_]\w*")

# Added and removed lines differ by their sign, too. The see-through tints suit a light and a dark page.
_TINTS = {"+": "rgba(0,114,178,0.22)", "-": "rgba(213,94,0,0.22)", "@": "rgba(128,128,128,0.18)"}


def unified_diff(before: str, after: str, context: int = 3) -> str:
    """A unified diff with `context` lines around each change; "" if the texts are the same.

    Printing numbers values and layouts anew each time (%12, #blocked1), so a line that differs in such
    names only counts as the same, unless no other line differs.
    """
    if before == after:
        return ""
    lines = before.splitlines(), after.splitlines()
    keys = _keys(lines[0]), _keys(lines[1])
    return "\n".join(_unified(*lines, *(keys if keys[0] != keys[1] else lines), context))


def _keys(lines: list[str]) -> list[str]:
    """The lines without value names, and with each layout's definition in place of its name."""
    layouts = dict(match.groups() for line in lines if (match := _ALIAS.match(line)))
    return [_VALUE.sub("%", _ALIAS_USE.sub(lambda use: layouts.get(use[0], use[0]), line)) for line in lines]


def _unified(
    before: list[str], after: list[str], before_keys: list[str], after_keys: list[str], context: int
) -> Iterator[str]:
    """difflib.unified_diff, but lines are compared by their keys and shown as they are."""
    yield from ("--- before", "+++ after")
    matcher = difflib.SequenceMatcher(None, before_keys, after_keys)
    for group in matcher.get_grouped_opcodes(context):
        (_, first, _, start, _), (_, _, last, _, stop) = group[0], group[-1]
        yield f"@@ -{first + 1},{last - first} +{start + 1},{stop - start} @@"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (f" {line}" for line in after[j1:j2])
            else:
                yield from (f"-{line}" for line in before[i1:i2])
                yield from (f"+{line}" for line in after[j1:j2])


def diff_html(diff: str, title: str, max_lines: int = 400) -> str:
    """A unified diff as static HTML under `title` (HTML); at most `max_lines` of its lines."""
    lines = diff.splitlines()[2:]
    shown = "".join(_line_html(line) for line in lines[:max_lines]) or "<div>No change.</div>"
    if len(lines) > max_lines:
        shown += f"<div>{len(lines) - max_lines} more lines: see .diff()</div>"
    return (
        f'<div><p>{title}</p><div tabindex="0" style="font-family:monospace;white-space:pre;overflow:auto;'
        f'max-height:30em;line-height:1.35">{shown}</div></div>'
    )


def _line_html(line: str) -> str:
    tint = _TINTS.get(line[:1])
    style = f' style="background:{tint}"' if tint else ""
    return f"<div{style}>{html.escape(line) or '&nbsp;'}</div>"
