"""The partitions in log directories, and the end offset of each.

This module owns the selection of partitions, and reads files of end offsets from Kafka's own tool. ``kafka_msgs.log``
reads all other files.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias
from uuid import UUID

from kafka_msgs.errors import JobPathError, KafkaMsgsError, LogFileError
from kafka_msgs.log.batch_runs import walk_runs
from kafka_msgs.log.file_names import named_partition
from kafka_msgs.log.file_scan import FileScan
from kafka_msgs.log.log_directory import LogDirectory, Partition
from kafka_msgs.log.segment import Segment
from kafka_msgs.records import ReadOptions

__all__ = [
    "EndOffsets",
    "Progress",
    "end_of_segment",
    "end_offset_of",
    "end_offsets_in",
    "end_offsets_of",
    "partitions_in",
    "topic_names",
]

EndOffsets: TypeAlias = Mapping[tuple[str, int], int]
"""The offset after the last record, by topic and partition."""

_END: Final = re.compile(r"(?P<topic>[^:\s]{1,249}):(?P<partition>[0-9]{1,10}):(?P<offset>[0-9]{1,19})")


class Progress:
    """Receives the progress of readers: the current segment and its bytes read. This base class does nothing."""

    def file(self, path: Path) -> None:
        """Handle the opening of a segment. Earlier segments are completely read."""

    def read(self, position: int) -> None:
        """Handle progress in the segment: the bytes before ``position`` are read."""


def partitions_in(paths: Iterable[Path]) -> list[Partition]:
    """Return the partitions in paths, sorted by topic and number. Each path is a log directory or the directory of one
    partition.

    Raises ``JobPathError`` for a path without partitions, and for a partition that is found twice: copies of a
    partition may have been compacted at different times, and records deleted in one copy would reappear from another.
    """
    found: dict[tuple[str, int], Partition] = {}
    for path in paths:
        for each in _partitions_of(path):
            other = found.setdefault((each.topic, each.partition), each)
            if other.path.resolve() != each.path.resolve():
                reason = f"another copy of this partition is {other.path}; give one of them"
                raise JobPathError(path=str(each.path), reason=reason)
    return [found[key] for key in sorted(found)]


def _partitions_of(path: Path) -> tuple[Partition, ...]:
    if not path.is_dir():
        raise JobPathError(path=str(path), reason="is not a directory")
    own = Partition(path.resolve() if path.name in ("", "..") else path)
    found = (own,) if named_partition(own.path.name) and own.segments else LogDirectory(path).partitions
    if not found:
        raise JobPathError(path=str(path), reason="there is no partition in it")
    return found


def end_offset_of(partition: Partition) -> int | None:
    """Return the log end offset of a partition, from its last segment.

    Return None without a segment, and for a partition that a running broker deletes in the meantime.
    """
    segments = partition.segments
    try:
        return end_of_segment(segments[-1]) if segments else None
    except FileNotFoundError:
        return None


def end_of_segment(last: Segment) -> int:
    """Return the offset after the last record of a segment, or its base offset if it has no records."""
    end = last.base_offset
    walk = FileScan(last.path, ReadOptions(check_crc=False), start=last.position_of(sys.maxsize))
    for item in walk_runs(walk):
        if not isinstance(item, KafkaMsgsError):
            end = item.last_offset + 1
    return end


def end_offsets_of(partitions: Iterable[Partition]) -> dict[tuple[str, int], int]:
    """Return the known end offsets of partitions."""
    end_offsets = {(each.topic, each.partition): end_offset_of(each) for each in partitions}
    return {place: end for place, end in end_offsets.items() if end is not None}


def end_offsets_in(path: Path) -> dict[tuple[str, int], int]:
    """Return the end offsets in a file of lines ``topic:partition:offset``, the format of ``kafka-get-offsets``.

    Raises ``JobPathError`` for any other line, and ``OSError``.
    """
    end_offsets = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = _END.fullmatch(line.strip())
        if match is not None:
            end_offsets[match["topic"], int(match["partition"])] = int(match["offset"])
        elif line.strip():
            raise JobPathError(path=f"{path}, line {number}", reason="expected topic:partition:offset")
    return end_offsets


def topic_names(partitions: Iterable[Partition]) -> dict[UUID, str]:
    """Return topic names by topic id, as far as ``partition.metadata`` files exist. Raises ``OSError``."""
    topic_names = {}
    for each in partitions:
        try:
            topic_names[each.metadata().topic_id] = each.topic
        except (LogFileError, FileNotFoundError):
            continue
    return topic_names
