"""Reports the tests that need Kafka's own classes, or Spark, as not run, loudly, where Java or Maven is missing.

With ``KAFKA_MSGS_REQUIRE_ORACLE=1`` they fail instead: a run that has to prove parity must not pass without it.
"""

from __future__ import annotations

import os
import shutil

import pytest

from tests.oracle import Oracle

NOT_RUN = pytest.StashKey[set[str]]()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test, or fail it, where what it needs is not there."""
    reason = _missing(item)
    if reason is None:
        return
    item.config.stash.setdefault(NOT_RUN, set()).add(reason)
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many tests did not run, and why."""
    reasons = config.stash.get(NOT_RUN, set())
    if not reasons:
        return
    reports = [*terminalreporter.stats.get("skipped", []), *terminalreporter.stats.get("failed", [])]
    terminalreporter.section("NOT RUN", sep="!", red=True, bold=True)
    for reason in sorted(reasons):
        count = sum(reason in report.longreprtext for report in reports)
        terminalreporter.write_line(f"NOT RUN: {count} tests: {reason}")


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """Kafka's own classes; only for tests marked ``oracle``."""
    return Oracle.shared()
