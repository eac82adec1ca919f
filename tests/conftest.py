"""Shared fixtures; tests that need Kafka or Spark are prominently reported as not run if Java or Maven is missing.

With ``KAFKA_MSGS_REQUIRE_ORACLE=1`` they fail instead, so a run that must prove parity cannot pass without it.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
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
from tests.registry.oracle import RegistryOracle
from tests.support.java_oracle import JavaOracle
from tests.support.kafka_cluster import ClusterAddresses, cluster_needs
from tests.support.shared_cluster import BreakableCluster, Run, breakable_cluster, shared_cluster
from tests.support.skip_reasons import not_run

NOT_RUN = re.compile(r"(?:NOT RUN|required): (.+?)'?\)?$", re.MULTILINE)
"""Matches the reason in the report of a test that could not run."""

CPYTHON = sys.implementation.name == "cpython"

CLUSTER_FIXTURES = frozenset({"kafka_cluster", "breakable_kafka_cluster", "kafka_node", "java_clients"})

SLOW = (
    "tests/admin/test_streams_admin_live.py",
    "tests/broker/clients/",
    "tests/broker/differential/",
    "tests/broker/share/test_against_kafka.py",
    "tests/broker/test_streams.py",
    "tests/campaigns/test_chaos.py",
    "tests/capture/test_bounds.py",
    "tests/cli/test_groups_live.py",
    "tests/cli/test_records_live.py",
    "tests/cli/test_share_groups_live.py",
    "tests/cli/test_streams_groups_live.py",
    "tests/client/consumer/test_real_groups.py",
    "tests/filesystems/test_hdfs.py",
    "tests/log/test_ray.py",
    "tests/engines/test_killed_runs.py",
    "tests/engines/test_record_files.py",
    "tests/spark/test_against_kafka.py",
    "tests/spark/test_capture_report.py",
    "tests/spark/test_confluent.py",
    "tests/spark/test_connect.py",
    "tests/spark/test_dependencies.py",
    "tests/spark/test_kafka_live.py",
    "tests/spark/test_paths.py",
    "tests/spark/test_pipeline_command.py",
    "tests/spark/test_read_less.py",
    "tests/spark/test_remote",
    "tests/spark/test_streaming.py",
    "tests/tables/test_commit_log.py",
    "tests/tap/test_clients.py",
    "tests/testing/test_cassettes.py",
    "tests/testing/test_example.py",
)
"""Long tests that seldom fail: Spark over many options, other clients, whole applications, killed processes."""

SYSTEM = (
    "tests/broker/storage/test_lockstep.py",
    "tests/broker/test_groups.py",
    "tests/campaigns/",
    "tests/client/test_interleavings.py",
    "tests/client/test_stopped_processes.py",
    "tests/codec/test_error_memory.py",
    "tests/codec/test_fuzz.py",
    "tests/codec/test_hostile.py",
    "tests/codec/test_new_primitive.py",
    "tests/codec/test_struct_arrays.py",
    "tests/columns/test_bad_rows.py",
    "tests/columns/test_record_tables.py",
    "tests/columns/test_runs.py",
    "tests/coordinator/test_campaign.py",
    "tests/docs/test_demo.py",
    "tests/docs/test_english.py",
    "tests/generator/test_evolution.py",
    "tests/instances/test_lifetimes.py",
    "tests/oracle/test_older_releases.py",
    "tests/packaging/",
    "tests/engines/",
    "tests/spark/",
    "tests/tables/",
    "tests/test_benchmarks.py",
    "tests/typing/",
    "tests/upgrade/",
    "tests/viewer/",
)
"""Whole programs, jobs and long searches: `make check` runs these tests and all that use Spark or a real cluster."""

BROKER_ORACLES: dict[str, tuple[str, type[JavaOracle]]] = {
    "kafka_log": ("storage", StorageOracle),
    "kafka_quotas": ("quota", QuotaOracle),
    "kafka_remote_log": ("tiered storage", RemoteLogOracle),
    "kafka_share_partition": ("share", ShareOracle),
    "registry_oracle": ("registry", RegistryOracle),
}
"""Kafka's own classes and other Java libraries, by fixture name."""

SPARK_JAVA = dict.fromkeys(("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"), "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
"""Java settings for Spark: for short test jobs, Java's second compiler costs more time than it saves."""


# Tests must not depend on the machine's speed: Hypothesis limits an example to 200 ms by default.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_configure() -> None:
    """Apply the settings to all processes that tests start, including the examples of pages."""
    for name, value in SPARK_JAVA.items():
        os.environ.setdefault(name, value)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect with the garbage collector off, as it would scan all collected items repeatedly."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow and system tests, and run Spark tests first: no process starts one after the others have finished."""
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker(pytest.mark.slow)
        elif item.nodeid.startswith(SYSTEM) or _on_spark(item) or _on_a_cluster(item):
            item.add_marker(pytest.mark.system)
    items.sort(key=lambda item: not _on_spark(item))


def pytest_collection_finish() -> None:
    """Freeze the collected items: hundreds of thousands of permanent objects that garbage collection would scan."""
    gc.collect()
    if CPYTHON:
        gc.freeze()


def pytest_unconfigure() -> None:
    """Unfreeze all objects at the end, or libraries report the frozen ones as leaked."""
    if CPYTHON:
        gc.unfreeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip or fail a test whose prerequisites are missing."""
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
    if _on_a_cluster(item) and cluster_needs() is not None:
        return cluster_needs()
    if _on_spark(item) and shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "no Spark: java was not found"
    return None


def _on_spark(item: pytest.Item) -> bool:
    return item.get_closest_marker("spark") is not None or "spark" in getattr(item, "fixturenames", ())


def _on_a_cluster(item: pytest.Item) -> bool:
    return not CLUSTER_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show how many tests did not run, and why, from the reports of all test processes."""
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
def registry_oracle() -> Iterator[RegistryOracle]:
    """The Java libraries that Confluent's deserializers call."""
    oracle = RegistryOracle()
    yield oracle
    oracle.close()


@pytest.fixture(scope="session")
def cluster_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The test run, shared by all of its processes."""
    directory = tmp_path_factory.getbasetemp()
    breaking = sum("breakable_kafka_cluster" in getattr(item, "fixturenames", ()) for item in request.session.items)
    if "PYTEST_XDIST_WORKER" in os.environ:
        return Run(os.getppid(), directory.parent, breaking)
    return Run(os.getpid(), directory, breaking)


@pytest.fixture(scope="session")
def kafka_cluster(cluster_run: Run) -> ClusterAddresses:
    """Three real nodes, shared by all tests and processes of a run: use unique names, break nothing."""
    return shared_cluster(cluster_run)


@pytest.fixture
def breakable_kafka_cluster(cluster_run: Run) -> Iterator[BreakableCluster]:
    """Three real nodes for one test at a time, which may stop, kill and pause them without restoring them."""
    with breakable_cluster(cluster_run) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def java_clients() -> None:
    """Require the prerequisites of Java clients: Java and Kafka's jars."""
