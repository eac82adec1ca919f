"""The batches of a KRaft metadata log (KIP-595, KIP-630).

A leader begins its epoch with a control batch. A snapshot is a file of batches between two control batches; the file
``bootstrap.checkpoint`` has the same format. In Kafka these are ``MemoryRecords`` and ``RecordsSnapshotWriter``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Final
from uuid import UUID

from kafka_msgs.internal_topics.records import TopicRecord, encode_record
from kafka_msgs.message import Message, MetadataRecord
from kafka_msgs.messages import (
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
)
from kafka_msgs.messages.leader_change_message import Voter
from kafka_msgs.records import BatchBuilder, BatchHeader, ControlType

__all__ = ["METADATA_TOPIC", "METADATA_TOPIC_ID", "format_snapshot", "leader_change_batch", "metadata_batch"]

METADATA_TOPIC: Final = "__cluster_metadata"
"""The topic of the metadata log."""
METADATA_TOPIC_ID: Final = UUID(int=1)
"""The topic id of the metadata log in every cluster."""
NO_QUORUM: Final[Mapping[ControlType, Message]] = MappingProxyType({})
"""The control records of a static quorum, which is configured on the nodes and not stored in the log."""

_BATCH_RECORDS: Final = 1000


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
    """Return the batch that begins a leader's epoch. All voters granted their votes."""
    chosen = tuple(Voter(voter_id=voter) for voter in voters)
    message = LeaderChangeMessage(version=0, leader_id=leader, voters=chosen, granting_voters=chosen)
    return _control({ControlType.LEADER_CHANGE: message}, timestamp, 0, 0)


def format_snapshot(
    records: Iterable[MetadataRecord],
    *,
    timestamp: int,
    last_timestamp: int = 0,
    leader_epoch: int = 0,
    quorum: Mapping[ControlType, Message] = NO_QUORUM,
) -> bytes:
    """Return the content of a ``.checkpoint`` file with these records.

    ``last_timestamp`` is the timestamp of the last included log record, in milliseconds since the epoch. ``quorum``
    contains the control records of a dynamic quorum, which is stored in the log (KIP-853).
    """
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_timestamp)
    first = {ControlType.SNAPSHOT_HEADER: header, **quorum}
    parts = [_control(first, timestamp, 0, leader_epoch)]
    offset, rest = len(first), iter(records)
    while some := tuple(islice(rest, _BATCH_RECORDS)):
        parts.append(metadata_batch(some, timestamp=timestamp, base_offset=offset, leader_epoch=leader_epoch))
        offset += len(some)
    footer = {ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord(version=0)}
    return b"".join((*parts, _control(footer, timestamp, offset, leader_epoch)))


def _control(messages: Mapping[ControlType, Message], timestamp: int, offset: int, leader_epoch: int) -> bytes:
    builder = BatchBuilder(BatchHeader(base_offset=offset, partition_leader_epoch=leader_epoch, control=True))
    for kind, message in messages.items():
        builder.append_control(kind, message, timestamp=timestamp)
    return builder.build()
