"""Jobs as Spark tasks: each task reads one partition, on any filesystem.

Handles the job inputs at given paths, and the single Spark query. ``kafka_msgs.engines`` implements the tasks, which
reduce rows while reading them, so that rows do not pass through the JVM.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_msgs.engines.job import Engine
from kafka_msgs.engines.log_directories import StoredPartition, directory_of, end_of, partitions_in, topic_id_of
from kafka_msgs.engines.partition_reader import Opened, PartitionInput, SegmentInput, SegmentPart
from kafka_msgs.engines.partition_task import TaskResult
from kafka_msgs.engines.remote_timestamps import RemoteTimestamps
from kafka_msgs.errors import JobPathError
from kafka_msgs.filesystems.location import mask_uri
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.filesystems.path_resolution import LogFile
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.timestamps import LocalTimes, LogTimestamps
from kafka_msgs.spark.sources.offset_bounds import ByteRange
from kafka_msgs.spark.sources.splits import local_copy_of, parts_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["RemoteInputs", "spark_engine"]

_PIECE_BYTES: Final = 32 << 20
"""The maximum size of a remote segment's part on the disk of a worker."""


class RemoteInputs:
    """Job inputs at paths of the source ``kafka-log``, on any filesystem. ``fs_options`` are filesystem options.

    Raises the errors of ``partitions_in``.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]], fs_options: FilesystemOptions = NO_OPTIONS) -> None:
        self.paths = tuple(os.fspath(each) for each in paths)
        self._fs_options = fs_options
        self._partitions = partitions_in(paths, fs_options=fs_options)

    def logs(self, topic: str | None = None) -> tuple[PartitionInput, ...]:
        """Return the partitions, optionally of one topic. Raises ``JobPathError`` if none is found, and ``OSError``."""
        found = tuple(_log(each) for each in self._partitions if topic in (None, each.topic))
        if not found:
            shown = ", ".join(map(mask_uri, self.paths))
            raise JobPathError(path=shown, reason=f"there is no partition of {topic} in it")
        return found

    def local_partitions(self) -> dict[tuple[str, int], Partition]:
        """Return the partitions on this machine."""
        found = {(each.topic, each.number): directory_of(each) for each in self._partitions}
        return {place: Partition(Path(path)) for place, path in found.items() if path is not None}

    def times(self) -> dict[tuple[str, int], LogTimestamps]:
        """Return the logs of all partitions, for timestamp lookups."""
        here = self.local_partitions()
        places = {(each.topic, each.number): each for each in self._partitions}
        return {
            place: LocalTimes(here[place]) if place in here else RemoteTimestamps(each.segments)
            for place, each in places.items()
        }

    def ends(self) -> dict[tuple[str, int], int]:
        """Return the log end offsets, except of partitions whose last segment was deleted in the meantime."""
        found = {(each.topic, each.number): end_of(each) for each in self._partitions}
        return {place: end for place, end in found.items() if end is not None}

    def names(self) -> dict[str, str]:
        """Return the known topic names by topic id. Reads one file per partition."""
        found = {topic_id_of(each): each.topic for each in self._partitions}
        return {topic_id: name for topic_id, name in found.items() if topic_id is not None}


def _log(partition: StoredPartition) -> PartitionInput:
    segments = tuple(map(_segment, partition.segments))
    read_id = partial(topic_id_of, partition)
    return PartitionInput(topic=partition.topic, number=partition.number, topic_id=read_id, segments=segments)


def spark_engine(spark: SparkSession) -> Engine:
    """Return the engine that reads every partition in a separate task, the largest partitions first."""

    def each(
        function: Callable[[PartitionInput], TaskResult[Any]], logs: Sequence[PartitionInput]
    ) -> Iterator[TaskResult[Any]]:
        ordered = sorted(logs, key=lambda log: log.size, reverse=True)

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch["id"].to_pylist():
                    summary = _dumps(function(ordered[number]))
                    yield pa.RecordBatch.from_arrays([pa.array([summary], pa.binary())], names=["summary"])

        frame = spark.range(0, len(ordered), 1, len(ordered)).mapInArrow(work, "summary binary")
        return (pickle.loads(row["summary"]) for row in frame.collect())

    return each


class _TablePickler(pickle.Pickler):
    """Pickles tables as Arrow streams: a pickled slice would contain the buffers of its complete table."""

    def reducer_override(self, value: object) -> Any:
        """Return the reduced form of a table."""
        if not isinstance(value, pa.Table):
            return NotImplemented
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_table(value)
        return _read_table, (sink.getvalue().to_pybytes(),)


def _read_table(stream: bytes) -> pa.Table:
    return pa.ipc.open_stream(stream).read_all()


def _dumps(result: TaskResult[Any]) -> bytes:
    file = BytesIO()
    _TablePickler(file).dump(result)
    return file.getvalue()


def _segment(file: LogFile) -> SegmentInput:
    return SegmentInput(file.name, file.base_offset or 0, file.size, partial(_pieces, file))


def _pieces(file: LogFile, start: int) -> Iterator[SegmentPart]:
    """Yield a local segment as one part, and a remote segment as several parts."""
    if not file.root:
        yield SegmentPart(start, None, partial(_whole, file.path))
    elif start < file.size:
        for part in parts_of(ByteRange(file, start, file.size), _PIECE_BYTES):
            yield SegmentPart(part.start, part.end, partial(local_copy_of, part))


def _whole(path: str) -> Opened:
    return nullcontext((Path(path), 0))
