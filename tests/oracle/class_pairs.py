"""The pairs of this library's classes and Kafka's: every message of the release, and Kafka's own test messages.

Kafka's test messages combine unusual features of the schema language that no shipped message combines; their
definitions come with the oracle and are compiled here, at run time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from attrs import field, frozen

from kafka_msgs import compile_schema
from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.codec import DEFAULT_OPTIONS
from kafka_msgs.codec.codec import Codec
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.codec.plan import Plan, compile_plan
from kafka_msgs.message import Message
from tests.oracle.driver import Oracle

__all__ = ["ALL_NAMES", "TEST_MESSAGES", "Subject", "subjects", "subjects_of"]

TEST_MESSAGES: Final = (
    "AllTypeMessage",
    "NullableStructMessage",
    "SimpleArraysMessage",
    "SimpleExampleMessage",
    "SimpleRecordsMessage",
)
"""Kafka's own test messages."""

ALL_NAMES: Final = tuple(sorted([cls.INFO.name for cls in iter_message_classes()] + list(TEST_MESSAGES)))
"""Every message that the oracle verifies."""


@frozen
class Subject:
    """One message at one version: this library's class, compiled for every executor, and facts about Kafka's class."""

    cls: type[Message]
    version: int
    artifact: str
    """The artifact that contains Kafka's class."""
    counts_tags: bool
    """Whether Kafka's class checks the number of tags, as classes since 4.4 do."""
    has_json: bool
    reads_bytes_in_json: bool
    """Whether Kafka's JSON converter reads bytes fields, as converters since 3.0 do."""
    plan: Plan = field(eq=False)
    codecs: dict[str, Codec[Any]] = field(eq=False)
    """A codec for each executor, by name."""

    @property
    def name(self) -> str:
        """The message's name."""
        return self.cls.INFO.name

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


def subjects(oracle: Oracle) -> Iterator[Subject]:
    """Yield every message at every version, by name and version."""
    for name in ALL_NAMES:
        yield from subjects_of(name, oracle)


def subjects_of(name: str, oracle: Oracle) -> list[Subject]:
    """Return one message at each of its versions."""
    return _subjects_of(name, oracle)


@cache
def _subjects_of(name: str, oracle: Oracle) -> list[Subject]:
    cls = _class(name, oracle)
    info = oracle.messages()[name]
    found = []
    for version in cls.INFO.versions:
        plan = compile_plan(cls, version)
        codecs: dict[str, Codec[Any]] = {
            executor: Codec(plan, DEFAULT_OPTIONS, EXECUTORS[executor]) for executor in EXECUTORS
        }
        found.append(
            Subject(
                cls, version, info.artifact, info.counts_tags, info.has_json, info.reads_bytes_in_json, plan, codecs
            )
        )
    return found


def _class(name: str, oracle: Oracle) -> type[Message]:
    if name in TEST_MESSAGES:
        return compile_schema(json.dumps(oracle.messages()[name].definition))
    if oracle.classes is not None:
        return oracle.classes[name]
    from kafka_msgs import messages

    cls: type[Message] = getattr(messages, name)
    return cls
