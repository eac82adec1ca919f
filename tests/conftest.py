"""Reports the tests that need Kafka's own classes as not run, loudly, where Java or Maven is missing.

With ``KAFKA_MSGS_REQUIRE_ORACLE=1`` they fail instead: a run that has to prove parity must not pass without it.
"""

from __future__ import annotations

import os

import pytest

from tests.oracle import Oracle

NOT_RUN = pytest.StashKey[str]()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip an oracle test, or fail it, where the oracle cannot run."""
    if item.get_closest_marker("oracle") is None:
        return
    available, reason = Oracle.available()
    if available:
        return
    item.config.stash[NOT_RUN] = reason
    if os.environ.get("KAFKA_MSGS_REQUIRE_ORACLE") == "1":
        pytest.fail(f"the oracle is required: {reason}", pytrace=False)
    pytest.skip(f"NOT RUN, no oracle: {reason}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many oracle tests did not run, and why."""
    reason = config.stash.get(NOT_RUN, None)
    if reason is None:
        return
    reports = [*terminalreporter.stats.get("skipped", []), *terminalreporter.stats.get("error", [])]
    count = sum("oracle" in report.keywords for report in reports)
    terminalreporter.section("NOT RUN", sep="!", red=True, bold=True)
    terminalreporter.write_line(f"NOT RUN: {count} oracle tests: {reason}")


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """Kafka's own classes; only for tests marked ``oracle``."""
    return Oracle.shared()
