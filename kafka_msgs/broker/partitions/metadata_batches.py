"""The batches of a metadata log in KRaft mode (KIP-595, KIP-630).

A leader begins its epoch with a control batch. A snapshot is a file of batches between two control batches; the file
``bootstrap.checkpoint`` has this form, too. In Kafka these are ``MemoryRecords`` and ``RecordsSnapshotWriter``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

from kafka_msgs.message import Message, MetadataRecord
from kafka_msgs.messages import (
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
)
from kafka_msgs.messages.leader_change_message import Voter
from kafka_msgs.records import BatchBuilder, BatchHeader, ControlType
from kafka_msgs.topics.records import TopicRecord, encode_record

__all__ = ["METADATA_TOPIC", "METADATA_TOPIC_ID", "format_snapshot", "leader_change_batch", "metadata_batch"]

METADATA_TOPIC: Final = "__cluster_metadata"
"""The topic of the metadata log."""
METADATA_TOPIC_ID: Final = UUID(int=1)
"""The id of this topic in every cluster."""


def metadata_batch(
    records: Iterable[MetadataRecord], *, timestamp: int, base_offset: int = 0, leader_epoch: int = 0
) -> bytes:
    """Return a batch of metadata records, each at its highest version. ``timestamp`` is in milliseconds."""
    builder = BatchBuilder(BatchHeader(base_offset=base_offset, partition_leader_epoch=leader_epoch))
    for record in records:
        version = record.INFO.versions.highest
        key, value = encode_record(TopicRecord(topic=METADATA_TOPIC, value=record, version=version))
        builder.append(key, value, timestamp=timestamp)
    return builder.build()


def leader_change_batch(leader: int, voters: Sequence[int], *, timestamp: int) -> bytes:
    """Return the batch with which a leader begins its epoch. All voters granted it their votes."""
    chosen = tuple(Voter(voter_id=voter) for voter in voters)
    message = LeaderChangeMessage(version=0, leader_id=leader, voters=chosen, granting_voters=chosen)
    return _control(ControlType.LEADER_CHANGE, message, timestamp, 0, 0)


def format_snapshot(
    records: Sequence[MetadataRecord], *, timestamp: int, last_timestamp: int = 0, leader_epoch: int = 0
) -> bytes:
    """Return the content of a ``.checkpoint`` file with these records.

    ``last_timestamp`` is that of the last record of the log that the snapshot includes, in milliseconds since the
    epoch.
    """
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_timestamp)
    footer = SnapshotFooterRecord(version=0)
    middle = metadata_batch(records, timestamp=timestamp, base_offset=1, leader_epoch=leader_epoch) if records else b""
    return b"".join(
        (
            _control(ControlType.SNAPSHOT_HEADER, header, timestamp, 0, leader_epoch),
            middle,
            _control(ControlType.SNAPSHOT_FOOTER, footer, timestamp, 1 + len(records), leader_epoch),
        )
    )


def _control(kind: ControlType, message: Message, timestamp: int, offset: int, leader_epoch: int) -> bytes:
    builder = BatchBuilder(BatchHeader(base_offset=offset, partition_leader_epoch=leader_epoch, control=True))
    builder.append_control(kind, message, timestamp=timestamp)
    return builder.build()
