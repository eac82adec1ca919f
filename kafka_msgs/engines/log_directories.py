"""The partitions in the log directories of a job, and their log end offsets.

Resolves the input paths of jobs, on any filesystem. The source ``kafka-log`` accepts the same paths and reads the
records. ``kafka_msgs.log`` reads the file of end offsets.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import frozen

from kafka_msgs.errors import JobPathError, LogFileError, OptionError
from kafka_msgs.filesystems.location import mask_uri
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.filesystems.path_resolution import LogFile, local_copy, log_files, small_copy
from kafka_msgs.log.partition_discovery import end_of_segment, end_offsets_in
from kafka_msgs.log.segment import Segment
from kafka_msgs.log.small_files import PARTITION_METADATA, read_partition_metadata
from kafka_msgs.spark.sources.offset_options import LARGEST
from kafka_msgs.spark.sources.segment_lookup import SegmentLookup

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["StoredPartition", "log_frame", "partitions_frame", "partitions_in", "read_end_offsets"]

_PARTITIONS: Final = "topic string, partition int, topicId string, endOffset long, directory string"
_ENDS: Final = "topic string, partition int, endOffset long"
_EVERYTHING: Final = {"control": "true", "isolation": "read_uncommitted", "mode": "PERMISSIVE", "columns": "*"}


@frozen
class StoredPartition:
    """A partition in the inputs of a job, on any filesystem: its segments, in the order of their offsets."""

    topic: str
    number: int
    segments: tuple[LogFile, ...]


def partitions_in(
    paths: Sequence[str | os.PathLike[str]], topic: str | None = None, fs_options: FilesystemOptions = NO_OPTIONS
) -> list[StoredPartition]:
    """Return the partitions at paths of the source ``kafka-log``, sorted by topic and number.

    ``topic`` limits them to one topic. ``fs_options`` are filesystem options. Raises ``JobPathError`` for a path
    without partitions, and for a partition that is found twice: copies of a replicated partition may have been
    compacted at different times, and records deleted in one copy would reappear from another. Raises ``OSError``.
    """
    texts = [os.fspath(path) for path in paths]
    try:
        files = log_files("kafka-log", texts, fs_options=fs_options)
    except OptionError as error:
        raise JobPathError(path=str(error.value), reason=error.reason) from error
    found = [
        StoredPartition(name, number, tuple(group))
        for (name, number), group in groupby(files, key=lambda file: (file.topic, file.partition))
        if name is not None and number is not None and topic in (None, name)
    ]
    if not found:
        what = "no partition" if topic is None else f"no partition of {topic}"
        raise JobPathError(path=", ".join(map(mask_uri, texts)), reason=f"there is {what} in it")
    return found


def end_of(partition: StoredPartition) -> int | None:
    """Return the log end offset of a partition, from its last segment. Raises ``OSError``.

    On a remote filesystem, only the batches after the last entry of the offset index are fetched. Returns None if the
    segment was deleted after the listing; the reader of its records reports that.
    """
    last = partition.segments[-1]
    try:
        start = SegmentLookup(last).position_before(LARGEST) if last.root else 0
        with local_copy(last, start) as (path, _):
            return end_of_segment(Segment(path))
    except FileNotFoundError:
        return None


def log_frame(spark: SparkSession, paths: Sequence[str | os.PathLike[str]], topic: str | None = None) -> DataFrame:
    """Return all rows of the partitions at paths, optionally of one topic, including control records and damage."""
    options = _EVERYTHING if topic is None else {**_EVERYTHING, "topics": topic}
    return spark.read.format("kafka-log").options(**options).load([os.fspath(path) for path in paths])


def partitions_frame(spark: SparkSession, partitions: Iterable[StoredPartition]) -> DataFrame:
    """Return ``topic``, ``partition``, ``topicId``, ``endOffset`` and ``directory`` of partitions.

    An unknown id is null, and so is a directory on another filesystem.
    """
    rows = [(each.topic, each.number, topic_id_of(each), end_of(each), directory_of(each)) for each in partitions]
    return spark.createDataFrame(rows, _PARTITIONS)


def directory_of(partition: StoredPartition) -> str | None:
    """Return the local directory of a partition, or None if it is on another filesystem."""
    first = partition.segments[0]
    return None if first.root else first.directory


def topic_id_of(partition: StoredPartition) -> str | None:
    """Return the topic id from the file next to the segments, or None if the file is missing or damaged."""
    try:
        with small_copy(partition.segments[0].sibling(PARTITION_METADATA)) as (path, _):
            return str(read_partition_metadata(path).topic_id)
    except (LogFileError, OSError):
        return None


def read_end_offsets(spark: SparkSession, path: Path) -> DataFrame:
    """Return ``topic``, ``partition`` and ``endOffset`` from a file with the output of ``kafka-get-offsets``.

    Raises ``JobPathError`` for any other line, and ``OSError``.
    """
    ends = end_offsets_in(path)
    return spark.createDataFrame([(*place, offset) for place, offset in ends.items()], _ENDS)
