"""Replay of records: latest values, tombstones, transactions, and the two types that act on another key."""

from __future__ import annotations

from random import Random
from typing import get_args
from uuid import UUID

import pytest
from attrs import evolve

from kafka_msgs import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    NoOpRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    message_class,
    messages,
)
from kafka_msgs.errors import UnexpectedNullError
from kafka_msgs.internal_topics.records import TOPICS, InternalRecord, TopicRecord, UnknownRecord, encode_record
from kafka_msgs.internal_topics.replay import GroupKind, TransactionEnd, replay
from kafka_msgs.internal_topics.share_state import combine_batches
from kafka_msgs.message import Message
from kafka_msgs.messages import API_KEYS
from kafka_msgs.messages.share_snapshot_value import StateBatch
from kafka_msgs.messages.share_update_value import StateBatch as UpdateBatch
from kafka_msgs.schema import fields
from tests.support.internal_records import random_bytes

OFFSETS = "__consumer_offsets"
SHARES = "__share_group_state"
KEY = OffsetCommitKey(group="billing", topic="orders", partition=0)
ACKNOWLEDGED, ARCHIVED = 2, 4


def commit(offset: int, *, producer: int = -1, key: Message = KEY) -> TopicRecord:
    value = OffsetCommitValue(offset=offset)
    return TopicRecord(topic=OFFSETS, key=key, value=value, version=3, producer_id=producer)


def tombstone(key: Message = KEY, topic: str = OFFSETS) -> TopicRecord:
    return TopicRecord(topic=topic, key=key)


def end(producer: int, *, committed: bool) -> TransactionEnd:
    return TransactionEnd(producer_id=producer, committed=committed)


def offset_of(*records: InternalRecord | TransactionEnd) -> int | None:
    value = replay(records).select(OffsetCommitKey, OffsetCommitValue).get(KEY)
    return None if value is None else value.offset


def test_latest_value_of_a_key_holds_and_a_tombstone_deletes_it() -> None:
    assert offset_of() is None
    assert offset_of(commit(1), commit(2)) == 2
    assert offset_of(commit(1), tombstone()) is None
    assert offset_of(commit(1), tombstone(), commit(3)) == 3
    assert offset_of(tombstone()) is None
    assert offset_of(commit(1), tombstone(evolve(KEY, partition=1))) == 1


def test_keys_stand_in_the_order_in_which_they_appeared() -> None:
    other = evolve(KEY, partition=1)
    assert [*replay([commit(1), commit(2, key=other), commit(3)]).entries] == [KEY, other]


def test_transaction_counts_once_it_is_committed_and_never_when_aborted() -> None:
    assert offset_of(commit(1), commit(2, producer=9)) == 1
    assert offset_of(commit(1), commit(2, producer=9), end(9, committed=True)) == 2
    assert offset_of(commit(1), commit(2, producer=9), end(9, committed=False)) == 1
    assert offset_of(commit(1), commit(2, producer=9), end(8, committed=True)) == 1


def test_open_transactions_are_distinguished_by_their_producers() -> None:
    state = replay([commit(1, producer=8), commit(2, producer=9), commit(3, producer=9), end(8, committed=False)])
    assert state.entries == {}
    assert state.pending == {9: {KEY: commit(3, producer=9)}}


def test_commit_of_a_transaction_does_not_overtake_what_was_written_after_its_offset() -> None:
    assert offset_of(commit(1, producer=9), commit(5), end(9, committed=True)) == 5
    assert offset_of(commit(5), commit(1, producer=9), end(9, committed=True)) == 1


def test_tombstone_takes_the_offset_out_of_open_transactions_too() -> None:
    assert offset_of(commit(1, producer=9), tombstone(), end(9, committed=True)) is None
    assert replay([commit(1, producer=9), tombstone()]).pending == {}


def test_offsets_of_the_oldest_form_act_under_the_modern_key() -> None:
    key = LegacyOffsetCommitKey(group="billing", topic="orders", partition=0)
    value = LegacyOffsetCommitValue(offset=7, metadata="m", commit_timestamp=9)
    legacy = TopicRecord(topic=OFFSETS, key=key, value=value, version=0)
    state = replay([commit(1), legacy])
    modern = TopicRecord(
        topic=OFFSETS, key=KEY, value=OffsetCommitValue(offset=7, metadata="m", commit_timestamp=9), version=0
    )
    assert state.entries == {KEY: modern}
    assert encode_record(modern).value == encode_record(legacy).value
    assert offset_of(legacy, commit(8)) == 8
    assert offset_of(commit(1), tombstone(key)) is None


