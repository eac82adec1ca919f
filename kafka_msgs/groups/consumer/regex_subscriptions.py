"""Regular expressions that members of consumer groups subscribe to (KIP-848), in RE2's syntax.

Matching topics are resolved in a background task, because a cluster may have many topics. The result is a record for
each regular expression. All regular expressions of a group are resolved together: when a member adds a new one, when
topics are created, and periodically.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, TypeAlias

from attrs import define, evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_hash_order import (
    HashTable,
    copied,
    hash_map_order,
    sized_capacity,
    sorted_strings,
)
from kafka_msgs.groups.consumer.group import ConsumerGroup
from kafka_msgs.groups.consumer.member import RECORDS
from kafka_msgs.groups.consumer.membership import MemberUpdate
from kafka_msgs.groups.group_protocol import TopicChange
from kafka_msgs.groups.metrics import CONSUMER_REBALANCES
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.re2 import InvalidRegexError, compile_regex
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order, java_hash_code
from kafka_msgs.groups.topics_image import EMPTY_IMAGE, TopicsImage, group_hash
from kafka_msgs.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from kafka_msgs.messages.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue

__all__ = ["RegexChange", "resolve", "track_topics_image", "update_regexes"]

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


def update_regexes(update: MemberUpdate) -> RegexChange:
    """Update a member's regular expression, and resolve the group's regular expressions if they are due."""
    group = update.group
    old, new = update.old.metadata.subscribed_topic_regex, update.new.metadata.subscribed_topic_regex
    change = RegexChange.NONE
    if old != new:
        change = RegexChange.UPDATED
        if update.dropped_regex is not None:
            key = ConsumerGroupRegularExpressionKey(group_id=group.group_id, regular_expression=update.dropped_regex)
            update.written.append((key, None))
        if new and new not in group.regexes:
            check_regex(new)
        elif new in group.resolved or (old and not new):
            change = RegexChange.UPDATED_AND_RESOLVED
    if group.regexes or new:
        _maybe_resolve(update)
    return change


def _maybe_resolve(update: MemberUpdate) -> None:
    op, group, new = update.op, update.group, update.new.regex
    key, regexes = f"{group.group_id}-regex", update.regexes()
    resolved = iter_kafka_order(group.resolved)
    last = group.resolved[resolved[0]] if resolved else None
    topics, group_id = op.soft.get(TopicsVersion), group.group_id
    if (
        not regexes
        or op.has_background_task(key)
        or (last is not None and op.now <= last.timestamp + _MIN_INTERVAL_MS)
        or not (
            last is None
            or (new and new not in group.regexes)
            or len(regexes) != len(resolved)
            or last.version < topics.version
            or op.now > last.timestamp + op.config.group_consumer_regex_refresh_interval_ms
        )
    ):
        return
    order = _resolution_order(update)
    op.run_in_background(
        key,
        lambda: resolve(topics.image, order),
        lambda op, resolved, error: None if resolved is None else _resolved(op, group_id, resolved),
    )


def _resolution_order(update: MemberUpdate) -> Sequence[str]:
    """Return the regular expressions of a group in the order in which Kafka writes their topics."""
    known, new = update.group.regexes, update.new.regex
    table = HashTable(java_hash_code, iter_kafka_order(known), capacity=copied(known))
    if known.get(update.old.regex) == 1:
        table.remove(update.old.regex)
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
            topics = sorted_strings(name for name in image.topics if matches(name))
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
            key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
            op.emit(key, evolve(value, timestamp=op.now))
    metadata_hash = group_hash(op.image, group.topics)
    if bump or metadata_hash != group.metadata_hash:
        op.emit(*RECORDS.epoch(group_id, group.epoch + 1, metadata_hash))
        op.count_metric(CONSUMER_REBALANCES)
        group.refreshed(op.now, group.epoch)
