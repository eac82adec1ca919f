"""The state from the records of an internal topic: the state of a coordinator that has read all of them.

This module owns the effect of a record. A record replaces the value of its key. A record without a value deletes the
key. A record in a transaction waits for the end of the transaction. Two kinds of records act under the key of another
kind. The functions read only their arguments. Framed topics do not have keys, so they do not have a state of this form.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, TypeVar

from attrs import evolve, field, frozen

from kafka_msgs.errors import UnexpectedNullError
from kafka_msgs.internal_topics.records import NO_PRODUCER, InternalRecord, TopicRecord, UnknownRecord
from kafka_msgs.internal_topics.share_state import apply_update
from kafka_msgs.message import Message
from kafka_msgs.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kafka_msgs.messages.group_metadata_key import GroupMetadataKey
from kafka_msgs.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kafka_msgs.messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from kafka_msgs.messages.offset_commit_key import OffsetCommitKey
from kafka_msgs.messages.offset_commit_value import OffsetCommitValue
from kafka_msgs.messages.share_group_metadata_key import ShareGroupMetadataKey
from kafka_msgs.messages.share_snapshot_key import ShareSnapshotKey
from kafka_msgs.messages.share_snapshot_value import ShareSnapshotValue
from kafka_msgs.messages.share_update_key import ShareUpdateKey
from kafka_msgs.messages.share_update_value import ShareUpdateValue
from kafka_msgs.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from kafka_msgs.messages.transaction_log_key import TransactionLogKey
from kafka_msgs.messages.transaction_log_value import TransactionLogValue
from kafka_msgs.schema import fields

__all__ = ["GroupKind", "ReplayedGroup", "TopicState", "TransactionEnd", "replay", "upgrade_legacy_offset"]

K = TypeVar("K", bound=Message)
V = TypeVar("V", bound=Message)
T = TypeVar("T")

_Entries: TypeAlias = dict[Message, tuple[int, TopicRecord]]

GroupKind: TypeAlias = Literal["classic", "consumer", "share", "streams"]
"""The types of groups, as ``ListGroupsResponse`` writes them."""

_GROUP_KINDS: Final[Mapping[type[Message], GroupKind]] = {
    GroupMetadataKey: "classic",
    ConsumerGroupMetadataKey: "consumer",
    ShareGroupMetadataKey: "share",
    StreamsGroupMetadataKey: "streams",
}


@frozen(kw_only=True)
class TransactionEnd:
    """The marker that ends a producer's transaction in a log, by commit or by abort."""

    producer_id: int
    committed: bool


@frozen(kw_only=True)
class ReplayedGroup:
    """One group of ``__consumer_offsets``.

    ``kind`` is None for a group that has only offsets. Consumers that commit without joining a group leave such groups.
    ``records`` holds the latest record of each key, except offsets. ``offsets`` holds the committed offsets by topic
    and partition.
    """

    group_id: str
    kind: GroupKind | None
    records: tuple[TopicRecord, ...]
    offsets: Mapping[tuple[str, int], OffsetCommitValue]


@frozen(kw_only=True)
class TopicState:
    """The state from the records of an internal topic.

    ``entries`` contains the latest record of each existing key, in the order in which the keys appeared. A share
    partition has one entry: its snapshot with the updates applied. Offsets in the oldest format are stored under their
    modern key. ``pending`` contains the records of open transactions by producer id. ``unknown`` contains the latest
    record of each key whose type this release does not support.
    """

    entries: Mapping[Message, TopicRecord]
    pending: Mapping[int, Mapping[Message, TopicRecord]]
    unknown: Mapping[bytes, UnknownRecord]

    def select(self, key: type[K], value: type[V]) -> dict[K, V]:
        """Return the values under keys of one class."""
        return {
            each: record.value
            for each, record in self.entries.items()
            if isinstance(each, key) and isinstance(record.value, value)
        }

    def groups(self) -> dict[str, ReplayedGroup]:
        """Return the groups of ``__consumer_offsets`` by name."""
        by_group: defaultdict[str, list[TopicRecord]] = defaultdict(list)
        for record in self.entries.values():
            if record.topic == "__consumer_offsets" and record.key is not None:
                by_group[_group_of(record.key)].append(record)
        return {group_id: _group_state(group_id, records) for group_id, records in by_group.items()}

    def transactions(self) -> dict[str, TransactionLogValue]:
        """Return the transactions of ``__transaction_state`` by transactional id."""
        return {
            key.transactional_id: value for key, value in self.select(TransactionLogKey, TransactionLogValue).items()
        }


def replay(records: Iterable[InternalRecord | TransactionEnd]) -> TopicState:
    """Return the state from the records of a topic with keys. The records must be in log order.

    Transactional records need their producer id. Pass the markers of the log as ``TransactionEnd``. Raises
    ``UnexpectedNullError`` for a record without a key, such as a record of a framed topic.
    """
    loader = _Loader()
    for position, each in enumerate(records):
        if isinstance(each, TransactionEnd):
            loader.end(each)
        elif isinstance(each, UnknownRecord):
            loader.replay_unknown(each)
        else:
            loader.replay(position, each)
    return loader.state()


