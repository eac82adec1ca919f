"""Regular expressions that members of consumer groups subscribe to (KIP-848), in RE2's syntax.

Matching topics are resolved in a background task, because a cluster may have many topics. The result is a record for
each regular expression. All regular expressions of a group are resolved together: when a member adds a new one, when
topics are created, and periodically.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Final, TypeAlias

from attrs import define, evolve, frozen

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_hash_order import (
    HashTable,
    copied,
    hash_map_order,
    sized_capacity,
    string_key,
)
from kafka_msgs.groups.consumer.group import ConsumerGroup
from kafka_msgs.groups.consumer.member import ConsumerGroupMember
from kafka_msgs.groups.consumer.records import emit_epoch, emit_regex
from kafka_msgs.groups.group_protocol import TopicChange
from kafka_msgs.groups.metrics import CONSUMER_REBALANCES
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.re2 import InvalidRegexError, compile_regex
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order, java_hash_code
from kafka_msgs.groups.topics_image import EMPTY_IMAGE, TopicsImage, group_hash
from kafka_msgs.messages.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue

__all__ = ["RegexChange", "RegexSnapshot", "resolve", "track_topics_image", "update_regexes"]

_MIN_INTERVAL_MS: Final = 10_000

Resolved: TypeAlias = Mapping[str, ConsumerGroupRegularExpressionValue]


class RegexChange(Enum):
    """The change of a member's regular expression."""

    NONE = "none"
    UPDATED = "updated"
    UPDATED_AND_RESOLVED = "updated and resolved"


@define
class TopicsVersion:
    """Soft state: the latest image, and the version of the latest image that had new topics."""

    image: TopicsImage = EMPTY_IMAGE
    version: int = -1


def track_topics_image(op: OperationContext, change: TopicChange) -> None:
    """Store an image, and its version if it has new topics or is the first image."""
    latest = op.soft.get(TopicsVersion)
    latest.image = change.after
    if change.created or latest.version < 0:
        latest.version = change.after.version


def check_regex(regex: str) -> None:
    """Raise ``GroupError`` with INVALID_REGULAR_EXPRESSION if RE2 does not accept a regular expression."""
    try:
        compile_regex(regex)
    except InvalidRegexError as error:
        message = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}."
        raise GroupError(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from None


@frozen
class RegexSnapshot:
    """The regular expressions of a group before a request, which Kafka's decisions depend on.

    ``members`` counts the members of each, ``resolved`` has the regular expressions with resolved topics, and ``last``
    is the latest result.
    """

    members: Mapping[str, int]
    resolved: Collection[str]
    last: ConsumerGroupRegularExpressionValue | None

    @classmethod
    def of(cls, group: ConsumerGroup) -> RegexSnapshot:
        """Return the snapshot of a group."""
        if not group.regexes and not group.resolved:
            return _NO_REGEXES
        order = iter_kafka_order(group.resolved)
        members = {regex: group.regexes[regex] for regex in iter_kafka_order(group.regexes)}
        return cls(members, frozenset(order), group.resolved[order[0]] if order else None)


_NO_REGEXES: Final = RegexSnapshot({}, (), None)


def update_regexes(
    op: OperationContext,
    group: ConsumerGroup,
    before: RegexSnapshot,
    old: ConsumerGroupMember,
    new: ConsumerGroupMember,
) -> RegexChange:
    """Update a member's regular expression, and resolve the group's regular expressions if they are due."""
    previous, present = old.metadata.subscribed_topic_regex, new.metadata.subscribed_topic_regex
    change = RegexChange.NONE
    if previous != present:
        change = RegexChange.UPDATED
        if previous and before.members.get(previous) == 1:
            emit_regex(op, group.group_id, previous, None)
        if present and present not in before.members:
            check_regex(present)
        elif present in before.resolved or (previous and not present):
            change = RegexChange.UPDATED_AND_RESOLVED
    if group.regexes:
        _maybe_resolve(op, group, before, previous, present)
    return change


def _maybe_resolve(
    op: OperationContext, group: ConsumerGroup, before: RegexSnapshot, old: str | None, new: str | None
) -> None:
    key = f"{group.group_id}-regex"
    last = before.last
    if op.has_background_task(key) or (last is not None and op.now <= last.timestamp + _MIN_INTERVAL_MS):
        return
    if last is not None and not (
        (new and new not in before.members)
        or len(group.regexes) != len(before.resolved)
        or last.version < op.soft.get(TopicsVersion).version
        or op.now > last.timestamp + op.config.group_consumer_regex_refresh_interval_ms
    ):
        return
    regexes = _resolution_order(before, old, new)
    topics, group_id = op.soft.get(TopicsVersion), group.group_id
    op.run_in_background(
        key,
        lambda: resolve(topics.image, regexes),
        lambda op, resolved, error: None if resolved is None else _resolved(op, group_id, resolved),
    )


def _resolution_order(before: RegexSnapshot, old: str | None, new: str | None) -> Sequence[str]:
    """Return the regular expressions of a group in the order in which Kafka writes their topics."""
    members = before.members
    table = HashTable(java_hash_code, members, capacity=copied(members))
    if old and members.get(old) == 1:
        table.remove(old)
    if new:
        table.compute(new)
    found = hash_map_order(table.walk(), capacity=sized_capacity(len(table)))
    return hash_map_order(found, capacity=sized_capacity(len(found)))


def resolve(image: TopicsImage, regexes: Sequence[str]) -> Resolved:
    """Return the topics of an image that each regular expression matches, without a time.

    An invalid regular expression matches no topics.
    """
    found = {}
    for regex in regexes:
        try:
            matches = compile_regex(regex)
        except InvalidRegexError:
            topics: Sequence[str] = ()
        else:
            topics = sorted((name for name in image.topics if matches(name)), key=string_key)
        found[regex] = ConsumerGroupRegularExpressionValue(topics=tuple(topics), version=image.version)
    return found


def _resolved(op: OperationContext, group_id: str, resolved: Resolved) -> None:
    """Record the topics of regular expressions that members still subscribe to."""
    group = op.state.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        return
    bump = False
    for regex, value in resolved.items():
        if regex in group.regexes:
            old = group.resolved.get(regex)
            is_first = old is None and not op.quirks.consumer_regex_matches_nothing
            bump = bump or is_first or set(value.topics) != set(old.topics if old is not None else ())
            emit_regex(op, group_id, regex, evolve(value, timestamp=op.now))
    metadata_hash = group_hash(op.image, group.topics)
    if bump or metadata_hash != group.metadata_hash:
        emit_epoch(op, group_id, group.epoch + 1, metadata_hash)
        op.count_metric(CONSUMER_REBALANCES)
        group.refreshed(op.now)
