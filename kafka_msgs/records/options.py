"""Options for reading batches: checksums, limits, and views instead of copies."""

from __future__ import annotations

from typing import Final

from attrs import field, frozen

from kafka_msgs.option_checks import flag, whole

__all__ = ["DEFAULT_READ_OPTIONS", "ReadOptions"]


@frozen(kw_only=True)
class ReadOptions:
    """The options of every reader of batches: from buffers, files and tables.

    With ``check_crc`` the checksum of each batch is compared. ``max_decompressed`` is the largest decompressed size of
    one batch in bytes. Above it ``DecompressedSizeError`` is raised. ``max_elements`` is the largest number of records
    and headers of one batch, counted together. Above it ``RecordBudgetError`` is raised, before any record is made. An
    element takes at most about 200 bytes in addition to its content. With ``views`` the keys, values and header values
    are ``memoryview`` objects of the input, not ``bytes``. A view keeps the input alive. Raises ``OptionError``.
    """

    check_crc: bool = field(default=True, validator=flag())
    max_decompressed: int = field(default=128 << 20, validator=whole())
    max_elements: int = field(default=1_000_000, validator=whole(1))
    views: bool = field(default=False, validator=flag())


DEFAULT_READ_OPTIONS: Final = ReadOptions()
"""The default options: checksums are compared, and every limit has its default."""
