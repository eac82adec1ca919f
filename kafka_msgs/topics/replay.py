"""What the records of an internal topic add up to: the state that its coordinator holds once it has read them all.

Owns what a record does to what came before: it replaces the value under its key or, without a value, deletes it; a
record in a transaction waits for the end of the transaction; two kinds of records act under another kind's key. Pure:
nothing is read or kept but what the caller hands in. The framed topics have no keys and so no state of this form.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, TypeVar

from attrs import evolve, field, frozen

from kafka_msgs.errors import UnexpectedNullError
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
from kafka_msgs.topics.records import NO_PRODUCER, InternalRecord, TopicRecord, UnknownRecord
from kafka_msgs.topics.share_state import apply_update

__all__ = ["GroupKind", "GroupState", "TopicState", "TransactionEnd", "replay"]

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
class GroupState:
    """One group of ``__consumer_offsets``.

    ``kind`` is None for a group that has offsets only, as consumers leave it that commit without joining. ``records``
    holds all but the offsets, latest of each key; ``offsets`` the committed offsets by topic and partition.
    """

    group_id: str
    kind: GroupKind | None
    records: tuple[TopicRecord, ...]
    offsets: Mapping[tuple[str, int], OffsetCommitValue]


@frozen(kw_only=True)
class TopicState:
    """The state that the records of an internal topic add up to.

    ``entries`` holds the latest record of each key that is not deleted, in the order in which keys appeared; a share
    partition is there once, as a snapshot with its updates folded in, and an offset of the oldest form under its
    modern key. ``pending`` holds, by producer id, what open transactions would add; ``unknown`` the latest record of
    each key whose type this release does not have.
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

    def groups(self) -> dict[str, GroupState]:
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
    """Return the state that records of a topic with keys add up to, given in the order of their log.

    Transactions need the producer id of each record in one, and a ``TransactionEnd`` where the log has a marker.
    Raises ``UnexpectedNullError`` for a record without a key, as those of framed topics are.
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
    """Builds the state; positions settle whether a committed record is newer than what its transaction overtook."""

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
        reason = "null, and records without keys add up to no state by key"
        raise UnexpectedNullError(message=topic, version=None, path="key", offset=0, reason=reason)
    return key


def _redirected(record: TopicRecord, entries: _Entries) -> tuple[Message, TopicRecord]:
    """The key that a record acts under, and the record as it stands there."""
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
    """Where records act whose key is not the one that their effect is kept under; ``version`` fits the value made."""

    key: Callable[[Any], Message]
    value: Callable[[Any, Any], Message]
    version: int


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
    """The group that a key of ``__consumer_offsets`` is about: its first field, whatever its name."""
    group: str = getattr(key, fields(type(key))[0].attribute)
    return group


def _group_state(group_id: str, records: Iterable[TopicRecord]) -> GroupState:
    offsets: dict[tuple[str, int], OffsetCommitValue] = {}
    others: list[TopicRecord] = []
    for record in records:
        if isinstance(record.key, OffsetCommitKey) and isinstance(record.value, OffsetCommitValue):
            offsets[record.key.topic, record.key.partition] = record.value
        else:
            others.append(record)
    kinds = [_GROUP_KINDS[cls] for record in others if record.key and (cls := type(record.key)) in _GROUP_KINDS]
    return GroupState(group_id=group_id, kind=kinds[-1] if kinds else None, records=tuple(others), offsets=offsets)
