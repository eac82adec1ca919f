"""The order of Kafka's copies of tables, in addition to ``assignors.java_hash_order``."""

from __future__ import annotations

from collections.abc import Sequence, Sized

from kafka_msgs.groups.assignors.java_hash_order import DEFAULT_CAPACITY, NumberTable, copy_capacity, map_copy_capacity

__all__ = ["copied", "number_order", "set_order"]


def copied(table: Sized) -> int:
    """Return the number of buckets of ``new HashMap(table)``. An empty map has the default capacity."""
    return map_copy_capacity(len(table)) if len(table) else DEFAULT_CAPACITY


def number_order(numbers: Sequence[int], capacity: int = DEFAULT_CAPACITY) -> list[int]:
    """Return numbers in the order of a map or set that started with ``capacity`` buckets."""
    return NumberTable(numbers, capacity=capacity).walk()


def set_order(numbers: Sequence[int]) -> list[int]:
    """Return the numbers in the order of ``new HashSet(numbers)``."""
    return number_order(numbers, copy_capacity(len(numbers)))