def test_group_changes_its_kind_when_its_old_metadata_is_deleted() -> None:
    classic, modern = GroupMetadataKey(group="g"), ConsumerGroupMetadataKey(group_id="g")
    records = [
        TopicRecord(topic=OFFSETS, key=classic, value=GroupMetadataValue(), version=3),
        commit(4, key=OffsetCommitKey(group="g", topic="t", partition=1)),
        tombstone(classic),
        TopicRecord(topic=OFFSETS, key=modern, value=ConsumerGroupMetadataValue(epoch=2), version=0),
    ]
    kinds = [replay(records[:count]).groups()["g"].kind for count in range(1, 5)]
    assert kinds == ["classic", "classic", None, "consumer"]
    group = replay(records).groups()["g"]
    assert [record.key for record in group.records] == [modern]
    assert {key: value.offset for key, value in group.offsets.items()} == {("t", 1): 4}


def test_every_kind_of_group_of_the_release_is_recognized() -> None:
    names = [name for name in messages.__all__ if name.endswith("GroupMetadataKey")]
    kinds = set()
    for name in names:
        key_class = getattr(messages, name)
        value = message_class(key_class.INFO.api_key, "coordinator-value", TOPICS[OFFSETS].origin)()
        key = key_class(**{fields(key_class)[0].attribute: "g"})
        group = replay([TopicRecord(topic=OFFSETS, key=key, value=value, version=0)]).groups()["g"]
        kinds.add(group.kind)
    assert kinds == {*get_args(GroupKind)}
    assert len(names) == len(kinds)


def test_compaction_of_a_log_does_not_change_its_state() -> None:
    rng = Random(12)
    keyed = [record for record, _ in random_bytes(13, each=2) if record.key and type(record.key) is not ShareUpdateKey]
    for _ in range(20):
        log = [rng.choice(keyed) for _ in range(300)]
        log = [evolve(record, value=None, version=None) if rng.random() < 0.3 else record for record in log]
        last = {record.key: position for position, record in enumerate(log)}
        compacted = [record for position, record in enumerate(log) if last[record.key] == position]
        assert len(compacted) < len(log) - 50
        assert replay(compacted) == replay(log)


def test_every_key_of_the_offsets_topic_begins_with_its_group() -> None:
    origin = TOPICS[OFFSETS].origin
    names = [name for (place, kind, _), name in API_KEYS.items() if (place, kind) == (origin, "coordinator-key")]
    assert {fields(getattr(messages, name))[0].attribute for name in names} == {"group", "group_id"}


def test_unknown_records_are_kept_by_their_bytes() -> None:
    def unknown(value: bytes | None, key: bytes = b"\0\x63a") -> UnknownRecord:
        return UnknownRecord(topic=OFFSETS, record_type=99, key=key, value=value)

    kept = replay([unknown(b"1"), unknown(b"2"), unknown(b"3", b"\0\x63b"), unknown(None, b"\0\x63b"), commit(1)])
    assert kept.unknown == {b"\0\x63a": unknown(b"2")}
    assert [*kept.entries] == [KEY]


@pytest.mark.parametrize(
    "record",
    [
        TopicRecord(topic="__cluster_metadata", value=NoOpRecord(), version=0),
        UnknownRecord(topic="__cluster_metadata", record_type=6, value=b"\1\6\0\0"),
    ],
)
def test_records_without_keys_add_up_to_nothing(record: InternalRecord) -> None:
    with pytest.raises(UnexpectedNullError, match="__cluster_metadata: key at byte 0: null, but the state needs a key"):
        replay([record])


def test_random_records_of_every_keyed_topic_add_up_and_tombstones_empty_them() -> None:
    records = [record for record, _ in random_bytes(7, each=3) if record.key is not None]
    full = replay(records)
    latest = {record.key: record for record in records}
    folded = {ShareUpdateKey, LegacyOffsetCommitKey, ShareSnapshotKey, OffsetCommitKey}
    assert len(latest) > 80
    for key, record in latest.items():
        if type(key) not in folded:
            assert key is not None
            assert full.entries[key] == record
    deleted = [evolve(record, value=None, version=None) for record in records]
    assert replay([*records, *deleted]).entries == {}


SHARE = ShareSnapshotKey(group_id="packing", topic_id=UUID(int=7), partition=1)
SHARE_UPDATE = ShareUpdateKey(group_id="packing", topic_id=UUID(int=7), partition=1)


