"""The iteration order of Java's hash tables.

Kafka's assignors, and the records that follow from them, depend on the order of ``java.util.HashMap`` and ``HashSet``.
A table has a power of two of buckets, and iteration goes from bucket to bucket. Within a bucket, a key added by ``put``
comes last, and a key added by ``computeIfAbsent`` comes first. A table doubles when it is more than three quarters
full: after a ``put``, but before a ``computeIfAbsent``. It never shrinks.

Clients can tell the order of tables in three ways, and production follows Kafka's for these: assignors give members
tasks in that order, records have it and are the inputs of the next assignment after a load, and the leader of a classic
group receives its members in it. Tasks, topics and tags in responses have the order of the group's own tables, because
clients read them as sets.

This module omits one case: in a table of 64 or more buckets, Java turns a bucket with more than eight keys into a tree,
and may move one of the keys to the front. That requires keys chosen for their hash codes; the random ids of members and
topics practically never collide like this. Here such keys keep their insertion order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Final, Generic, TypeVar
from uuid import UUID

from kafka_msgs.groups.runtime.timeline_map import java_hash_code, string_key

__all__ = [
    "DEFAULT_CAPACITY",
    "HashTable",
    "NumberTable",
    "copied",
    "copy_capacity",
    "grown",
    "hash_map_order",
    "map_copy_capacity",
    "number_order",
    "set_order",
    "sized_capacity",
    "sorted_strings",
]

K = TypeVar("K", str, UUID)
T = TypeVar("T")

DEFAULT_CAPACITY: Final = 16
"""The number of buckets of ``new HashMap()``."""

_TREE_CAPACITY: Final = 64
"""From this number of buckets on, a full bucket becomes a tree. A smaller table doubles instead."""
_FULL_BUCKET: Final = 8
_SPREAD: Final = 1 << 16
"""From this hash code on, the upper half of a hash code plays a part in the choice of the bucket."""
_MASK: Final = 0xFFFFFFFF


def sorted_strings(texts: Iterable[str]) -> list[str]:
    """Return strings in the order of ``String.compareTo``."""
    listed = list(texts)
    return sorted(listed, key=None if "".join(listed).isascii() else string_key)


def sized_capacity(size: int) -> int:
    """Return the number of buckets of ``new HashMap(size)``: the power of two that is not below ``size``."""
    return 1 << max(size - 1, 0).bit_length()


def copy_capacity(count: int) -> int:
    """Return the number of buckets of ``new HashSet(collection)`` of Java 17, for a collection of ``count``."""
    return sized_capacity(max(4 * count // 3 + 1, DEFAULT_CAPACITY))


def map_copy_capacity(count: int) -> int:
    """Return the number of buckets of ``new HashMap(map)``, for a map of ``count``."""
    return sized_capacity(4 * count // 3 + 1)


def grown(capacity: int, count: int) -> int:
    """Return the number of buckets of a table that began with ``capacity`` and got ``count`` keys."""
    while count > capacity * 3 // 4:
        capacity *= 2
    return capacity


class HashTable(Generic[T]):
    """The keys of a ``java.util.HashMap`` or ``HashSet``, for their order.

    ``code`` gives the hash code of a key, an int32, ``capacity`` is the number of buckets at the start.
    """

    __slots__ = ("_code", "_first", "_last", "_ranks", "capacity")

    def __init__(self, code: Callable[[T], int], keys: Iterable[T] = (), *, capacity: int = DEFAULT_CAPACITY) -> None:
        self._code = code
        self._ranks: dict[T, int] = {}
        self._first = self._last = 0
        self.capacity = capacity
        for key in keys:
            self.put(key)

    def __contains__(self, key: T) -> bool:
        return key in self._ranks

    def __len__(self) -> int:
        return len(self._ranks)

    def put(self, key: T) -> None:
        """Add a key, as ``put``, ``putIfAbsent`` and ``HashSet.add`` do. An existing key has no effect."""
        if key in self._ranks:
            return
        self._last += 1
        self._ranks[key] = self._last
        self._spread_small(key, _FULL_BUCKET)
        self.capacity = grown(self.capacity, len(self._ranks))

    def compute(self, key: T) -> None:
        """Add a key, as ``computeIfAbsent`` does. An existing key has no effect, but a full table still doubles."""
        self.capacity = grown(self.capacity, len(self._ranks))
        if key in self._ranks:
            return
        self._first -= 1
        self._ranks[key] = self._first
        self._spread_small(key, _FULL_BUCKET - 1)

    def remove(self, key: T) -> None:
        """Remove an existing key."""
        del self._ranks[key]

    def _spread_small(self, key: T, limit: int) -> None:
        """Double a small table whose bucket of ``key`` has more than ``limit`` keys."""
        if self.capacity < _TREE_CAPACITY and len(self._ranks) > limit:
            place = self._bucket(key)
            if sum(self._bucket(each) == place for each in self._ranks) > limit:
                self.capacity *= 2

    def _bucket(self, key: T) -> int:
        code = self._code(key) & _MASK
        return (code ^ (code >> 16)) & (self.capacity - 1)

    def walk(self) -> list[T]:
        """Return the keys in Java's order."""
        ranks = self._ranks
        keys = sorted(ranks, key=ranks.__getitem__)
        keys.sort(key=self._bucket)
        return keys


