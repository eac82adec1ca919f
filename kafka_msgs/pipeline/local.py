"""The job ``group-offsets`` in one process, over log directories of this machine.

Owns what a run is given from paths. ``kafka_msgs.spark`` does the same for other filesystems and for clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kafka_msgs.errors import JobPathError, LogFileError
from kafka_msgs.log.partition import Partition
from kafka_msgs.offline.directories import ends_of, partitions_in
from kafka_msgs.offline.groups import OFFSETS_TOPIC
from kafka_msgs.pipeline.group_offsets import Run
from kafka_msgs.pipeline.logs import local_segment
from kafka_msgs.pipeline.offsets_log import Log

__all__ = ["local_run"]


def local_run(
    inputs: Sequence[str], ends: Mapping[tuple[str, int], int] | None = None, *, history: bool = False
) -> Run:
    """Return the run over log directories, or directories of partitions. ``ends`` are by default those in the inputs.

    Raises ``JobPathError`` for a path of another filesystem, for one without partitions, for two copies of a partition,
    and if none is of ``__consumer_offsets``; and ``OSError``.
    """
    for each in inputs:
        if "://" in each:
            raise JobPathError(path=each, reason="the local engine reads directories of this machine only")
    partitions = partitions_in(map(Path, inputs))
    logs = tuple(_logs(each for each in partitions if each.topic == OFFSETS_TOPIC))
    if not logs:
        raise JobPathError(path=", ".join(inputs), reason=f"there is no partition of {OFFSETS_TOPIC} in it")
    known = ends_of(partitions) if ends is None else ends
    places = {(each.topic, each.number): each for each in partitions}
    return Run(inputs=tuple(inputs), logs=logs, ends=known, places=places, history=history)


def _logs(partitions: Iterable[Partition]) -> Iterable[Log]:
    for each in partitions:
        segments = tuple(local_segment(segment.path) for segment in each.segments)
        yield Log(number=each.number, topic_id=_topic_id(each), segments=segments)


def _topic_id(partition: Partition) -> str | None:
    try:
        return str(partition.metadata().topic_id)
    except (LogFileError, OSError):
        return None
