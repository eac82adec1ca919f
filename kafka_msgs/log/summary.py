"""What a walk over files of batches came to, in numbers.

Owns the counting: batch by batch for those who read the batches too, and by headers alone, without making an object of
any batch, for those who want the numbers. What is no sound batch of magic 2 is left to the walk of ``scan``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from typing import Any, Final, Literal

from crc32c import crc32c

from kafka_msgs.errors import CrcMismatchError, KafkaMsgsError, LogFileError
from kafka_msgs.log.faults import settled
from kafka_msgs.log.scan import AnyBatch, FileScan
from kafka_msgs.records import NO_TIMESTAMP, Compression, RecordBatch
from kafka_msgs.records.batch import CRC_FROM, HEADER_SIZE
from kafka_msgs.records.common import CODEC_MASK, DELETE_HORIZON, LOG_APPEND_TIME, SIZE_AND_OFFSET

__all__ = ["LogSummary", "codec_name", "count_log", "scan_log"]

_COUNTED: Final = Struct(">8xi4xbIh4xqqq6xi")
"""Of a header: size, magic, checksum, flags, base and greatest timestamp, producer, count of records."""
_LAST_OFFSET: Final = Struct(">q15xi")
_NEVER: Final = 2**63
_BASE_IS_NO_TIME: Final = LOG_APPEND_TIME | DELETE_HORIZON
_NO_PRODUCER: Final = -1
_EACH_RUN: Final = 2**25
"""Bytes that are counted between two looks at the progress."""


def codec_name(number: int) -> str:
    """Return the name of a codec, or its number where there is none."""
    return Compression(number).name.lower() if number in Compression._value2member_map_ else str(number)


class LogSummary:
    """Counts batches and errors as they are added; ``facts`` has the numbers.

    Sizes are in bytes, times in milliseconds since the epoch. ``first_timestamp`` is the earliest that the headers of
    batches tell, which a record inside may precede. ``bytes`` are those of sound batches, ``skipped`` those of damage,
    ``preallocated`` zeros at the ends of files, which hold nothing yet. ``by_codec`` has the batches by the number of
    their codec.
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
        """Batches by the name of their codec."""
        return dict(sorted((codec_name(number), count) for number, count in enumerate(self.by_codec) if count))

    def add_batch(self, batch: AnyBatch) -> None:
        """Count a batch; raises what ``records`` raises for a compressed message set of magic 0 or 1."""
        self.batches += 1
        self.bytes += batch.size
        self.by_codec[batch.codec] += 1
        if isinstance(batch, RecordBatch):
            self.add_times(batch.attributes, batch.base_timestamp, batch.max_timestamp)
            self.records += batch.count
            self.producers |= {batch.producer_id} - {_NO_PRODUCER}
        else:
            self._add_time(batch.max_timestamp)
            self.records += len(batch.records()) if batch.codec else 1

    def add_times(self, attributes: int, base: int, latest: int) -> None:
        """Count the two times of a header of magic 2; with the broker's time in it, the base is the producer's."""
        self._add_time(latest)
        if not attributes & _BASE_IS_NO_TIME:
            self._add_time(base)

    def add_error(self, error: KafkaMsgsError) -> None:
        """Count an error."""
        self.errors += 1
        self.crc_failures += isinstance(error.__cause__, CrcMismatchError)

    def facts(self) -> dict[str, Any]:
        """Return the numbers by name."""
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

    def _add_time(self, timestamp: int) -> None:
        if timestamp == NO_TIMESTAMP:
            return
        if self.first_timestamp is None or timestamp < self.first_timestamp:
            self.first_timestamp = timestamp
        if self.last_timestamp is None or timestamp > self.last_timestamp:
            self.last_timestamp = timestamp


def scan_log(path: Path, *, on_error: Literal["raise", "skip"] = "raise", check_crc: bool = True) -> LogSummary:
    """Return what the batches of a file come to; checksums are compared unless ``check_crc`` says otherwise.

    The file is walked over by the headers of its batches, at about the speed at which memory can be read where they
    are large. Damage is a ``LogFileError``, which ``on_error`` raises or only counts. Raises ``OSError``.
    """
    summary = LogSummary()
    for _ in settled(count_log(path, summary, check_crc=check_crc), on_error):
        pass
    return summary


def count_log(
    path: Path,
    summary: LogSummary,
    *,
    check_crc: bool = True,
    progress: Callable[[int], None] = lambda position: None,
) -> Iterator[LogFileError]:
    """Count the batches of a file into ``summary``, and yield the faults, which are counted too.

    ``progress`` is told now and then how many bytes of the file are read. Raises ``OSError``.
    """
    scan = FileScan(path, check_crc=check_crc)
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
                fault = placed(path, item, str(error))
                summary.add_error(fault)
                yield fault
        _count_ahead(scan, summary, progress)
    summary.preallocated += scan.preallocated


def placed(path: Path, batch: AnyBatch, reason: str) -> LogFileError:
    """Return the error that says of a sound batch what is wrong inside."""
    return LogFileError(file=str(path), position=batch.position, skipped=batch.size, reason=reason)


def _count_ahead(scan: FileScan, summary: LogSummary, progress: Callable[[int], None]) -> None:
    """Count the sound batches of magic 2 that stand next, and move the walk behind them."""
    while scan.position < (stop := min(scan.position + _EACH_RUN, len(scan.data) - HEADER_SIZE + 1)):
        _count_run(scan, stop, summary)
        progress(scan.position)
        if scan.position < stop:
            return


def _count_run(scan: FileScan, stop: int, summary: LogSummary) -> None:
    """Count sound batches of magic 2 up to the first that starts at ``stop`` or later.

    The loop is what a scan of small batches takes its time for: counts have local names, and times that are not plain
    are taken apart elsewhere.
    """
    data, length, unpack, check_crc = scan.data, len(scan.data), _COUNTED.unpack_from, scan.check_crc
    by_codec, producers, producer = summary.by_codec, summary.producers, _NO_PRODUCER
    start = position = last = scan.position
    batches, records, first_time, last_time = 0, 0, _NEVER, NO_TIMESTAMP
    with memoryview(data) as view:
        while position < stop:
            size, magic, crc, flags, base, latest, writer, count = unpack(data, position)
            end = position + size + SIZE_AND_OFFSET
            if magic != 2 or end - position < HEADER_SIZE or end > length:
                break
            if check_crc and crc32c(view[position + CRC_FROM : end]) != crc:
                break
            if flags & _BASE_IS_NO_TIME or not 0 <= base <= latest:
                summary.add_times(flags, base, latest)
            else:
                first_time = base if base < first_time else first_time
                last_time = latest if latest > last_time else last_time
            if writer != producer:
                producer = writer
                producers.add(producer)
            by_codec[flags & CODEC_MASK] += 1
            batches += 1
            records += count
            last, position = position, end
    if not batches:
        return
    summary.batches += batches
    summary.records += records
    summary.bytes += position - start
    producers.discard(_NO_PRODUCER)
    if last_time != NO_TIMESTAMP:
        summary.add_times(0, first_time, last_time)
    base_offset, delta = _LAST_OFFSET.unpack_from(data, last)
    scan.go_on(position, base_offset + delta + 1)
