"""Helpers for tests of internal topics: every record type of every topic, and random records."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from kafka_msgs import Message, message_class
from kafka_msgs.internal_topics.records import TOPICS, KeyValue, TopicRecord, encode_record
from kafka_msgs.messages import API_KEYS
from kafka_msgs.testing.random_values import random_message

TYPES: list[tuple[str, int]] = [
    (topic.name, number)
    for topic in TOPICS.values()
    for origin, kind, number in API_KEYS
    if origin == topic.origin and kind == ("metadata" if topic.framed else "coordinator-key")
]
"""Topic and type of each record that the release writes to its internal topics."""


def value_class(topic: str, number: int) -> type[Message]:
    """Return the value class of a record type."""
    place = TOPICS[topic]
    return message_class(number, "metadata" if place.framed else "coordinator-value", place.origin)


def versions(cls: type[Message]) -> range:
    """Return all versions of a message."""
    return range(cls.INFO.versions.lowest, cls.INFO.versions.highest + 1)


def random_records(topic: str, number: int, seed: int, *, each: int) -> Iterator[TopicRecord]:
    """Return records of one type, ``each`` for every version of its value."""
    rng = Random(f"{seed} {topic} {number}")
    place, cls = TOPICS[topic], value_class(topic, number)
    for version in versions(cls):
        for _ in range(each):
            key = (
                None if place.framed else random_message(message_class(number, "coordinator-key", place.origin), 0, rng)
            )
            yield TopicRecord(topic=topic, key=key, value=random_message(cls, version, rng), version=version)


def random_bytes(seed: int, *, each: int = 1) -> Iterator[tuple[TopicRecord, KeyValue]]:
    """Return records of every type, with their bytes."""
    for topic, number in TYPES:
        for record in random_records(topic, number, seed, each=each):
            yield record, encode_record(record)


def mutated(data: bytes, rng: Random) -> bytes:
    """Return the bytes with one byte changed, the end cut off, or bytes inserted."""
    at = rng.randrange(len(data) + 1)
    change = rng.randrange(3)
    if change == 0:
        return data[:at]
    return data[:at] + bytes([rng.choice((0, 1, 0x7F, 0x80, 0xFF))]) + data[at + (change == 1) :]
