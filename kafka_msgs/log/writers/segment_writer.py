"""Writing a segment from batches: the ``.log`` file and its indexes.

The files equal the files of a broker after it has rolled the segment. In Kafka this is
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
    """A writer of the segment that starts at ``base_offset`` into ``directory``. It may be used as a context manager.

    ``interval`` is ``index.interval.bytes``. An existing segment is replaced. The methods raise ``OSError``. After an
    exception in the ``with`` block the indexes are not written, and the segment must be recovered.
    """

    def __init__(self, directory: Path, base_offset: int, *, interval: int = DEFAULT_INTERVAL) -> None:
        self.path = directory / f"{base_offset:020}.log"
        self.size = 0
        self.next_offset = base_offset
        self._indexes = SegmentIndexes(base_offset, interval)
        self._file = self.path.open("wb")

    def append(self, batch: Buffer) -> None:
        """Add a batch of magic 2. Its bytes are written unchanged, without parsing its records.

        Raises ``RecordWriteError`` for a buffer that is not one complete batch, and for offsets that are below the
        previous batch's offsets or too far from the start of the segment.
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
        """Return whether a batch of ``size`` bytes that ends with ``last_offset`` belongs to this segment.

        ``max_bytes`` is ``segment.bytes``. The first batch always fits. The indexes have Kafka's default sizes.
        """
        fits = self.size + size <= max_bytes and not self._indexes.is_full(DEFAULT_INDEX_BYTES)
        return not self.size or (fits and self._indexes.can_hold(last_offset))

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        """Add an aborted transaction to the index. Its marker is in this segment."""
        self._indexes.aborted.append(transaction)

    def close(self) -> None:
        """Finish the segment, write its indexes, and flush everything to disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._indexes.add_latest_time()
        replace_file(self.path.with_suffix(".index"), self._indexes.offset_index())
        replace_file(self.path.with_suffix(".timeindex"), self._indexes.time_index())
        if self._indexes.aborted:
            replace_file(self.path.with_suffix(".txnindex"), self._indexes.transaction_index())

    def abandon(self) -> None:
        """Close the file without writing the indexes, so that the segment must be recovered."""
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
