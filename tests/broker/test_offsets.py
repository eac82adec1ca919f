"""Offsets committed by topic name and by topic id, with and without a transaction."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import pytest

from kafka_msgs import (
    EndTxnRequest,
    ErrorCode,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from kafka_msgs.messages import offset_commit_request, txn_offset_commit_request
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequestGroup
from tests.support.virtual_brokers import VirtualCluster

NOWHERE: Final = UUID(int=7)
OFFSET: Final = 5


@pytest.fixture
def cluster() -> VirtualCluster:
    cluster = VirtualCluster.start()
    cluster.create("t", partitions=2)
    for kind, key in enumerate(("g", "x")):
        found = cluster.call(FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,)), 6)
        assert found.coordinators[0].error_code == 0
    return cluster


def topics(cluster: VirtualCluster, cls: Any, part: Any, *, by_id: bool) -> Any:
    """Return a topic with an existing and a missing partition, and a missing topic."""

    def place(name: str, topic_id: UUID) -> dict[str, Any]:
        return {"topic_id": topic_id} if by_id else {"name": name}

    known = tuple(part(partition_index=each, committed_offset=OFFSET) for each in (1, 99))
    return (
        cls(**place("t", cluster.topic_id("t")), partitions=known),
        cls(**place("missing", NOWHERE), partitions=known[:1]),
    )


def errors(answer: Any) -> list[tuple[Any, list[tuple[int, int]]]]:
    """Return the name or id of each topic in a response, with the errors of its partitions."""
    return [
        (each.name or each.topic_id, [(part.partition_index, part.error_code) for part in each.partitions])
        for each in answer.topics
    ]


def expected(cluster: VirtualCluster, *, by_id: bool) -> list[tuple[Any, list[tuple[int, int]]]]:
    known, unknown = (cluster.topic_id("t"), NOWHERE) if by_id else ("t", "missing")
    error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return [(known, [(99, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (1, 0)]), (unknown, [(1, error)])]


def committed(cluster: VirtualCluster) -> int:
    group = OffsetFetchRequestGroup(group_id="g", topics=None)
    (found,) = cluster.call(OffsetFetchRequest(groups=(group,)), 10).groups
    return next((part.committed_offset for topic in found.topics for part in topic.partitions), -1)


@pytest.mark.parametrize(("version", "by_id"), [(9, False), (10, True)])
def test_a_commit(cluster: VirtualCluster, version: int, by_id: bool) -> None:
    module = offset_commit_request
    wanted = topics(cluster, module.OffsetCommitRequestTopic, module.OffsetCommitRequestPartition, by_id=by_id)
    answer = cluster.call(OffsetCommitRequest(group_id="g", topics=wanted), version)
    assert errors(answer) == expected(cluster, by_id=by_id)
    assert committed(cluster) == OFFSET


@pytest.mark.parametrize(("version", "by_id"), [(5, False), (6, True)])
def test_a_commit_in_a_transaction(cluster: VirtualCluster, version: int, by_id: bool) -> None:
    producer = cluster.call(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=10_000), 5)
    assert producer.error_code == 0
    module = txn_offset_commit_request
    wanted = topics(cluster, module.TxnOffsetCommitRequestTopic, module.TxnOffsetCommitRequestPartition, by_id=by_id)
    of_producer: dict[str, Any] = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    request = TxnOffsetCommitRequest(transactional_id="x", group_id="g", topics=wanted, **of_producer)
    assert errors(cluster.call(request, version)) == expected(cluster, by_id=by_id)
    assert committed(cluster) == -1
    ended = cluster.call(EndTxnRequest(transactional_id="x", committed=True, **of_producer), 5)
    assert ended.error_code == 0
    assert committed(cluster) == OFFSET
