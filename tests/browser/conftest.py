"""One JupyterLab and one Chromium for all browser tests, each notebook open and run once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.lab import ROOT, Lab, Notebook

# Without these, Chromium as root refuses to start, or looks for its maker's servers.
_CHROMIUM = [f"--no-{name}" for name in ("sandbox", "first-run")]
_CHROMIUM += [
    f"--disable-{name}" for name in ("gpu", "quic", "background-networking", "component-update", "sync")
]
NOTEBOOKS = sorted(path.name for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"))
_notes: list[str] = []


@pytest.fixture(scope="session")
def browser():
    """Debian's headless Chromium."""
    with sync_playwright() as playwright:
        found = shutil.which("chromium")
        assert found, "no chromium on the PATH: make test-browser says how to install it"
        browser = playwright.chromium.launch(executable_path=found, args=_CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """A JupyterLab server on copies of notebooks/."""
    lab = Lab(tmp_path_factory.mktemp("lab"))
    yield lab
    lab.close()


@pytest.fixture(scope="session", params=NOTEBOOKS)
def notebook(browser, lab, request):
    """A learner's notebook, run to its end once."""
    notebook = Notebook(browser, lab, request.param)
    notebook.run_all()
    yield notebook
    notebook.close()


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """The folder that pictures of the pages go to, for people to look at."""
    folder = ROOT / "build" / "browser"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def note():
    """Takes sentences to print after the tests, such as times, which no test may depend on."""
    return _notes.append


def pytest_terminal_summary(terminalreporter) -> None:
    """Print what was noted."""
    if _notes:
        terminalreporter.section("measured on this machine, not asserted")
        for line in _notes:
            terminalreporter.write_line(line)
