"""The partition of an internal topic that holds the state of a group, a transactional id or a share partition."""

from __future__ import annotations

from typing import Final

from kafka_msgs.groups.timeline import hash_code

__all__ = ["state_partition"]

_INT32_MIN: Final = -(2**31)


def state_partition(key: str, partitions: int) -> int:
    """Return the partition for a key, in a topic with so many partitions."""
    code = hash_code(key)
    return (0 if code == _INT32_MIN else abs(code)) % partitions
