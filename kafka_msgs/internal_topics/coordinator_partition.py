"""The partition of an internal topic that holds the state of a group, a transactional id or a share partition."""

from __future__ import annotations

from typing import Final

__all__ = ["java_string_hash", "partition_for_key"]

_INT32_MIN: Final = -(2**31)
_MASK_32: Final = 0xFFFFFFFF


def partition_for_key(key: str, partitions: int) -> int:
    """Return the partition for a key, in a topic with this number of partitions."""
    code = java_string_hash(key)
    return (0 if code == _INT32_MIN else abs(code)) % partitions


def java_string_hash(text: str) -> int:
    """Return Java's ``hashCode`` of a string, an int32."""
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    code = 0
    for unit in units:
        code = (31 * code + unit) & _MASK_32
    return code - 2**32 if code >= 2**31 else code
