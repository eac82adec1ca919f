"""The statistics of topics in log directories, in one process.

``kafka_msgs.analysis.topic_stats`` computes the statistics, and ``kafka_msgs.log`` reads batches.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from kafka_msgs.analysis.groups import ReadProblem
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
    the hour of its first record. The problems of a partition are keyed by the name of its directory.
    """

    figures: dict[tuple[str, int, int | None], TopicStats]
    problems: tuple[tuple[str, ReadProblem], ...]


def read_profile(partitions: Iterable[Partition], *, progress: Progress | None = None) -> TopicProfile:
    """Return the profile of partitions. An unreadable batch is a problem, and does not count.

    Raises ``OSError``.
    """
    found: dict[tuple[str, int, int | None], TopicStats] = {}
    problems: list[tuple[str, ReadProblem]] = []
    for partition in partitions:
        stats = HourlyTopicStats()
        faults = _read(partition, stats, progress or Progress())
        found |= {(partition.topic, partition.partition, hour): each for hour, each in stats.hours.items()}
        problems += [(partition.path.name, each) for each in faults]
    return TopicProfile(figures=found, problems=tuple(problems))


def _read(partition: Partition, stats: HourlyTopicStats, progress: Progress) -> list[ReadProblem]:
    """Add all batches of a partition, and return the problems."""
    reasons: list[str] = []
    for segment in partition.segments:
        progress.file(segment.path)
        for item in segment.walk_batches(options=ReadOptions(zero_copy=True)):
            try:
                if isinstance(item, LogFileError):
                    raise item
                stats.add(item)
            except LogFileError as fault:
                reasons.append(str(fault))
            except KafkaMsgsError as error:
                reasons.append(f"{segment.path} at byte {item.position}: {error}")
            progress.read(item.position)
    topic, number = partition.topic, partition.partition
    return [ReadProblem(topic=topic, partition=number, offset=None, reason=each) for each in reasons]
