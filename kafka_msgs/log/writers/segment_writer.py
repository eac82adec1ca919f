"""A segment that is written from batches: the ``.log`` file, and its indexes beside it.

The files are those that a broker leaves when it begins the next segment. In Kafka this is
``org.apache.kafka.storage.internals.log.LogSegment``.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kafka_msgs.binary_layouts import HEADER_SIZE, LENGTH_AND_OFFSET_STRUCT, header_struct
from kafka_msgs.codec import Buffer
from kafka_msgs.errors import RecordWriteError
from kafka_msgs.log.indexes import AbortedTransaction
from kafka_msgs.log.writers.index_writer import DEFAULT_INDEX_BYTES, DEFAULT_INTERVAL, SegmentIndexes
from kafka_msgs.log.writers.small_files import replace_file

__all__ = ["SegmentWriter"]

_FACTS: Final = header_struct("base_offset", "size", "magic", "last_offset_delta", "max_timestamp")


class SegmentWriter:
    """Writes the segment that starts at ``base_offset`` into ``directory``. It may be used in a ``with`` block.

    ``interval`` is ``indexes.interval.bytes``. A segment that is there is replaced. The methods raise ``OSError``.
    After an exception in the block the indexes are not written: then the segment has to be recovered.
    """

    def __init__(self, directory: Path, base_offset: int, *, interval: int = DEFAULT_INTERVAL) -> None:
        self.path = directory / f"{base_offset:020}.log"
        self.size = 0
        self.next_offset = base_offset
        self._indexes = SegmentIndexes(base_offset, interval)
        self._file = self.path.open("wb")

    def append(self, batch: Buffer) -> None:
        """Add a batch of magic 2. Its bytes are not changed, and its records are not looked at.

        Raises ``RecordWriteError`` for a buffer that is not one complete batch, and for offsets that are below those of
        the batch before, or too far from the start of the segment.
        """
        size = len(batch)
        if size < HEADER_SIZE:
            raise _refused(size, f"a batch has at least {HEADER_SIZE} bytes, there are {size}")
        first, stated, magic, delta, latest = _FACTS.unpack_from(batch)
        if magic != 2 or stated + LENGTH_AND_OFFSET_STRUCT != size:
            raise _refused(size, f"these {size} bytes are not one batch of magic 2")
        if first < self.next_offset or delta < 0 or not self._indexes.can_hold(first + delta):
            raise _refused(first, f"offsets {first} to {first + delta} do not follow {self.next_offset - 1}")
        self._file.write(batch)
        self._indexes.add(self.size, size, first + delta, latest)
        self.size += size
        self.next_offset = first + delta + 1

    def fits(self, size: int, last_offset: int, max_bytes: int) -> bool:
        """Whether a batch of ``size`` bytes that ends with ``last_offset`` belongs into this segment.

        ``max_bytes`` is ``segment.bytes``. The first batch does, of any size. The indexes have the sizes of Kafka's
        defaults.
        """
        fits = self.size + size <= max_bytes and not self._indexes.is_full(DEFAULT_INDEX_BYTES)
        return not self.size or (fits and self._indexes.can_hold(last_offset))

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        """Add an aborted transaction to the index. Its marker is in this segment."""
        self._indexes.aborted.append(transaction)

    def close(self) -> None:
        """End the segment, and write its indexes. All of it is on the disk then."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._indexes.add_latest_time()
        replace_file(self.path.with_suffix(".index"), self._indexes.offset_index())
        replace_file(self.path.with_suffix(".timeindex"), self._indexes.time_index())
        if self._indexes.aborted:
            replace_file(self.path.with_suffix(".txnindex"), self._indexes.transaction_index())

    def abandon(self) -> None:
        """Close the file without the indexes: then the segment has to be recovered."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if exc_type is None:
            self.close()
        else:
            self.abandon()


def _refused(value: object, reason: str) -> RecordWriteError:
    return RecordWriteError(field="batch", value=value, reason=reason)
