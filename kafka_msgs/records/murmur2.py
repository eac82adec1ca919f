"""The key hash with which Kafka's producer chooses partitions, in Python.

It is MurmurHash2 with Kafka's seed, as in the method ``murmur2`` of Kafka's class
``org.apache.kafka.common.utils.Utils``. ``native`` contains a faster implementation.
"""

from __future__ import annotations

from struct import unpack_from
from typing import Final

from kafka_msgs.records.record import Payload

__all__ = ["murmur2"]

_SEED: Final = 0x9747B28C
_FACTOR: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(key: Payload, /) -> int:
    """Return the hash of ``key``, from 0 to 4294967295."""
    words, rest = divmod(len(key), 4)
    value = _SEED ^ (len(key) & _MASK)
    for word in unpack_from(f"<{words}I", key):
        word = word * _FACTOR & _MASK
        word ^= word >> 24
        value = (value * _FACTOR & _MASK) ^ (word * _FACTOR & _MASK)
    if rest:
        value = (value ^ int.from_bytes(key[4 * words :], "little")) * _FACTOR & _MASK
    value = (value ^ value >> 13) * _FACTOR & _MASK
    return value ^ value >> 15
