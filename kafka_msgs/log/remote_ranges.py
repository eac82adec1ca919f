"""The complete log of a tiered partition: assigns offsets to remote and local segments.

This module combines the metadata topic, or only object names, with a log directory, so that each offset is read once
(KIP-405). ``kafka_msgs.internal_topics.remote_log`` interprets the records, and ``kafka_msgs.log.remote_naming`` the
names. ``tiered_partitions`` reads remote storage in a local directory; the Spark sources read it on any filesystem.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias
from uuid import UUID

from attrs import evolve, frozen

from kafka_msgs.errors import JobPathError, LogFileError, RemoteFormatError
from kafka_msgs.internal_topics.batch_decoding import decode_batches
from kafka_msgs.internal_topics.remote_log import RemoteLog, RemotePartition, RemoteSegmentRange, replay_remote_log
from kafka_msgs.log.file_scan import AnyBatch, walk_log
from kafka_msgs.log.remote_naming import SegmentName
from kafka_msgs.log.segment import LARGEST, next_offsets
from kafka_msgs.log.small_files import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    read_leader_epochs,
    read_partition_metadata,
)

__all__ = [
    "METADATA_TOPIC",
    "LocalLogBounds",
    "RemoteOffsetRange",
    "TopicPlace",
    "ranges_by_metadata",
    "ranges_by_names",
    "read_remote_log",
]

METADATA_TOPIC: Final = "__remote_log_metadata"
"""The topic with the metadata of remote segments."""

TopicPlace: TypeAlias = tuple[str, int]
"""A topic and a partition number."""


@frozen(kw_only=True)
class LocalLogBounds:
    """The bounds of a partition in a broker's log directory. None means unknown.

    ``first`` is the base offset of the first local segment. Local segments are read from there on. ``lineage`` contains
    the leader epochs with their start offsets. Records below ``log_start`` are deleted.
    """

    first: int
    topic_id: UUID | None = None
    lineage: Sequence[tuple[int, int]] | None = None
    log_start: int = 0

    @classmethod
    def of(cls, first: int, log_start: int, read: Callable[[str, Callable[[Path], Any]], Any]) -> LocalLogBounds:
        """Return the bounds from the small files in the directory of a partition, as far as these exist.

        ``read`` applies a function to the file with a name, and returns None if it does not exist.
        """
        metadata = read(PARTITION_METADATA, read_partition_metadata)
        lineage = read(LEADER_EPOCHS, read_leader_epochs)
        return cls(first=first, topic_id=metadata and metadata.topic_id, lineage=lineage, log_start=log_start)


@frozen(kw_only=True)
class RemoteOffsetRange:
    """A segment in remote storage, and the offsets to read from it: from ``start`` to before ``end``.

    ``segment_end`` is the offset after the last one of the segment, or None if unknown. ``size`` is the size of the
    segment in bytes, or None if only the object contains it. ``no_aborted`` is True if it is known to contain no
    aborted transaction.
    """

    name: SegmentName
    start: int
    end: int
    segment_end: int | None = None
    size: int | None = None
    no_aborted: bool = False

    def check_object(self, file: str, size: int | None, manifest: Callable[[], object] | None, named: bool) -> None:
        """Raise ``RemoteFormatError`` for an object of another size than the segment, which its plugin has transformed.

        ``size`` is None for a missing object. ``manifest`` reads the manifest, which contains the reason for a segment
        that is not stored in its original form. It is also read if only the name is known (``named``).
        """
        differs = size not in (None, self.size)
        if manifest is not None and (differs or (named and size is not None)):
            manifest()
        if differs:
            sizes = f"the object has {size} bytes, and the segment {self.size}"
            raise RemoteFormatError(file=file, reason=f"{sizes}: its plugin stores it in another form")


def read_remote_log(paths: Iterable[Path]) -> RemoteLog:
    """Return the state from ``__remote_log_metadata`` segments, given in the order of partitions and offsets.

    A truncated batch at the end of a file is skipped, because a running broker may still be writing it. Raises
    ``LogFileError`` for other damage, because a missing record may make the state wrong. Also raises the errors of
    ``decode_batches``, and ``OSError``.
    """
    return replay_remote_log(decode_batches(METADATA_TOPIC, (batch for path in paths for batch in _batches(path))))


def _batches(path: Path) -> Iterator[AnyBatch]:
    size = path.stat().st_size
    for item in walk_log(path):
        if not isinstance(item, LogFileError):
            yield item
        elif item.__cause__ is not None or item.position + item.skipped < size:
            raise item


def ranges_by_metadata(
    log: RemoteLog, local: Mapping[TopicPlace, LocalLogBounds]
) -> dict[TopicPlace, tuple[RemoteOffsetRange, ...]]:
    """Return the ranges to read from remote storage, by partition, in the order of offsets.

    If a local log exists, its lineage of leader epochs decides which segment an offset is read from, remote segments
    are read up to its start, and its topic id distinguishes topics with the same name. Without a local log, the lineage
    is derived from the segments, and the most recently changed topic is used. Partitions that are being deleted are
    skipped.
    """
    chosen: dict[TopicPlace, tuple[int, RemotePartition]] = {}
    for partition in log.partitions.values():
        place = partition.place.topic, partition.place.partition
        known = local.get(place)
        other = known is not None and known.topic_id not in (None, partition.place.topic_id)
        changed = max((each.event_timestamp for each in partition.segments.values()), default=-1)
        if partition.deletion is None and not other and (place not in chosen or changed > chosen[place][0]):
            chosen[place] = changed, partition
    return {place: _ranges(partition, local.get(place)) for place, (_, partition) in chosen.items()}


def _ranges(partition: RemotePartition, local: LocalLogBounds | None) -> tuple[RemoteOffsetRange, ...]:
    return _clipped(map(_of, partition.ranges(local.lineage if local else None)), local)


def _of(found: RemoteSegmentRange) -> RemoteOffsetRange:
    segment, place = found.segment, found.segment.place
    return RemoteOffsetRange(
        name=SegmentName(place.topic, place.topic_id, place.partition, segment.start_offset, segment.segment_id),
        start=found.start,
        end=min(found.end, LARGEST),
        segment_end=min(segment.end_offset + 1, LARGEST),
        size=segment.size,
        no_aborted=segment.txn_index_empty,
    )


def ranges_by_names(
    sizes: Mapping[SegmentName, int], local: Mapping[TopicPlace, LocalLogBounds]
) -> dict[TopicPlace, tuple[RemoteOffsetRange, ...]]:
    """Return the ranges to read from remote storage, by partition, using only the names and sizes of segments.

    Each segment is read up to the start of the next one; of several with the same start, the largest is read. This is
    less exact than the metadata: it includes segments with an unfinished copy or deletion, and segments of a leader
    whose records were replaced. Raises ``JobPathError`` for two topics of the same name, unless a local log has the id.
    """
    found: defaultdict[TopicPlace, dict[int, SegmentName]] = defaultdict(dict)
    ids: dict[str, SegmentName] = {}
    for name in sorted(sizes, key=lambda each: (sizes[each], str(each.segment_id))):
        place = name.topic, name.partition
        known = local[place].topic_id if place in local else None
        if known is not None and name.topic_id not in (None, known):
            continue
        if known is None and ids.setdefault(name.topic, name).topic_id != name.topic_id:
            reason = f"topics with two ids have this name, {ids[name.topic].topic_id} and {name.topic_id}"
            raise JobPathError(path=name.topic, reason=f"{reason}: give the metadata topic, or the local log")
        found[place][name.offset] = name
    return {place: _clipped(_successive(topic_names, sizes), local.get(place)) for place, topic_names in found.items()}


def _successive(
    topic_names: Mapping[int, SegmentName], sizes: Mapping[SegmentName, int]
) -> Iterator[RemoteOffsetRange]:
    starts = sorted(topic_names)
    for start, end in zip(starts, next_offsets(starts), strict=True):
        yield RemoteOffsetRange(name=topic_names[start], start=start, end=end, size=sizes[topic_names[start]])


def _clipped(ranges: Iterable[RemoteOffsetRange], local: LocalLogBounds | None) -> tuple[RemoteOffsetRange, ...]:
    """Return the parts of ranges between the log start offset and the first local offset."""
    start, end = (local.log_start, local.first) if local else (0, LARGEST)
    clipped = (evolve(each, start=max(each.start, start), end=min(each.end, end)) for each in ranges)
    return tuple(each for each in clipped if each.start < each.end)
