"""Runs the command in this process, and prepares topics and groups on the shared cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner, Result

from kafka_msgs.admin import Admin
from kafka_msgs.cli.command_group import command
from kafka_msgs.client.producer import Producer
from tests.support.cluster_topics import new_name, new_topic
from tests.support.command_line import Run
from tests.support.kafka_cluster import ClusterAddresses


@pytest.fixture
def run() -> Run:
    """Run ``kafka-msgs`` with arguments, and ``stdin``; unexpected exceptions fail the test."""

    def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(command, arguments, input=stdin, catch_exceptions=False, prog_name="kafka-msgs")

    return run


@pytest.fixture
def fails(run: Run) -> Callable[..., str]:
    """Run a command that must fail with exit status 1; return the line that it prints on standard error."""

    def fails(*arguments: str, stdin: str | bytes | None = None) -> str:
        result = run(*arguments, stdin=stdin)
        assert result.exit_code == 1
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        return result.stderr.removeprefix("Error: ").rstrip()

    return fails


@pytest.fixture
def servers(kafka_cluster: ClusterAddresses) -> tuple[str, ...]:
    """Return the options that connect a command to the shared cluster."""
    return ("--bootstrap-server", kafka_cluster.bootstrap_servers, "--timeout", "30000")


@pytest.fixture
def admin(kafka_cluster: ClusterAddresses) -> Iterator[Admin]:
    """Yield an admin of the shared cluster."""
    with Admin(kafka_cluster.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def topic(kafka_cluster: ClusterAddresses) -> str:
    """Create a topic with two partitions and unlimited retention; return its name."""
    return new_topic(kafka_cluster, 2, replicas=3, prefix="cli", configs={"retention.ms": "-1"})


@pytest.fixture
def unread(kafka_cluster: ClusterAddresses) -> str:
    """Create another topic with two partitions and without records; return its name."""
    return new_topic(kafka_cluster, 2, replicas=3, prefix="cli")


@pytest.fixture
def filled(topic: str, kafka_cluster: ClusterAddresses) -> str:
    """Fill a topic: ten records in partition 0, five in partition 1; record ``n`` has the timestamp ``1000 * n``."""
    with Producer(kafka_cluster.bootstrap_servers) as producer:
        for partition, count in ((0, 10), (1, 5)):
            for number in range(count):
                producer.send(topic, f"{number}".encode(), partition=partition, timestamp=1000 * number)
    return topic


@pytest.fixture
def group() -> str:
    """Return a unique group name."""
    return new_name("cli")
