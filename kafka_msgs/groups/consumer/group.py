"""A consumer group (KIP-848) with its members and derived state: ``ConsumerGroup`` of Kafka.

Only the appliers change it. Counts by topic, assignor and regular expression are updated with the members, so that no
request has to iterate over all members.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn
from uuid import UUID

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.spec import Partitions
from kafka_msgs.groups.consumer.member import NO_PARTITIONS, RECORDS, ConsumerGroupMember
from kafka_msgs.groups.group import CommitCheck, Committer
from kafka_msgs.groups.group_operation import GroupOperation
from kafka_msgs.groups.modern_group import ModernGroup, check_assignment_epoch, committing_member
from kafka_msgs.groups.operation import ShardState, subscribe
from kafka_msgs.groups.runtime.shard_operation import Record
from kafka_msgs.groups.runtime.timeline_map import TimelineHashMap, iter_kafka_order
from kafka_msgs.groups.runtime.undo_log import Changes
from kafka_msgs.internal_topics.replay import GroupKind
from kafka_msgs.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from kafka_msgs.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from kafka_msgs.messages.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue

__all__ = ["ConsumerGroup", "SubscriberCounts", "is_heterogeneous"]


class SubscriberCounts(NamedTuple):
    """The number of members that name a topic, and the number of regular expressions that match it."""

    by_name: int = 0
    by_regex: int = 0


def is_heterogeneous(topics: Mapping[str, SubscriberCounts], regexes: Mapping[str, int], members: int) -> bool:
    """Return whether members subscribe to different topics, derived from the same counts as in Kafka.

    ``topics`` counts the subscribers of each topic, and ``regexes`` the members of each regular expression.
    """
    if not regexes:
        return any(each.by_name != members for each in topics.values())
    return members not in regexes.values() or any(each != (0, 1) for each in topics.values())


class ConsumerGroup(ModernGroup[ConsumerGroupMember, Partitions]):
    """A consumer group.

    ``topics`` counts the subscribers of each topic, ``assignors`` the members that request each assignor,
    ``regexes`` the members of each regular expression. ``resolved`` has the topics of regular expressions.
    ``classic_members`` is the number of classic protocol members, ``classic_protocols`` counts the protocols that they
    support. ``owner_epochs`` has the epoch of each partition's owner. ``heterogeneous`` is set if members subscribe to
    different topics, as of the latest change of a member. ``has_partition_metadata`` is set while the group has a
    record that an earlier release wrote.
    """

    __slots__ = (
        "assignors",
        "classic_members",
        "classic_protocols",
        "has_partition_metadata",
        "heterogeneous",
        "owner_epochs",
        "regexes",
        "resolved",
        "topics",
    )

    kind: ClassVar[GroupKind] = "consumer"
    protocol_type: ClassVar[str] = "consumer"
    member_class: ClassVar[type[Any]] = ConsumerGroupMember
    no_assignment: ClassVar[Mapping[str, Any]] = {"assigned": NO_PARTITIONS, "revoking": NO_PARTITIONS}

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.topics: dict[str, SubscriberCounts] = {}
        self.assignors: TimelineHashMap[str, int] = TimelineHashMap()
        self.regexes: TimelineHashMap[str, int] = TimelineHashMap()
        self.resolved: TimelineHashMap[str, ConsumerGroupRegularExpressionValue] = TimelineHashMap()
        self.classic_members = 0
        self.classic_protocols: dict[str, int] = {}
        self.owner_epochs: dict[UUID, dict[int, int]] = {}
        self.heterogeneous = False
        self.has_partition_metadata = False

    def subscribes_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic, by name or by regular expression."""
        return topic in self.topics

    def owner_epoch(self, topic: UUID, partition: int) -> int | None:
        """Return the member epoch of the owner of a partition; None if no member owns it."""
        return self.owner_epochs.get(topic, {}).get(partition)

    def subscribed_topics_of(self, member: ConsumerGroupMember) -> frozenset[str]:
        """Return the names of the topics that a member subscribes to, by name or by regular expression."""
        names = frozenset(member.metadata.subscribed_topic_names)
        resolved = self.resolved.get(member.regex) if member.regex else None
        return names if resolved is None else names.union(resolved.topics)

    def resolve(
        self, state: ShardState, changes: Changes, regex: str, value: ConsumerGroupRegularExpressionValue | None
    ) -> None:
        """Set or remove the topics of a regular expression. For appliers."""
        old = self.resolved.get(regex)
        for topic in dict.fromkeys(old.topics) if old is not None else ():
            self._subscribers(state, changes, topic, 0, -1)
        if value is None:
            changes.delete(self.resolved, regex)
            return
        changes.set(self.resolved, regex, value)
        for topic in dict.fromkeys(value.topics):
            self._subscribers(state, changes, topic, 0, 1)

    def recount(
        self, state: ShardState, changes: Changes, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None
    ) -> None:
        """Update the counts and the owners of partitions."""
        for member, by in ((old, -1), (new, 1)):
            if member is None:
                continue
            metadata = member.metadata
            for topic in dict.fromkeys(metadata.subscribed_topic_names):
                self._subscribers(state, changes, topic, by, 0)
            if metadata.server_assignor is not None:
                _count(changes, self.assignors, metadata.server_assignor, by)
            if member.regex:
                _count(changes, self.regexes, member.regex, by)
            if member.classic is not None:
                changes.assign(self, "classic_members", self.classic_members + by)
                for protocol in member.classic.supported_protocols:
                    _count(changes, self.classic_protocols, protocol.name, by)
            if by < 0:
                self._disown(changes, member)
        if new is not None:
            self._own(changes, new)
        changes.assign(self, "heterogeneous", is_heterogeneous(self.topics, self.regexes, len(self.members)))

    def _subscribers(self, state: ShardState, changes: Changes, topic: str, by_name: int, by_regex: int) -> None:
        old = self.topics.get(topic, SubscriberCounts())
        new = SubscriberCounts(old.by_name + by_name, old.by_regex + by_regex)
        if not any(old):
            subscribe(state, changes, self.group_id, (), (topic,))
        if any(new):
            changes.set(self.topics, topic, new)
        else:
            changes.delete(self.topics, topic)
            subscribe(state, changes, self.group_id, (topic,), ())

    def _own(self, changes: Changes, member: ConsumerGroupMember) -> None:
        for topic, partition in _partitions(member):
            owners = self.owner_epochs.get(topic)
            if owners is None:
                changes.set(self.owner_epochs, topic, owners := {})
            present = owners.get(partition)
            if present is not None and present >= member.epoch:
                self._refuse_owner(topic, partition, member.epoch, present)
            changes.set(owners, partition, member.epoch)

    def _disown(self, changes: Changes, member: ConsumerGroupMember) -> None:
        for topic, partition in _partitions(member):
            owners = self.owner_epochs.get(topic)
            if owners is not None and owners.get(partition) == member.epoch:
                changes.delete(owners, partition)
                if not owners:
                    changes.delete(self.owner_epochs, topic)

    def _refuse_owner(self, topic: UUID, partition: int, epoch: int, present: int) -> NoReturn:
        message = f"Cannot set the epoch of {topic}-{partition} to {epoch}: its owner is at epoch {present}."
        raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR, message)

    # The interface of each group to the coordinator

    def validate_offset_commit(self, op: GroupOperation, committer: Committer) -> CommitCheck | None:
        """Check that a member may commit offsets: at its epoch, or at the epoch at which it got the partition."""
        member = committing_member(self, committer)
        return None if member is None else _partition_check(member, committer.epoch)

    def emit_tombstones(self, op: GroupOperation) -> None:
        """Emit the tombstones of all records of the group."""
        op.emit_all(self.tombstones(iter_kafka_order(self.members)))

    def tombstones(self, members: Sequence[str]) -> Iterator[Record]:
        """Return the tombstones of all records of the group, with these members."""
        group_id = self.group_id
        regexes = iter_kafka_order(self.resolved)
        patterns = (ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=each) for each in regexes)
        return RECORDS.tombstones(group_id, members, (*patterns, ConsumerGroupPartitionMetadataKey(group_id=group_id)))


def _partition_check(member: ConsumerGroupMember, epoch: int) -> CommitCheck:
    """Return the check of a commit at an old epoch: it must not be older than the assignment of the partition."""

    def check(topic: str, topic_id: UUID, partition: int) -> None:
        assigned = member.assigned.get(topic_id, {}).get(partition)
        if assigned is None:
            assigned = member.revoking.get(topic_id, {}).get(partition)
        check_assignment_epoch(member, f"partition {topic}-{partition}", assigned, epoch)

    return check


def _partitions(member: ConsumerGroupMember) -> Iterator[tuple[UUID, int]]:
    for owned in (member.assigned, member.revoking):
        for topic, epochs in owned.items():
            for partition in epochs:
                yield topic, partition


def _count(changes: Changes, table: dict[str, int], key: str, by: int) -> None:
    count = table.get(key, 0) + by
    if count > 0:
        changes.set(table, key, count)
    else:
        changes.delete(table, key)
