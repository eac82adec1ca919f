"""Shared fixtures; and tests that need Kafka or Spark are reported as not run, loudly, where Java or Maven is missing.

With ``KAFKA_MSGS_REQUIRE_ORACLE=1`` they fail instead: a run that has to prove parity must not pass without it.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
from collections import Counter
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.broker.quotas.oracle import QuotaOracle
from tests.broker.share.oracle import ShareOracle
from tests.broker.storage.oracle import StorageOracle
from tests.coordinator.oracle import AssignorOracle, CoordinatorOracle
from tests.internal_topics.oracle import RemoteLogOracle
from tests.oracle import Oracle
from tests.support.java_oracle import JavaOracle
from tests.support.kafka_cluster import ClusterAddresses, cluster_needs
from tests.support.shared_cluster import BreakableCluster, Run, breakable_cluster, shared_cluster
from tests.support.skip_reasons import not_run

NOT_RUN = re.compile(r"(?:NOT RUN|required): (.+?)'?\)?$", re.MULTILINE)
"""How the report of a test that could not run names the reason."""

CLUSTER_FIXTURES = frozenset({"kafka_cluster", "breakable_kafka_cluster", "kafka_node", "java_clients"})

BROKER_ORACLES: dict[str, tuple[str, type[JavaOracle]]] = {
    "kafka_log": ("storage", StorageOracle),
    "kafka_quotas": ("quota", QuotaOracle),
    "kafka_remote_log": ("tiered storage", RemoteLogOracle),
    "kafka_share_partition": ("share", ShareOracle),
}
"""Kafka's own classes, by the fixture that a test takes."""

SPARK_JAVA = dict.fromkeys(("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"), "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
"""Settings of Java where it runs Spark: for the short jobs of tests, its second compiler costs more than it saves."""


# No test depends on how fast the machine is: by default an example may take 200 ms, and no longer.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_configure() -> None:
    """Give the settings to all processes that tests start, examples of pages among them."""
    for name, value in SPARK_JAVA.items():
        os.environ.setdefault(name, value)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector, which would go through all that was collected again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run first what starts Spark: its files are slow, so no process begins one when the others have ended."""
    items.sort(key=lambda item: not _on_spark(item))


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what was collected: hundreds of thousands of objects that stay."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let the collector see all objects again at the end, or libraries report what it passed over as leaked."""
    gc.unfreeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test, or fail it, where what it needs is not there."""
    reason = _missing(item)
    if reason is not None:
        not_run(reason)


def _missing(item: pytest.Item) -> str | None:
    """Return why a test cannot run, or None."""
    if item.get_closest_marker("oracle") is not None:
        available, reason = Oracle.available()
        if not available:
            return f"no oracle: {reason}"
    if {"kafka_coordinator", "kafka_assignors"}.intersection(getattr(item, "fixturenames", ())):
        available, reason = CoordinatorOracle.available()
        if not available:
            return f"no coordinator oracle: {reason}"
    for fixture, (name, broker_oracle) in BROKER_ORACLES.items():
        if fixture in getattr(item, "fixturenames", ()):
            available, reason = broker_oracle.available()
            if not available:
                return f"no {name} oracle: {reason}"
    if CLUSTER_FIXTURES.intersection(getattr(item, "fixturenames", ())) and cluster_needs() is not None:
        return cluster_needs()
    if _on_spark(item) and shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "no Spark: java was not found"
    return None


def _on_spark(item: pytest.Item) -> bool:
    return item.get_closest_marker("spark") is not None or "spark" in getattr(item, "fixturenames", ())


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


@pytest.fixture(scope="session")
def kafka_coordinator() -> CoordinatorOracle:
    """Kafka's own group coordinator in one Java process; begin with a ``start`` command."""
    return CoordinatorOracle.shared()


@pytest.fixture(scope="session")
def kafka_assignors() -> Iterator[AssignorOracle]:
    """Kafka's own assignors, and the order of Java's hash tables."""
    oracle = AssignorOracle()
    yield oracle
    oracle.close()


@pytest.fixture(scope="session")
def cluster_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The test run, the same for all of its processes."""
    directory = tmp_path_factory.getbasetemp()
    breaking = sum("breakable_kafka_cluster" in getattr(item, "fixturenames", ()) for item in request.session.items)
    if "PYTEST_XDIST_WORKER" in os.environ:
        return Run(os.getppid(), directory.parent, breaking)
    return Run(os.getpid(), directory, breaking)


@pytest.fixture(scope="session")
def kafka_cluster(cluster_run: Run) -> ClusterAddresses:
    """Three real nodes, the same for all tests of a run, in whatever process: use names of your own, break nothing."""
    return shared_cluster(cluster_run)


@pytest.fixture
def breakable_kafka_cluster(cluster_run: Run) -> Iterator[BreakableCluster]:
    """Three real nodes that one test at a time has: it may stop, kill and pause them, and leave them like that."""
    with breakable_cluster(cluster_run) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def java_clients() -> None:
    """What clients in Java need is there: Java, and the jars of Kafka."""
