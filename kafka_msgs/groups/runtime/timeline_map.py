"""Tables in Kafka's order of iteration, and the hash codes and the order of Java's strings."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeVar
from uuid import UUID

from kafka_msgs.internal_topics.coordinator_partition import java_string_hash

__all__ = ["TimelineHashMap", "iter_kafka_order", "java_hash_code", "string_key"]

K = TypeVar("K", bound=str | int | UUID)
V = TypeVar("V")

_MIN_CAPACITY: Final = 2
_LOAD_FACTOR: Final = 0.75
_FIBONACCI: Final = -7046029254386353131
_MASK_32: Final = 0xFFFFFFFF
_MASK_64: Final = 0xFFFFFFFFFFFFFFFF


class TimelineHashMap(dict[K, V]):
    """A dict with the capacity of Kafka's table, which grows and never shrinks.

    ``expected`` is the size that Kafka expects when it creates the table. If ``listed`` is set, ``iter_kafka_order``
    lists these keys of a snapshot, the oldest first, instead of the keys of the dict.
    """

    __slots__ = ("capacity", "listed")

    def __init__(self, expected: int = 0) -> None:
        super().__init__()
        capacity = _MIN_CAPACITY
        while capacity * _LOAD_FACTOR < expected:
            capacity *= 2
        self.capacity = capacity
        self.listed: list[K] | None = None

    def __setitem__(self, key: K, value: V) -> None:
        if (len(self) + 1) * _LOAD_FACTOR > self.capacity:
            self.capacity *= 2
        super().__setitem__(key, value)


def iter_kafka_order(table: TimelineHashMap[K, V]) -> list[K]:
    """Return the keys of a table in Kafka's iteration order."""
    keys = list(reversed(table if table.listed is None else table.listed))
    if len(keys) > 1:
        shift = 65 - table.capacity.bit_length()
        keys.sort(key=lambda key: ((java_hash_code(key) * _FIBONACCI) & _MASK_64) >> shift)
    return keys


@lru_cache(maxsize=65536)
def java_hash_code(key: str | int | UUID) -> int:
    """Return Java's ``hashCode`` of a string, of an integer (int32 or int64) or of a ``Uuid``: an int32."""
    if isinstance(key, str):
        return java_string_hash(key)
    number = key.int if isinstance(key, UUID) else key
    if isinstance(key, UUID):
        number = (number >> 64) ^ number
    if -(2**31) <= number < 2**31 and not isinstance(key, UUID):
        return number
    number &= _MASK_64
    code = (number ^ (number >> 32)) & _MASK_32
    return code - 2**32 if code >= 2**31 else code


def string_key(text: str) -> bytes:
    """Return a sort key that orders strings as ``String.compareTo`` does: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")