@frozen
class _Loader:
    """Builds the state. Positions decide whether a committed record is newer than a record outside its transaction."""

    entries: _Entries = field(factory=dict)
    pending: dict[int, _Entries] = field(factory=dict)
    unknown: dict[bytes, UnknownRecord] = field(factory=dict)

    def replay(self, position: int, record: TopicRecord) -> None:
        key, record = _redirected(record, self.entries)
        if record.value is None:
            self.entries.pop(key, None)
            for waiting in self.pending.values():
                waiting.pop(key, None)
        elif record.producer_id == NO_PRODUCER:
            self.entries[key] = position, record
        else:
            self.pending.setdefault(record.producer_id, {})[key] = position, record

    def replay_unknown(self, record: UnknownRecord) -> None:
        key = _require_key(record.topic, record.key)
        if record.value is None:
            self.unknown.pop(key, None)
        else:
            self.unknown[key] = record

    def end(self, marker: TransactionEnd) -> None:
        waiting = self.pending.pop(marker.producer_id, {})
        for key, (position, record) in waiting.items() if marker.committed else ():
            present = self.entries.get(key)
            if present is None or position > present[0]:
                self.entries[key] = position, record

    def state(self) -> TopicState:
        return TopicState(
            entries=_without_positions(self.entries),
            pending={producer: _without_positions(waiting) for producer, waiting in self.pending.items() if waiting},
            unknown=self.unknown,
        )


def _without_positions(entries: _Entries) -> dict[Message, TopicRecord]:
    return {key: record for key, (_, record) in entries.items()}


def _require_key(topic: str, key: T | None) -> T:
    if key is None:
        reason = "null, but the state needs a key for each record"
        raise UnexpectedNullError(message=topic, version=None, path="key", offset=0, reason=reason)
    return key


def _redirected(record: TopicRecord, entries: _Entries) -> tuple[Message, TopicRecord]:
    """Return the key that a record affects, and the record in the form for that key."""
    key = _require_key(record.topic, record.key)
    redirect = _REDIRECTS.get(type(key))
    if redirect is None:
        return key, record
    new_key = redirect.key(key)
    present = entries.get(new_key)
    if record.value is None:
        return new_key, evolve(record, key=new_key)
    value = redirect.value(record.value, present and present[1].value)
    return new_key, evolve(record, key=new_key, value=value, version=redirect.version)


@frozen
class _Redirect:
    """The target of records whose effect is stored under another key; ``version`` is the version of the new value."""

    key: Callable[[Any], Message]
    value: Callable[[Any, Any], Message]
    version: int


def upgrade_legacy_offset(
    key: LegacyOffsetCommitKey, value: LegacyOffsetCommitValue | None
) -> tuple[OffsetCommitKey, OffsetCommitValue | None]:
    """Return key and value of a committed offset in the oldest format, converted to the current format."""
    return _modern_key(key), None if value is None else _modern_value(value, None)


def _modern_key(key: LegacyOffsetCommitKey) -> OffsetCommitKey:
    return OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)


def _modern_value(value: LegacyOffsetCommitValue, _: OffsetCommitValue | None) -> OffsetCommitValue:
    return OffsetCommitValue(offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp)


def _snapshot_key(key: ShareUpdateKey) -> ShareSnapshotKey:
    return ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)


def _snapshot_value(update: ShareUpdateValue, present: ShareSnapshotValue | None) -> ShareSnapshotValue:
    return apply_update(present, update)


_REDIRECTS: Final[Mapping[type[Message], _Redirect]] = {
    LegacyOffsetCommitKey: _Redirect(_modern_key, _modern_value, 0),
    ShareUpdateKey: _Redirect(_snapshot_key, _snapshot_value, 0),
}


def _group_of(key: Message) -> str:
    """Return the group of a ``__consumer_offsets`` key, which is the first field of the key."""
    group: str = getattr(key, fields(type(key))[0].attribute)
    return group


def _group_state(group_id: str, records: Iterable[TopicRecord]) -> ReplayedGroup:
    offsets: dict[tuple[str, int], OffsetCommitValue] = {}
    others: list[TopicRecord] = []
    for record in records:
        if isinstance(record.key, OffsetCommitKey) and isinstance(record.value, OffsetCommitValue):
            offsets[record.key.topic, record.key.partition] = record.value
        else:
            others.append(record)
    kinds = [_GROUP_KINDS[cls] for record in others if record.key and (cls := type(record.key)) in _GROUP_KINDS]
    return ReplayedGroup(group_id=group_id, kind=kinds[-1] if kinds else None, records=tuple(others), offsets=offsets)
