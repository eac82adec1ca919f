"""The resume and end positions of reads from a growing log: its current partitions, and the offsets of a checkpoint.

Detects lost data: records removed by retention, an end that moved back, a deleted partition, a recreated topic.
``log_stream`` reads the records between two positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import groupby, pairwise
from typing import Any, NamedTuple, TypeAlias

from attrs import field, frozen

from kafka_msgs.errors import OffsetPositionError, OptionError
from kafka_msgs.filesystems.path_resolution import LogFile, small_copy
from kafka_msgs.log.small_files import PARTITION_METADATA, read_partition_metadata
from kafka_msgs.spark.sources.offset_bounds import offset_of
from kafka_msgs.spark.sources.offset_options import LARGEST, Place, StartingOffsets, offsets_in, to_json
from kafka_msgs.spark.sources.read_committed import trail_of
from kafka_msgs.spark.sources.segment_lookup import SegmentLookup

__all__ = ["LogOffsets", "Offsets", "TailedLog", "TailedPartition"]

Offsets: TypeAlias = dict[Place, int]


@frozen
class LogOffsets:
    """A position in Spark's checkpoint: the next offset of each partition, and the known topic ids."""

    offsets: Offsets
    topic_ids: Mapping[str, str] = field(factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the position in the checkpoint format."""
        return {"offsets": to_json(self.offsets), "topicIds": dict(sorted(self.topic_ids.items()))}

    @classmethod
    def from_json(cls, value: Any) -> LogOffsets:
        """Return the position in a checkpoint. Raises ``OptionError`` for another format."""
        try:
            return cls(offsets_in(value["offsets"]), {str(name): str(each) for name, each in value["topicIds"].items()})
        except (AttributeError, KeyError, TypeError, ValueError) as wrong:
            reason = "it does not have the position of a stream of log files"
            raise OptionError(source="kafka-log", option="checkpointLocation", value=value, reason=reason) from wrong


class ResumePosition(NamedTuple):
    """The offset to resume from (None if the partition is skipped), and the lost records (None if there are none)."""

    offset: int | None
    lost: str | None = None


@frozen
class TailedPartition:
    """The current state of a partition: its segments, its log end offset, and the offset up to which it may be read.

    With ``read_committed``, ``end`` may be higher than ``stable``, the start of the first open transaction.
    """

    files: tuple[LogFile, ...]
    end: int
    stable: int

    @classmethod
    def of(cls, files: tuple[LogFile, ...], *, committed: bool) -> TailedPartition:
        """Return the current state from files. Raises ``OSError``."""
        end = files[-1].base_offset or 0
        # A topic may be deleted after it was listed; the next listing shows that.
        with suppress(FileNotFoundError):
            end = SegmentLookup(files[-1]).end_offset()
        unstable = trail_of(files[-1:], LARGEST)[1].followed().last_stable_offset if committed else None
        return cls(files, end, end if unstable is None else min(end, unstable))

    @property
    def first(self) -> int:
        """The base offset of the first segment."""
        return self.files[0].base_offset or 0

    def at(self, position: StartingOffsets) -> int:
        """Return the current offset of a position."""
        found = offset_of(position, self.files[0], self._lookups())
        return self.stable if found == LARGEST else max(found, self.first)

    def batch_end(self, offset: int) -> int:
        """Return the end of the batch that reaches ``offset`` or follows it, so that batches are not split."""
        for lookup, (_, after) in zip(self._lookups(), self._spans(), strict=True):
            if after >= offset and (found := lookup.batch_end(offset)) is not None:
                return min(found, self.stable)
        return self.stable

    def going(self, offset: int) -> ResumePosition:
        """Return the position to resume from after a read up to ``offset``."""
        if self.end < offset:
            return ResumePosition(self.end, f"it ends at offset {self.end}, before offset {offset}")
        if offset < self.first:
            return ResumePosition(self.first, f"it begins at offset {self.first}, after offset {offset}")
        return ResumePosition(offset)

    def _lookups(self) -> list[SegmentLookup]:
        return [SegmentLookup(file, after) for file, after in self._spans()]

    def _spans(self) -> list[tuple[LogFile, int]]:
        """Return the segments, each with the base offset of the next one."""
        return [(file, after.base_offset or 0) for file, after in pairwise(self.files)] + [(self.files[-1], LARGEST)]


@frozen
class TailedLog:
    """The current partitions of a log directory, and their topic ids."""

    partitions: Mapping[Place, TailedPartition]
    topic_ids: Mapping[str, str]

    @classmethod
    def of(cls, source: str, files: Iterable[LogFile], *, committed: bool) -> TailedLog:
        """Return the current state from sorted files. Raises ``OptionError``, ``OSError`` and ``LogFileError``.

        Files that are not segments in a partition directory cannot be part of a checkpoint, and are ignored.
        """
        own = [file for file in files if _place(file) is not None]
        groups = {place: tuple(group) for place, group in groupby(own, key=_place) if place is not None}
        if not groups:
            reason = "a stream needs segments in directories of partitions"
            raise OptionError(source=source, option="path", value=None, reason=reason)
        heads = {topic: group[0] for (topic, _), group in reversed(groups.items())}
        found = ((topic, _topic_id(head)) for topic, head in heads.items())
        return cls(
            {place: TailedPartition.of(group, committed=committed) for place, group in groups.items()},
            {topic: topic_id for topic, topic_id in found if topic_id is not None},
        )

    @property
    def files(self) -> list[LogFile]:
        """The segments in order."""
        return [file for each in self.partitions.values() for file in each.files]

    def position(self, offsets: Offsets) -> LogOffsets:
        """Return offsets in this log as a position for the checkpoint."""
        topics = {topic for topic, _ in offsets}
        return LogOffsets(offsets, {topic: each for topic, each in self.topic_ids.items() if topic in topics})

    def goes_on(self, reached: LogOffsets, *, fails: bool) -> Offsets:
        """Return the offsets to resume from in the partitions of a position.

        If records were lost, raises ``OffsetPositionError`` with ``fails``. Without it, reading resumes at the first
        remaining record, and deleted partitions are skipped.
        """
        found = {}
        for place, offset in reached.offsets.items():
            going = self._going(place, offset, reached.topic_ids.get(place[0]))
            if going.lost is not None and fails:
                reason = f"{going.lost}: records were lost (failOnDataLoss)"
                raise OffsetPositionError(topic=place[0], partition=place[1], reason=reason)
            if going.offset is not None:
                found[place] = going.offset
        return found

    def _going(self, place: Place, offset: int, topic_id: str | None) -> ResumePosition:
        partition, now = self.partitions.get(place), self.topic_ids.get(place[0])
        if partition is None:
            return ResumePosition(None, "it is not there any more")
        if topic_id is not None and now is not None and topic_id != now:
            return ResumePosition(partition.first, f"the topic was created again: its id is {now}, and was {topic_id}")
        return partition.going(offset)


def _place(file: LogFile) -> Place | None:
    if file.topic is None or file.partition is None or file.base_offset is None or not file.path.endswith(".log"):
        return None
    return file.topic, file.partition


def _topic_id(file: LogFile) -> str | None:
    """Return the topic id of a file, or None if the metadata file is missing."""
    try:
        with small_copy(file.sibling(PARTITION_METADATA)) as (path, _):
            return str(read_partition_metadata(path).topic_id)
    except FileNotFoundError:
        return None
