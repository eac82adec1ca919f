"""Some offsets of a partition, and the batches of a file that hold them.

Owns what belongs to a range: its batches, and the damage that may have held records of it. Where in the file to begin
is left to ``lookup``. The result depends on the file and the range only, not on how near the beginning is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from kafka_msgs.columns.python import stated_offset
from kafka_msgs.errors import LogFileError
from kafka_msgs.log.faults import without_faults
from kafka_msgs.log.scan import AnyBatch, walk_log
from kafka_msgs.records import ReadOptions, RecordBatch
from kafka_msgs.spark.sources.ranges import LARGEST

__all__ = ["OffsetRange", "walk_range"]


@frozen
class OffsetRange:
    """The offsets from ``start`` on and before ``end``."""

    start: int = 0
    end: int = LARGEST

    def rows(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records of the range. The column ``offset`` is needed."""
        offsets = records.column("offset")
        return records.filter(pc.and_(pc.greater_equal(offsets, self.start), pc.less(offsets, self.end)))


def walk_range(
    path: Path, options: ReadOptions, offsets: OffsetRange | None, start: int, end: int
) -> Iterator[AnyBatch | LogFileError]:
    """Yield the batches between two bytes of a file that may hold records of a range, and the damage between them.

    Damage belongs to the range unless the sound batches around it show that it held no record of the range. Without a
    range everything is yielded.
    """
    first = start if offsets is None else _beginning(path, options, offsets, start, end)
    items = takewhile(lambda item: item.position < end, walk_log(path, options, start=first))
    yield from items if offsets is None else _within(items, offsets)


def _within(items: Iterable[AnyBatch | LogFileError], offsets: OffsetRange) -> Iterator[AnyBatch | LogFileError]:
    next_offset = offsets.start
    for item in items:
        if next_offset >= offsets.end:
            return
        if isinstance(item, LogFileError):
            yield item
        elif isinstance(item, RecordBatch) and item.base_offset >= offsets.end:
            return
        else:
            next_offset = item.last_offset + 1
            if next_offset > offsets.start:
                yield item


def _beginning(path: Path, options: ReadOptions, offsets: OffsetRange, start: int, end: int) -> int:
    """Return the last batch that starts at or before the range. Damage before it is not in the range."""
    found = start
    batches: Iterator[AnyBatch] = without_faults(walk_log(path, options, start=start))
    for batch in batches:
        if batch.position >= end or stated_offset(batch) > offsets.start:
            break
        found = batch.position
    return found
