"""Choice of the partition: by the hash of the key, or, without a key, many consecutive records to one partition.

It follows Kafka's class ``org.apache.kafka.clients.producer.internals.BuiltInPartitioner`` (KIP-480, KIP-794). This
module does not depend on batches: callers pass the numbers that it needs.
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
    """A custom partitioner: a function that takes the topic, the key and the number of partitions."""

    def __call__(self, topic: str, key: Payload | None, partitions: int, /) -> int:
        """Return a partition, from 0 to ``partitions`` - 1."""


def partition_of_key(key: Payload, partitions: int) -> int:
    """Return the partition of a key, as Kafka's producer does.

    >>> partition_of_key(b"customer-17", 12)
    4
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def next_sticky(waiting: Sequence[int], random: Random) -> int:
    """Return the index of the partition for the next records without a key.

    ``waiting`` contains the number of queued batches of each partition that has a leader. The shorter the queue, the
    more often a partition is chosen, so a slow broker gets fewer records (KIP-794).
    """
    if len(waiting) < 2:
        return 0
    most = max(waiting) + 1
    shares = list(accumulate(most - each for each in waiting))
    chosen = random.randrange(shares[-1])
    return next(place for place, end in enumerate(shares) if chosen < end)
