"""Options for reading batches: checksums, limits, and views instead of copies."""

from __future__ import annotations

from typing import Final

from attrs import field, frozen

from kafka_msgs.validators import int_range, is_bool

__all__ = ["DEFAULT_READ_OPTIONS", "ReadOptions"]


@frozen(kw_only=True)
class ReadOptions:
    """The options of every reader of batches: from buffers, files and tables.

    ``check_crc`` compares the checksum of each batch. ``max_decompressed_bytes`` is the largest decompressed size of
    one batch in bytes; exceeding it raises ``DecompressedSizeError``. ``max_elements`` is the largest number of records
    and headers of one batch, counted together; exceeding it raises ``RecordBudgetError`` before any record is built. An
    element takes at most about 200 bytes in addition to its content. With ``zero_copy`` the keys, values and header
    values are ``memoryview`` objects of the input instead of ``bytes``. A view keeps the input alive. Raises
    ``OptionError``.
    """

    check_crc: bool = field(default=True, validator=is_bool())
    max_decompressed_bytes: int = field(default=128 << 20, validator=int_range())
    max_elements: int = field(default=1_000_000, validator=int_range(1))
    zero_copy: bool = field(default=False, validator=is_bool())


DEFAULT_READ_OPTIONS: Final = ReadOptions()
"""The default options, with checksum comparison and default limits."""
