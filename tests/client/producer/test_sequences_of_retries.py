"""Retried batches: the batches after them, brokers that lost their state, and batches that are too large."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.messages.produce_response import PartitionProduceResponse
from tests.support.produce_cluster import SMALL, ProduceCluster, Refused, error_of, offsets

VALUES = [b"%04d" % number for number in range(100)]


@pytest.mark.parametrize("at", range(6))
@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_PRODUCER_ID])
def test_a_broker_without_its_state_does_not_wedge_a_producer(at: int, error: ErrorCode) -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(**SMALL)
    records = cluster.add(producer, VALUES[:50], partition=1)
    cluster.flush(producer)
    log = cluster.logs[1]
    log.takes_any_first = True
    log.last.clear()
    log.places.clear()
    cluster.faults.extend([None] * at + [Refused(error)])
    records += cluster.add(producer, VALUES[50:], partition=1)
    start = cluster.network.now()
    cluster.flush(producer)
    assert cluster.network.now() - start < 30
    assert [error_of(record) for record in records] == [None] * len(records)
    assert sorted(map(bytes, filter(None, log.values))) == VALUES
    assert sorted(offsets(records)) == list(range(len(VALUES)))


def test_nothing_new_follows_a_batch_that_is_sent_again() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(**SMALL)
    cluster.add(producer, VALUES[:20], partition=1)
    cluster.flush(producer)
    cluster.faults.append(Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    cluster.add(producer, VALUES[20:30], partition=1)
    cluster.network.pass_time(0.004)
    cluster.add(producer, VALUES[30:], partition=1)
    cluster.flush(producer)
    assert cluster.logs[1].values == VALUES


class SmallCluster(ProduceCluster):
    """Brokers that refuse batches above a size, as with ``max.message.bytes``."""

    limit = 1 << 20

    def _take(self, node: int, data: Any, request: Any, fault: Any) -> PartitionProduceResponse:
        if len(data.records) > self.limit:
            return PartitionProduceResponse(index=data.index, error_code=ErrorCode.MESSAGE_TOO_LARGE, base_offset=-1)
        return super()._take(node, data, request, fault)


@given(
    sizes=st.lists(st.integers(0, 400), min_size=1, max_size=120),
    limit=st.integers(150, 900),
    flights=st.integers(1, 5),
    idempotence=st.booleans(),
    transactional=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_batches_that_are_too_large_are_divided_in_order(
    sizes: list[int], limit: int, flights: int, *, idempotence: bool, transactional: bool
) -> None:
    cluster = SmallCluster()
    cluster.limit = limit
    options: dict[str, Any] = {"linger": 0.0, "batch_size": 4000, "idempotence": idempotence}
    options["max_in_flight"] = flights if idempotence or transactional else 1
    if transactional:
        options |= {"transactional_id": "t", "idempotence": True}
    producer = cluster.producer(**options)
    if transactional:
        cluster.network.run(producer.init_transactions(cluster.network.now() + 60))
        producer.begin_transaction()
    legal = [b"%04d" % number + bytes(min(size, limit - 100)) for number, size in enumerate(sizes)]
    records = cluster.add(producer, legal, partition=1)
    start = cluster.network.now()
    if transactional:
        cluster.network.run(producer.commit(cluster.network.now() + 600))
    cluster.flush(producer)
    assert cluster.network.now() - start < 60
    assert cluster.logs[1].values == legal
    assert offsets(records) == list(range(len(legal)))


def test_callbacks_follow_their_records_into_the_parts() -> None:
    cluster = SmallCluster()
    cluster.limit = 150
    producer = cluster.producer(linger=1.0, batch_size=4000)
    seen: list[int] = []
    for value in VALUES[:20]:
        record = value + bytes(20)
        arguments = ("t", record, None, 1, 1000, (), lambda metadata, error: seen.append(metadata.offset))
        if producer.add(*arguments) is None:
            cluster.network.run(producer.add_when_possible(*arguments))
    cluster.flush(producer)
    assert seen == list(range(20))
