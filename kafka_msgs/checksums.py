"""CRC-32C. The package ``crc32c`` imports 60 modules of the standard library, so it is imported at its first use."""

from __future__ import annotations

from typing import Any

__all__ = ["crc32c"]


def crc32c(data: Any, value: int = 0) -> int:
    """Return the CRC-32C of bytes, continued from the checksum of the bytes before them."""
    from crc32c import crc32c as checksum

    return int(checksum(data, value))
