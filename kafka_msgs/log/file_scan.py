"""A scan of a file of batches: a segment (``.log``) or a KRaft snapshot (``.checkpoint``), intact or damaged.

This module reports bytes that are not a batch, and recognizes preallocated space at the end of a file.
``kafka_msgs.records`` reads the batches. ``resync`` finds the next batch after damage. ``segment`` decides where in a
file to start. ``summary`` counts the items of a scan. Kafka reads such files in
``org.apache.kafka.common.record.internal.FileRecords`` and checks them in
``org.apache.kafka.storage.internals.log.LogSegment.recover``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from kafka_msgs.binary_layouts import LENGTH_AND_OFFSET_STRUCT, MAGIC_OFFSET
from kafka_msgs.errors import LogFileError, RecordError
from kafka_msgs.log.faults import raise_on_fault
from kafka_msgs.log.mapped_file import WINDOW, Mapped, map_file, release
from kafka_msgs.log.resync import START, BatchResync, looks_like_batch, stated_size
from kafka_msgs.records import DEFAULT_READ_OPTIONS, BatchReader, LegacyBatch, ReadOptions, RecordBatch
from kafka_msgs.validators import check_int

__all__ = ["AnyBatch", "BatchStart", "FileScan", "read_log", "walk_headers", "walk_log"]

AnyBatch: TypeAlias = RecordBatch | LegacyBatch
"""A batch of any format: v2, or a message set of format v0 or v1."""


def read_log(
    path: Path, options: ReadOptions = DEFAULT_READ_OPTIONS, *, start: int = 0, closed: bool = False
) -> Iterator[AnyBatch]:
    """Yield the batches of a file in order. Their ``position`` is their first byte in the file.

    ``start`` is the position of the first batch. The file is memory-mapped, and one batch at a time is copied from it.
    Bytes that are not a batch (a torn tail, a hole, a wrong checksum) raise a ``LogFileError``, whose cause is the
    error of the batch, if any.

    Zeros from the end of a batch to the end of the file are not damage but preallocated space, which may remain after a
    crash. The scan ends there, like Kafka's recovery. A file is ``closed`` if its broker writes to a later one. In a
    closed file such zeros are damage, because the broker would have removed them. Raises ``OptionError`` for a
    ``start`` that is not an integer, and ``OSError``.
    """
    return raise_on_fault(walk_log(path, options, start=start, closed=closed))


def walk_log(
    path: Path, options: ReadOptions = DEFAULT_READ_OPTIONS, *, start: int = 0, closed: bool = False
) -> FileScan:
    """Yield the batches and, in its place, each ``LogFileError``; like ``read_log``, but continue after damage."""
    return FileScan(path, options, start=start, closed=closed)


class FileScan(Iterator[AnyBatch | LogFileError]):
    """One scan of one file: its batches, and its faults in between.

    The arguments are the same as for ``read_log``. ``data`` contains the bytes of the file. ``position`` is the next
    byte to read. ``preallocated`` is the number of zeros at the end of a file that is not closed, once the scan has
    reached them. Raises ``OSError``.
    """

    def __init__(
        self,
        path: Path,
        options: ReadOptions = DEFAULT_READ_OPTIONS,
        *,
        start: int = 0,
        closed: bool = False,
    ) -> None:
        check_int("read_log", "start", start)
        self.data: Final = map_file(path)
        self.position = start
        self.preallocated = 0
        self.options: Final = options
        self._path = path
        self._closed = closed
        self._next_offset = 0
        self._newest = 0
        self._released = 0
        self._resync = BatchResync(self.data)
        self._reader = self._read_from(start)

    def __next__(self) -> AnyBatch | LogFileError:
        cause: RecordError | None = None
        try:
            batch = next(self._reader, None)
        except RecordError as fault:
            cause = fault
        else:
            if batch is not None:
                self._walked_to(batch.position + batch.size, batch.last_offset + 1, batch.magic)
                return batch
        left = max(len(self.data) - self.position, 0)
        if not left or (not self._closed and self._resync.is_zero(self.position, len(self.data))):
            self.preallocated += left
            self.position += left
            raise StopIteration
        return self._fault(cause)

    def resume_at(self, position: int, next_offset: int) -> None:
        """Continue at ``position``. The caller has found complete, valid batches of magic 2 up to this byte."""
        self._walked_to(position, next_offset, 2)
        self._reader = self._read_from(position)

    def _read_from(self, position: int) -> BatchReader:
        reader = BatchReader(self.data, self.options)
        reader.position = position
        return reader

    def _walked_to(self, position: int, next_offset: int, magic: int) -> None:
        self.position, self._next_offset, self._newest = position, next_offset, max(magic, self._newest)
        if position - self._released > WINDOW:
            # Pages are released after reading, so a scan of any file uses the same amount of memory.
            self._released = release(self.data, self._released, position)

    def _fault(self, cause: RecordError | None) -> LogFileError:
        position, stated = self.position, self._reader.position
        reason = self._partial(position) if cause is None else cause.reason
        self.position = self._after(position, stated)
        if self._resync.is_zero(position, self.position):
            cause, reason = None, f"{self.position - position} bytes that are all zero"
        elif self._resync.exhausted and self.position == len(self.data):
            reason += "; too much after it looks like a batch, so the search for the next batch has ended"
        skipped = self.position - position
        error = LogFileError(file=str(self._path), position=position, skipped=skipped, reason=reason)
        error.__cause__ = cause
        self._reader = self._read_from(self.position)
        return error

    def _partial(self, position: int) -> str:
        left = len(self.data) - position
        if left <= MAGIC_OFFSET:
            return f"{left} bytes left, too few for a batch"
        return f"a batch of {stated_size(self.data, position)} bytes, {left} left"

    def _after(self, position: int, stated: int) -> int:
        """Return the position after a fault: the stated end of the batch, if that end is possible."""
        end = len(self.data)
        if position < stated and looks_like_batch(self.data, stated):
            return stated
        if position < stated and not self._resync.exhausted and self._resync.is_zero(stated, end):
            return stated
        self._resync.spend(max(min(stated, end) - position, 0))
        return self._resync.next_batch(position + 1, self._next_offset, legacy=self._newest < 2)


class BatchStart(NamedTuple):
    """The position and size of a batch in bytes, from the start of its header."""

    position: int
    size: int
    base_offset: int
    magic: int


def walk_headers(data: Mapped, start: int = 0) -> Iterator[BatchStart]:
    """Yield the batch positions from ``start`` on, as long as each header leads to another batch.

    Only headers are read. Checksums are not computed.
    """
    position, size, released = start, len(data), start
    while size - position > MAGIC_OFFSET:
        if position - released > WINDOW:
            released = release(data, released, position)
        offset, stated, _, magic = START.unpack_from(data, position)
        stated += LENGTH_AND_OFFSET_STRUCT
        if not (0 <= magic <= 2 and MAGIC_OFFSET < stated <= size - position):
            return
        yield BatchStart(position, stated, offset, magic)
        position += stated
