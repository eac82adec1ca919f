"""The order of Kafka's copies of tables, beside what ``assignors.java_order`` has."""

from __future__ import annotations

from collections.abc import Sequence, Sized

from kafka_msgs.groups.assignors.java_hash_order import DEFAULT_CAPACITY, NumberTable, copy_capacity, map_copy_capacity

__all__ = ["copied", "number_order", "set_order"]


def copied(table: Sized) -> int:
    """Return the number of buckets of ``new HashMap(table)``. An empty map has the usual number."""
    return map_copy_capacity(len(table)) if len(table) else DEFAULT_CAPACITY


def number_order(numbers: Sequence[int], capacity: int = DEFAULT_CAPACITY) -> list[int]:
    """Return numbers that were put into a map or set that began with ``capacity``, in its order."""
    return NumberTable(numbers, capacity=capacity).walk()


def set_order(numbers: Sequence[int]) -> list[int]:
    """Return the numbers of ``new HashSet(numbers)`` in its order."""
    return number_order(numbers, copy_capacity(len(numbers)))
