"""Consumer positions on an in-memory cluster: moving leaders, seeks, commits, and bounds."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs.client import TopicPartition
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, ClientClosedError, OffsetPositionError, OptionError
from kafka_msgs.messages import fetch_response, offset_commit_response
from tests.support.simulated_groups import GroupCluster, User
from tests.support.simulated_network import Reply, apis

NAMES = [TopicPartition("t", number) for number in range(6)]


def test_leaders_move_and_reading_goes_on(cluster: GroupCluster) -> None:
    user = User(cluster, group_id=None)
    user.core.set_partitions(NAMES)
    moved: list[int] = []

    def refuse(node: int, request: Any) -> Reply:
        if request.INFO.name != "FetchRequest" or node != 1:
            return None
        moved.append(node)
        cluster.leaders = {name: 2 for name in NAMES}
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        topics = (
            fetch_response.FetchableTopicResponse(
                topic_id=topic.topic_id,
                partitions=tuple(
                    fetch_response.PartitionData(partition_index=each.partition, error_code=code)
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
        return fetch_response.FetchResponse(responses=tuple(topics))

    cluster.override = refuse
    assert len(user.values(60)) == 60
    assert moved
    user.close()


def test_an_offset_out_of_range_follows_the_policy(cluster: GroupCluster) -> None:
    cluster.starts["t", 0] = 0
    for policy, expected in (("earliest", 10), ("latest", 0)):
        user = User(cluster, group_id=None, auto_offset_reset=policy)
        user.core.set_partitions([NAMES[0]])
        user.core.seek({NAMES[0]: 500})
        assert len(user.poll(3.0)) == expected
        user.close()
    user = User(cluster, group_id=None, auto_offset_reset="none")
    user.core.set_partitions([NAMES[0]])
    with pytest.raises(OffsetPositionError, match="auto_offset_reset is none"):
        user.poll(3.0)
    user.core.seek({NAMES[0]: 500})
    with pytest.raises(OffsetPositionError, match="t-0: the offset 500 is out of range"):
        user.poll(3.0)
    user.core.seek({NAMES[0]: 8})
    assert len(user.poll(3.0)) == 2
    user.close()


def test_a_log_that_was_truncated_is_noticed(cluster: GroupCluster) -> None:
    def diverge(node: int, request: Any) -> Reply:
        if request.INFO.name != "FetchRequest" or not request.topics:
            return None
        asked = request.topics[0].partitions[0]
        if asked.last_fetched_epoch != 4:
            return None
        end = fetch_response.EpochEndOffset(epoch=3, end_offset=6)
        data = fetch_response.PartitionData(partition_index=asked.partition, diverging_epoch=end, records=b"")
        topic = fetch_response.FetchableTopicResponse(topic_id=request.topics[0].topic_id, partitions=(data,))
        return fetch_response.FetchResponse(responses=(topic,))

    from kafka_msgs.client.consumer import OffsetAndMetadata

    cluster.override = diverge
    user = User(cluster, group_id=None)
    user.core.set_partitions([NAMES[0]])
    user.core.seek({NAMES[0]: OffsetAndMetadata(9, leader_epoch=4)})
    assert [record.offset for record in user.poll(3.0)] == [6, 7, 8, 9]
    user.close()
    user = User(cluster, group_id=None, auto_offset_reset="none")
    user.core.set_partitions([NAMES[0]])
    user.core.seek({NAMES[0]: OffsetAndMetadata(9, leader_epoch=4)})
    with pytest.raises(OffsetPositionError, match="agrees with what was read only up to the offset 6"):
        user.poll(3.0)
    user.close()


def test_the_follower_that_the_leader_prefers_is_read_and_left_when_it_lags(cluster: GroupCluster) -> None:
    def prefer(node: int, request: Any) -> Reply:
        if request.INFO.name != "FetchRequest" or not request.topics:
            return None
        asked = request.topics[0].partitions[0]
        if node == 1 and asked.fetch_offset < 10:
            data = fetch_response.PartitionData(
                partition_index=0, preferred_read_replica=3, high_watermark=10, records=b""
            )
            topic = fetch_response.FetchableTopicResponse(topic_id=request.topics[0].topic_id, partitions=(data,))
            return fetch_response.FetchResponse(responses=(topic,))
        return None

    cluster.override = prefer
    user = User(cluster, group_id=None, client_rack="r3")
    user.core.set_partitions([NAMES[0]])
    assert len(user.poll(3.0)) == 10
    assert "Fetch" in apis(cluster.brokers[3].requests)
    racks = {each.rack_id for each in cluster.brokers[1].requests if each.INFO.name == "FetchRequest"}  # type: ignore[attr-defined]
    assert racks == {"r3"}
    cluster.starts["t", 0] = 50  # as if the follower were behind: it does not have the offset
    user.poll(1.0)
    assert user.core.partitions[NAMES[0]].replica is None
    user.close()


def test_seeks_pauses_and_times(cluster: GroupCluster) -> None:
    user = User(cluster, group_id=None)
    user.core.set_partitions(NAMES[:2])
    assert len(user.values(20)) == 20
    user.core.reset([NAMES[0]], 1_004)
    assert [record.offset for record in user.poll()] == [4, 5, 6, 7, 8, 9]
    user.core.reset([NAMES[0]], 99_000)
    assert user.position(NAMES[0]) == 10
    user.core.reset([NAMES[0]], -2)
    user.core.pause([NAMES[0]], paused=True)
    assert user.poll(3.0) == []
    user.core.pause([NAMES[0]], paused=False)
    assert len(user.poll(3.0, room=4)) == 4
    assert user.position(NAMES[0]) == 4
    with pytest.raises(OffsetPositionError, match="the consumer does not have it"):
        user.core.seek({NAMES[5]: 1})
    with pytest.raises(OffsetPositionError, match="-3 is not an offset"):
        user.core.seek({NAMES[0]: -3})
    user.close()


def test_automatic_commits_follow_the_polls(cluster: GroupCluster) -> None:
    user = User(cluster, auto_commit=True, auto_commit_interval=5.0)
    user.core.subscribe(["t"])
    first = user.poll(5.0, room=10)
    name = first[0].partition
    user.core.pause(NAMES, paused=True)
    user.poll(6.0)
    assert cluster.committed == {("g", "t", number): (10 if number == name else 0) for number in range(6)}
    user.core.pause(NAMES, paused=False)
    user.values(50)
    user.close()
    assert set(cluster.committed.values()) == {10}


def test_buffers_are_bounded_however_much_there_is(cluster: GroupCluster) -> None:
    for number in range(6):
        for _ in range(200):
            cluster.produce("t", number, [bytes(1_000)] * 10)
    user = User(cluster, group_id=None, partition_max_bytes=20_000, buffer_max_bytes=50_000, background=True)
    user.core.set_partitions(NAMES)
    user.poll(1.0, room=1)
    cluster.network.pass_time(60.0)
    held = user.core.partitions.buffered
    assert 50_000 <= held <= 50_000 + 6 * 20_000
    requests = len(cluster.requests)
    cluster.network.pass_time(60.0)
    assert len(cluster.requests) == requests, "full buffers ask for nothing"
    user.close()


def test_calls_that_make_no_sense_are_refused(cluster: GroupCluster) -> None:
    alone = User(cluster, group_id=None)
    with pytest.raises(OptionError, match="a subscription needs a group"):
        alone.core.subscribe(["t"])
    with pytest.raises(OptionError, match="commits need a group"):
        alone.commit()
    alone.close()
    with pytest.raises(ClientClosedError):
        alone.poll()
    user = User(cluster)
    with pytest.raises(OptionError, match="either topics or a pattern"):
        user.core.subscribe(["t"], "t")
    user.core.subscribe(["t"])
    with pytest.raises(OptionError, match="unsubscribe first"):
        user.core.set_partitions(NAMES)
    user.close()


def test_a_refused_commit_is_raised_with_its_partition(cluster: GroupCluster) -> None:
    def refuse(node: int, request: Any) -> Reply:
        if request.INFO.name != "OffsetCommitRequest":
            return None
        partition = offset_commit_response.OffsetCommitResponsePartition(
            partition_index=2, error_code=ErrorCode.OFFSET_METADATA_TOO_LARGE
        )
        topic = offset_commit_response.OffsetCommitResponseTopic(name="t", partitions=(partition,))
        return offset_commit_response.OffsetCommitResponse(topics=(topic,))

    cluster.override = refuse
    user = User(cluster)
    with pytest.raises(BrokerError, match="OffsetCommit: OFFSET_METADATA_TOO_LARGE") as caught:
        user.commit({NAMES[2]: 5})
    assert caught.value.subject == NAMES[2]
    later = user.core.positions.commit_nowait({NAMES[2]: 5})
    cluster.network.pass_time(1.0)
    with pytest.raises(BrokerError):
        later.result()
    user.close()


def test_buffered_records_keep_at_most_eight_times_as_much(cluster: GroupCluster) -> None:
    """The records of partition 0 fill most of a large response; the remaining partitions are small."""
    cluster.leaders = dict.fromkeys(NAMES, 1)
    cluster.produce("t", 0, [b"x" * 1000] * 100)
    user = User(cluster, group_id=None)
    user.core.set_partitions(NAMES)
    user.poll(room=1)
    kept = {}
    for name in NAMES:
        for fetched in user.core.partitions[name].buffer:
            kept[name.partition] = memoryview(memoryview(fetched.records).obj).nbytes / len(fetched.records)
    assert kept
    assert max(kept.values()) <= 8
    assert len(kept) > 1
    assert len(user.values(160 - 1)) == 160 - 1
    user.close()
