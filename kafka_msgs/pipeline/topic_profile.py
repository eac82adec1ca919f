"""The job ``topic-profile``, independent of the engine: topic statistics per partition and hour, as Parquet tables.

Handles the inputs of the job, and the choice of batch files that a run replaces. ``topic_profile_task`` processes the
records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from kafka_msgs.pipeline.batch_table import BATCHES, BATCHES_TABLE, BatchFile, directory_of
from kafka_msgs.pipeline.hourly_stats import PROFILE
from kafka_msgs.pipeline.job import Job, JobInputs, JobRun
from kafka_msgs.pipeline.partition_task import PROBLEMS_TABLE
from kafka_msgs.pipeline.topic_profile_task import PROBLEMS, PROFILE_TABLE, READING, ProfileSummary
from kafka_msgs.tables.task_output import TableSpec

__all__ = ["NAME", "ProfileRun", "topic_profile_run"]

NAME: Final = "topic-profile"
_TABLES: Final = {
    BATCHES_TABLE: TableSpec(BATCHES, time="hour"),
    PROFILE_TABLE: TableSpec(PROFILE, time="hour"),
    PROBLEMS_TABLE: TableSpec(PROBLEMS),
}

ProfileRun: TypeAlias = JobRun[ProfileSummary, tuple[ProfileSummary, ...]]


def topic_profile_run(inputs: JobInputs) -> ProfileRun:
    """Return the run over all partitions in the inputs.

    Raises the errors of ``JobInputs``.
    """
    job = Job(
        name=NAME,
        reading=READING,
        tables=_TABLES,
        appended_tables={BATCHES_TABLE: _replaced},
        combine=lambda summaries, _: tuple(summaries),
    )
    return JobRun(job=job, inputs=inputs.paths, logs=inputs.logs())


def _replaced(names: Iterable[str], summaries: Sequence[ProfileSummary]) -> Iterator[str]:
    """Yield the batch files that this run replaces.

    These are the files with pending rows, the files of deleted segments and partitions, and the files of runs with the
    same or a later start offset. A partition that was read from its start replaces all its files.
    """
    known = {(directory_of(each.topic), each.number): each for each in summaries}
    for name in names:
        file = BatchFile.at(name)
        summary = known.get((file.directory, file.number)) if file else None
        if file is None or summary is None or file.segment not in summary.bases or file.start >= summary.start:
            yield name
