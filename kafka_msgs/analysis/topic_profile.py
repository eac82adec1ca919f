"""The statistics of topics in log directories, in memory, from the reducer of the job ``topic-profile``."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
from attrs import frozen

from kafka_msgs.analysis.arrow_tables import columns, filled, named
from kafka_msgs.analysis.batch_rows import BATCH_COLUMNS
from kafka_msgs.analysis.hourly_stats import FIGURES, PRODUCERS, statistics_by
from kafka_msgs.analysis.in_memory import ReadProblem, read_partition
from kafka_msgs.analysis.job import ClusterFacts, LogRange
from kafka_msgs.analysis.memory_output import MemoryOutput
from kafka_msgs.analysis.profile_job import ProfileSummary, TopicProfile, merge_summaries
from kafka_msgs.analysis.record_classification import RECORD_COLUMNS
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.partition_discovery import Progress

__all__ = ["ProfileRead", "read_profile"]

_COLUMNS: Final = (*RECORD_COLUMNS, "batch_position", *BATCH_COLUMNS)
_PLACE: Final = columns("topic partition")


@frozen(kw_only=True)
class ProfileRead:
    """The statistics of partitions, and the problems.

    ``figures`` and ``producers`` have the columns of the state of the reducer, and ``topic`` and ``partition``.
    """

    figures: pa.Table
    producers: pa.Table
    problems: tuple[ReadProblem, ...]
    _reducers: tuple[TopicProfile, ...]

    @cached_property
    def summary(self) -> ProfileSummary:
        """The data of the report."""
        return merge_summaries([each.finish(ClusterFacts()) for each in self._reducers])

    def rows(self, *by: str) -> list[dict[str, Any]]:
        """Return a row for each combination of the columns ``topic``, ``partition`` and ``hourMs``, in their order.

        The other columns are the same as in the table ``profile`` of the job. ``hourMs`` is None for records without a
        timestamp.
        """
        return list(statistics_by(self.figures, self.producers, by).to_pylist())


def read_profile(partitions: Iterable[Partition], *, progress: Progress | None = None) -> ProfileRead:
    """Return the profile of partitions. An unreadable batch is a problem, and does not count.

    Raises ``OSError``.
    """
    figures, producers = ([pa.schema([*_PLACE, *each]).empty_table()] for each in (FIGURES, PRODUCERS))
    reducers: list[TopicProfile] = []
    problems: list[ReadProblem] = []
    for partition in partitions:
        bases = tuple(each.base_offset for each in partition.segments)
        of = LogRange(topic=partition.topic, number=partition.partition, bases=bases)
        reducer = TopicProfile(MemoryOutput(), of, None)
        problems += read_partition(partition, reducer.add, _COLUMNS, progress or Progress())
        reducer.checkpoint()
        reducers.append(reducer)
        figures.append(_placed(reducer.figures(), partition))
        producers.append(_placed(reducer.producers(), partition))
    return ProfileRead(
        figures=pa.concat_tables(figures),
        producers=pa.concat_tables(producers),
        problems=tuple(problems),
        reducers=tuple(reducers),
    )


def _placed(rows: pa.Table, partition: Partition) -> pa.Table:
    """Return rows with the topic and the number of a partition."""
    known = named(rows)
    place = {"topic": partition.topic, "partition": partition.partition}
    return filled(pa.schema([*_PLACE, *rows.schema]), rows.num_rows, known | place)
