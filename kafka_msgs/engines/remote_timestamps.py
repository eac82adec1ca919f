"""Timestamp lookups in partitions on other filesystems, for ``kafka_msgs.log.timestamps``.

Reads the minimum for a lookup: indexes or their ends, and a few batches. If a segment has no index, the result is
unknown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from kafka_msgs.filesystems.path_resolution import LogFile
from kafka_msgs.filesystems.segment_lookup import LARGEST, SegmentLookup

__all__ = ["RemoteTimestamps"]

_SMALL: Final = 2**20
"""The largest segment size in bytes that may be read completely."""


class RemoteTimestamps:
    """The times of a partition, by its segments in the order of their offsets."""

    def __init__(self, segments: Sequence[LogFile]) -> None:
        ends = [*(each.first for each in segments[1:]), LARGEST]
        self._firsts = [each.first for each in segments]
        self._segments = [(each, SegmentLookup(each, end)) for each, end in zip(segments, ends, strict=True)]
        self._last_times: dict[int, int | None] = {}

    def timestamp_at_or_after(self, offset: int) -> int | None:
        """Return the time of the first record at or after an offset, in milliseconds since the epoch, if known.

        Raises ``OSError``, and the error of an unreadable batch.
        """
        for file, segment in self._segments[max(bisect_right(self._firsts, offset) - 1, 0) :]:
            if not _is_cheap(file, segment):
                return None
            record = segment.record_from(offset)
            if record is not None:
                return record.timestamp if record.timestamp >= 0 else None
        return None

    def end_offset_at(self, moment: int, end: int) -> int | None:
        """Return the log end offset at a time, if known, or ``end`` if no record was written since then.

        Raises ``OSError``.
        """
        for number, (file, segment) in enumerate(self._segments):
            last = self._last_time(number)
            if last is not None and last < moment and file is not self._segments[-1][0]:
                continue
            if not _is_cheap(file, segment):
                return None
            found = segment.first_at(moment)
            if found is not None:
                return found
        return end

    def _last_time(self, number: int) -> int | None:
        """Return the last time in the index of a segment. Each index is read only once."""
        if number not in self._last_times:
            self._last_times[number] = self._segments[number][1].last_time()
        return self._last_times[number]

    def latest_timestamp(self) -> int | None:
        """Return the newest time of the last segment with timestamps, if known. Raises ``OSError``."""
        for file, segment in reversed(self._segments):
            with suppress(FileNotFoundError):
                found = segment.newest_time() if _is_cheap(file, segment) else segment.last_time()
                if found is not None:
                    return found
        return None


def _is_cheap(file: LogFile, segment: SegmentLookup) -> bool:
    return file.size <= _SMALL or segment.is_indexed
