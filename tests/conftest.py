"""Reports the tests that need Kafka's own classes, or Spark, as not run, loudly, where Java or Maven is missing.

With ``KAFKA_MSGS_REQUIRE_ORACLE=1`` they fail instead: a run that has to prove parity must not pass without it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter

import pytest

from tests.oracle import Oracle

NOT_RUN = re.compile(r"(?:NOT RUN|required): (.+?)'?\)?$", re.MULTILINE)
"""How the report of a test that could not run names the reason."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test, or fail it, where what it needs is not there."""
    reason = _missing(item)
    if reason is None:
        return
    if os.environ.get("KAFKA_MSGS_REQUIRE_ORACLE") == "1":
        pytest.fail(f"required: {reason}", pytrace=False)
    pytest.skip(f"NOT RUN: {reason}")


def _missing(item: pytest.Item) -> str | None:
    """Return why a test cannot run, or None."""
    if item.get_closest_marker("oracle") is not None:
        available, reason = Oracle.available()
        if not available:
            return f"no oracle: {reason}"
    on_spark = item.get_closest_marker("spark") is not None or "spark" in getattr(item, "fixturenames", ())
    if on_spark and shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "no Spark: java was not found"
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show how many tests did not run, and why; the reports come from every process that ran tests."""
    outcomes = ("skipped", "failed", "error")
    reports = [report for outcome in outcomes for report in terminalreporter.stats.get(outcome, [])]
    found = (NOT_RUN.search(report.longreprtext) for report in reports)
    reasons = Counter(match[1] for match in found if match)
    if not reasons:
        return
    terminalreporter.section("NOT RUN", sep="!", red=True, bold=True)
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"NOT RUN: {count} tests: {reason}")


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """Kafka's own classes; only for tests marked ``oracle``."""
    return Oracle.shared()
