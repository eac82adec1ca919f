"""Hanging transactions: found and aborted on an embedded broker, and compared with kafka-transactions."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from kafka_msgs import ProduceRequest
from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import TopicPartition
from kafka_msgs.client.producer import Producer
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.messages.produce_request import PartitionProduceData, TopicProduceData
from kafka_msgs.records import BatchBuilder, BatchHeader
from tests.recorders.broker import run_kafka_class
from tests.support.command_line import Run

HANGING: Final = TopicPartition("tea", 1)
PRODUCER: Final = 4711
AN_HOUR_MS: Final = 3_600_000


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    """A broker with a hanging transaction, a transaction in progress, and a producer without a transaction."""
    unverified = {"transaction.partition.verification.enable": "false"}
    with EmbeddedBroker(brokers=2, configs=unverified) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("tea", assignments={0: [0, 1], 1: [1, 0]})]).all()
        _write_transaction(admin)
        yield broker


def _write_transaction(admin: Admin) -> None:
    """Write a record in a transaction that no coordinator knows, an hour ago."""
    builder = BatchBuilder(BatchHeader(producer_id=PRODUCER, producer_epoch=3, base_sequence=0, transactional=True))
    builder.append(None, b"x", timestamp=int(time.time() * 1000) - AN_HOUR_MS)
    data = PartitionProduceData(index=HANGING.partition, records=builder.build())
    request = ProduceRequest(
        transactional_id="gone",
        acks=-1,
        timeout_ms=1000,
        topic_data=(TopicProduceData(name=HANGING.topic, partition_data=(data,)),),
    )
    leader = admin.describe_topics([HANGING.topic])[HANGING.topic].partitions[HANGING.partition].leader_id
    response = admin.client.call(request, broker_id=leader, version=11)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE


Ask = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def transactions(run: Run, broker: EmbeddedBroker) -> Ask:
    """Return a function that runs ``kafka-msgs transactions``, and returns the rows of its JSON output."""

    def ask(*arguments: str, status: int = 0) -> list[dict[str, Any]]:
        result = run("transactions", *arguments, "-b", broker.bootstrap_servers, "--json")
        assert result.exit_code == status, result.output
        rows: list[dict[str, Any]] = json.loads(result.stdout or "[]")
        return rows

    return ask


def test_a_hanging_transaction_is_found_and_aborted(transactions: Ask, broker: EmbeddedBroker) -> None:
    with Producer(broker.bootstrap_servers, transactional_id="tea") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("tea", b"x", partition=0, timestamp=0).result()
        (found,) = transactions("--find-hanging")
        producer.abort_transaction()
    assert (found["topic"], found["partition"], found["producerId"], found["producerEpoch"]) == (*HANGING, PRODUCER, 3)
    assert (found["currentTransactionStartOffset"], found["error"]) == (0, None)
    for selection in (("-p", "tea:1"), ("-t", "tea"), ("--broker-id", "0"), ("--max-transaction-timeout", "59m")):
        assert transactions("--find-hanging", *selection) == [found], selection
    for selection in (("-p", "tea:0"), ("--max-transaction-timeout", "2h")):
        assert transactions("--find-hanging", *selection) == [], selection
    producer_of = ("--producer-id", str(PRODUCER), "--producer-epoch", "3")
    assert transactions("--abort", "-p", "tea:1", *producer_of) == []
    assert transactions("--find-hanging") == []
    (after,) = transactions("--describe-producers", "-p", "tea:1")
    assert (after["producerId"], after["currentTransactionStartOffset"]) == (PRODUCER, None)


def test_partitions_that_cannot_be_searched_are_listed(transactions: Ask) -> None:
    found = transactions("--find-hanging", "-p", "tea:1", "-p", "absent:0", status=1)
    assert [row["topic"] for row in found] == ["tea", "absent"]
    assert "UNKNOWN_TOPIC_OR_PARTITION" in found[1]["error"]


def test_abortion_needs_its_options_and_a_leader(run: Run, broker: EmbeddedBroker) -> None:
    at = ("-b", broker.bootstrap_servers)
    assert run("transactions", "--abort", "-p", "tea:1", *at).exit_code == 2
    assert run("transactions", "--abort", "--producer-id", "1", "--producer-epoch", "0", *at).exit_code == 2
    producer = ("--producer-id", "1", "--producer-epoch", "0")
    failed = run("transactions", "--abort", "-p", "absent:0", *producer, *at)
    assert (failed.exit_code, "UNKNOWN_TOPIC_OR_PARTITION" in failed.stderr) == (1, True)


@pytest.mark.slow
def test_hanging_transactions_as_kafka_transactions_finds_them(transactions: Ask, broker: EmbeddedBroker) -> None:
    tool = ("org.apache.kafka.tools.TransactionsCommand", ["--bootstrap-server", broker.bootstrap_servers])

    def kafka_finds(*selection: str) -> list[tuple[str, ...]]:
        printed = run_kafka_class(tool[0], [*tool[1], "find-hanging", *selection])
        rows = (re.split(r"\s+", line.strip()) for line in printed.splitlines()[1:])
        return [tuple(row[:6]) for row in rows if len(row) >= 6]

    columns = ("topic", "partition", "producerId", "producerEpoch", "coordinatorEpoch", "currentTransactionStartOffset")
    (found,) = transactions("--find-hanging")
    expected = [tuple(str(found[name]) for name in columns)]
    assert kafka_finds("--topic", "tea") == expected
    assert kafka_finds("--broker-id", "0") == expected
    assert kafka_finds("--topic", "tea", "--max-transaction-timeout", "120") == []
    transactions("--abort", "-p", "tea:1", "--producer-id", str(PRODUCER), "--producer-epoch", "3")
    assert kafka_finds("--topic", "tea") == []
