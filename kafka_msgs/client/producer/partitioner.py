"""Which partition a record goes to: by the hash of its key, or, without a key, many records in a row to one partition.

The rules are those of Kafka's class ``org.apache.kafka.clients.producer.internals.BuiltInPartitioner`` (KIP-480,
KIP-794). This module knows no batches: it gets the numbers that it decides by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from random import Random
from typing import Final, Protocol

from kafka_msgs._backend import backend_module
from kafka_msgs.records import Payload

__all__ = ["Partitioner", "murmur2", "next_sticky", "partition_of_key"]

murmur2: Final[Callable[[Payload], int]] = backend_module("kafka_msgs.records").murmur2
"""The hash of a key, from 0 to 4294967295."""


class Partitioner(Protocol):
    """A rule of one's own: it gets the topic, the key, and the number of partitions, and returns a partition."""

    def __call__(self, topic: str, key: Payload | None, partitions: int, /) -> int:
        """Return a partition, from 0 to ``partitions`` - 1."""


def partition_of_key(key: Payload, partitions: int) -> int:
    """Return the partition of a key: the same that Kafka's producer chooses.

    >>> partition_of_key(b"customer-17", 12)
    4
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def next_sticky(waiting: Sequence[int], random: Random) -> int:
    """Return the place of the partition that gets the next records without a key.

    ``waiting`` has the number of batches that wait, for each partition that has a leader. The fewer batches
    of a partition wait, the more often it is chosen. So a slow broker gets less (KIP-794).
    """
    if len(waiting) < 2:
        return 0
    most = max(waiting) + 1
    shares = list(accumulate(most - each for each in waiting))
    chosen = random.randrange(shares[-1])
    return next(place for place, end in enumerate(shares) if chosen < end)
