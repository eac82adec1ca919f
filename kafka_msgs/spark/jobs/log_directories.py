"""What a job takes from log directories beside their records: which partitions there are, and where they end.

Owns the paths that jobs are given, and the files of end offsets that Kafka's own tool prints. Records themselves are
read by the source ``kafka-log``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka_msgs.errors import JobPathError, LogFileError
from kafka_msgs.log.faults import without_faults
from kafka_msgs.log.partition import LogDirectory, Partition
from kafka_msgs.log.scan import walk_log
from kafka_msgs.records import ReadOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["end_of", "log_frame", "partitions_frame", "partitions_in", "read_end_offsets"]

_PARTITIONS: Final = "topic string, partition int, topicId string, endOffset long"
_ENDS: Final = "topic string, partition int, endOffset long"
_END: Final = re.compile(r"(?P<topic>[^:\s]{1,249}):(?P<partition>[0-9]{1,10}):(?P<offset>[0-9]{1,19})")
_EVERYTHING: Final = {"control": "true", "isolation": "read_uncommitted", "mode": "PERMISSIVE"}


def partitions_in(paths: Iterable[Path], topic: str | None = None) -> list[Partition]:
    """Return the partitions that paths hold, each a log directory or the directory of one partition.

    With ``topic`` only those of that topic. Raises ``JobPathError`` for a path that holds none, and for a partition
    that is there twice: the copies of a replicated partition may have been compacted at different times, and what is
    deleted in one would come back from the other.
    """
    found: dict[tuple[str, int], Partition] = {}
    for path in paths:
        held = [each for each in _held(path) if topic in (None, each.topic)]
        if not held:
            reason = "no partition" if topic is None else f"no partition of {topic}"
            raise JobPathError(path=str(path), reason=f"there is {reason} in it")
        for each in held:
            other = found.setdefault((each.topic, each.number), each)
            if other.path.resolve() != each.path.resolve():
                reason = f"another copy of this partition is {other.path}; give one of them"
                raise JobPathError(path=str(each.path), reason=reason)
    return list(found.values())


def _held(path: Path) -> tuple[Partition, ...]:
    if not path.is_dir():
        raise JobPathError(path=str(path), reason="is no directory")
    return (Partition(path),) if any(path.glob("*.log")) else LogDirectory(path).partitions


def end_of(partition: Partition) -> int | None:
    """Return the offset after the last record of a partition, as its files tell; None without a segment."""
    segments = partition.segments
    if not segments:
        return None
    last, end = segments[-1], segments[-1].base_offset
    items = walk_log(last.path, ReadOptions(check_crc=False), start=last.position_of(sys.maxsize))
    for batch in without_faults(items):
        end = batch.last_offset + 1
    return end


def log_frame(spark: SparkSession, partitions: Iterable[Partition]) -> DataFrame:
    """Return all rows of partitions, control records and damage included."""
    paths = ",".join(str(each.path.absolute()) for each in partitions)
    return spark.read.format("kafka-log").options(**_EVERYTHING).load(paths)


def partitions_frame(spark: SparkSession, partitions: Iterable[Partition]) -> DataFrame:
    """Return ``topic``, ``partition``, ``topicId`` and ``endOffset`` of partitions; what is not known is null."""
    rows = [(each.topic, each.number, _topic_id(each), end_of(each)) for each in partitions]
    return spark.createDataFrame(rows, _PARTITIONS)


def _topic_id(partition: Partition) -> str | None:
    try:
        return str(partition.metadata().topic_id)
    except (LogFileError, OSError):
        return None


def read_end_offsets(spark: SparkSession, path: Path) -> DataFrame:
    """Return ``topic``, ``partition`` and ``endOffset`` from a file of what ``kafka-get-offsets`` prints.

    That is a line ``topic:partition:offset`` a partition. Raises ``JobPathError`` and ``OSError``.
    """
    return spark.createDataFrame(list(_ends(path)), _ENDS)


def _ends(path: Path) -> Iterator[tuple[str, int, int]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = _END.fullmatch(line.strip())
        if match is None and line.strip():
            raise JobPathError(path=f"{path}, line {number}", reason="topic:partition:offset was expected")
        if match is not None:
            yield match["topic"], int(match["partition"]), int(match["offset"])
