"""Offsets of partitions and groups: resets, and leaders that move or are missing. The brokers are in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka_msgs.admin import (
    OffsetChange,
    OffsetSpec,
    OffsetTarget,
)
from kafka_msgs.admin.offset_resets import plan_offset_reset, reset_group_offsets
from kafka_msgs.admin.partitions import list_offsets
from kafka_msgs.api_keys import ApiKey
from kafka_msgs.client import TopicPartition
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, ConnectionFailedError, UnsupportedVersionError
from kafka_msgs.message import Request, Response
from kafka_msgs.messages import list_offsets_response as ends
from kafka_msgs.messages import offset_commit_response as commits
from kafka_msgs.messages import offset_fetch_response as stored
from kafka_msgs.messages.list_offsets_request import ListOffsetsRequest
from kafka_msgs.messages.offset_commit_request import OffsetCommitRequest
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequest
from tests.support.simulated_cluster import SimulatedCluster

Answers = dict[type[Request[Any]], Callable[[int, Any], Response]]


T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


def offsets(
    start: int = 0, end: int = 100, at_time: int = -1, errors: dict[TopicPartition, int] | None = None
) -> Callable[[int, ListOffsetsRequest], ends.ListOffsetsResponse]:
    """Return leaders whose partitions all have these offsets."""

    def answer(node: int, request: ListOffsetsRequest) -> ends.ListOffsetsResponse:
        known = {-2: start, -1: end}
        return ends.ListOffsetsResponse(
            topics=tuple(
                ends.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        ends.ListOffsetsPartitionResponse(
                            partition_index=each.partition_index,
                            offset=known.get(each.timestamp, at_time),
                            error_code=(errors or {}).get(TopicPartition(topic.name, each.partition_index), 0),
                        )
                        for each in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    return answer


def committed(values: dict[TopicPartition, int]) -> Callable[[int, OffsetFetchRequest], stored.OffsetFetchResponse]:
    def answer(node: int, request: OffsetFetchRequest) -> stored.OffsetFetchResponse:
        partitions = tuple(
            stored.OffsetFetchResponsePartitions(partition_index=each.partition, committed_offset=offset)
            for each, offset in values.items()
        )
        topics = (stored.OffsetFetchResponseTopics(name="t", partitions=partitions),)
        return stored.OffsetFetchResponse(groups=(stored.OffsetFetchResponseGroup(group_id="g", topics=topics),))

    return answer


@pytest.mark.parametrize(
    ("target", "after"),
    [
        (OffsetTarget.earliest(), (10, 10)),
        (OffsetTarget.latest(), (100, 100)),
        (OffsetTarget.timestamp(1_700_000_000_000), (40, 40)),
        (OffsetTarget.offset(50), (50, 50)),
        (OffsetTarget.offset(5), (10, 10)),
        (OffsetTarget.offset(500), (100, 100)),
        (OffsetTarget.shift(-3), (27, 57)),
        (OffsetTarget.shift(1000), (100, 100)),
        (OffsetTarget.shift(-1000), (10, 10)),
        (OffsetTarget.current(), (30, 60)),
        ({T0: 33, T1: 999}, (33, 100)),
    ],
)
def test_where_offsets_go(target: Any, after: tuple[int, int]) -> None:
    answers: Answers = {ListOffsetsRequest: offsets(10, 100, 40), OffsetFetchRequest: committed({T0: 30, T1: 60})}
    cluster = SimulatedCluster(answers, topics={"t": 3})
    plan = cluster.network.run(plan_offset_reset(cluster.core, "g", target)).all()
    assert plan == {T0: OffsetChange(30, after[0]), T1: OffsetChange(60, after[1])}
    assert cluster.asked(OffsetCommitRequest) == []


def test_a_partition_without_an_offset_cannot_be_shifted_and_its_current_place_is_the_end() -> None:
    answers: Answers = {ListOffsetsRequest: offsets(), OffsetFetchRequest: committed({T0: 30, T1: -1})}
    cluster = SimulatedCluster(answers, topics={"t": 3})
    shifted = cluster.network.run(plan_offset_reset(cluster.core, "g", OffsetTarget.shift(1), [T0, T1]))
    assert (shifted[T0].after, list(shifted.errors)) == (31, [T1])
    current = cluster.network.run(plan_offset_reset(cluster.core, "g", OffsetTarget.current(), [T0, T1]))
    assert [each.after for each in current.values()] == [30, 100]


def test_a_time_after_the_last_record_is_the_end() -> None:
    cluster = SimulatedCluster(
        {ListOffsetsRequest: offsets(), OffsetFetchRequest: committed({T0: 30})}, topics={"t": 1}
    )
    plan = cluster.network.run(plan_offset_reset(cluster.core, "g", OffsetTarget.timestamp(9)))
    assert plan[T0] == OffsetChange(30, 100)


def test_a_reset_commits_what_can_be_planned_and_reports_the_rest() -> None:
    def commit(node: int, request: OffsetCommitRequest) -> commits.OffsetCommitResponse:
        def code(number: int) -> int:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED if number == 1 else ErrorCode.NONE

        partitions = tuple(
            commits.OffsetCommitResponsePartition(
                partition_index=each.partition_index, error_code=code(each.partition_index)
            )
            for each in request.topics[0].partitions
        )
        return commits.OffsetCommitResponse(
            topics=(commits.OffsetCommitResponseTopic(name="t", partitions=partitions),)
        )

    answers: Answers = {
        ListOffsetsRequest: offsets(errors={T2: ErrorCode.TOPIC_AUTHORIZATION_FAILED}),
        OffsetFetchRequest: committed({T0: 30, T1: 60, T2: 90}),
        OffsetCommitRequest: commit,
    }
    cluster = SimulatedCluster(answers, topics={"t": 3})
    results = cluster.network.run(reset_group_offsets(cluster.core, "g", OffsetTarget.earliest()))
    assert results.ok == {T0: OffsetChange(30, 0)}
    assert list(results.errors) == [T1, T2]
    ((_, request),) = cluster.asked(OffsetCommitRequest)
    assert [each.partition_index for each in request.topics[0].partitions] == [0, 1]


def test_each_leader_is_asked_once_and_a_moved_leader_is_found_again() -> None:
    moved: list[int] = []

    def answer(node: int, request: ListOffsetsRequest) -> ends.ListOffsetsResponse:
        numbers = [each.partition_index for each in request.topics[0].partitions]
        first = 1 in numbers and not moved
        moved.extend([node] if first else [])
        return offsets(errors={T1: ErrorCode.NOT_LEADER_OR_FOLLOWER} if first else {})(node, request)

    cluster = SimulatedCluster({ListOffsetsRequest: answer}, topics={"t": 6})
    wanted = {TopicPartition("t", number): -1 for number in range(6)}
    found = cluster.network.run(list_offsets(cluster.core, wanted)).all()
    assert list(found) == list(wanted)
    asked = [
        (node, [each.partition_index for each in request.topics[0].partitions])
        for node, request in cluster.asked(ListOffsetsRequest)
    ]
    assert sorted(asked[:3]) == [(1, [0, 3]), (2, [1, 4]), (3, [2, 5])]
    assert asked[3:] == [(2, [1])]


def test_partitions_that_do_not_exist_fail_at_once_and_alone() -> None:
    cluster = SimulatedCluster({ListOffsetsRequest: offsets()}, topics={"t": 1})
    start = cluster.network.now()
    found = cluster.network.run(list_offsets(cluster.core, {T0: -1, T2: -1, TopicPartition("none", 0): -1}))
    assert found[T0].offset == 100
    assert {str(error.error.name) for error in found.errors.values() if isinstance(error, BrokerError)} == {
        "UNKNOWN_TOPIC_OR_PARTITION"
    }
    assert cluster.network.now() < start + 1


def test_a_leader_that_is_gone_takes_only_its_own_partitions_with_it() -> None:
    cluster = SimulatedCluster({ListOffsetsRequest: offsets()}, topics={"t": 3})
    cluster.network.stop(cluster.brokers[2])
    found = cluster.network.run(list_offsets(cluster.core, dict.fromkeys([T0, T1, T2], -1), timeout=2.0))
    assert list(found.ok) == [T0, T2]
    assert [type(error) for error in found.errors.values()] == [ConnectionFailedError]


def test_an_item_that_the_broker_does_not_mention_has_failed() -> None:
    cluster = SimulatedCluster({ListOffsetsRequest: lambda node, request: ends.ListOffsetsResponse()}, topics={"t": 1})
    found = cluster.network.run(list_offsets(cluster.core, {T0: -1}))
    with pytest.raises(BrokerError, match="does not mention it"):
        _ = found[T0]


def test_a_broker_that_would_take_a_specification_for_a_timestamp_is_not_asked() -> None:
    cluster = SimulatedCluster({ListOffsetsRequest: offsets()}, topics={"t": 3}, limits={ApiKey.LIST_OFFSETS: (1, 6)})
    wanted = {T0: OffsetSpec.MAX_TIMESTAMP, T1: OffsetSpec.EARLIEST, T2: OffsetSpec.LATEST_TIERED}
    found = cluster.network.run(list_offsets(cluster.core, wanted))
    assert list(found.ok) == [T1]
    assert {
        key: error.supported.lowest for key, error in found.errors.items() if isinstance(error, UnsupportedVersionError)
    } == {
        T0: 7,
        T2: 9,
    }
    asked = [
        each.timestamp
        for _, request in cluster.asked(ListOffsetsRequest)
        for topic in request.topics
        for each in topic.partitions
    ]
    assert asked == [OffsetSpec.EARLIEST]
