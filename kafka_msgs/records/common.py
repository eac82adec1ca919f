"""What batches of every format have in common: their attributes, and what can be asked of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from enum import IntEnum

from kafka_msgs.layouts import CODEC_MASK, LOG_APPEND_TIME
from kafka_msgs.records.record import Payload, Record

__all__ = ["Batch", "TimestampType"]


class TimestampType(IntEnum):
    """Whose clock the timestamps of a batch come from: the producer's, or the broker's."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class Batch(ABC):
    """Records that were written together, in any format: ``RecordBatch`` or ``LegacyBatch``.

    Iterating decodes the records, all at once, and each time anew.
    """

    __slots__ = ()

    position: int
    """The byte of the buffer where the batch starts."""
    size: int
    """Its bytes, header included."""
    magic: int
    """The format: 0, 1 or 2."""
    attributes: int
    """The flags as they are stored, bits without a meaning included."""
    max_timestamp: int
    """The latest timestamp, or the broker's, in milliseconds since the epoch; -1 for none."""

    @abstractmethod
    def records(self) -> list[Record]:
        """Return the records, decompressed where needed."""

    @property
    @abstractmethod
    def last_offset(self) -> int:
        """The last offset that the batch stands for, even where compaction removed the record."""

    @property
    def codec(self) -> int:
        """The number of the codec; ``Compression`` names those that exist."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        """Whose clock the timestamps come from; where it is the broker's, all records have ``max_timestamp``."""
        return TimestampType(self.attributes >> 3 & 1)

    @property
    def append_timestamp(self) -> int | None:
        """The broker's time, which all records have, or None where each has the producer's."""
        return self.max_timestamp if self.attributes & LOG_APPEND_TIME else None

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records())

    def offsets(self) -> list[int]:
        """Return the offsets of the records; raises what ``records`` raises."""
        return [record.offset for record in self.records()]

    def timestamps(self) -> list[int]:
        """Return the timestamps of the records, in milliseconds since the epoch; raises what ``records`` raises."""
        return [record.timestamp for record in self.records()]

    def keys(self) -> list[Payload | None]:
        """Return the keys of the records; raises what ``records`` raises."""
        return [record.key for record in self.records()]

    def values(self) -> list[Payload | None]:
        """Return the values of the records; raises what ``records`` raises."""
        return [record.value for record in self.records()]
