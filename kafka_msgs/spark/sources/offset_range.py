"""Offset ranges of a partition, and the batches of a file that contain them.

Defines the rules for the content of a range: its batches, and damage that may have contained records of it.
``segment_lookup`` finds the start position in the file. The result depends only on the file and the range, not on the
precision of the start position.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, frozen

from kafka_msgs.columns.python import stated_offset
from kafka_msgs.errors import LogFileError, RecordError
from kafka_msgs.log.batch_runs import Item, RunLimits, walk_runs
from kafka_msgs.log.faults import skip_faults
from kafka_msgs.log.file_scan import AnyBatch, FileScan, walk_log
from kafka_msgs.records import ReadOptions, RecordBatch
from kafka_msgs.spark.sources.offset_options import LARGEST

__all__ = ["OffsetRange", "walk_range"]


@frozen
class OffsetRange:
    """The offsets from ``start`` to before ``end``."""

    start: int = 0
    end: int = LARGEST

    def rows(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records within the range. Requires the column ``offset``."""
        offsets = records.column("offset")
        return records.filter(pc.and_(pc.greater_equal(offsets, self.start), pc.less(offsets, self.end)))


def walk_range(
    path: Path, options: ReadOptions, offsets: OffsetRange | None, start: int, limits: RunLimits
) -> Iterator[Item]:
    """Yield the batches of a file, from a byte on, that may contain records of a range, and the damage between them.

    Batches within the limits are yielded as runs. Damage belongs to the range unless the valid batches around it prove
    that it contained no record of the range. Without a range, all batches are yielded up to the end of the limits.
    """
    if offsets is None:
        yield from walk_runs(FileScan(path, options, start=start), limits)
        return
    first = _beginning(path, options, offsets, start, limits.stop)
    # The batches around the last offset of the range are yielded one by one, because the range ends there.
    within = evolve(limits, first=max(offsets.start, limits.first), last=min(offsets.end - 2, limits.last))
    yield from _within(walk_runs(FileScan(path, options, start=first), within), offsets)


def _within(items: Iterable[Item], offsets: OffsetRange) -> Iterator[Item]:
    next_offset = offsets.start
    for item in items:
        if next_offset >= offsets.end:
            return
        if isinstance(item, LogFileError | RecordError):
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
    batches: Iterator[AnyBatch] = skip_faults(walk_log(path, options, start=start))
    for batch in batches:
        if batch.position >= end or stated_offset(batch) > offsets.start:
            break
        found = batch.position
    return found
