"""The commands over ``Admin`` against an embedded broker."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import TopicPartition
from kafka_msgs.client.producer import Producer
from kafka_msgs.errors import ProducerFencedError
from tests.support.command_line import Run

Ask = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(brokers=3, authorizer=True, super_users=("User:ANONYMOUS",)) as broker:
        yield broker


@pytest.fixture
def admin(broker: EmbeddedBroker) -> Iterator[Admin]:
    with Admin(broker.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def topic(admin: Admin, request: pytest.FixtureRequest) -> str:
    name = f"t{abs(hash(request.node.name))}"
    admin.create_topics([NewTopic(name, assignments={0: [0, 1], 1: [1, 2]})]).all()
    return name


@pytest.fixture
def ask(run: Run, broker: EmbeddedBroker) -> Ask:
    """Return a function that runs a command, and returns the rows of its JSON output."""

    def ask(*arguments: str, status: int = 0, stdin: str | None = None) -> list[dict[str, Any]]:
        result = run(*arguments, "-b", broker.bootstrap_servers, "--json", stdin=stdin)
        assert result.exit_code == status, result.output
        rows: list[dict[str, Any]] = json.loads(result.stdout or "[]")
        return rows

    return ask


def test_topics_from_creation_to_deletion(ask: Ask, admin: Admin) -> None:
    config = ("--config", "retention.ms=7,cleanup.policy=[compact,delete]")
    sizes = ("--partitions", "2", "--replication-factor", "2")
    (planned,) = ask("topics", "--create", "-t", "made", *sizes, *config, "--dry-run")
    assert planned["partitions"] == 2
    assert "made" not in admin.list_topics()
    (created,) = ask("topics", "--create", "-t", "made", *sizes, *config)
    assert {**created, "topicId": None} == {**planned, "topicId": None, "replicationFactor": 2, "error": None}
    assert len(created["topicId"]) == 22, "Kafka's base64 form"
    (again,) = ask("topics", "--create", "made", status=1)
    assert "TOPIC_ALREADY_EXISTS" in again["error"]
    assert ask("topics", "--create", "made", "--if-not-exists")[0]["error"] is None
    assert [row for row in ask("topics") if row["topic"] == "made"] == [
        {"topic": "made", "topicId": created["topicId"], "partitions": 2, "replicationFactor": 2, "internal": False}
    ]
    ask("topics", "--alter", "made", "--partitions", "3", "--replica-assignment", "2:0")
    described = ask("topics", "--describe", "made")
    assert [row["partition"] for row in described] == [0, 1, 2]
    assert (described[2]["leader"], described[2]["replicas"]) == (2, [2, 0])
    configs = ask("configs", "-t", "made")
    values = {row["name"]: row["value"] for row in configs if row["source"] == "DYNAMIC_TOPIC_CONFIG"}
    assert values == {"cleanup.policy": "compact,delete", "retention.ms": "7"}
    assert ask("topics", "--delete", "made")[0]["error"] is None
    assert "UNKNOWN_TOPIC" in ask("topics", "--delete", "made", status=1)[0]["error"]
    ask("topics", "--delete", "made", "--if-exists")


def test_topics_that_do_not_exist(run: Run, broker: EmbeddedBroker) -> None:
    at = ("-b", broker.bootstrap_servers)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in run("topics", "--describe", "absent", *at).stderr
    assert run("topics", "--describe", "absent", "--if-exists", *at).exit_code == 0
    assert run("topics", "--create", *at).exit_code == 2
    assert run("topics", "--alter", "absent", *at).exit_code == 2
    assert run("topics", "--create", "x", "--replica-assignment", "a", *at).exit_code == 2


def test_configs_are_altered_and_reset(ask: Ask, topic: str) -> None:
    ask("configs", "--alter", "-t", topic, "--add-config", "retention.ms=60000,cleanup.policy=[compact,delete]")
    found = {row["name"]: row for row in ask("configs", "--entity-type", "topics", "--entity-name", topic)}
    assert found["retention.ms"]["value"] == "60000"
    assert found["retention.ms"]["source"] == "DYNAMIC_TOPIC_CONFIG"
    assert found["cleanup.policy"]["value"] == "compact,delete"
    ask("configs", "--alter", "-t", topic, "--delete-config", "retention.ms")
    assert "retention.ms" not in {row["name"] for row in ask("configs", "-t", topic)}
    assert "retention.ms" in {row["name"] for row in ask("configs", "-t", topic, "--all")}
    (refused,) = ask("configs", "--alter", "-t", topic, "--add-config", "no.such=1", status=1)
    assert refused["error"]


def test_rules_from_addition_to_removal(ask: Ask, run: Run, broker: EmbeddedBroker) -> None:
    who = ("--allow-principal", "User:alice")
    added = ask("acls", "--add", *who, "--operation", "Read", "--operation", "describe", "--topic", "orders,payments")
    assert len(added) == 4
    listed = ask("acls", "--topic", "orders")
    assert {row["operation"] for row in listed} == {"READ", "DESCRIBE"}
    assert {row["principal"] for row in listed} == {"User:alice"}
    prefixed = ("--resource-pattern-type", "prefixed")
    ask("acls", "--add", "--deny-principal", "User:bob", "--deny-host", "10.0.0.1", "--topic", "ord", *prefixed)
    (denied,) = ask("acls", "--principal", "User:bob")
    assert (denied["permission"], denied["host"], denied["patternType"]) == ("DENY", "10.0.0.1", "PREFIXED")
    assert len(ask("acls", "--topic", "orders", "--resource-pattern-type", "match")) == 3
    assert len(ask("acls", "--remove", "--topic", "orders")) == 2
    assert len(ask("acls")) == 3
    at = ("-b", broker.bootstrap_servers)
    assert run("acls", "--remove", *at).exit_code == 2
    assert run("acls", "--add", *at, *who).exit_code == 2
    assert run("acls", "--add", *at, *who, "--topic", "t", "--operation", "Dance").exit_code == 2


def test_brokers_and_quorum(ask: Ask, admin: Admin) -> None:
    rows = ask("cluster")
    assert [row["broker"] for row in rows] == [0, 1, 2]
    assert sum(row["controller"] for row in rows) == 1
    assert {row["clusterId"] for row in rows} == {admin.describe_cluster().cluster_id}


def test_rules_of_the_cluster(ask: Ask, run: Run, broker: EmbeddedBroker) -> None:
    who = ("--allow-principal", "User:carol", "--allow-host", "10.0.0.2")
    (added,) = ask("acls", "--add", "--cluster", *who, "--operation", "ClusterAction")
    expected = {"resourceType": "CLUSTER", "resource": "kafka-cluster", "patternType": "LITERAL", "host": "10.0.0.2"}
    assert expected.items() <= added.items()
    (listed,) = ask("acls", "--cluster")
    assert listed.items() <= added.items()
    ask("acls", "--add", *who, "--topic", "cluster")
    assert len(ask("acls", "--remove", "--cluster")) == 1
    assert ask("acls", "--cluster") == []
    assert len(ask("acls", "--remove", "--topic", "cluster")) == 1
    assert run("acls", "--add", "--cluster", "-b", broker.bootstrap_servers).exit_code == 2


def test_a_broker_is_unregistered(run: Run) -> None:
    with EmbeddedBroker(brokers=2) as broker:
        at = ("-b", broker.bootstrap_servers.split(",")[0])
        broker.stop_broker(1)

        def registered() -> set[int]:
            with Admin(at[1]) as admin:
                return set(admin.describe_cluster(include_fenced_brokers=True).nodes)

        assert registered() == {0, 1}
        assert run("cluster", "--unregister", "1", *at).exit_code == 0
        assert registered() == {0}
        failed = run("cluster", "--unregister", "7", *at)
        assert (failed.exit_code, "BROKER_ID_NOT_REGISTERED" in failed.stderr) == (1, True)


def test_offsets_of_partitions(ask: Ask, broker: EmbeddedBroker, admin: Admin, topic: str) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(4):
            producer.send(topic, b"x", partition=0, timestamp=1000 * number)

    def offsets(*options: str, status: int = 0) -> dict[int, int | None]:
        return {row["partition"]: row["offset"] for row in ask("get-offsets", topic, *options, status=status)}

    assert offsets() == {0: 4, 1: 0}
    assert offsets("--time", "earliest") == {0: 0, 1: 0}
    assert offsets("--time", "1500") == {0: 2, 1: None}
    assert offsets("--time", "-3", "--partitions", "0") == {0: 3}
    absent = ask("get-offsets", "--topic-partitions", f"{topic}:1,{topic}:7", status=1)
    assert [(row["partition"], row["offset"]) for row in absent] == [(1, 0), (7, None)]
    assert "UNKNOWN_TOPIC_OR_PARTITION" in absent[1]["error"]
    assert ask("delete-records", f"{topic}:0=3")[0]["lowWatermark"] == 3
    assert offsets("--time", "earliest") == {0: 3, 1: 0}
    ask("delete-records", f"{topic}:0=end")
    assert offsets("--time", "earliest") == {0: 4, 1: 0}
    (refused,) = ask("delete-records", f"{topic}:0=99", status=1)
    assert "OFFSET_OUT_OF_RANGE" in refused["error"]


def test_files_of_kafkas_tools(
    ask: Ask, run: Run, broker: EmbeddedBroker, admin: Admin, topic: str, tmp_path: Path
) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        producer.send(topic, b"x", partition=0)
    path = tmp_path / "plan.json"

    def write(**fields: Any) -> str:
        path.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, **fields}]}))
        return str(path)

    assert ask("delete-records", "--offset-json-file", write(offset=1))[0]["lowWatermark"] == 1
    ask("reassign", "--execute", "--reassignment-json-file", write(replicas=[2, 1]))
    assert admin.describe_topics([topic])[topic].partitions[0].replica_nodes == (2, 1)
    ask("elect-leaders", "--path-to-json-file", write())
    assert admin.describe_topics([topic])[topic].partitions[0].leader_id == 2
    path.write_text('{"partitions": [1]}')
    failed = run("elect-leaders", "--path-to-json-file", str(path), "-b", broker.bootstrap_servers)
    assert (failed.exit_code, "expected a JSON object" in failed.stderr) == (1, True)


def test_moves_and_elections(ask: Ask, run: Run, broker: EmbeddedBroker, topic: str) -> None:
    assert ask("reassign", "--execute", f"{topic}:0=1,0")[0]["error"] is None
    assert ask("reassign") == []
    ask("elect-leaders", "-t", topic, "-p", "0")
    assert ask("elect-leaders", f"{topic}:1")[0]["error"] is None, "an election that is not needed is no failure"
    assert ask("elect-leaders", f"{topic}:9", status=1)[0]["error"]
    at = ("-b", broker.bootstrap_servers)
    assert run("elect-leaders", *at).exit_code == 2
    assert run("reassign", "--execute", f"{topic}:0=x", *at).exit_code == 2
    assert run("reassign", "--execute", f"{topic}:0", *at).exit_code == 2


def test_quotas(ask: Ask, run: Run, broker: EmbeddedBroker) -> None:
    ask("quotas", "--alter", "--user", "alice", "--add-config", "consumer_byte_rate=1024,producer_byte_rate=2048")
    ask("quotas", "--alter", "--client-defaults", "--add-config", "request_percentage=50")
    assert ask("quotas", "--user", "alice") == [
        {"user": "alice", "clientId": None, "ip": None, "name": "consumer_byte_rate", "value": 1024.0},
        {"user": "alice", "clientId": None, "ip": None, "name": "producer_byte_rate", "value": 2048.0},
    ]
    assert ask("quotas", "--client-defaults")[0]["clientId"] == "<default>"
    ask("quotas", "--alter", "--user", "alice", "--delete-config", "consumer_byte_rate,producer_byte_rate")
    assert ask("quotas", "--user", "alice") == []
    at = ("-b", broker.bootstrap_servers)
    assert run("quotas", "--alter", "--user", "a", *at).exit_code == 2
    assert run("quotas", "--alter", "--user", "a", "--add-config", "consumer_byte_rate=x", *at).exit_code == 2


def test_users(ask: Ask, run: Run, broker: EmbeddedBroker) -> None:
    ask("users", "--add", "alice", stdin="secret\n")
    assert ask("users", "alice") == [{"user": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 4096}]
    ask("users", "--delete", "alice")
    assert ask("users") == []
    assert ask("users", "--delete", "alice", status=1)[0]["error"]
    assert run("users", "--add", "alice", "-b", broker.bootstrap_servers, stdin="").exit_code == 2


def test_transactions(ask: Ask, broker: EmbeddedBroker, topic: str) -> None:
    producer = Producer(broker.bootstrap_servers, transactional_id=topic)
    with suppress(ProducerFencedError), producer:  # closing it aborts a transaction that is already aborted
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"x", partition=1).result()
        assert [row["state"] for row in ask("transactions", "--state", "Ongoing")] == ["Ongoing"]
        assert ask("transactions", "--running-longer-than", "1h") == []
        (described,) = ask("transactions", "--describe", "--transactional-id", topic)
        assert described["partitions"] == [f"{topic}-1"]
        (active,) = ask("transactions", "--describe-producers", "-p", f"{topic}:1")
        assert active["currentTransactionStartOffset"] == 0
        assert active["producerId"] == described["producerId"]
        ask("transactions", "--force-terminate", "--transactional-id", topic)
        states = [row["state"] for row in ask("transactions") if row["transactionalId"] == topic]
        assert "Ongoing" not in states
    assert ask("transactions", "--describe", "--transactional-id", "absent", status=1)[0]["error"]


def test_features(ask: Ask, run: Run, broker: EmbeddedBroker) -> None:
    rows = {row["feature"]: row for row in ask("features")}
    assert rows["metadata.version"]["finalizedVersionLevel"] <= rows["metadata.version"]["supportedMaxVersion"]
    at = ("-b", broker.bootstrap_servers)
    assert run("features", "--upgrade", "--feature", "metadata.version=999", "--dry-run", *at).exit_code == 1
    assert run("features", "--upgrade", "--feature", "x", *at).exit_code == 2


@pytest.mark.parametrize("form", ["table", "jsonl", "csv"])
def test_every_output_form(run: Run, broker: EmbeddedBroker, topic: str, form: str) -> None:
    shown = run("topics", "--describe", topic, "-b", broker.bootstrap_servers, "--output", form).stdout
    if form == "csv":
        assert [row["replicas"] for row in csv.DictReader(shown.splitlines())] == ["0, 1", "1, 2"]
    assert topic in shown


def test_an_unavailable_partition_is_described(run: Run) -> None:
    with EmbeddedBroker(brokers=2) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", assignments={0: [0], 1: [1]})]).all()
        at = ("-b", broker.bootstrap_servers.split(",")[0], "--json")
        broker.stop_broker(1)
        shown = run("topics", "--describe", "--unavailable-partitions", *at).stdout
        assert [row["partition"] for row in json.loads(shown)] == [1]
        offsets = run("get-offsets", "t", *at, "--timeout", "20s")
        assert offsets.exit_code == 1
        assert [(row["offset"], row["error"] is None) for row in json.loads(offsets.stdout)] == [
            (0, True),
            (None, False),
        ]


def test_partitions_may_be_written_as_kafka_logs_them() -> None:
    from kafka_msgs.cli.admin_commands.outcomes import parse_partition

    assert parse_partition("a-b-3") == parse_partition("a-b:3") == TopicPartition("a-b", 3)
