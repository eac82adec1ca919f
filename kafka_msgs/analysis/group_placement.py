"""The partition of ``__consumer_offsets`` whose coordinator serves a group.

This is ``abs(hash) % partitions`` with Java's hash of the group id (``GroupCoordinator.partitionFor`` in Kafka).
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["is_stale", "partition_of_group", "placed"]


def partition_of_group(group: str, partitions: int) -> int:
    """Return the partition of a group."""
    code = 0
    units = group.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        code = (31 * code + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    # Kafka's ``Utils.abs`` clears the sign bit of the smallest integer only.
    signed = code - (1 << 32) if code >= 1 << 31 else code
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


def placed(groups: pa.Array, number: int, partitions: int) -> pa.Array:
    """Return whether each group belongs to a partition, True if the number of partitions is unknown (0)."""
    if not partitions:
        return pa.repeat(pa.scalar(True), len(groups))
    found = groups.dictionary_encode()
    known = [partition_of_group(name, partitions) == number for name in found.dictionary.to_pylist()]
    return pc.fill_null(pa.array(known, pa.bool_()).take(found.indices), False)


def is_stale(groups: pa.Array, number: int, partitions: int) -> pa.Array:
    """Return whether another partition's coordinator serves each group, False if the number is unknown (0)."""
    return pc.invert(placed(groups, number, partitions))
