"""Runs the command in this process, and prepares what it asks the shared cluster for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from kafka_msgs import MetadataRequest
from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.cli.group import command
from kafka_msgs.client.producer import Producer
from kafka_msgs.messages.metadata_request import MetadataRequestTopic
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
    """Run a command that must fail with exit status 1; return the one line that it prints on standard error."""

    def fails(*arguments: str, stdin: str | bytes | None = None) -> str:
        result = run(*arguments, stdin=stdin)
        assert result.exit_code == 1
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        return result.stderr.removeprefix("Error: ").rstrip()

    return fails


@pytest.fixture
def servers(kafka_cluster: ClusterAddresses) -> tuple[str, ...]:
    """The options with which a command asks the shared cluster."""
    return ("--bootstrap-server", kafka_cluster.bootstrap_servers, "--timeout", "30000")


@pytest.fixture
def admin(kafka_cluster: ClusterAddresses) -> Iterator[Admin]:
    """Administration of the shared cluster."""
    with Admin(kafka_cluster.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def topic(admin: Admin) -> str:
    """A new topic of two partitions."""
    return made(admin, f"cli-{uuid4().hex[:8]}")


@pytest.fixture
def unread(admin: Admin) -> str:
    """Another new topic of two partitions, without records."""
    return made(admin, f"cli-{uuid4().hex[:8]}")


@pytest.fixture
def filled(topic: str, kafka_cluster: ClusterAddresses) -> str:
    """A topic with ten records in partition 0, and five in partition 1; record ``n`` has the timestamp ``1000 * n``."""
    with Producer(kafka_cluster.bootstrap_servers) as producer:
        for partition, count in ((0, 10), (1, 5)):
            for number in range(count):
                producer.send(topic, f"{number}".encode(), partition=partition, timestamp=1000 * number)
    return topic


@pytest.fixture
def group() -> str:
    """The name of a group that nobody else uses."""
    return f"cli-{uuid4().hex[:8]}"


def made(admin: Admin, name: str) -> str:
    """Create a topic of two partitions that keeps records of any age, and wait until every broker knows it."""
    admin.create_topics([NewTopic(name, 2, 3, configs={"retention.ms": "-1"})]).all()
    brokers = admin.describe_cluster().nodes
    while not all(_known(admin, name, node) for node in brokers):
        time.sleep(0.1)
    return name


def _known(admin: Admin, name: str, node: int) -> bool:
    request = MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=False)
    found = admin.client.call(request, node=node).topics
    return all(each.error_code == 0 and len(each.partitions) == 2 for each in found)
