"""The job ``group-offsets`` in tasks of Spark: each reads one partition of ``__consumer_offsets``, on any filesystem.

Owns what a run is given from paths, and the one query of Spark. What a task does is ``kafka_msgs.pipeline``: rows are
reduced where they are read, and do not pass through the JVM.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kafka_msgs.filesystems.files import LogFile
from kafka_msgs.filesystems.settings import NO_SETTINGS, Settings
from kafka_msgs.log.partition import Partition
from kafka_msgs.offline.groups import OFFSETS_TOPIC
from kafka_msgs.pipeline.group_offsets import Each, Run
from kafka_msgs.pipeline.logs import LogSegment, Opened, Piece
from kafka_msgs.pipeline.offsets_log import Log, Summary
from kafka_msgs.spark.jobs.log_directories import StoredPartition, directory_of, end_of, partitions_in, topic_id_of
from kafka_msgs.spark.sources.pruning import Stretch
from kafka_msgs.spark.sources.splits import copied, parts_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["in_tasks", "spark_run"]

_PIECE_BYTES: Final = 32 << 20
"""How much of a segment of another filesystem is on the disk of a worker at a time."""


def spark_run(
    inputs: Sequence[str | os.PathLike[str]],
    ends: Mapping[tuple[str, int], int] | None = None,
    *,
    history: bool = False,
    settings: Settings = NO_SETTINGS,
) -> Run:
    """Return the run over paths of the source ``kafka-log``. ``ends`` are by default those of the partitions in them.

    ``settings`` are those of filesystems. The end of a partition whose last segment was deleted meanwhile is unknown.

    Raises what ``partitions_in`` raises, and ``OSError``.
    """
    own, every = partitions_in(inputs, OFFSETS_TOPIC, settings), partitions_in(inputs, settings=settings)
    known = _ends(every) if ends is None else ends
    local = {(each.topic, each.number): path for each in every if (path := directory_of(each)) is not None}
    places = {place: Partition(Path(path)) for place, path in local.items()}
    logs = tuple(
        Log(number=each.number, topic_id=topic_id_of(each), segments=tuple(map(_segment, each.segments)))
        for each in own
    )
    named = tuple(os.fspath(each) for each in inputs)
    return Run(inputs=named, logs=logs, ends=known, places=places, history=history)


def _ends(partitions: Iterable[StoredPartition]) -> dict[tuple[str, int], int]:
    found = {(each.topic, each.number): end_of(each) for each in partitions}
    return {place: end for place, end in found.items() if end is not None}


def in_tasks(spark: SparkSession) -> Each:
    """Return the engine that reads every partition in a task of its own, the largest ones first."""

    def each(function: Callable[[Log], Summary], logs: Sequence[Log]) -> Iterator[Summary]:
        ordered = sorted(logs, key=lambda log: log.size, reverse=True)

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch["id"].to_pylist():
                    summary = pickle.dumps(function(ordered[number]))
                    yield pa.RecordBatch.from_arrays([pa.array([summary], pa.binary())], names=["summary"])

        frame = spark.range(0, len(ordered), 1, len(ordered)).mapInArrow(work, "summary binary")
        return (pickle.loads(row["summary"]) for row in frame.collect())

    return each


def _segment(file: LogFile) -> LogSegment:
    return LogSegment(file.name, file.base_offset or 0, file.size, partial(_pieces, file))


def _pieces(file: LogFile, start: int) -> Iterator[Piece]:
    """Yield a segment of this machine whole, and one of another filesystem in pieces."""
    if not file.root:
        yield Piece(start, None, partial(_whole, file.path))
    elif start < file.size:
        for part in parts_of(Stretch(file, start, file.size), _PIECE_BYTES):
            yield Piece(part.start, part.end, partial(copied, part))


def _whole(path: str) -> Opened:
    return nullcontext((Path(path), 0))
