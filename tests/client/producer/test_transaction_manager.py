"""Transactions on an in-memory cluster: with transactions version 2 and with earlier versions (KIP-98, KIP-890)."""

from __future__ import annotations

from collections import deque
from uuid import UUID

import pytest

from kafka_msgs.client import TopicPartition
from kafka_msgs.client.producer import ConsumerGroupMetadata, OffsetAndMetadata
from kafka_msgs.client.producer.core import ProducerCore
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import (
    BrokerError,
    OptionError,
    ProducerFencedError,
    TransactionStateError,
    UnknownTopicError,
)
from kafka_msgs.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kafka_msgs.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from kafka_msgs.messages.end_txn_request import EndTxnRequest
from kafka_msgs.messages.end_txn_response import EndTxnResponse
from kafka_msgs.messages.init_producer_id_request import InitProducerIdRequest
from kafka_msgs.messages.init_producer_id_response import InitProducerIdResponse
from kafka_msgs.messages.produce_request import ProduceRequest
from kafka_msgs.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from tests.support.produce_cluster import TOPIC_ID, ProduceCluster, Refused, Unheard

VALUES = [b"%03d" % number for number in range(60)]
VERSIONS = pytest.mark.parametrize("version", [1, 2])


def begun(cluster: ProduceCluster, name: str = "payments") -> ProducerCore:
    """Return a producer that is ready for transactions."""
    producer = cluster.producer(transactional_id=name, batch_size=200, linger=0.0)
    cluster.network.run(producer.init_transactions(cluster.network.now() + 60))
    return producer


def commit(cluster: ProduceCluster, producer: ProducerCore) -> None:
    """Commit within a minute."""
    cluster.network.run(producer.commit(cluster.network.now() + 60))


def abort(cluster: ProduceCluster, producer: ProducerCore) -> None:
    """Abort within a minute."""
    cluster.network.run(producer.abort(cluster.network.now() + 60))


@VERSIONS
def test_transactions_end_as_they_are_asked_to(version: int) -> None:
    cluster = ProduceCluster(transactions=version)
    producer = begun(cluster)
    for ending in (commit, abort, commit):
        producer.begin_transaction()
        cluster.add(producer, VALUES, partition=1)
        cluster.add(producer, VALUES, partition=2)
        cluster.flush(producer)
        ending(cluster, producer)
    assert cluster.ended == [True, False, True]
    assert cluster.logs[1].values == VALUES * 3
    assert all(cluster.logs[1].transactional)


@VERSIONS
def test_the_versions_of_requests_are_those_of_the_version_of_transactions(version: int) -> None:
    cluster = ProduceCluster(transactions=version)
    producer = begun(cluster)
    producer.begin_transaction()
    cluster.add(producer, VALUES, partition=1)
    offsets = {TopicPartition("t", 0): OffsetAndMetadata(17)}
    cluster.network.run(producer.send_offsets(offsets, ConsumerGroupMetadata("readers")))
    commit(cluster, producer)
    assert cluster.versions(ProduceRequest) == ({11} if version == 1 else {13})
    assert cluster.versions(EndTxnRequest) == ({4} if version == 1 else {5})
    assert cluster.versions(TxnOffsetCommitRequest) == ({4} if version == 1 else {5})
    assert cluster.versions(AddPartitionsToTxnRequest) == ({3} if version == 1 else set())
    assert len(cluster.requests(AddOffsetsToTxnRequest)) == (1 if version == 1 else 0)
    assert cluster.offsets == {("t", 0): 17}


@VERSIONS
def test_an_empty_transaction_asks_the_coordinator_nothing(version: int) -> None:
    cluster = ProduceCluster(transactions=version)
    producer = begun(cluster)
    for ending in (commit, abort):
        producer.begin_transaction()
        ending(cluster, producer)
    assert cluster.requests(EndTxnRequest) == []


@VERSIONS
def test_a_failed_record_leaves_only_the_abort(version: int) -> None:
    cluster = ProduceCluster(transactions=version)
    producer = begun(cluster)
    producer.begin_transaction()
    cluster.add(producer, VALUES[:10], partition=1)
    cluster.flush(producer)
    cluster.faults.append(Refused(ErrorCode.INVALID_RECORD))
    cluster.add(producer, VALUES[10:20], partition=1)
    with pytest.raises(BrokerError, match="INVALID_RECORD"):
        commit(cluster, producer)
    with pytest.raises(BrokerError, match="INVALID_RECORD"):
        cluster.add_one(producer, b"more", partition=1)
    abort(cluster, producer)
    producer.begin_transaction()
    cluster.add(producer, VALUES[:5], partition=1)
    commit(cluster, producer)
    assert cluster.ended == [False, True]
    assert cluster.logs[1].values[-5:] == VALUES[:5]


@VERSIONS
def test_a_lost_answer_repeats_nothing(version: int) -> None:
    cluster = ProduceCluster(transactions=version)
    producer = begun(cluster)
    producer.begin_transaction()
    cluster.faults.extend([None, Unheard(), Unheard()])
    cluster.add(producer, VALUES, partition=1)
    commit(cluster, producer)
    assert cluster.logs[1].values == VALUES


