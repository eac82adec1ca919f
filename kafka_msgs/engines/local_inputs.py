"""Local log directories as inputs of jobs that run in one process.

``kafka_msgs.spark`` supports other filesystems and clusters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from kafka_msgs.engines.partition_reader import PartitionInput, local_segment
from kafka_msgs.errors import JobPathError, LogFileError
from kafka_msgs.filesystems.location import Location
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.partition_discovery import end_offsets_of, partitions_in, topic_names
from kafka_msgs.log.timestamps import LocalTimes

__all__ = ["LocalInputs"]


class LocalInputs:
    """Log directories or partition directories.

    Raises ``JobPathError`` for a path on another filesystem, for a path without partitions, and for two copies of a
    partition; and ``OSError``.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(paths)
        self._partitions = partitions_in(map(_local, paths))

    def logs(self, topic: str | None = None) -> tuple[PartitionInput, ...]:
        """Return the partitions, optionally of one topic. Raises ``JobPathError`` if none is found, and ``OSError``."""
        found = tuple(_log(each) for each in self._partitions if topic in (None, each.topic))
        if not found:
            raise JobPathError(path=", ".join(self.paths), reason=f"there is no partition of {topic} in it")
        return found

    def local_partitions(self) -> dict[tuple[str, int], Partition]:
        """Return the partitions."""
        return {(each.topic, each.partition): each for each in self._partitions}

    def times(self) -> dict[tuple[str, int], LocalTimes]:
        """Return the logs for timestamp lookups."""
        return {place: LocalTimes(each) for place, each in self.local_partitions().items()}

    def ends(self) -> dict[tuple[str, int], int]:
        """Return the known log end offsets."""
        return end_offsets_of(self._partitions)

    def names(self) -> Mapping[str, str]:
        """Return the known topic names by topic id."""
        return {str(topic_id): name for topic_id, name in topic_names(self._partitions).items()}


def _local(text: str) -> Path:
    location = Location.parse(text)
    if not location.is_local:
        raise JobPathError(path=location.shown, reason="the local engine reads directories of this machine only")
    found = [Path(each) for each in location.decodings()]
    return next((each for each in found if each.exists()), found[0])


def _log(partition: Partition) -> PartitionInput:
    segments = tuple(local_segment(segment.path) for segment in partition.segments)
    read_id = partial(_topic_id, partition)
    return PartitionInput(topic=partition.topic, number=partition.partition, topic_id=read_id, segments=segments)


def _topic_id(partition: Partition) -> str | None:
    try:
        return str(partition.metadata().topic_id)
    except (LogFileError, OSError):
        return None
