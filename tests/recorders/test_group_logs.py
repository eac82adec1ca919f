"""The recorded log directory of groups: readings equal Kafka's tool, and totals equal the broker's responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import pytest

from kafka_msgs import (
    ConsumerGroupDescribeResponse,
    DescribeGroupsResponse,
    ErrorCode,
    ListGroupsResponse,
    ListOffsetsResponse,
    ListTransactionsResponse,
    Message,
    OffsetCommitKey,
    OffsetFetchResponse,
    ShareGroupDescribeResponse,
    StreamsGroupDescribeResponse,
)
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue
from tests.support.kafka_dump import dumped, sections
from tests.support.recorded_answers import answers
from tests.support.recorded_frames import exchanges, read_frames, read_header
from tests.support.recorded_groups import OFFSETS, PARTITIONS, batches, offsets_records, state
from tests.support.recordings import ANSWERS, END_OFFSETS, GROUP_LOGS, ROOT

LATEST, STABLE = 0, 1

M = TypeVar("M", bound=Message)


def answer(cls: type[M], number: int = 0) -> M:
    return list(answers(cls))[number]


def test_recording_names_how_it_was_made_and_stays_small() -> None:
    header = read_header(ANSWERS)
    assert header["kafka"] == header["clients"]["kafka-streams"]
    assert (ROOT / header["script"]).is_file()
    assert sum(path.stat().st_size for path in GROUP_LOGS.parent.rglob("*") if path.is_file()) < 300_000


def test_every_question_was_answered() -> None:
    frames = list(read_frames(ANSWERS))
    assert 2 * len(list(exchanges(frames))) == len(frames)


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda each: each.path.name)
def test_every_batch_and_record_is_what_kafka_reads(partition: Partition) -> None:
    dump = sections(partition.path)
    for segment in partition.segments:
        said = [line for line in dump[segment.path.name] if line.startswith(("baseOffset", "| "))]
        assert list(dumped(segment.path)) == said
        assert said


def test_partitions_end_at_the_offsets_of_the_broker() -> None:
    ends = {
        (topic.name, each.partition_index): each.offset
        for topic in answer(ListOffsetsResponse, LATEST).topics
        for each in topic.partitions
    }
    found = {(each.topic, each.partition): max(batch.last_offset + 1 for batch in batches(each)) for each in PARTITIONS}
    assert {key: end for key, end in found.items() if key[0] != "__cluster_metadata"} == ends


def test_kafkas_tool_prints_the_same_ends() -> None:
    lines = [line.rsplit(":", 2) for line in END_OFFSETS.read_text().splitlines()]
    said = {(topic, int(number)): int(end) for topic, number, end in lines}
    assert said == {
        (topic.name, each.partition_index): each.offset
        for topic in answer(ListOffsetsResponse, LATEST).topics
        for each in topic.partitions
    }


def test_an_open_transaction_holds_back_what_is_stable() -> None:
    latest, stable = (
        {(topic.name, each.partition_index): each.offset for topic in said.topics for each in topic.partitions}
        for said in (answer(ListOffsetsResponse, LATEST), answer(ListOffsetsResponse, STABLE))
    )
    held_back = {topic for topic, number in latest if stable[topic, number] < latest[topic, number]}
    assert held_back == {"payments", OFFSETS}
    (open_one,) = (
        each for each in answer(ListTransactionsResponse).transaction_states if each.transaction_state == "Ongoing"
    )
    assert state().pending.keys() == {open_one.producer_id}


def test_committed_offsets_are_those_that_the_broker_fetches() -> None:
    fetched = {
        (group.group_id, topic.name, each.partition_index): (
            each.committed_offset, each.committed_leader_epoch, each.metadata,
        )
        for group in answer(OffsetFetchResponse).groups
        for topic in group.topics
        for each in topic.partitions
    }  # fmt: skip
    read = {
        (name, *place): (value.offset, value.leader_epoch, value.metadata)
        for name, group in state().groups().items()
        for place, value in group.offsets.items()
    }
    assert read == fetched
    assert {group for group, _, _ in read} >= {"audit", "inspection", "ledger", "settlement", "totals"}


def test_groups_are_those_that_the_broker_lists() -> None:
    listed = {each.group_id: each.group_type for each in answer(ListGroupsResponse).groups}
    assert {name: group.kind or "classic" for name, group in state().groups().items()} == listed


def test_members_are_those_that_the_broker_describes() -> None:
    described = {
        group.group_id: {member.member_id for member in group.members}
        for cls in (
            ConsumerGroupDescribeResponse, DescribeGroupsResponse, ShareGroupDescribeResponse,
            StreamsGroupDescribeResponse,
        )
        for group in answer(cls).groups  # type: ignore[attr-defined]
        if group.error_code == ErrorCode.NONE
    }  # fmt: skip
    assert {name: set(members_of(group.records)) for name, group in state().groups().items()} == described
    assert {name: len(members) for name, members in described.items() if members} == {
        "billing": 2, "shipping": 2, "watch": 1, "packing": 1, "totals": 2,
    }  # fmt: skip


def members_of(group: tuple[TopicRecord, ...]) -> Iterator[str]:
    for record in group:
        if isinstance(record.value, GroupMetadataValue):
            yield from (member.member_id for member in record.value.members)
        elif (member_id := getattr(record.key, "member_id", None)) is not None:
            yield member_id


def test_streams_members_hold_active_and_standby_tasks() -> None:
    (totals,) = (group for group in answer(StreamsGroupDescribeResponse).groups if group.members)
    roles = [(bool(each.assignment.active_tasks), bool(each.assignment.standby_tasks)) for each in totals.members]
    assert roles == [(True, True)] * 2


def test_history_has_deleted_and_expired_offsets_and_a_deleted_group() -> None:
    deleted = {
        (record.key.group, record.key.partition)
        for record in offsets_records()
        if isinstance(record, TopicRecord) and record.value is None and isinstance(record.key, OffsetCommitKey)
    }
    assert deleted == {("ledger", 1), ("seasonal", 0), ("retired", 0), ("retired", 1)}
    assert "retired" not in state().groups()


def test_offsets_topic_was_compacted() -> None:
    missing = [
        max(batch.last_offset for batch in batches(partition)) + 1 - sum(batch.count for batch in batches(partition))
        for partition in PARTITIONS
        if partition.topic == OFFSETS
    ]
    assert max(missing) > 0
