"""A randomly generated partition of ``__consumer_offsets``, written to disk up to any point."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

from attrs import define, field, frozen

from kafka_msgs import EndTxnMarker, OffsetCommitKey, OffsetCommitValue
from kafka_msgs.internal_topics.records import NO_PRODUCER, TopicRecord, encode_record
from kafka_msgs.internal_topics.replay import TransactionEnd
from kafka_msgs.log.writers.small_files import format_partition_metadata
from kafka_msgs.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kafka_msgs.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kafka_msgs.messages.group_metadata_key import GroupMetadataKey
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue
from kafka_msgs.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kafka_msgs.messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from kafka_msgs.records import BatchBuilder, BatchHeader, ControlType

__all__ = [
    "START_MS",
    "TOPIC",
    "Item",
    "OffsetsTopic",
    "commit",
    "commit_oldest",
    "end",
    "write_items",
    "write_segments",
]

TOPIC: Final = "__consumer_offsets"
START_MS: Final = 1_767_225_600_000
"""The time of offset 0; batches follow one minute apart."""

Item = TopicRecord | TransactionEnd
_FIRST_ID: Final = UUID(int=1)
_TOPICS: Final = "abcdefghijklmnopqrstuvwxyz"
_OLDEST: Final = re.compile(rb"\A\0\0")
_HEADER: Final = {"producer_epoch": 0}
_UNREADABLE: Final = ((b"\0\2\0\3tea", b"\0\3"), (b"\0\2\0\3tea", None), (b"\0\x63\0\3own", b"?"))
"""Group records: a truncated value, the deletion of its key, and an unknown record type."""


def commit(name: str, offset: int | None, producer: int = NO_PRODUCER, group: str = "tea") -> TopicRecord:
    """Return an offset commit for one partition, or its deletion."""
    value = None if offset is None else OffsetCommitValue(offset=offset)
    version = None if offset is None else 3
    key = OffsetCommitKey(group=group, topic=name)
    return TopicRecord(topic=TOPIC, key=key, value=value, version=version, producer_id=producer)


def commit_oldest(name: str, offset: int, group: str = "tea") -> TopicRecord:
    """Return a commit in the format of Kafka 0.8."""
    return TopicRecord(
        topic=TOPIC,
        key=LegacyOffsetCommitKey(group=group, topic=name),
        value=LegacyOffsetCommitValue(offset=offset, metadata="old", commit_timestamp=9),
        version=0,
    )


def end(producer: int, *, committed: bool) -> TransactionEnd:
    """Return a producer's end marker."""
    return TransactionEnd(producer_id=producer, committed=committed)


def _members(group: str, generation: int | None) -> TopicRecord:
    """Return a record of an empty classic group, or of a group with epochs for the name ``new``, or its deletion."""
    if group == "new":
        changed = None if generation is None else ConsumerGroupMetadataValue(epoch=generation)
        key = ConsumerGroupMetadataKey(group_id=group)
        return TopicRecord(topic=TOPIC, key=key, value=changed, version=None if generation is None else 0)
    value = None if generation is None else GroupMetadataValue(protocol_type="consumer", generation=generation)
    version = None if generation is None else 3
    return TopicRecord(topic=TOPIC, key=GroupMetadataKey(group=group), value=value, version=version)


@frozen
class _Batch:
    """A batch: first offset, key of its only record if any, whether that record is a deletion, bytes, and producer."""

    offset: int
    key: bytes | None
    deletes: bool
    data: bytes
    producer: int = NO_PRODUCER


def _batch(offset: int, item: Item | tuple[bytes | None, bytes | None], epoch: int = 0) -> _Batch:
    time = START_MS + 60_000 * offset
    if isinstance(item, TransactionEnd):
        header = BatchHeader(
            base_offset=offset, producer_id=item.producer_id, transactional=True, control=True, **_HEADER
        )
        marker = BatchBuilder(header)
        kind = ControlType.COMMIT if item.committed else ControlType.ABORT
        marker.append_control(kind, EndTxnMarker(coordinator_epoch=1), timestamp=time)
        return _Batch(offset, None, False, marker.build())
    key, value = item if isinstance(item, tuple) else encode_record(item)
    producer = NO_PRODUCER if isinstance(item, tuple) else item.producer_id
    facts: dict[str, Any] = {} if producer == NO_PRODUCER else {
        "producer_id": producer, "transactional": True, "base_sequence": 0, **_HEADER,
    }  # fmt: skip
    builder = BatchBuilder(BatchHeader(base_offset=offset, partition_leader_epoch=epoch, **facts))
    builder.append(key, value, timestamp=time)
    return _Batch(offset, _compacted_key(key), value is None, builder.build(), producer)


def _compacted_key(key: bytes | None) -> bytes | None:
    """Return a key for compaction, the same one for commits in the formats of Kafka 0.8 and of today.

    For Kafka these are two keys, so that a commit of Kafka 0.8 may come back when its deletion is compacted. Whether it
    counts then depends on when a coordinator, or a run, has read the deletion.
    """
    return _OLDEST.sub(b"\0\1", key, count=1) if key is not None else None