class NumberTable(HashTable[int]):
    """A ``HashSet<Integer>`` of numbers from 0 to 2^31 - 1."""

    __slots__ = ()

    def __init__(self, numbers: Sequence[int] = (), *, capacity: int = DEFAULT_CAPACITY) -> None:
        super().__init__(int, capacity=capacity)
        self.put_all(numbers)

    def put_all(self, numbers: Sequence[int]) -> None:
        """Add distinct numbers that are not in the set yet."""
        # Fewer than 128 neighbours have at most 8 in a bucket of 16: no bucket of a small table doubles it.
        if self.capacity >= _TREE_CAPACITY or (not self._ranks and _are_close(numbers)):
            self._ranks.update(dict.fromkeys(numbers, 0))
            self.capacity = grown(self.capacity, len(self._ranks))
        else:
            for number in numbers:
                self.put(number)

    def walk(self) -> list[int]:
        """Return the numbers in Java's order, which is ascending for numbers below the number of buckets."""
        most = max(self._ranks, default=0)
        if most < self.capacity:
            return sorted(self._ranks)
        # All came in by put, so the dict has them in the order of insertion.
        if most < _SPREAD:
            return sorted(self._ranks, key=(self.capacity - 1).__and__)
        return sorted(self._ranks, key=self._bucket)


def _are_close(numbers: Sequence[int]) -> bool:
    if not numbers or isinstance(numbers, range):
        return True
    span = max(numbers) - min(numbers) + 1
    return span == len(numbers) or span <= _FULL_BUCKET * DEFAULT_CAPACITY


def hash_map_order(keys: Iterable[K], *, capacity: int = DEFAULT_CAPACITY) -> list[K]:
    """Return keys that were put into a ``HashMap`` or ``HashSet`` that began with ``capacity``, in its order."""
    return HashTable(java_hash_code, keys, capacity=capacity).walk()


def copied(table: Sized) -> int:
    """Return the number of buckets of ``new HashMap(table)``. An empty map has the default capacity."""
    return map_copy_capacity(len(table)) if len(table) else DEFAULT_CAPACITY


def number_order(numbers: Sequence[int], capacity: int = DEFAULT_CAPACITY) -> list[int]:
    """Return numbers in the order of a map or set that started with ``capacity`` buckets."""
    return NumberTable(numbers, capacity=capacity).walk()


def set_order(numbers: Sequence[int]) -> list[int]:
    """Return the numbers in the order of ``new HashSet(numbers)``."""
    return number_order(numbers, copy_capacity(len(numbers)))
