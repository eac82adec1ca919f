"""The members of a consumer group: finding and creating groups, replacing and fencing members.

A member of the consumer protocol that joins a classic group of consumers turns it into a consumer group. When the last
member of the consumer protocol is gone, the group becomes a classic group again. ``migration`` implements both.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

from attrs import define, field

from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.consumer.group import ConsumerGroup, SubscriberCounts
from kafka_msgs.groups.consumer.member import RECORDS, ConsumerGroupMember
from kafka_msgs.groups.consumer.migration import downgrade, may_downgrade, upgrade
from kafka_msgs.groups.modern_group import find_group
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.runtime.shard_operation import Record
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey

__all__ = ["MemberUpdate", "fence_members", "get_or_create_group", "new_member_id"]


@define(kw_only=True)
class MemberUpdate:
    """A request of a member: the state before it, the updated member, and the records so far.

    ``replaced`` is the id of another static member that the member replaces. ``freed`` is the former state of a member
    that takes over the instance id of another member in this way, if it does not count any more.
    """

    op: OperationContext
    group: ConsumerGroup
    old: ConsumerGroupMember
    new: ConsumerGroupMember
    replaced: str | None = None
    freed: ConsumerGroupMember | None = None
    written: list[Record] = field(factory=list)

    @property
    def gone(self) -> list[ConsumerGroupMember]:
        """The members that do not count any more, or count as ``new``."""
        before = self.group.members.get(self.new.member_id if self.replaced is None else self.replaced)
        return [each for each in (before, self.freed) if each is not None]

    @property
    def dropped_regex(self) -> str | None:
        """The regular expression that only this member subscribed to, if it does not subscribe to it any more."""
        before = self.old.regex
        return before if before != self.new.regex and self.group.regexes.get(before) == 1 else None

    def regexes(self) -> Mapping[str, int]:
        """Return the number of members of each regular expression after the request."""
        counts = Counter(self.group.regexes)
        counts.subtract(each.regex for each in self.gone)
        counts[self.new.regex] += 1
        return {regex: count for regex, count in counts.items() if regex and count > 0}

    def topics(self) -> Mapping[str, SubscriberCounts]:
        """Return the number of subscribers of each topic after the request."""
        names = [(name, -1, 0) for each in self.gone for name in set(each.metadata.subscribed_topic_names)]
        names += [(name, 1, 0) for name in set(self.new.metadata.subscribed_topic_names)]
        if self.dropped_regex is not None and self.dropped_regex in self.group.resolved:
            names += [(name, 0, -1) for name in set(self.group.resolved[self.dropped_regex].topics)]
        counts = dict(self.group.topics)
        for name, by_name, by_regex in names:
            before = counts.get(name, SubscriberCounts())
            counts[name] = SubscriberCounts(before.by_name + by_name, before.by_regex + by_regex)
        return {name: count for name, count in counts.items() if any(count)}


def get_or_create_group(op: OperationContext, group_id: str) -> tuple[ConsumerGroup, list[Record]]:
    """Return the group that a member joins, and the records of a group that is converted.

    A new group is not in the state before its first record. An empty classic group is deleted; a classic group with
    members becomes a consumer group. Raises ``GroupError``.
    """
    group = op.state.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        if not group.is_empty:
            return upgrade(op, group, fence_members)
        group.emit_tombstones(op)
        group.cancel_timers(op)
        group = None
    return ConsumerGroup(group_id) if group is None else find_group(op, ConsumerGroup, group_id), []


def new_member_id(op: OperationContext) -> str:
    """Return an id for a member that did not generate one, in the text form of Kafka's ids."""
    return urlsafe_b64encode(UUID(op.services.new_id()).bytes).rstrip(b"=").decode()


def fence_members(op: OperationContext, group: ConsumerGroup, members: Sequence[ConsumerGroupMember]) -> None:
    """Remove members. The group is downgraded if only members of the classic protocol remain."""
    if not members:
        return
    order, group_id = iter_kafka_order(group.members), group.group_id
    if may_downgrade(op, group, members):
        staying = [group.members[member_id] for member_id in order if group.members[member_id] not in members]
        downgrade(op, group, order, staying, rebalance=True)
        return
    regexes = Counter(member.regex for member in members if member.regex)
    unused = [
        (ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)
        for regex, count in regexes.items()
        if group.regexes[regex] == count
    ]
    RECORDS.remove_members(op, group, members, unused)
