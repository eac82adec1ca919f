"""What a caller may choose about reading batches: checksums, limits, and views instead of copies."""

from __future__ import annotations

from typing import Final

from attrs import field, frozen, validators

__all__ = ["DEFAULT_READ_OPTIONS", "ReadOptions"]


@frozen(kw_only=True)
class ReadOptions:
    """Choices that every reader of batches takes: of buffers, of files, of tables.

    With ``check_crc`` the checksum of each batch is compared. ``max_decompressed`` bounds the bytes that the records of
    one batch may become; beyond it ``DecompressedSizeError`` is raised. ``max_elements`` bounds how many records and
    headers one batch may have, counted together; beyond it ``RecordBudgetError`` is raised before any is made. An
    element takes at most about 200 bytes beside its content. With ``views`` keys, values and header values
    are ``memoryview`` of the bytes that were read instead of ``bytes``; a view keeps those bytes alive.
    """

    check_crc: bool = field(default=True, validator=validators.instance_of(bool))
    max_decompressed: int = field(default=128 << 20, validator=[validators.instance_of(int), validators.ge(0)])
    max_elements: int = field(
        default=1_000_000,
        validator=[validators.instance_of(int), validators.ge(1), validators.le(2**63 - 1)],
    )
    views: bool = field(default=False, validator=validators.instance_of(bool))


DEFAULT_READ_OPTIONS: Final = ReadOptions()
"""The options of a reader that is given none: checksums are compared, and every limit has its default."""
