"""Plans of moves, and their verification: on an embedded broker, and compared with kafka-reassign-partitions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import TopicPartition
from tests.support.command_line import Run
from tests.support.kafka_cluster import ClusterAddresses

TOOL: Final = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
RACKS: Final = ("a", "a", "b", None)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(brokers=4, racks=RACKS) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", assignments={0: [0, 1], 1: [0, 1]})]).all()
        admin.create_topics([NewTopic("tea", assignments={0: [0]})]).all()
        yield broker


Ask = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def reassign(run: Run, broker: EmbeddedBroker) -> Ask:
    """Return a function that runs ``kafka-msgs reassign``, and returns the rows of its JSON output."""

    def ask(*arguments: str, status: int = 0) -> list[dict[str, Any]]:
        result = run("reassign", *arguments, "-b", broker.bootstrap_servers, "--json")
        assert result.exit_code == status, result.output
        rows: list[dict[str, Any]] = json.loads(result.stdout)
        return rows

    return ask


def test_a_plan_is_executed_verified_and_rolled_back(reassign: Ask, broker: EmbeddedBroker, tmp_path: Path) -> None:
    plan, rollback, topics = (str(tmp_path / name) for name in ("plan.json", "rollback.json", "topics.json"))
    Path(topics).write_text('{"version": 1, "topics": [{"topic": "tea"}]}')
    files = ("--plan-file", plan, "--rollback-file", rollback, "--topics-to-move-json-file", topics)
    planned = reassign("--generate", "-t", "orders", "--broker-list", "1,2", *files)
    assert [(row["topic"], row["partition"], row["replicas"]) for row in planned] == [
        ("orders", 0, [0, 1]),
        ("orders", 1, [0, 1]),
        ("tea", 0, [0]),
    ]
    assert {row["topic"]: set(row["proposedReplicas"]) for row in planned} == {"orders": {1, 2}, "tea": {1}}
    status = [row["status"] for row in reassign("--verify", "--reassignment-json-file", plan, status=1)]
    assert status == ["no active move"] * 3
    for file in (plan, rollback):
        reassign("--execute", "--reassignment-json-file", file)
        verified = reassign("--verify", "--reassignment-json-file", file)
        assert {row["status"] for row in verified} == {"completed"}
        assert [row["replicas"] for row in verified] == [row["targetReplicas"] for row in verified]
    with Admin(broker.bootstrap_servers) as admin:
        assert admin.describe_topics(["orders"])["orders"].partitions[0].replica_nodes == (0, 1)


def test_racks_separate_replicas(reassign: Ask, run: Run, broker: EmbeddedBroker) -> None:
    planned = reassign("--generate", "-t", "orders", "--broker-list", "0,1,2")
    assert all({RACKS[each] for each in row["proposedReplicas"]} == {"a", "b"} for row in planned)
    everywhere = ("reassign", "--generate", "-t", "orders", "--broker-list", "0,1,2,3", "-b", broker.bootstrap_servers)
    assert "--disable-rack-aware" in run(*everywhere).stderr
    assert run(*everywhere, "--disable-rack-aware").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("--generate", "-t", "orders"), 2, "--broker-list"),
        (("--generate", "--broker-list", "0"), 2, "--topic"),
        (("--generate", "-t", "orders", "--broker-list", "x"), 2, "expected broker ids"),
        (("--generate", "-t", "orders", "--broker-list", "0,9"), 1, "no such brokers: 9"),
        (("--generate", "-t", "orders", "--broker-list", "0"), 1, "has 2 replicas, and there are 1 brokers"),
        (("--generate", "-t", "absent", "--broker-list", "0"), 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (("--verify",), 2, "--reassignment-json-file"),
        (("--verify", "orders:0"), 2, "needs the brokers"),
    ],
)
def test_incomplete_plans_are_refused(
    run: Run, broker: EmbeddedBroker, arguments: tuple[str, ...], status: int, text: str
) -> None:
    result = run("reassign", *arguments, "-b", broker.bootstrap_servers)
    assert (result.exit_code, text in result.stderr) == (status, True), result.stderr


def test_a_partition_that_does_not_exist_is_not_complete(reassign: Ask) -> None:
    (row,) = reassign("--verify", "orders:7=0", status=1)
    assert (row["replicas"], row["status"]) == (None, "no such partition")


@pytest.mark.slow
def test_plans_and_states_as_kafka_reassign_partitions_prints_them(
    run: Run, servers: tuple[str, ...], kafka_cluster: ClusterAddresses, admin: Admin, topic: str, tmp_path: Path
) -> None:
    topics, plan, rollback = (tmp_path / name for name in ("topics.json", "plan.json", "rollback.json"))
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    targets = ",".join(map(str, kafka_cluster.nodes[:2]))
    admin.alter_partition_reassignments({TopicPartition(topic, number): kafka_cluster.nodes[:2] for number in (0, 1)})
    arguments = ("--generate", "--topics-to-move-json-file", str(topics), "--broker-list", targets)
    own = ("--plan-file", str(plan), "--rollback-file", str(rollback), *servers)
    assert run("reassign", *arguments, *own).exit_code == 0
    current, proposed = (
        json.loads(line) for line in kafka_cluster.run_class(TOOL, *arguments).splitlines() if line.startswith("{")
    )
    assert _brokers(json.loads(rollback.read_text())) == _brokers(current)
    found, expected = _brokers(json.loads(plan.read_text())), _brokers(proposed)
    assert found.keys() == expected.keys()
    assert sorted(map(sorted, found.values())) == sorted(map(sorted, expected.values()))
    assert len({replicas[0] for replicas in found.values()}) == len({replicas[0] for replicas in expected.values()})
    for action in ("--verify", "--execute", "--verify"):
        printed = kafka_cluster.run_class(TOOL, action, "--reassignment-json-file", str(plan))
        if action == "--verify":
            shown = run("reassign", action, "--reassignment-json-file", str(plan), "--json", *servers)
            done = {
                f"{row['topic']}-{row['partition']}" for row in json.loads(shown.stdout) if row["status"] == "completed"
            }
            assert done == set(re.findall(r"Reassignment of partition (\S+) is completed", printed))


def _brokers(plan: dict[str, Any]) -> dict[tuple[str, int], list[int]]:
    return {(each["topic"], each["partition"]): each["replicas"] for each in plan["partitions"]}
