"""The start and end of reads from live topics: the subscribed partitions, and the current offsets of positions.

``LiveTopics`` requests partitions and offsets from the brokers, on the driver. ``live`` reads the records between two
offsets. A position in Spark's checkpoint is ``{"topic": {"partition": offset}}``, as in Spark's own connector.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import starmap
from typing import Any, TypeAlias

from attrs import frozen

from kafka_msgs.admin import Admin
from kafka_msgs.client import Client, ClientConfig, TopicPartition
from kafka_msgs.client.consumer.offsets import list_offsets
from kafka_msgs.errors import OptionError
from kafka_msgs.messages.metadata_request import MetadataRequest
from kafka_msgs.spark.sources.offset_options import EARLIEST, LATEST, StartingOffsets, offsets_in, parse_object
from kafka_msgs.spark.sources.options import Options

__all__ = ["LiveSubscription", "LiveTopics", "Offsets", "from_json"]

Offsets: TypeAlias = dict[TopicPartition, int]


@frozen
class LiveSubscription:
    """The subscription: the partitions of given topics, of topics with matching names, or given partitions."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    @classmethod
    def of(cls, options: Options) -> LiveSubscription:
        """Return the subscription from ``subscribe``, ``subscribePattern`` or ``assign``; exactly one is required."""
        topics, pattern, assigned = options.names("subscribe"), options.text("subscribePattern"), options.text("assign")
        if sum(each is not None for each in (topics, pattern, assigned)) != 1:
            options.refuse("subscribe", "exactly one of subscribe, subscribePattern and assign is needed")
        if assigned is not None:
            return cls(partitions=_assigned(options, assigned))
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as wrong:
                options.refuse("subscribePattern", f"it is not a regular expression: {wrong}")
        return cls(topics or (), pattern)


def _assigned(options: Options, text: str) -> tuple[TopicPartition, ...]:
    try:
        found = [(topic, number) for topic, numbers in parse_object(text).items() for number in numbers]
    except (ValueError, AttributeError, TypeError, RecursionError):
        found = []
    if not found or any(type(number) is not int or number < 0 for _, number in found):
        options.refuse("assign", 'partitions such as {"topic": [0, 1]} are needed')
    return tuple(starmap(TopicPartition, found))


class LiveTopics:
    """Requests metadata and offsets from the brokers, on the driver. It connects on first use."""

    def __init__(self, properties: Mapping[str, str], subscription: LiveSubscription, *, committed: bool) -> None:
        self._client = Client(ClientConfig.from_properties(properties))
        self._subscription = subscription
        self._committed = committed

    def partitions(self) -> list[TopicPartition]:
        """Return the current partitions of the subscription.

        Raises ``OptionError`` for a topic or an assigned partition that does not exist.
        """
        wanted = self._subscription
        found = {topic.name: topic for topic in self._client.call(MetadataRequest(topics=None)).topics if topic.name}
        # As in a consumer, a pattern does not match internal topics.
        known = [name for name, topic in found.items() if not topic.is_internal] if wanted.pattern is not None else []
        names = [name for name in known if re.fullmatch(wanted.pattern or "", name)]
        counts = {name: len(topic.partitions) for name, topic in found.items()}
        for name in wanted.topics:
            if name not in found:
                raise OptionError(source="kafka-live", option="subscribe", value=name, reason="there is no such topic")
        for topic, number in wanted.partitions:
            if number >= counts.get(topic, 0):
                reason = "there is no such partition" if topic in found else "there is no such topic"
                raise OptionError(source="kafka-live", option="assign", value=f"{topic}-{number}", reason=reason)
        if wanted.partitions:
            return sorted(wanted.partitions)
        return [
            TopicPartition(name, number) for name in sorted({*wanted.topics, *names}) for number in range(counts[name])
        ]

    def _offsets(self, times: Mapping[TopicPartition, int]) -> Offsets:
        """Return the offsets at given times, ``EARLIEST`` or ``LATEST``, and -1 if no record is that late."""
        core = self._client.core
        steps = list_offsets(core, times, committed=self._committed, deadline=core.deadline(None))
        return {place: each.offset for place, each in self._client.run(steps).items()} if times else {}

    def ends(self) -> Offsets:
        """Return the current end of all partitions. With ``read_committed`` it is their last stable offset."""
        return self._offsets(dict.fromkeys(self.partitions(), LATEST))

    def resolved(self, position: StartingOffsets, *, skips_late: bool = True) -> Offsets:
        """Return the current offsets of a start or an end for all partitions.

        A partition without a record at its time starts or ends at its end. Raises ``OptionError`` for such a partition
        unless ``skips_late`` is true, and for a partition outside the subscription.
        """
        places = self.partitions()
        for topic, number in sorted({*position.offsets, *position.times} - {*places}):
            raise position.error("kafka-live", f"there is no partition {topic}-{number} in the subscription")
        given = {place: position.at(place) for place in places}
        fixed = {place: offset for place, offset in given.items() if place in position.offsets and offset >= 0}
        found = self._offsets({place: time for place, time in given.items() if place not in fixed}) | fixed
        late = [place for place, offset in found.items() if offset < 0]
        if late and not skips_late:
            first = f"{min(late).topic}-{min(late).partition}"
            raise position.error("kafka-live", f"{first} has no record at or after this time")
        return found | self._offsets(dict.fromkeys(late, LATEST))

    def starts(self, start: Offsets, places: Iterable[TopicPartition]) -> Offsets:
        """Return the first offsets of the partitions that are not in ``start``."""
        return self._offsets(dict.fromkeys([place for place in places if place not in start], EARLIEST))

    def commit(self, group: str, offsets: Offsets) -> None:
        """Commit the offsets of existing partitions to a group without members. Raises ``BrokerError``."""
        there = {place: offsets[place] for place in self.partitions() if place in offsets}
        Admin(self._client).alter_group_offsets(group, there).all()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def from_json(value: Any) -> Offsets:
    """Return the offsets in a checkpoint. Raises ``ValueError``, ``AttributeError`` or ``TypeError``."""
    return {TopicPartition(*place): offset for place, offset in offsets_in(value).items()}
