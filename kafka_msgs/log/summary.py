"""Batch counts over files.

A caller that reads the batches adds them one by one. For a caller that needs only the counts, ``native`` or ``python``
count many batches in one call. ``file_scan`` handles everything except valid batches of magic 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import add
from pathlib import Path
from typing import Any, Final

from kafka_msgs._backend import backend_module
from kafka_msgs.binary_layouts import CODEC_MASK, NO_PRODUCER, header_struct
from kafka_msgs.errors import CrcMismatchError, KafkaMsgsError, LogFileError
from kafka_msgs.log.batch_counts import BASE_IS_NO_TIME, BatchCounts
from kafka_msgs.log.file_scan import AnyBatch, FileScan
from kafka_msgs.records import DEFAULT_READ_OPTIONS, NO_TIMESTAMP, CompressionType, ReadOptions, RecordBatch

__all__ = ["LogSummary", "read_summary", "walk_summary"]

_IMPLEMENTATION: Final = backend_module("kafka_msgs.log")
_OFFSETS: Final = header_struct("base_offset", "last_offset_delta")
CODEC_NAMES: Final = tuple(
    CompressionType(number).name.lower() if number in CompressionType._value2member_map_ else str(number)
    for number in range(CODEC_MASK + 1)
)
"""The compression type names by number. An unknown type has its number as its name."""
_EACH_RUN: Final = 2**25
"""The number of bytes between two progress reports."""


class LogSummary:
    """Counts of batches and errors. ``facts`` returns the counts.

    Sizes are in bytes, times in milliseconds since the epoch. ``first_timestamp`` is the earliest timestamp in the
    batch headers. A record inside a batch may be earlier. ``bytes`` counts the bytes of valid batches, ``skipped`` the
    bytes of damage, and ``preallocated`` the unused zeros at the ends of files. ``by_codec`` counts batches by the
    number of their compression type. ``producers`` contains the ids of the idempotent producers.
    """

    def __init__(self) -> None:
        self.batches = 0
        self.records = 0
        self.bytes = 0
        self.preallocated = 0
        self.skipped = 0
        self.errors = 0
        self.crc_failures = 0
        self.producers: set[int] = set()
        self.first_timestamp: int | None = None
        self.last_timestamp: int | None = None
        self.by_codec = [0] * (CODEC_MASK + 1)

    @property
    def codecs(self) -> dict[str, int]:
        """Batch counts by the name of their compression type."""
        return dict(sorted((name, count) for name, count in zip(CODEC_NAMES, self.by_codec, strict=True) if count))

    def add_batch(self, batch: AnyBatch) -> None:
        """Count a batch. Raises the errors of ``records`` for a compressed message set of magic 0 or 1."""
        self.batches += 1
        self.bytes += batch.size
        self.by_codec[batch.codec] += 1
        if isinstance(batch, RecordBatch):
            self._add_times(batch.max_timestamp, None if batch.attributes & BASE_IS_NO_TIME else batch.base_timestamp)
            self.records += batch.count
            if batch.producer_id != NO_PRODUCER:
                self.producers.add(batch.producer_id)
        else:
            self._add_times(batch.max_timestamp)
            self.records += len(batch.records()) if batch.codec else 1

    def add_headers(self, counted: BatchCounts, size: int) -> None:
        """Add the counts over the headers of ``size`` bytes of batches."""
        self.batches += counted.batches
        self.records += counted.records
        self.bytes += size
        self.by_codec = list(map(add, self.by_codec, counted.by_codec))
        self.producers |= counted.producers
        self._add_times(counted.first_timestamp, counted.last_timestamp)

    def add_error(self, error: KafkaMsgsError) -> None:
        """Count an error."""
        self.errors += 1
        self.crc_failures += isinstance(error.__cause__, CrcMismatchError)

    def facts(self) -> dict[str, Any]:
        """Return the counts by name."""
        return {
            "batches": self.batches,
            "records": self.records,
            "bytes": self.bytes,
            "preallocated": self.preallocated,
            "codecs": self.codecs,
            "firstTimestamp": self.first_timestamp,
            "lastTimestamp": self.last_timestamp,
            "producers": len(self.producers),
            "errors": self.errors,
            "crcFailures": self.crc_failures,
        }

    def _add_times(self, *timestamps: int | None) -> None:
        for timestamp in timestamps:
            if timestamp is None or timestamp == NO_TIMESTAMP:
                continue
            if self.first_timestamp is None or timestamp < self.first_timestamp:
                self.first_timestamp = timestamp
            if self.last_timestamp is None or timestamp > self.last_timestamp:
                self.last_timestamp = timestamp


def read_summary(path: Path, options: ReadOptions = DEFAULT_READ_OPTIONS, *, closed: bool = False) -> LogSummary:
    """Return the batch counts of a file.

    Only the headers are read. With large batches this is about as fast as reading memory. Damage raises
    ``LogFileError``. Zeros at the end of the file are damage if it is ``closed``, as for ``read_log``. Raises
    ``OSError``.
    """
    summary = LogSummary()
    for fault in walk_summary(path, summary, options, closed=closed):
        raise fault
    return summary


def walk_summary(
    path: Path,
    summary: LogSummary,
    options: ReadOptions = DEFAULT_READ_OPTIONS,
    *,
    closed: bool = False,
    progress: Callable[[int], None] = lambda position: None,
) -> Iterator[LogFileError]:
    """Count the batches of a file into ``summary``, and count and yield the faults; see ``read_summary``.

    ``progress`` is called periodically with the number of bytes read. Raises ``OSError``.
    """
    scan = FileScan(path, options, closed=closed)
    _count_ahead(scan, summary, progress)
    for item in scan:
        if isinstance(item, LogFileError):
            summary.add_error(item)
            summary.skipped += item.skipped
            yield item
        else:
            try:
                summary.add_batch(item)
            except KafkaMsgsError as error:
                fault = fault_in_batch(path, item, str(error))
                summary.add_error(fault)
                yield fault
        progress(scan.position)
        _count_ahead(scan, summary, progress)
    summary.preallocated += scan.preallocated


def fault_in_batch(path: Path, batch: AnyBatch, reason: str) -> LogFileError:
    """Return the error for invalid content in a batch whose bytes are intact."""
    return LogFileError(file=str(path), position=batch.position, skipped=batch.size, reason=reason)


def _count_ahead(scan: FileScan, summary: LogSummary, progress: Callable[[int], None]) -> None:
    """Count the next valid batches of magic 2, and advance the scan past them."""
    while True:
        stop = scan.position + _EACH_RUN
        counted: BatchCounts = _IMPLEMENTATION.count_batches(scan.data, scan.position, stop, scan.options.check_crc)
        if counted.batches:
            summary.add_headers(counted, counted.position - scan.position)
            base_offset, delta = _OFFSETS.unpack_from(scan.data, counted.last)
            scan.resume_at(counted.position, base_offset + delta + 1)
            progress(scan.position)
        if counted.position < stop:
            return
