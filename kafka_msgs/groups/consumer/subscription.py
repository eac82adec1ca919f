"""Changes of a member's subscription by a request: records of the member, and a new group epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from attrs import frozen

from kafka_msgs.groups.assignors.java_hash_order import HashTable, copied
from kafka_msgs.groups.consumer.group import is_heterogeneous
from kafka_msgs.groups.consumer.member import RECORDS
from kafka_msgs.groups.consumer.membership import MemberUpdate
from kafka_msgs.groups.consumer.regex_subscriptions import RegexChange, update_regexes
from kafka_msgs.groups.metrics import CONSUMER_REBALANCES
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order, java_hash_code
from kafka_msgs.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey

__all__ = ["SubscriptionChange", "preferred_assignor", "update_subscription"]


@frozen
class SubscriptionChange:
    """The changes of a request.

    ``subscription`` is set if the member changes its subscription. ``epoch`` is the epoch of the group, which a new
    subscription increases: a member with a new regular expression waits until its topics are resolved.
    ``heterogeneous`` and ``assignor`` are for the next target assignment.
    """

    subscription: bool
    epoch: int
    heterogeneous: bool
    assignor: str


def preferred_assignor(
    op: OperationContext, counts: Mapping[str, int], table_order: Callable[[], Iterable[str]]
) -> str:
    """Return the assignor that most members request, or the coordinator's first assignor if they request none.

    If several assignors have the most requests, the first of them in the coordinator's list wins. With the quirk
    ``consumer_assignors_draw``, the first in ``table_order`` wins, the order of one of Kafka's tables.
    """
    known = op.config.group_consumer_assignors
    names = table_order() if op.quirks.consumer_assignors_draw else known
    return max((name for name in names if counts.get(name)), key=lambda name: counts[name], default=known[0])


def update_subscription(update: MemberUpdate) -> SubscriptionChange:
    """Record a member's reported changes, and increase the group epoch if its subscriptions or topics changed."""
    op, group, old, new = update.op, update.group, update.old, update.new
    if new.metadata != old.metadata:
        update.written.append(RECORDS.member(group.group_id, new))
    names = new.metadata.subscribed_topic_names != old.metadata.subscribed_topic_names
    regex = update_regexes(update)
    before = preferred_assignor(op, group.assignors, partial(iter_kafka_order, group.assignors))
    assignor = _preferred_after(update)
    if new.classic is None:
        bump = names or regex is RegexChange.UPDATED_AND_RESOLVED or assignor != before
    else:
        bump = names or regex is not RegexChange.NONE
    epoch, heterogeneous = group.epoch, group.heterogeneous
    if bump or group.needs_refresh(op.now):
        topics = update.topics()
        members = len(group.members) - len(update.gone) + 1
        heterogeneous = is_heterogeneous(topics, update.regexes(), members)
        epoch = RECORDS.next_epoch(op, group, topics, CONSUMER_REBALANCES, update.written, bump=bump)
        if group.has_partition_metadata:
            update.written.append((ConsumerGroupPartitionMetadataKey(group_id=group.group_id), None))
    return SubscriptionChange(names or regex is not RegexChange.NONE, epoch, heterogeneous, assignor)


def _preferred_after(update: MemberUpdate) -> str:
    """Return the group's assignor after the request."""
    known = update.group.assignors
    counts = Counter(known)
    left, wanted = update.old.metadata.server_assignor, update.new.metadata.server_assignor
    if left is not None and left in counts:
        counts[left] -= 1
    if wanted is not None:
        counts[wanted] += 1

    def table_order() -> list[str]:
        table = HashTable(java_hash_code, iter_kafka_order(known), capacity=copied(known))
        if left is not None and known.get(left) == 1:
            table.remove(left)
        if wanted is not None:
            table.compute(wanted)
        return table.walk()

    return preferred_assignor(update.op, counts, table_order)
