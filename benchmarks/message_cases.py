"""The measured messages: a MetadataResponse of 100 topics with 12 partitions, in four kinds of content, and small ones.

Content matters, because a decoder that caches values benefits from repetition: *fixed* has the same numbers in
every partition, *varied* resembles a real cluster of 20 brokers, and in *worst* every number, array and name differs.
Brokers are numbered from 1001, like Kafka's automatic ids; *small* is *varied* with brokers numbered from 0, whose ids
are among the ints that CPython caches, so a decoder's own cache has no effect.
Small messages are *default* (all fields unset), *populated* (a value in each field) or *random*.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final, TypeVar
from uuid import UUID

import attrs

from kafka_msgs import FieldInfo, Message, Struct, fields
from kafka_msgs.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_msgs.testing.random_values import random_message

__all__ = ["CONTENTS", "metadata", "populated", "randomized"]

S = TypeVar("S", bound=Struct)

BROKERS: Final = 20
TOPICS: Final = 100
PARTITIONS: Final = 12
REPLICAS: Final = 3
FIRST_BROKER: Final = 1001
CONTENTS: Final = ("fixed", "varied", "small", "worst")
_SEED: Final = 20
_LARGEST_TIME: Final = 2**40


def metadata(content: str) -> MetadataResponse:
    """Return the message with the content of that name."""
    rng = Random(_SEED)
    first = 0 if content == "small" else FIRST_BROKER
    return MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(
                node_id=first + number, host=f"broker-{number:02}.example", port=9092, rack=f"rack-{number % 3}"
            )
            for number in range(BROKERS)
        ),
        cluster_id="5L6g3nShT-eMCtK--X86sw",
        controller_id=first + 3,
        topics=tuple(_topic(content, number, rng) for number in range(TOPICS)),
    )


def _topic(content: str, number: int, rng: Random) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=f"grüße-{number:05}" if content == "worst" else f"topic-{number:05}",
        topic_id=UUID(int=rng.getrandbits(128)),
        partitions=tuple(_partition(content, number, index, rng) for index in range(PARTITIONS)),
    )


def _partition(content: str, topic: int, index: int, rng: Random) -> MetadataResponsePartition:
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    if content == "fixed":
        replicas = in_sync = tuple(range(FIRST_BROKER, FIRST_BROKER + REPLICAS))
        leader, epoch = FIRST_BROKER, 5
    elif content != "worst":
        first = 0 if content == "small" else FIRST_BROKER
        replicas = in_sync = tuple(rng.sample(range(first, first + BROKERS), REPLICAS))
        leader, epoch = replicas[0], rng.randrange(5001)
    else:
        first = 1_000_000 + 100 * (topic * PARTITIONS + index)
        leader, epoch = first, first + 1
        replicas, in_sync = (first + 2, first + 3, first + 4), (first + 5, first + 6, first + 7)
    return MetadataResponsePartition(
        partition_index=index, leader_id=leader, leader_epoch=epoch, replica_nodes=replicas, isr_nodes=in_sync
    )


_VALUES: Final[dict[str, Any]] = {
    "bool": True,
    "float64": 1.5,
    "uuid": UUID(int=0x6D1F4C1E2B3A49588C7D6E5F40312213),
    "string": "orders",
    "bytes": b"\x00\x01\x02\x03",
    "records": b"\x00\x01\x02\x03",
}


def populated(cls: type[S], version: int) -> S:
    """Return a message in which every field of the version has a value, and every array one element."""
    present = (info for info in fields(cls) if version in info.versions)
    return cls(**{info.attribute: _value(info, version) for info in present})


def _value(info: FieldInfo, version: int) -> Any:
    value: Any = populated(info.struct, version) if info.struct else _VALUES.get(info.element_type, 1)
    return (value,) if info.is_array else value


M = TypeVar("M", bound=Message)


def randomized(cls: type[M], version: int, seed: int) -> M:
    """Return a random message without unknown tags, with existing error codes and with times of this millennium.

    Some libraries convert these to their own types, which have no other values.
    """
    return _tamed(random_message(cls, version, Random(seed), unknown_tags=False))


def _tamed(item: S) -> S:
    values = ((info, getattr(item, info.attribute)) for info in fields(type(item)))
    return attrs.evolve(item, **{info.attribute: _tame(info, value) for info, value in values})


def _tame(info: FieldInfo, value: Any) -> Any:
    if info.type == "int16" and info.attribute.endswith("error_code"):
        return 0
    if info.type == "int64" and info.attribute.endswith(("_ms", "timestamp")):
        return value % _LARGEST_TIME
    if info.struct is None or value is None:
        return value
    return tuple(map(_tamed, value)) if info.is_array else _tamed(value)
