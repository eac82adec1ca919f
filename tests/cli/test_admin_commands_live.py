"""The admin commands against real brokers, compared with the output of Kafka's own tools."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.recorders.broker import BrokerError, run_kafka_class
from tests.support.command_line import Run
from tests.support.kafka_cluster import ClusterAddresses

pytestmark = pytest.mark.slow

Servers = tuple[str, ...]


def rows(run: Run, *arguments: str) -> list[dict[str, Any]]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def test_topics_as_kafka_topics_describes_them(
    run: Run, servers: Servers, kafka_cluster: ClusterAddresses, topic: str
) -> None:
    printed = kafka_cluster.topics("--describe", "--topic", topic)
    found = rows(run, "topics", "--describe", topic, *servers)
    assert [{row["topicId"] for row in found}] == [{each} for each in re.findall(r"TopicId: (\S+)", printed)]
    lines = re.findall(r"Partition: (\d+)\tLeader: (\d+)\tReplicas: (\S+)\tIsr: (\S+)", printed)
    expected = [
        [int(partition), int(leader), *(list(map(int, each.split(","))) for each in lists)]
        for partition, leader, *lists in lines
    ]
    assert [[row["partition"], row["leader"], row["replicas"], row["isr"]] for row in found] == expected


@pytest.mark.parametrize("time", ["latest", "earliest", "3000", "max-timestamp"])
def test_offsets_as_kafka_get_offsets_prints_them(
    run: Run, servers: Servers, kafka_cluster: ClusterAddresses, filled: str, time: str
) -> None:
    printed = kafka_cluster.run_class("org.apache.kafka.tools.GetOffsetShell", "--topic", filled, "--time", time)
    found = rows(run, "get-offsets", filled, "--time", time, *servers)
    assert [f"{row['topic']}:{row['partition']}:{row['offset']}" for row in found] == printed.split()


def test_configs_as_kafka_configs_prints_them(
    run: Run, servers: Servers, kafka_cluster: ClusterAddresses, topic: str
) -> None:
    assert rows(run, "configs", "--alter", "-t", topic, "--add-config", "retention.ms=1234567", *servers)
    printed = kafka_cluster.run_class("org.apache.kafka.tools.ConfigCommand", "--describe", "--topic", topic)
    found = rows(run, "configs", "-t", topic, *servers)
    own = {f"{row['name']}={row['value']}" for row in found if row["source"] == "DYNAMIC_TOPIC_CONFIG"}
    assert own
    assert own <= set(printed.split())


def test_features_as_kafka_features_prints_them(run: Run, servers: Servers, kafka_cluster: ClusterAddresses) -> None:
    printed = kafka_cluster.run_class("org.apache.kafka.tools.FeatureCommand", "describe")
    names = set(re.findall(r"Feature: (\S+)", printed))
    assert names <= {row["feature"] for row in rows(run, "features", *servers)}
    assert names


def test_the_quorum_of_real_controllers(run: Run, servers: Servers) -> None:
    found = rows(run, "cluster", "--quorum", *servers)
    assert [row["role"] for row in found].count("leader") == 1
    assert {row["lag"] >= 0 for row in found} == {True}


def test_rules_of_the_cluster_as_kafka_acls_prints_them(
    run: Run, servers: Servers, kafka_cluster: ClusterAddresses, topic: str
) -> None:
    tool, who = "org.apache.kafka.tools.AclCommand", f"User:{topic}"
    rule = ("--cluster", "--allow-principal", who, "--operation", "DescribeConfigs")
    (added,) = rows(run, "acls", "--add", *rule, *servers)
    listed = [row for row in rows(run, "acls", "--cluster", *servers) if row["principal"] == who]
    assert [row.items() <= added.items() for row in listed] == [True]
    printed = kafka_cluster.run_class(tool, "--list", "--cluster", "--principal", who)
    assert "resourceType=CLUSTER, name=kafka-cluster, patternType=LITERAL" in printed
    assert f"(principal={who}, host=*, operation=DESCRIBE_CONFIGS, permissionType=ALLOW)" in printed
    kafka_cluster.run_class(tool, "--remove", "--force", *rule)
    assert rows(run, "acls", "--cluster", "--principal", who, *servers) == []


def test_brokers_that_are_not_registered_as_kafka_cluster_refuses_them(
    run: Run, servers: Servers, kafka_cluster: ClusterAddresses
) -> None:
    """Both print the same reason, and neither unregisters a broker of the shared cluster."""
    failed = run("cluster", "--unregister", "4711", *servers)
    assert failed.exit_code == 1
    at = ("--bootstrap-server", kafka_cluster.bootstrap_servers)
    with pytest.raises(BrokerError) as refused:
        run_kafka_class("org.apache.kafka.tools.ClusterTool", ["unregister", *at, "--id", "4711"])
    (reason,) = re.findall(r"Broker ID 4711 is not currently registered", failed.stderr)
    assert reason in str(refused.value)