def write_items(home: Path, number: int, items: Sequence[Item]) -> None:
    """Write records and markers as one segment of a partition of the topic, one batch each."""
    write_segments(home, number, [dict(enumerate(items))])


def write_segments(
    home: Path,
    number: int,
    segments: Sequence[Mapping[int, Item | tuple[bytes | None, bytes | None]]],
    first: int = 0,
    epoch: int = 0,
) -> None:
    """Rewrite the segments of a partition from records and markers by offset, starting at the base offset ``first``.

    ``epoch`` is the leader epoch of the last record.
    """
    directory = home / f"{TOPIC}-{number}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for segment in segments:
        last = max(segment, default=first)
        batches = [_batch(offset, item, epoch if offset == last else 0) for offset, item in segment.items()]
        (directory / f"{first:020}.log").write_bytes(b"".join(each.data for each in batches))
        first = max(segment, default=first) + 1


@define
class OffsetsTopic:
    """A growing partition. ``write`` writes the files of its current state."""

    home: Path
    dice: Random
    number: int = 0
    problems: bool = True
    """Whether to include records that cannot be read."""
    id: UUID | None = _FIRST_ID
    """The topic id; None for a broker without topic ids."""
    topic: str = TOPIC
    groups: Sequence[str] = ("tea", "milk")
    """The groups with offsets."""
    segments: list[list[_Batch]] = field(factory=lambda: [[]])
    _open: set[int] = field(factory=set)
    _next: int = 0
    _epoch: int = 0

    def grow(self, steps: int) -> None:
        """Add this many random records and markers."""
        for _ in range(steps):
            if self.segments[-1] and self.dice.random() < 0.05:
                self.segments.append([])
            self.segments[-1].append(_batch(self._next, self._item(), self._epoch))
            self._next += 1

    def _item(self) -> Item | tuple[bytes | None, bytes | None]:
        dice = self.dice
        if self.problems and dice.random() < 0.03:
            return dice.choice(
                [(None, b"?"), (b"\0", b""), (b"\0\1\0", b""), (b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\3"), *_UNREADABLE]
            )
        if self._open and dice.random() < 0.15:
            producer = dice.choice(sorted(self._open))
            self._open.discard(producer)
            return end(producer, committed=dice.random() < 0.6)
        if dice.random() < 0.15:
            return _members(dice.choice((*self.groups, "own", "new")), None if dice.random() < 0.3 else self._next)
        if dice.random() < 0.1:
            return commit_oldest(dice.choice(_TOPICS), self._next, self.groups[0])
        producer = dice.choice((NO_PRODUCER, NO_PRODUCER, 1, 2, 3))
        value = None if dice.random() < 0.2 else self._next
        if producer != NO_PRODUCER:
            self._open.add(producer)
        return commit(dice.choice(_TOPICS), value, producer, dice.choice(self.groups))

    def compact(self) -> None:
        """Remove replaced records and half of the deletions from the closed segments.

        Transactional records are not compacted here: a broker waits for the end of the transaction. Deletions remain
        while there is a transactional record with their key, which would come back without them.
        """
        batches = [each for segment in self.segments for each in segment if each.key is not None]
        latest = {each.key: each.offset for each in batches if each.producer == NO_PRODUCER}
        kept = {each.key for each in batches if each.producer != NO_PRODUCER}
        for segment in self.segments[:-1]:
            segment[:] = [
                each
                for each in segment
                if each.key is None
                or each.producer != NO_PRODUCER
                or (
                    latest[each.key] == each.offset
                    and not (each.deletes and each.key not in kept and self.dice.random() < 0.5)
                )
            ]

    def delete_first(self) -> None:
        """Delete the first segment, as retention does."""
        if len(self.segments) > 1:
            del self.segments[0]

    def truncate(self) -> None:
        """Truncate the last records, as a follower that has more than the new leader, which then writes others."""
        self._epoch += 1
        for _ in range(self.dice.randrange(1, 10)):
            if len(self.segments) > 1 and not self.segments[-1]:
                self.segments.pop()
            if self.segments[-1]:
                self._next = self.segments[-1].pop().offset

    def recreate(self) -> None:
        """Delete and recreate the topic, with different records at the same offsets."""
        self.id = self.id and UUID(int=self.id.int + 1)
        self.segments, self._next = [[]], 0
        self._open.clear()

    def write(self) -> Path:
        """Write the files, and return the log directory."""
        directory = self.home / f"{self.topic}-{self.number}"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        if self.id is not None:
            (directory / "partition.metadata").write_bytes(format_partition_metadata(self.id))
        base = 0
        for segment in self.segments:
            base = segment[0].offset if segment else base
            (directory / f"{base:020}.log").write_bytes(b"".join(each.data for each in segment))
            base += 1
        return self.home
