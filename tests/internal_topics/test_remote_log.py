"""State built from ``__remote_log_metadata`` records, compared with the broker's own store."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from random import Random
from typing import Any
from uuid import UUID

import pytest

from kafka_msgs.internal_topics.records import TopicRecord, UnknownRecord, encode_record
from kafka_msgs.internal_topics.remote_log import RemotePartition, RemoteSegment, TopicIdPartition, replay_remote_log
from kafka_msgs.message import Message
from kafka_msgs.messages import remote_log_segment_metadata_record as segments
from kafka_msgs.messages import remote_log_segment_metadata_update_record as updates
from kafka_msgs.messages import remote_partition_delete_metadata_record as deletions
from kafka_msgs.messages.remote_log_segment_metadata_snapshot_record import RemoteLogSegmentMetadataSnapshotRecord
from tests.internal_topics.oracle import RemoteLogOracle

TOPIC = "__remote_log_metadata"
PLACE = TopicIdPartition("orders", UUID(int=7), 0)
OFFSETS, EPOCHS = range(0, 60), range(0, 5)


def segment_id(number: int) -> UUID:
    return UUID(int=100 + number)


def copied(number: int, start: int, end: int, epochs: dict[int, int], state: int = 0, **others: Any) -> Message:
    partition = segments.TopicIdPartitionEntry(name=PLACE.topic, id=PLACE.topic_id, partition=PLACE.partition)
    entries = (segments.SegmentLeaderEpochEntry(leader_epoch=epoch, offset=at) for epoch, at in epochs.items())
    return segments.RemoteLogSegmentMetadataRecord(
        remote_log_segment_id=segments.RemoteLogSegmentIdEntry(topic_id_partition=partition, id=segment_id(number)),
        start_offset=start,
        end_offset=end,
        segment_leader_epochs=tuple(entries),
        remote_log_segment_state=state,
        **others,
    )


def updated(number: int, state: int, **others: Any) -> Message:
    partition = updates.TopicIdPartitionEntry(name=PLACE.topic, id=PLACE.topic_id, partition=PLACE.partition)
    return updates.RemoteLogSegmentMetadataUpdateRecord(
        remote_log_segment_id=updates.RemoteLogSegmentIdEntry(topic_id_partition=partition, id=segment_id(number)),
        remote_log_segment_state=state,
        **others,
    )


def deleted(state: int) -> Message:
    partition = deletions.TopicIdPartitionEntry(name=PLACE.topic, id=PLACE.topic_id, partition=PLACE.partition)
    return deletions.RemotePartitionDeleteMetadataRecord(
        topic_id_partition=partition, remote_partition_delete_state=state
    )


def records(*messages: Message) -> list[TopicRecord]:
    return [TopicRecord(topic=TOPIC, value=message, version=0) for message in messages]


def state_of(*messages: Message) -> RemotePartition:
    return replay_remote_log(records(*messages)).partitions[PLACE]


def finished(number: int, start: int, end: int, epochs: dict[int, int]) -> tuple[Message, Message]:
    return copied(number, start, end, epochs), updated(number, 1)


def spans(partition: RemotePartition, lineage: list[tuple[int, int]] | None = None) -> list[tuple[int, int, int]]:
    return [(each.segment.segment_id.int - 100, each.start, each.end) for each in partition.ranges(lineage)]


def test_a_segment_is_read_when_it_is_copied_and_until_its_deletion_starts() -> None:
    life = [copied(1, 0, 9, {0: 0}), updated(1, 1), updated(1, 2), updated(1, 3)]
    found = [state_of(*life[:count]) for count in range(1, 5)]
    assert [spans(each) for each in found] == [[], [(1, 0, 10)], [], []]
    assert [len(each.segments) for each in found] == [1, 1, 1, 0]
    assert [each.highest for each in found] == [{}, {0: 9}, {0: 9}, {0: 9}]


def test_a_partition_that_is_deleted_is_not_known_any_more() -> None:
    before = records(*finished(1, 0, 9, {0: 0}), deleted(0), deleted(1))
    assert replay_remote_log(before).partitions[PLACE].deletion == 1
    assert replay_remote_log([*before, *records(deleted(2))]).partitions == {}


def test_a_segment_of_a_later_leader_replaces_those_that_it_contains() -> None:
    partition = state_of(*finished(1, 0, 9, {0: 0}), *finished(2, 10, 19, {0: 10}), *finished(3, 5, 30, {0: 5}))
    assert spans(partition) == [(1, 0, 5), (3, 5, 31)]


def test_offsets_of_an_epoch_that_another_leader_wrote_again_are_read_from_the_later_epoch() -> None:
    first, second = finished(1, 0, 19, {0: 0}), finished(2, 20, 39, {0: 20})
    partition = state_of(*first, *second, *finished(3, 10, 29, {0: 10, 2: 15}))
    assert spans(partition) == [(1, 0, 10), (3, 10, 30)]
    assert spans(partition, [(0, 0), (1, 25)]) == [(1, 0, 10), (3, 10, 15), (2, 20, 25)]
    assert spans(partition, [(0, 3), (2, 15)]) == [(1, 3, 10), (3, 10, 30)]


def test_an_epoch_that_starts_where_a_later_one_does_is_not_in_the_lineage() -> None:
    partition = state_of(*finished(1, 0, 9, {0: 0}), *finished(2, 10, 19, {1: 10}), *finished(3, 10, 29, {2: 10}))
    assert partition.lineage() == ((0, 0), (2, 10))
    assert spans(partition) == [(1, 0, 10), (3, 10, 30)]


def test_an_epoch_that_a_later_leader_did_not_have_is_not_in_the_lineage() -> None:
    first, lost = finished(1, 0, 19, {2: 0}), finished(2, 12, 14, {3: 12})
    partition = state_of(*first, *lost, *finished(3, 8, 29, {2: 8, 4: 20}))
    assert partition.lineage() == ((2, 0), (4, 20))
    assert spans(partition) == [(1, 0, 8), (3, 8, 30)]


def test_records_that_say_nothing_are_named_with_the_reason() -> None:
    snapshot, unknown = RemoteLogSegmentMetadataSnapshotRecord(), UnknownRecord(topic=TOPIC, record_type=99, value=b"")
    log = replay_remote_log([*records(snapshot, updated(1, 1)), unknown])
    assert [each.reason for each in log.dropped] == [
        "it does not name a partition",
        "the segment is not known",
        "it does not name a partition",
    ]


def test_time_grows_with_the_records_though_each_segment_comes_before_the_last() -> None:
    count = 30_000
    messages = [each for n in range(count) for each in finished(n, count - n, 10 * count - n, {0: count - n})]
    partition = state_of(*messages)
    assert len(partition.referenced[0]) == count


@pytest.fixture(scope="module")
def kafka_remote_log() -> Iterator[RemoteLogOracle]:
    oracle = RemoteLogOracle()
    yield oracle
    oracle.close()


def script(seed: int) -> list[Message]:
    """Return records that mostly fit together, with occasional mismatches."""
    dice = Random(seed)
    found: list[Message] = []
    for _ in range(40):
        number, roll = dice.randrange(6), dice.random()
        times = {"event_timestamp_ms": dice.randrange(1000), "broker_id": dice.randrange(4)}
        if roll < 0.4:
            found.append(random_segment(dice, number, times))
        elif roll < 0.96:
            custom = dice.choice([None, b"", b"here"])
            found.append(updated(number, dice.choice([0, 1, 1, 1, 1, 2, 3, 9]), custom_metadata=custom, **times))
        else:
            found.append(deleted(dice.choice([0, 1, 2, 7])))
    return found


def random_segment(dice: Random, number: int, times: dict[str, int]) -> Message:
    start = dice.randrange(-1, 40)
    end = start + dice.randrange(-1, 20)
    ids = sorted(dice.sample(EPOCHS, dice.choice([0, 1, 1, 2, 3])))
    offsets = sorted(dice.choices(range(max(start, 0), max(start, 0) + 15), k=len(ids)))
    state = dice.choice([0] * 20 + [1, 2, 3, 5])
    size = dice.randrange(1000)
    others = {"segment_size_in_bytes": size, "max_timestamp_ms": size, "txn_index_empty": size % 2 == 0}
    return copied(number, start, end, dict(zip(ids, offsets, strict=True)), state, **others, **times)


def text(given: UUID) -> str:
    return urlsafe_b64encode(given.bytes).decode().rstrip("=")


def listed(segment: RemoteSegment) -> dict[str, Any]:
    custom = segment.custom_metadata
    return {
        "id": text(segment.segment_id),
        "start": segment.start_offset,
        "end": segment.end_offset,
        "size": segment.size,
        "state": segment.state,
        "broker": segment.broker_id,
        "maxTimestamp": segment.max_timestamp,
        "eventTimestamp": segment.event_timestamp,
        "txnIndexEmpty": segment.txn_index_empty,
        "custom": None if custom is None else b64encode(custom).decode(),
        "epochs": {str(epoch): offset for epoch, offset in segment.epochs},
    }


@pytest.mark.parametrize("seed", range(60))
def test_segments_and_what_they_are_read_for_are_those_of_kafka(seed: int, kafka_remote_log: RemoteLogOracle) -> None:
    given = records(*script(seed))
    log = replay_remote_log(given)
    empty = RemotePartition(place=PLACE, segments={}, referenced={}, highest={})
    ours = log.partitions.get(PLACE, empty)
    values = [b64encode(encode_record(record).value or b"").decode() for record in given]
    kafka_remote_log.ask([{"do": "open"}, *({"do": "record", "value": value} for value in values)])
    where = {"topic": PLACE.topic, "id": text(PLACE.topic_id), "partition": PLACE.partition}
    (everything,) = kafka_remote_log.ask([{"do": "list", **where}])
    ids = {each["id"]: each for each in everything["result"]}
    assert {each["id"]: each for each in map(listed, ours.segments.values())} == ids
    asked = [(epoch, offset) for epoch in EPOCHS for offset in OFFSETS]
    theirs = kafka_remote_log.ask(
        [{"do": "find", **where, "epoch": epoch, "offset": offset} for epoch, offset in asked]
    )
    found = [ours.segment_at(*each) for each in asked]
    assert [each and text(each.segment_id) for each in found] == [each["result"] for each in theirs]
    highest = kafka_remote_log.ask([{"do": "highest", **where, "epoch": epoch} for epoch in EPOCHS])
    assert [ours.highest.get(epoch) for epoch in EPOCHS] == [each["result"] for each in highest]
    lineage = ours.lineage()
    reads = {offset: each.segment for each in ours.ranges() for offset in range(each.start, each.end)}
    epochs = {offset: [epoch for epoch, start in lineage if start <= offset] for offset in OFFSETS}
    assert [reads.get(offset) for offset in OFFSETS] == [
        ours.segment_at(epochs[offset][-1], offset) if epochs[offset] else None for offset in OFFSETS
    ]
