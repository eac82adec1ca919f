"""A pytest plugin that appends the outcome of each test, as a line of JSON, to a file named by the environment."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest

_FILE: Final = Path(os.environ["KAFKA_MSGS_SUITE_REPORT"])
_reported: Final[set[str]] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Report each test once: at its first phase that did not pass, or at its end."""
    if report.nodeid not in _reported and (not report.passed or report.when == "teardown"):
        _reported.add(report.nodeid)
        _write(report)


def _write(report: pytest.TestReport) -> None:
    line = {"test": report.nodeid, "verdict": report.outcome, "reason": _reason(report)}
    with _FILE.open("a") as file:
        file.write(json.dumps(line) + "\n")


def _reason(report: Any) -> str:
    if report.skipped:
        return str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message.split("\n")[0] if crash is not None else str(report.longrepr or "").strip().split("\n")[-1]
