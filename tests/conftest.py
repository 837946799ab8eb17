"""Fixtures that several test files share, and the time of each package of tests."""

from __future__ import annotations

from collections import defaultdict

import pytest

from spark_here import spark

__all__ = ["spark"]


@pytest.fixture(autouse=True)
def golden_answers_hold(request, monkeypatch):
    """Studies take it that the code gives its golden answers: tests/golden sees that it does.

    Tests of that very check have the fixture "golden_fits".
    """
    if request.path.parent.name == "bench" and "golden_fits" not in request.fixturenames:
        from bench.golden import check_before_use

        monkeypatch.setattr(check_before_use, "fits_of", lambda parts: [])


def pytest_terminal_summary(terminalreporter):
    """Say how long each folder of tests took, the slowest first, where all of them ran."""
    seconds, counts = defaultdict(float), defaultdict(int)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "duration") and hasattr(report, "when"):
                folder = "/".join(report.nodeid.split("::")[0].split("/")[:-1][:3])
                seconds[folder] += report.duration
                counts[folder] += report.when == "call"
    if len(seconds) < 3:
        return
    terminalreporter.section("seconds by folder, on all processes")
    for folder in sorted(seconds, key=seconds.get, reverse=True):
        terminalreporter.write_line(f"{seconds[folder]:8.1f} s {counts[folder]:6d}  {folder}")
