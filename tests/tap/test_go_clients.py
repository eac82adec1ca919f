"""Go clients behind ``kafka-msgs tap`` with three nodes: the proxy's recording of their sessions.

``python -m tests.recorders.go_clients`` creates the recording. Each client ends with an error if any of its operations
fails; then there is no recording.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kafka_msgs import ApiVersionsRequest, FetchResponse, ProduceRequest
from kafka_msgs.capture import Exchange, read_recording
from kafka_msgs.records import Payload, RecordBatch, read_batches
from tests.recorders.other_clients import versions
from tests.support.recordings import TAPPED_GO

with TAPPED_GO.open("rb") as file:
    ITEMS = list(read_recording(file))
EXCHANGES = [item for item in ITEMS if isinstance(item, Exchange)]
NAMES = {"franz-go": "kgo", "sarama": "sarama"}
"""The client names in ApiVersions requests. kafka-go sends none."""

WRITTEN = [b"chair", b"table", b"lamp"]
NEW = {"COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "UNKNOWN_TOPIC_OR_PARTITION", "MEMBER_ID_REQUIRED"}
"""The errors that a client may receive for a new topic and a new group."""


def test_everything_is_an_exchange_that_can_be_decoded() -> None:
    assert len(EXCHANGES) == len(ITEMS) > 100
    assert [exchange.problems for exchange in EXCHANGES if exchange.problems] == []
    unanswered = [exchange.request_message for exchange in EXCHANGES if exchange.response is None]
    assert all(isinstance(each, ProduceRequest) and each.acks == 0 for each in unanswered)
    assert {error.name for exchange in EXCHANGES for error in exchange.errors} <= NEW


@pytest.mark.parametrize("client", NAMES)
def test_the_clients_are_those_that_the_recorder_pins(client: str) -> None:
    told = [each.request_message for each in EXCHANGES if each.api == "ApiVersions"]
    found = {
        each.client_software_version.lstrip("v")
        for each in told
        if isinstance(each, ApiVersionsRequest) and each.client_software_name == NAMES[client]
    }
    assert found == {versions()[client]}


def test_clients_were_led_from_broker_to_broker_and_stayed_behind_the_proxy() -> None:
    """All written records passed through the proxy and were read through it: in order, and from several nodes."""
    with TAPPED_GO.open("rb") as file:
        nodes = json.loads(file.readline())["bootstrap"]
    assert {str(each.connection.server) for each in EXCHANGES} == set(nodes)
    assert list(_written()) == list(_read()) == [b"in a transaction", *3 * WRITTEN]
    assert len({each.connection.server for each in EXCHANGES if each.api == "Fetch"}) > 1


def test_groups_transactions_and_administration_passed() -> None:
    apis = {exchange.api for exchange in EXCHANGES}
    assert apis >= {
        *("CreateTopics", "Metadata", "FindCoordinator", "InitProducerId", "Produce", "EndTxn", "JoinGroup"),
        *("SyncGroup", "OffsetFetch", "ListOffsets", "Fetch", "OffsetCommit", "LeaveGroup", "ListGroups"),
        *("DescribeGroups", "DescribeConfigs"),
    }


def _written() -> Iterator[object]:
    for exchange in EXCHANGES:
        if isinstance(exchange.request_message, ProduceRequest):
            for topic in exchange.request_message.topic_data:
                for data in topic.partition_data:
                    yield from _values(data.records)


def _read() -> Iterator[object]:
    for exchange in EXCHANGES:
        if isinstance(exchange.response_message, FetchResponse):
            for topic in exchange.response_message.responses:
                for data in topic.partitions:
                    yield from _values(data.records)


def _values(records: Payload | None) -> Iterator[object]:
    for batch in read_batches(records or b""):
        if isinstance(batch, RecordBatch) and not batch.is_control:
            yield from batch.values()
