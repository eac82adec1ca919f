"""Internal topics as a real broker wrote them: every record decodes, re-encodes equally, and adds up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_msgs import (
    ClientQuotaRecord,
    NoOpRecord,
    OffsetCommitKey,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    ShareSnapshotKey,
    ShareSnapshotValue,
    TransactionLogKey,
)
from kafka_msgs.internal_topics.consumer_protocol import consumer_members
from kafka_msgs.internal_topics.records import InternalRecord, TopicRecord, decode_record, encode_record
from kafka_msgs.internal_topics.replay import TopicState, TransactionEnd, replay
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue
from tests.support import recordings
from tests.support.recorded_frames import read_header
from tests.support.recorded_records import Line, read_lines, read_records, record_of
from tests.support.recordings import INTERNAL_TOPICS as RECORDING

OFFSETS_RECORDING = recordings.OFFSETS
OFFSETS = "__consumer_offsets"
LINES = read_lines()
TOPICS = sorted({line["topic"] for line in LINES})
COMPLETE_COMMIT, COMPLETE_ABORT = 4, 5
ACKNOWLEDGED, ARCHIVED = 2, 4


def lines_of(topic: str) -> list[Line]:
    return [line for line in LINES if line["topic"] == topic]


def recorded_state(topic: str) -> TopicState:
    return replay(record_of(line) for line in lines_of(topic))


def group_records() -> Iterator[InternalRecord]:
    for record in read_records(OFFSETS_RECORDING):
        yield decode_record(OFFSETS, record.key, record.value)


def test_recording_names_how_it_was_made() -> None:
    for recording in (RECORDING, OFFSETS_RECORDING):
        header = read_header(recording)
        assert header["kafka"] == header["clients"]["kafka-tools"]
    header = read_header(RECORDING)
    assert (Path(__file__).parents[2] / header["script"]).is_file()
    assert RECORDING.stat().st_size < 50_000


@pytest.mark.parametrize("topic", TOPICS)
def test_every_record_is_written_back_to_the_bytes_it_was_read_from(topic: str) -> None:
    records = [(line, record_of(line)) for line in lines_of(topic) if "marker" not in line]
    assert len(records) > 10
    for line, record in records:
        assert isinstance(record, TopicRecord)
        key, value = encode_record(record)
        assert (key and key.hex(), None if value is None else value.hex()) == (line["key"], line["value"])


def test_every_record_of_the_group_recording_is_written_back_alike() -> None:
    for recorded, record in zip(read_records(OFFSETS_RECORDING), group_records(), strict=True):
        assert isinstance(record, TopicRecord)
        assert encode_record(record) == (recorded.key, recorded.value)


def test_recording_covers_what_the_story_tells() -> None:
    records = [record for record in map(record_of, LINES) if isinstance(record, TopicRecord)]
    kinds = {type(record.value) for record in records}
    assert kinds >= {RegisterBrokerRecord, RemoveTopicRecord, ClientQuotaRecord, NoOpRecord}
    assert any(record.value is None and isinstance(record.key, ShareSnapshotKey) for record in records)
    assert {"commit", "abort"} == {line["marker"] for line in LINES if "marker" in line}
    assert TOPICS == ["__cluster_metadata", OFFSETS, "__share_group_state", "__transaction_state"]


def test_transactions_end_as_their_last_records_say() -> None:
    transactions = recorded_state("__transaction_state").transactions()
    assert {name: value.transaction_status for name, value in transactions.items()} == {
        "billing-writer": COMPLETE_ABORT,
        "billing-late": COMPLETE_ABORT,
    }
    first = replay(record_of(line) for line in lines_of("__transaction_state") if line["offset"] <= 4).transactions()
    assert {name: value.transaction_status for name, value in first.items()} == {"billing-writer": COMPLETE_COMMIT}


def test_offsets_of_a_transaction_count_from_its_commit_on() -> None:
    seen: list[tuple[dict[tuple[str, int], int], dict[tuple[int, int], int]]] = []
    lines = lines_of(OFFSETS)
    for count in range(1, len(lines) + 1):
        state = replay(record_of(line) for line in lines[:count])
        groups = state.groups()
        offsets = {key: value.offset for key, value in groups["billing"].offsets.items()} if "billing" in groups else {}
        waiting = {
            (producer, key.partition): record.value.offset  # type: ignore[union-attr]
            for producer, entries in state.pending.items()
            for key, record in entries.items()
            if isinstance(key, OffsetCommitKey)
        }
        if not seen or seen[-1] != (offsets, waiting):
            seen.append((offsets, waiting))
    committed = {("orders", 0): 2, ("orders", 1): 3}
    both = [({}, {(1, 0): 2, (1, 1): 3}), (committed, {})]
    assert [step for step in seen if len(step[1]) != 1][: len(both)] == both
    assert (committed, {(1, 0): 4, (1, 1): 5}) in seen
    assert (committed, {(2, 0): 6, (2, 1): 7}) in seen
    assert seen[-1] == (committed, {})


def test_group_that_only_commits_has_no_kind() -> None:
    groups = recorded_state(OFFSETS).groups()
    assert {name: group.kind for name, group in groups.items()} == {"billing": None, "packing": "share"}


def test_share_partitions_are_snapshots_with_their_updates_and_a_deleted_group_has_none() -> None:
    partitions = recorded_state("__share_group_state").select(ShareSnapshotKey, ShareSnapshotValue)
    states = {
        key.partition: (
            value.start_offset,
            [(b.first_offset, b.last_offset, b.delivery_state) for b in value.state_batches],
        )
        for key, value in partitions.items()
        if key.group_id == "packing"
    }
    assert len(partitions) == len(states)
    taken = [(0, 2, ACKNOWLEDGED), (3, 3, ARCHIVED), (4, 4, ACKNOWLEDGED), (5, 5, ARCHIVED), (6, 6, ACKNOWLEDGED)]
    assert states == {0: (5, [(5, 6, ACKNOWLEDGED)]), 1: (0, taken)}


def test_groups_are_loaded_with_their_kind_and_offsets() -> None:
    groups = replay(group_records()).groups()
    assert {name: group.kind for name, group in groups.items()} == {
        "billing": "classic",
        "audit": "classic",
        "ledger": "classic",
        "stock": "consumer",
        "packing": "share",
        "totals": "streams",
    }
    assert {key: value.offset for key, value in groups["billing"].offsets.items()} == {
        ("orders", 0): 4,
        ("orders", 1): 0,
    }
    assert all(len(group.records) for group in groups.values())


def test_members_of_recorded_classic_groups_say_what_they_read_and_were_given() -> None:
    seen = {}
    for record in group_records():
        if isinstance(record, TopicRecord) and isinstance(record.value, GroupMetadataValue):
            for member in consumer_members(record.value):
                assigned = {}
                if member.assignment.message is not None:
                    parts = member.assignment.message.assigned_partitions
                    assigned = {part.topic: part.partitions for part in parts}
                assert member.subscription.message is not None
                assert member.faults == ()
                seen[member.metadata.client_id] = member.subscription.message.topics, assigned
    assert seen["billing-console"] == (("orders",), {"orders": (0, 1)})
    assert len(seen) > 2


def test_state_needs_markers_to_be_given_for_transactions_to_end() -> None:
    records = [record for record in map(record_of, lines_of(OFFSETS)) if not isinstance(record, TransactionEnd)]
    assert {*replay(records).pending} == {1, 2}


def test_transactional_ids_are_keys() -> None:
    keys = recorded_state("__transaction_state").entries
    assert all(isinstance(key, TransactionLogKey) for key in keys)
