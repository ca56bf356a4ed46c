"""Each test in a folder of its own, where its progress goes; and how many answers were tried, at the end."""

import pytest

COUNTED = {"test_a_right_answer_passes": "right answers", "test_a_mutant_is_rejected": "mutants"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pytest_terminal_summary(terminalreporter):
    tried = [report.nodeid for key in ("passed", "failed") for report in terminalreporter.getreports(key)]
    as_wanted = [report.nodeid for report in terminalreporter.getreports("passed")]
    for name, what in COUNTED.items():
        total, passed = (sum(f"::{name}[" in node for node in nodes) for nodes in (tried, as_wanted))
        if total:
            verdict = "accepted" if what == "right answers" else "rejected with the cause named"
            terminalreporter.write_line(f"exercises: {passed} of {total} {what} {verdict}")
