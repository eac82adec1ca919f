"""The statistics of topics in log directories, in one process.

``kafka_msgs.analysis.topic_stats`` computes the statistics, and ``kafka_msgs.log`` reads batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from kafka_msgs.analysis.problems import ReadProblem
from kafka_msgs.analysis.topic_stats import HourlyTopicStats, TopicStats
from kafka_msgs.errors import KafkaMsgsError, LogFileError
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.partition_discovery import Progress
from kafka_msgs.records import ReadOptions

__all__ = ["TopicProfile", "read_profile"]


@frozen(kw_only=True)
class TopicProfile:
    """The statistics by topic, partition and hour, and the problems.

    An hour is its start in milliseconds since the epoch, and None for records without a timestamp. A batch counts in
    the hour of its first record.
    """

    figures: dict[tuple[str, int, int | None], TopicStats]
    problems: tuple[ReadProblem, ...]


def read_profile(partitions: Iterable[Partition], *, progress: Progress | None = None) -> TopicProfile:
    """Return the profile of partitions. An unreadable batch is a problem, and does not count.

    Raises ``OSError``.
    """
    found: dict[tuple[str, int, int | None], TopicStats] = {}
    problems: list[ReadProblem] = []
    for partition in partitions:
        stats = HourlyTopicStats()
        problems += _read(partition, stats, progress or Progress())
        found |= {(partition.topic, partition.partition, hour): each for hour, each in stats.hours.items()}
    return TopicProfile(figures=found, problems=tuple(problems))


def _read(partition: Partition, stats: HourlyTopicStats, progress: Progress) -> Iterator[ReadProblem]:
    """Add all batches of a partition, and yield the problems."""
    for segment in partition.segments:
        progress.file(segment.path)
        file = str(segment.path.absolute())
        for item in segment.walk_batches(options=ReadOptions(zero_copy=True)):
            fault: str | None = str(item) if isinstance(item, LogFileError) else None
            try:
                if not isinstance(item, LogFileError):
                    stats.add(item)
            except KafkaMsgsError as error:
                fault = f"{file} at byte {item.position}: {error}"
            if fault is not None:
                yield ReadProblem(
                    topic=partition.topic, partition=partition.partition, offset=None, file=file, reason=fault
                )
            progress.read(item.position)