@VERSIONS
def test_an_older_producer_is_fenced_off_for_good(version: int) -> None:
    cluster = ProduceCluster(transactions=version)
    older = begun(cluster)
    older.begin_transaction()
    cluster.add(older, VALUES, partition=1)
    cluster.flush(older)
    newer = begun(cluster)
    with pytest.raises(ProducerFencedError, match="payments"):
        commit(cluster, older)
    for _ in range(2):
        with pytest.raises(ProducerFencedError):
            older.begin_transaction()
        with pytest.raises(ProducerFencedError):
            cluster.add_one(older, b"late")
    newer.begin_transaction()
    cluster.add(newer, VALUES, partition=1)
    commit(cluster, newer)
    assert cluster.ended == [True]


def test_the_coordinator_may_be_busy_with_the_transaction_before() -> None:
    cluster = ProduceCluster()
    busy = InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)
    cluster.answers["InitProducerIdRequest"] = deque([busy] * 3)
    producer = begun(cluster)
    producer.begin_transaction()
    cluster.answers["EndTxnRequest"] = deque([EndTxnResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)] * 3)
    cluster.add(producer, VALUES, partition=1)
    commit(cluster, producer)
    assert cluster.ended == [True]
    assert len(cluster.requests(InitProducerIdRequest)) == 4


def test_offsets_that_are_refused_leave_only_the_abort() -> None:
    cluster = ProduceCluster()
    producer = begun(cluster)
    producer.begin_transaction()
    from kafka_msgs.messages.txn_offset_commit_response import (
        TxnOffsetCommitResponse,
        TxnOffsetCommitResponsePartition,
        TxnOffsetCommitResponseTopic,
    )

    refusal = TxnOffsetCommitResponse(
        topics=(
            TxnOffsetCommitResponseTopic(
                name="t",
                partitions=(TxnOffsetCommitResponsePartition(error_code=ErrorCode.ILLEGAL_GENERATION),),
            ),
        )
    )
    cluster.answers["TxnOffsetCommitRequest"] = deque([refusal])
    offsets = {TopicPartition("t", 0): OffsetAndMetadata(17)}
    with pytest.raises(BrokerError, match="ILLEGAL_GENERATION"):
        cluster.network.run(producer.send_offsets(offsets, ConsumerGroupMetadata("readers", 3, "member")))
    with pytest.raises(BrokerError, match="ILLEGAL_GENERATION"):
        commit(cluster, producer)
    abort(cluster, producer)
    assert cluster.ended == [False]
    (request,) = cluster.requests(TxnOffsetCommitRequest)
    assert (request.generation_id_or_member_epoch, request.member_id) == (3, "member")


@VERSIONS
def test_offsets_with_topic_ids_are_committed_by_id_if_the_broker_supports_it(version: int) -> None:
    cluster = ProduceCluster(transactions=version)
    producer = begun(cluster)
    producer.begin_transaction()
    place = TopicPartition("t", 0)
    group = ConsumerGroupMetadata("readers", topic_ids={place: TOPIC_ID})
    cluster.network.run(producer.send_offsets({place: OffsetAndMetadata(17)}, group))
    commit(cluster, producer)
    assert cluster.versions(TxnOffsetCommitRequest) == ({4} if version == 1 else {6})
    assert cluster.offsets == {("t", 0): 17}


def test_offsets_of_a_topic_that_was_created_again_are_refused_at_once() -> None:
    cluster = ProduceCluster()
    producer = begun(cluster)
    producer.begin_transaction()
    place = TopicPartition("t", 0)
    group = ConsumerGroupMetadata("readers", topic_ids={place: UUID(int=6)})
    before = cluster.network.time
    with pytest.raises(UnknownTopicError, match="UNKNOWN_TOPIC_ID"):
        cluster.network.run(producer.send_offsets({place: OffsetAndMetadata(17)}, group))
    assert cluster.network.time - before < 1
    assert cluster.offsets == {}
    abort(cluster, producer)
    assert cluster.ended == [False]


def test_calls_in_the_wrong_order_are_refused() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(transactional_id="payments")
    with pytest.raises(TransactionStateError, match="cannot begin a transaction: the producer is not initialized"):
        producer.begin_transaction()
    cluster.network.run(producer.init_transactions(cluster.network.now() + 60))
    with pytest.raises(TransactionStateError, match="cannot send a record: the producer has no transaction"):
        cluster.add_one(producer, b"early")
    with pytest.raises(TransactionStateError, match="cannot commit"):
        commit(cluster, producer)
    with pytest.raises(TransactionStateError, match="cannot abort"):
        abort(cluster, producer)
    producer.begin_transaction()
    with pytest.raises(TransactionStateError, match="cannot begin a transaction: the producer has a transaction"):
        producer.begin_transaction()


def test_a_producer_without_a_transactional_id_has_no_transactions() -> None:
    producer = ProduceCluster().producer()
    with pytest.raises(OptionError, match="transactional_id"):
        producer.begin_transaction()


def test_an_open_transaction_is_aborted_by_close() -> None:
    cluster = ProduceCluster()
    producer = begun(cluster)
    producer.begin_transaction()
    cluster.add(producer, VALUES, partition=1)
    cluster.flush(producer)
    cluster.network.run(producer.close(cluster.network.now() + 10))
    assert cluster.ended == [False]


@VERSIONS
def test_partitions_are_added_before_the_first_record_goes_there(version: int) -> None:
    cluster = ProduceCluster(transactions=version)
    producer = begun(cluster)
    for _ in range(3):
        producer.begin_transaction()
        for partition in range(3):
            cluster.add(producer, VALUES[:5], partition=partition)
        commit(cluster, producer)
    assert cluster.values().count(VALUES[0]) == 9
    assert {number for log in cluster.logs.values() for number in [len(log.values)]} == {15}
