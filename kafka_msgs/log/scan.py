"""The walk over a file of batches: a segment (``.log``) or a KRaft snapshot (``.checkpoint``), whole or damaged.

Owns what is said where the bytes are no batch, and where the next batch after them is. Batches themselves are read by
``kafka_msgs.records``; where in a file to start is left to ``segment``.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final, Literal, TypeAlias, overload

from kafka_msgs.errors import LogFileError, RecordError
from kafka_msgs.log.faults import OnError, settled
from kafka_msgs.records import DEFAULT_MAX_DECOMPRESSED, LegacyBatch, RecordBatch, read_batches
from kafka_msgs.records.batch import HEADER_SIZE
from kafka_msgs.records.common import MAGIC_AT, SIZE_AND_OFFSET

__all__ = ["AnyBatch", "read_log"]

AnyBatch: TypeAlias = RecordBatch | LegacyBatch

_FROM_MAGIC: Final = re.compile(rb"\x02.{4}\x00[\x00-\x7f]", re.DOTALL)
"""The magic of a batch, its checksum, and its flags, of which the upper nine bits have no meaning."""
_NOT_ZERO: Final = re.compile(rb"[^\0]")
_START: Final = Struct(">qiib")
_RELEASED_EVERY: Final = 2**25
_CHECKED_AT_MOST: Final = 4


@overload
def read_log(
    path: Path,
    *,
    start: int = ...,
    on_error: Literal["raise", "skip"] = ...,
    check_crc: bool = ...,
    max_decompressed: int = ...,
    views: bool = ...,
) -> Iterator[AnyBatch]: ...
@overload
def read_log(
    path: Path,
    *,
    start: int = ...,
    on_error: OnError,
    check_crc: bool = ...,
    max_decompressed: int = ...,
    views: bool = ...,
) -> Iterator[AnyBatch | LogFileError]: ...
def read_log(
    path: Path,
    *,
    start: int = 0,
    on_error: OnError = "raise",
    check_crc: bool = True,
    max_decompressed: int = DEFAULT_MAX_DECOMPRESSED,
    views: bool = False,
) -> Iterator[AnyBatch | LogFileError]:
    """Yield the batches of a file in order; their ``position`` is the byte of the file.

    ``start`` is the byte of the batch to start at. The file is mapped, and one batch at a time is copied from it; the
    last three arguments are those of ``read_batches``. Where the bytes are no batch (a torn tail, a hole, a wrong
    checksum) there is a ``LogFileError``, whose cause is the error of the batch if there is one; ``on_error`` says
    whether it is raised, skipped, or yielded in its place among the batches. What follows the damage is read, if it is
    in the newest format. Raises ``OSError``.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else None
    if data is None:
        return iter(())
    scan = _Scan(path, data, check_crc=check_crc, max_decompressed=max_decompressed, views=views)
    return settled(scan.run(start), on_error)


class _Scan:
    """One walk over one file."""

    def __init__(self, path: Path, data: mmap.mmap, *, check_crc: bool, max_decompressed: int, views: bool) -> None:
        self._path = path
        self._data = data
        self._size = len(data)
        self._options = {"check_crc": check_crc, "max_decompressed": max_decompressed, "views": views}
        self._next_offset = 0
        self._released = 0

    def run(self, start: int) -> Iterator[AnyBatch | LogFileError]:
        position = start
        while position < self._size:
            cause: RecordError | None = None
            reader = read_batches(self._data, **self._options)  # type: ignore[arg-type]
            reader.position = position
            try:
                for batch in reader:
                    self._next_offset = batch.last_offset + 1
                    self._release(batch.position)
                    yield batch
                position = reader.position
                if position == self._size:
                    return
                reason = self._partial(position)
                after = self._next_batch(position + 1)
            except RecordError as fault:
                cause, position, reason = fault, fault.position, fault.reason
                after = self._after(position, reader.position)
            if self._zeros_until(position, after):
                reason = f"{after - position} bytes that are all zero"
            error = LogFileError(file=str(self._path), position=position, skipped=after - position, reason=reason)
            error.__cause__ = cause
            yield error
            position = after

    def _partial(self, position: int) -> str:
        left = self._size - position
        if left <= MAGIC_AT:
            return f"{left} bytes left, too few for a batch"
        _, size, _, _ = _START.unpack_from(self._data, position)
        return f"a batch of {size + SIZE_AND_OFFSET} bytes, {left} left"

    def _after(self, position: int, stated: int) -> int:
        """Return where the walk goes on after a fault: where the batch says that it ends, if that can be so."""
        if stated == self._size:
            return stated
        if position < stated <= self._size - _START.size:
            _, size, _, magic = _START.unpack_from(self._data, stated)
            if 0 <= magic <= 2 and SIZE_AND_OFFSET < size <= self._size - stated - SIZE_AND_OFFSET:
                return stated
        return self._next_batch(position + 1)

    def _next_batch(self, start: int) -> int:
        """Return where from ``start`` on a sound batch starts, or the end of the file.

        Candidates are few, unless someone made many: then the search ends when it has computed checksums over a few
        times the bytes of the file.
        """
        at, budget = start + MAGIC_AT, _CHECKED_AT_MOST * self._size
        while budget > 0 and (match := _FROM_MAGIC.search(self._data, at)):
            position, at = match.start() - MAGIC_AT, match.start() + 1
            offset, size, _, _ = _START.unpack_from(self._data, position)
            size += SIZE_AND_OFFSET
            if offset < self._next_offset or not HEADER_SIZE <= size <= self._size - position:
                continue
            budget -= size
            try:
                next(read_batches(self._data[position : position + size]))
            except RecordError:
                continue
            return position
        return self._size

    def _zeros_until(self, start: int, end: int) -> bool:
        return _NOT_ZERO.search(self._data, start, end) is None

    def _release(self, position: int) -> None:
        """Give back the pages behind ``position`` now and then, so that a scan of any file takes the same memory."""
        if position - self._released > _RELEASED_EVERY and hasattr(mmap, "MADV_DONTNEED"):
            behind = position // mmap.PAGESIZE * mmap.PAGESIZE
            self._data.madvise(mmap.MADV_DONTNEED, self._released, behind - self._released)
            self._released = behind
