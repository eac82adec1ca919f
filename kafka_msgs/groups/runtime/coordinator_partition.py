"""The partition of an internal topic that holds the state of a group, a transactional id or a share partition."""

from __future__ import annotations

from typing import Final

from kafka_msgs.groups.runtime.timeline_map import java_hash_code

__all__ = ["partition_for_key"]

_INT32_MIN: Final = -(2**31)


def partition_for_key(key: str, partitions: int) -> int:
    """Return the partition for a key, in a topic with this number of partitions."""
    code = java_hash_code(key)
    return (0 if code == _INT32_MIN else abs(code)) % partitions
