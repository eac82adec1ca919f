"""Produce, Fetch and the offset APIs, without sockets and with a simulated clock."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs import (
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    ErrorCode,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    ProduceResponse,
)
from kafka_msgs.broker.faults import MoveLeader
from kafka_msgs.broker.storage import PartitionLog
from kafka_msgs.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsTopic
from kafka_msgs.messages.delete_topics_request import DeleteTopicState
from kafka_msgs.messages.fetch_request import FetchPartition, FetchTopic, ForgottenTopic
from kafka_msgs.messages.fetch_response import PartitionData
from kafka_msgs.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsTopic
from kafka_msgs.messages.offset_for_leader_epoch_request import OffsetForLeaderPartition, OffsetForLeaderTopic
from kafka_msgs.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kafka_msgs.records import read_batches
from tests.support.virtual_brokers import START, VirtualCluster, batch

CLEANING = 2
"""The timer of the log cleaner, which is always pending."""


def fetch_request(cluster: VirtualCluster, wanted: dict[int, int], **settings: Any) -> FetchRequest:
    """Return a fetch request for partitions of the topic ``t``, with offsets by partition."""
    partitions = tuple(
        FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=settings.pop("each", 2**20))
        for number, offset in wanted.items()
    )
    topics = (FetchTopic(topic_id=cluster.topic_id("t"), partitions=partitions),) if wanted else ()
    values = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 2**20, "session_id": 0, "session_epoch": -1, **settings}
    return FetchRequest(topics=topics, **values)


def parts(response: FetchResponse) -> list[PartitionData]:
    """Return the partitions of a response."""
    return [each for topic in response.responses for each in topic.partitions]


def values_of(data: PartitionData) -> list[bytes | memoryview | None]:
    """Return the record values of a partition."""
    return [record.value for each in read_batches(data.records or b"") for record in each.records()]


@pytest.fixture
def cluster() -> VirtualCluster:
    cluster = VirtualCluster.start()
    cluster.create("t", partitions=3)
    return cluster


def produced(cluster: VirtualCluster, *args: Any, **settings: Any) -> Any:
    asked = cluster.produce(*args, **settings)
    return cluster.decoded(asked, ProduceResponse).responses[0].partition_responses[0]


def test_what_is_produced_is_fetched_with_its_offsets(cluster: VirtualCluster) -> None:
    assert produced(cluster, "t", 0, batch(b"a", b"b")).base_offset == 0
    assert produced(cluster, "t", 0, batch(b"c")).base_offset == 2
    (data,) = parts(cluster.call(fetch_request(cluster, {0: 0}), 18))
    assert (data.high_watermark, data.log_start_offset, values_of(data)) == (3, 0, [b"a", b"b", b"c"])
    assert data.aborted_transactions is None


def test_an_empty_fetch_waits_for_its_time_and_has_records_of_no_bytes(cluster: VirtualCluster) -> None:
    asked = cluster.ask(fetch_request(cluster, {0: 0}), 18)
    cluster.advance(499)
    assert asked.answer is None
    cluster.advance(1)
    (data,) = parts(cluster.decoded(asked, FetchResponse))
    assert data.records == b""


def test_a_fetch_waits_for_its_bytes_and_a_produce_wakes_it(cluster: VirtualCluster) -> None:
    data = batch(b"x" * 100)
    asked = cluster.ask(fetch_request(cluster, {0: 0, 1: 0}, min_bytes=2 * len(data)), 18)
    cluster.produce("t", 0, data)
    assert asked.answer is None
    cluster.produce("t", 1, data)
    assert [len(each.records or b"") for each in parts(cluster.decoded(asked, FetchResponse))] == [len(data)] * 2
    assert len(cluster.cluster.timers) == CLEANING
    assert cluster.cluster.log_manager.watches == {}


def test_a_fetch_that_waits_looks_only_at_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = VirtualCluster.start()
    cluster.create("t", partitions=50)
    each = len(batch(b"a"))
    wanted = dict.fromkeys(range(50), 0)
    fetched = cluster.ask(fetch_request(cluster, wanted, min_bytes=3 * each, max_wait_ms=60_000), 13)
    looked: list[int] = []
    for name in ("read", "readable"):
        original = getattr(PartitionLog, name)

        def noted(log: PartitionLog, *args: Any, original: Any = original, **settings: Any) -> Any:
            looked.append(log.partition)
            return original(log, *args, **settings)

        monkeypatch.setattr(PartitionLog, name, noted)
    cluster.produce("t", 7, batch(b"a"))
    cluster.produce("t", 9, batch(b"a"))
    assert (looked, fetched.answer) == ([7, 9], None)
    cluster.produce("t", 7, batch(b"b"))
    found = cluster.decoded(fetched, FetchResponse).responses[0].partitions
    assert {part.partition_index: len(part.records or b"") for part in found if part.records} == {7: 2 * each, 9: each}


def test_a_fetch_whose_time_is_over_when_records_come_is_answered_once() -> None:
    cluster = VirtualCluster.start()
    cluster.create("t")
    log = cluster.cluster.log_manager.get((cluster.topic_id("t"), 0))
    assert log is not None

    def append() -> None:
        log.append(batch(b"a"), leader_epoch=0, now=cluster.cluster.now)

    cluster.cluster.call_later(500, append)
    fetched = cluster.ask(fetch_request(cluster, {0: 0}, max_wait_ms=500), 13)
    cluster.advance(500)
    assert cluster.decoded(fetched, FetchResponse).responses[0].partitions[0].records
    assert cluster.cluster.errors == []


@pytest.mark.parametrize("change", ["moved", "deleted", "below the start"])
def test_a_fetch_that_waits_is_told_what_happens_to_its_partitions(change: str) -> None:
    cluster = VirtualCluster.start(brokers=2)
    cluster.create("t")  # with one replica, because a follower would continue to respond
    leader = cluster.cluster.image.topics["t"].partitions[0].leader
    cluster.produce("t", 0, batch(b"a"), broker=leader)
    fetched = cluster.ask(fetch_request(cluster, {0: 0}, min_bytes=1000, max_wait_ms=60_000), 13, broker=leader)
    assert fetched.answer is None
    if change == "moved":
        MoveLeader("t", 0, 1 - leader).apply(cluster.cluster)
        cluster.cluster.settle()
    elif change == "deleted":
        cluster.call(DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),)), 6)
    else:
        topic = DeleteRecordsTopic(name="t", partitions=(DeleteRecordsPartition(partition_index=0, offset=1),))
        cluster.call(DeleteRecordsRequest(topics=(topic,)), 2, broker=leader)
    (part,) = cluster.decoded(fetched, FetchResponse).responses[0].partitions
    expected = {
        "moved": ErrorCode.NOT_LEADER_OR_FOLLOWER,
        "deleted": ErrorCode.UNKNOWN_TOPIC_ID,
        "below the start": ErrorCode.OFFSET_OUT_OF_RANGE,
    }
    assert part.error_code == expected[change]


def test_a_fetch_of_a_closed_connection_leaves_nothing_behind(cluster: VirtualCluster) -> None:
    cluster.ask(fetch_request(cluster, {0: 0}, max_wait_ms=2**31 - 1), 18)
    cluster.sessions[0].end()
    assert len(cluster.cluster.timers) == CLEANING
    assert cluster.cluster.log_manager.watches == {}


def test_the_first_batch_is_fetched_even_if_it_is_too_large(cluster: VirtualCluster) -> None:
    for number in (0, 1):
        cluster.produce("t", number, batch(b"x" * 1000))
    first, second = parts(cluster.call(fetch_request(cluster, {0: 0, 1: 0}, max_bytes=100), 18))
    assert (len(values_of(first)), second.records) == (1, b"")


def test_a_session_answers_only_what_is_new(cluster: VirtualCluster) -> None:
    cluster.produce("t", 0, batch(b"a"))
    full = cluster.call(fetch_request(cluster, {0: 0, 1: 0, 2: 0}, session_epoch=0), 18)
    assert (len(parts(full)), full.session_id > 0) == (3, True)
    session = {"session_id": full.session_id, "max_wait_ms": 0}
    assert parts(cluster.call(fetch_request(cluster, {0: 1}, session_epoch=1, **session), 18)) == []
    cluster.produce("t", 2, batch(b"b"))
    (data,) = parts(cluster.call(fetch_request(cluster, {}, session_epoch=2, **session), 18))
    assert (data.partition_index, values_of(data)) == (2, [b"b"])
    forgotten = ForgottenTopic(topic_id=cluster.topic_id("t"), partitions=(2,))
    request = fetch_request(cluster, {}, session_epoch=3, forgotten_topics_data=(forgotten,), **session)
    assert parts(cluster.call(request, 18)) == []
    wrong = cluster.call(fetch_request(cluster, {}, session_epoch=9, **session), 18)
    assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    closed = cluster.call(fetch_request(cluster, {0: 1}, session_epoch=-1, **session), 18)
    assert (closed.session_id, len(parts(closed))) == (0, 1)
    gone = cluster.call(fetch_request(cluster, {}, session_epoch=4, **session), 18)
    assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_there_are_no_more_sessions_than_slots() -> None:
    cluster = VirtualCluster.start(configs={"max.incremental.fetch.session.cache.slots": "2"})
    cluster.create("t")

    def open_session() -> int:
        request = fetch_request(cluster, {0: 0}, session_epoch=0, max_wait_ms=0)
        return cluster.call(request, 18).session_id

    assert [open_session() > 0 for _ in range(3)] == [True, True, False]
    cluster.advance(120_001)
    assert open_session() > 0


@pytest.mark.parametrize(
    ("wanted", "error"), [({0: 7}, ErrorCode.OFFSET_OUT_OF_RANGE), ({9: 0}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
)
def test_what_cannot_be_fetched_is_answered_at_once(
    cluster: VirtualCluster, wanted: dict[int, int], error: ErrorCode
) -> None:
    (data,) = parts(cluster.call(fetch_request(cluster, wanted), 18))
    assert (data.error_code, data.high_watermark, data.records) == (error, -1, b"")


def test_another_broker_says_who_leads() -> None:
    cluster = VirtualCluster.start(brokers=2)
    cluster.create("t")
    leader = cluster.cluster.image.topics["t"].partitions[0].leader
    other = 1 - leader
    response = cluster.call(fetch_request(cluster, {0: 0}), 18, broker=other)
    (data,) = parts(response)
    assert (data.error_code, data.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, leader)
    assert [(node.node_id, node.port) for node in response.node_endpoints] == [(leader, 9092 + leader)]
    answer = cluster.decoded(cluster.produce("t", 0, batch(b"a"), broker=other), ProduceResponse)
    part = answer.responses[0].partition_responses[0]
    assert (part.error_code, part.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, leader)
    assert [node.node_id for node in answer.node_endpoints] == [leader]


def test_acks_have_three_values_and_zero_has_no_answer(cluster: VirtualCluster) -> None:
    assert produced(cluster, "t", 0, batch(b"a"), acks=2).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    silent = cluster.produce("t", 0, batch(b"a"), acks=0)
    assert (silent.answer, silent.closed, silent.call.responded) == (None, False, True)
    failed = cluster.produce("t", 9, batch(b"a"), acks=0)
    assert (failed.answer, failed.closed) == (None, True)


def test_all_replicas_means_enough_of_them() -> None:
    cluster = VirtualCluster.start()
    cluster.create("t", min_insync_replicas="2")
    assert produced(cluster, "t", 0, batch(b"a")).error_code == ErrorCode.NONE


def test_a_produce_waits_for_a_high_watermark_that_is_held_back(cluster: VirtualCluster) -> None:
    log = cluster.cluster.log_manager.get((cluster.topic_id("t"), 0))
    assert log is not None
    log.cap_high_watermark(0)
    late = cluster.produce("t", 0, batch(b"a"))
    waiting = cluster.produce("t", 0, batch(b"b"))
    assert (late.answer, waiting.answer) == (None, None)
    cluster.advance(999)
    log.cap_high_watermark(1)
    cluster.cluster.settle()
    assert cluster.decoded(late, ProduceResponse).responses[0].partition_responses[0].base_offset == 0
    cluster.advance(1)
    timed_out = cluster.decoded(waiting, ProduceResponse).responses[0].partition_responses[0]
    assert timed_out.error_code == ErrorCode.REQUEST_TIMED_OUT


def test_offsets_by_time_and_by_epoch_and_deletion(cluster: VirtualCluster) -> None:
    cluster.produce("t", 0, batch(b"a", b"b"))

    def listed(timestamp: int, version: int = 11) -> tuple[int, int, int]:
        asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=(asked,)),))
        part = cluster.call(request, version).topics[0].partitions[0]
        return part.error_code, part.offset, part.leader_epoch

    assert [listed(each) for each in (-1, -2, START, START + 1)] == [(0, 2, 0), (0, 0, 0), (0, 0, 0), (0, -1, -1)]
    assert listed(-3, 6)[0] == ErrorCode.UNSUPPORTED_VERSION
    topic = DeleteRecordsTopic(name="t", partitions=(DeleteRecordsPartition(partition_index=0, offset=1),))
    deleted = cluster.call(DeleteRecordsRequest(topics=(topic,)), 2).topics[0].partitions[0]
    assert (deleted.low_watermark, listed(-2)[1]) == (1, 1)
    asked = OffsetForLeaderTopic(topic="t", partitions=(OffsetForLeaderPartition(partition=0, leader_epoch=0),))
    end = cluster.call(OffsetForLeaderEpochRequest(replica_id=-1, topics=(asked,)), 4).topics[0].partitions[0]
    assert (end.leader_epoch, end.end_offset) == (0, 2)


def test_a_marker_that_cannot_be_written_fails_its_request(cluster: VirtualCluster) -> None:
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=(0,))
    marker = WritableTxnMarker(producer_id=5, producer_epoch=-1, transaction_result=True, topics=(topic,))
    (answered,) = cluster.call(WriteTxnMarkersRequest(markers=(marker,)), 1).markers
    assert answered.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
