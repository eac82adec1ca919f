"""The attributes and methods that batches of all formats share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from enum import IntEnum

from kafka_msgs.binary_layouts import CODEC_MASK, LOG_APPEND_TIME
from kafka_msgs.records.record import ConsumerRecord, Payload, Record, to_consumer_record

__all__ = ["Batch", "TimestampType"]


class TimestampType(IntEnum):
    """The clock that the timestamps of a batch come from: the producer's, or the broker's (KIP-32)."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class Batch(ABC):
    """Records that were written together, in any format: ``RecordBatch`` or ``LegacyBatch``.

    Each iteration decodes all records again. Kafka's interface for both is
    ``org.apache.kafka.common.record.internal.RecordBatch``.
    """

    __slots__ = ()

    position: int
    """The byte position of the batch in the buffer."""
    size: int
    """The size of the batch in bytes, including the header."""
    magic: int
    """The format: 0, 1 or 2."""
    attributes: int
    """The stored flags, including bits without a meaning."""
    max_timestamp: int
    """The latest timestamp of the records, or the broker's, in milliseconds since the epoch. -1 for none."""

    @abstractmethod
    def records(self) -> list[Record]:
        """Return the records. Compressed records are decompressed first."""

    def lazy_records(self) -> Sequence[Record]:
        """Return the records as a sequence; raises what ``records`` raises.

        A ``RecordBatch`` builds each record on access. A message set builds all records at once.
        """
        return self.records()

    @property
    @abstractmethod
    def last_offset(self) -> int:
        """The last offset of the batch. It stays the same if compaction removed the last record."""

    @property
    def codec(self) -> int:
        """The number of the codec. ``CompressionType`` has the names of the known codecs."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        """The clock that the timestamps come from. With the broker's clock, all records have ``max_timestamp``."""
        return TimestampType(self.attributes >> 3 & 1)

    @property
    def append_timestamp(self) -> int | None:
        """The broker's time for all records, in milliseconds since the epoch. None if records have separate times."""
        return self.max_timestamp if self.attributes & LOG_APPEND_TIME else None

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records())

    def consumer_records(self, topic: str, partition: int) -> list[ConsumerRecord]:
        """Return the records as a consumer of a partition receives them; raises what ``records`` raises."""
        return [to_consumer_record(record, topic, partition) for record in self.records()]

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
