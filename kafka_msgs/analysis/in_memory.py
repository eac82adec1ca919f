"""The in-memory engine: reducers over local partitions, for the commands on log directories.

It only reads records and collects problems. The jobs run the same reducers in tasks, and write files. ``memory_output``
collects the rows of a job's reducer, and needs the modules that write files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa
from attrs import frozen

from kafka_msgs.columns.log_table import walk_segment
from kafka_msgs.errors import LogFileError
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.partition_discovery import Progress

__all__ = ["ReadProblem", "read_partition"]

AddRecords: TypeAlias = Callable[[pa.RecordBatch, str, int], pa.Table]
"""Adds records of a file, given the base offset of its segment, to a reducer; returns the problems among them."""


@frozen(kw_only=True)
class ReadProblem:
    """Unreadable data: the ``topic``, ``partition`` and ``file``, and the reason.

    ``offset`` is the offset of a record, and ``position`` the byte of an unreadable part of the file.
    """

    topic: str
    partition: int
    offset: int | None = None
    position: int | None = None
    file: str
    reason: str


def read_partition(
    partition: Partition, add: AddRecords, columns: Sequence[str], progress: Progress
) -> Iterator[ReadProblem]:
    """Read the records of a partition with these columns into a reducer, and yield the problems.

    Raises ``OSError``.
    """
    topic, number = partition.topic, partition.partition
    segments = partition.segments
    for segment in segments:
        file, closed = str(segment.path.absolute()), segment is not segments[-1]
        for item in walk_segment(segment.path.absolute(), columns, progress, closed=closed):
            if isinstance(item, LogFileError):
                yield ReadProblem(topic=topic, partition=number, position=item.position, file=file, reason=str(item))
                continue
            for row in add(item, file, segment.base_offset).to_pylist():
                yield ReadProblem(
                    topic=topic, partition=number, offset=row["logOffset"], file=row["file"], reason=row["problem"]
                )