def snapshot(*batches: tuple[int, int, int, int], start: int = 0) -> TopicRecord:
    value = ShareSnapshotValue(
        snapshot_epoch=3, state_epoch=4, leader_epoch=5, start_offset=start, write_timestamp=6,
        state_batches=tuple(batch(*each) for each in batches),
    )  # fmt: skip
    return TopicRecord(topic=SHARES, key=SHARE, value=value, version=0)


def update(*batches: tuple[int, int, int, int], start: int = -1, leader: int = -1) -> TopicRecord:
    made = tuple(
        UpdateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        for first, last, state, count in batches
    )
    value = ShareUpdateValue(
        snapshot_epoch=3, leader_epoch=leader, start_offset=start, delivery_complete_count=1, state_batches=made
    )
    return TopicRecord(topic=SHARES, key=SHARE_UPDATE, value=value, version=0)


def batch(first: int, last: int, state: int, count: int) -> StateBatch:
    return StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)


def share_state(*records: TopicRecord) -> ShareSnapshotValue | None:
    return replay(records).select(ShareSnapshotKey, ShareSnapshotValue).get(SHARE)


def test_share_update_folds_into_the_snapshot() -> None:
    found = share_state(snapshot((0, 9, 0, 1)), update((5, 9, ACKNOWLEDGED, 1)), update((0, 1, ARCHIVED, 1)))
    assert found == ShareSnapshotValue(
        snapshot_epoch=3, state_epoch=4, leader_epoch=5, start_offset=0, write_timestamp=6, delivery_complete_count=1,
        state_batches=(batch(0, 1, ARCHIVED, 1), batch(2, 4, 0, 1), batch(5, 9, ACKNOWLEDGED, 1)),
    )  # fmt: skip


def test_share_update_moves_leader_and_start_where_it_names_them() -> None:
    found = share_state(snapshot((0, 9, 0, 1)), update(start=4, leader=8))
    assert found is not None
    assert (found.leader_epoch, found.start_offset, found.state_batches) == (8, 4, (batch(4, 9, 0, 1),))


def test_share_update_without_a_snapshot_is_a_state_of_its_own() -> None:
    found = share_state(update((0, 3, ACKNOWLEDGED, 1), start=0, leader=2))
    assert found == ShareSnapshotValue(
        snapshot_epoch=3, leader_epoch=2, start_offset=0, delivery_complete_count=1,
        state_batches=(batch(0, 3, ACKNOWLEDGED, 1),),
    )  # fmt: skip


def test_share_snapshot_replaces_and_its_tombstone_deletes_updates_too() -> None:
    assert share_state(update((0, 3, 2, 1)), snapshot((7, 8, 0, 1))) == snapshot((7, 8, 0, 1)).value
    assert share_state(snapshot(), update((0, 3, 2, 1)), tombstone(SHARE, SHARES)) is None


@pytest.mark.parametrize(
    ("batches", "start", "combined"),
    [
        ([], -1, []),
        ([(5, 9, 0, 1)], -1, [(5, 9, 0, 1)]),
        ([(5, 9, 0, 1)], 7, [(7, 9, 0, 1)]),
        ([(5, 9, 0, 1)], 10, []),
        ([(5, 4, 0, 1)], -1, []),
        ([(0, 4, 2, 1), (5, 9, 2, 1)], -1, [(0, 9, 2, 1)]),
        ([(0, 4, 2, 1), (6, 9, 2, 1)], -1, [(0, 4, 2, 1), (6, 9, 2, 1)]),
        ([(0, 4, 2, 1), (5, 9, 2, 2)], -1, [(0, 4, 2, 1), (5, 9, 2, 2)]),
        ([(0, 9, 0, 1), (3, 5, 0, 2)], -1, [(0, 2, 0, 1), (3, 5, 0, 2), (6, 9, 0, 1)]),
        ([(0, 9, 2, 2), (3, 5, 4, 1)], -1, [(0, 9, 2, 2)]),
        ([(0, 9, 2, 1), (0, 9, 4, 1)], -1, [(0, 9, 4, 1)]),
        ([(5, 9, 0, 1), (0, 6, 2, 1)], 2, [(2, 6, 2, 1), (7, 9, 0, 1)]),
        ([(0, 2**63 - 1, 0, 1), (7, 7, 2, 1)], -1, [(0, 6, 0, 1), (7, 7, 2, 1), (8, 2**63 - 1, 0, 1)]),
    ],
)
def test_share_batches_combine_by_delivery_count_and_then_state(
    batches: list[tuple[int, int, int, int]], start: int, combined: list[tuple[int, int, int, int]]
) -> None:
    found = combine_batches([batch(*each) for each in batches], start)
    assert found == tuple(batch(*each) for each in combined)
