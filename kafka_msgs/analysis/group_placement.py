"""Columns that mark the groups which the coordinator of a partition of ``__consumer_offsets`` serves."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from kafka_msgs.internal_topics.coordinator_partition import partition_for_key

__all__ = ["is_stale", "placed"]


def placed(groups: pa.Array, number: int, partitions: int) -> pa.Array:
    """Return whether each group belongs to a partition, True if the number of partitions is unknown (0)."""
    if not partitions:
        return pa.repeat(pa.scalar(True), len(groups))
    found = groups.dictionary_encode()
    known = [partition_for_key(name, partitions) == number for name in found.dictionary.to_pylist()]
    return pc.fill_null(pa.array(known, pa.bool_()).take(found.indices), False)


def is_stale(groups: pa.Array, number: int, partitions: int) -> pa.Array:
    """Return whether another partition's coordinator serves each group, False if the number is unknown (0)."""
    return pc.invert(placed(groups, number, partitions))
