"""Which exercises are solved: a small JSON file beside the notebooks. It stays on this machine.

A check notes its result there, so that progress outlives the kernel. Several kernels may note at once: each
takes a lock on the folder, reads, adds and replaces the file whole. Where the file cannot be used, progress
is kept in this process, and a sentence says so.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "labkit-progress.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """One exercise: whether it was ever solved, and how many checks failed."""

    solved: bool = False
    failed: int = 0

    def after(self, solved: bool) -> Entry:
        """This entry after one more check. What was solved stays solved."""
        return Entry(self.solved or solved, self.failed + (not solved))

    def merged(self, other: Entry) -> Entry:
        """What both entries know of one exercise."""
        return Entry(self.solved or other.solved, max(self.failed, other.failed))


class Unreadable(Exception):
    """The file is not one that `note` has written."""


# (file, notebook, exercise) -> entry, for files that cannot be written.
_session: dict[tuple[str, str, str], Entry] = {}


def note(notebook: str, exercise: str, solved: bool, folder: Path = Path()) -> tuple[Entry, str]:
    """Add the result of a check to the file in `folder`.

    Returns the exercise's entry, and a sentence where the file was of no use, else "". Raises nothing.
    """
    path = folder / FILE
    key = (_name(path), notebook, exercise)
    entry, trouble = _session.get(key, Entry()), ""
    try:
        with _locked(folder):
            try:
                stored = load(path)
            except Unreadable as problem:
                stored, trouble = {}, f"{problem} It is kept as {FILE}.damaged, and a new file is begun."
                path.replace(path.with_name(f"{FILE}.damaged"))
            entry = entry.merged(stored.get(notebook, {}).get(exercise, Entry())).after(solved)
            stored.setdefault(notebook, {})[exercise] = entry
            _save(stored, path)
    except OSError as problem:
        entry = _session.get(key, Entry()).after(solved)
        trouble = f"{path} cannot be written ({problem.strerror}): progress is lost when this kernel ends."
    _session[key] = entry
    return entry, trouble


def read(folder: Path = Path()) -> tuple[dict[str, dict[str, Entry]], str]:
    """Notebook -> exercise -> entry, by the file and this session; a sentence where the file is no use."""
    path, trouble = folder / FILE, ""
    try:
        known = load(path)
    except Unreadable as problem:
        known, trouble = {}, str(problem)
    except OSError as problem:
        known, trouble = {}, f"{path} cannot be read ({problem.strerror})."
    for (file, notebook, exercise), entry in _session.items():
        if file == _name(path):
            of_notebook = known.setdefault(notebook, {})
            of_notebook[exercise] = entry.merged(of_notebook.get(exercise, Entry()))
    return known, trouble


def load(path: Path) -> dict[str, dict[str, Entry]]:
    """What the file holds, nothing where there is none. Raises Unreadable, or OSError."""
    try:
        text = path.read_bytes().decode()
        return {
            str(notebook): {str(name): _entry(**entry) for name, entry in exercises.items()}
            for notebook, exercises in json.loads(text).items()
        }
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError):
        raise Unreadable(f"{path} is damaged, so what it held is not known.") from None


def _entry(solved: bool, failed: int) -> Entry:
    if not isinstance(solved, bool) or not isinstance(failed, int):
        raise TypeError("not an entry")
    return Entry(solved, failed)


def _save(known: dict[str, dict[str, Entry]], path: Path) -> None:
    """Replace the file whole, so that nobody reads a part of it. Raises OSError."""
    if path.exists() and not path.stat().st_mode & 0o200:
        # Replacing would get round what its owner has asked for.
        raise PermissionError(0, "it is read-only")
    plain = {
        notebook: {name: asdict(entry) for name, entry in sorted(exercises.items())}
        for notebook, exercises in sorted(known.items())
    }
    partial = path.with_name(f".{FILE}.{os.getpid()}")
    try:
        partial.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time. A file system without locks gives none, and replacing whole must do."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _name(path: Path) -> str:
    # A working folder that was deleted has no name.
    try:
        return str(path.absolute())
    except OSError:
        return str(path)
