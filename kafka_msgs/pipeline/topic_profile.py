"""The job ``topic-profile`` whatever runs it: the content of topics, per partition and hour, in Parquet tables.

Owns what the job is given, and which files of the table of batches a run replaces. What becomes of records is left to
``profile_log``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from kafka_msgs.pipeline.batch_log import BATCHES, BATCHES_TABLE, BatchFile, directory_of
from kafka_msgs.pipeline.figures import PROFILE
from kafka_msgs.pipeline.job import Inputs, Job, Run
from kafka_msgs.pipeline.output import Place, TableForm
from kafka_msgs.pipeline.partition import PROBLEMS_TABLE
from kafka_msgs.pipeline.profile_log import PROBLEMS, PROFILE_TABLE, READING, ProfileSummary

__all__ = ["NAME", "ProfileRun", "profile_run"]

NAME: Final = "topic-profile"
_TABLES: Final = {
    BATCHES_TABLE: TableForm(BATCHES, time="hour"),
    PROFILE_TABLE: TableForm(PROFILE, time="hour"),
    PROBLEMS_TABLE: TableForm(PROBLEMS),
}

ProfileRun: TypeAlias = Run[ProfileSummary, tuple[ProfileSummary, ...]]


def profile_run(inputs: Inputs) -> ProfileRun:
    """Return the run over all partitions in inputs.

    Raises what ``Inputs`` raises.
    """
    job = Job(
        name=NAME,
        reading=READING,
        tables=_TABLES,
        grown={BATCHES_TABLE: _replaced},
        found=lambda summaries, _: tuple(summaries),
    )
    return Run(job=job, inputs=inputs.named, logs=inputs.logs())


def _replaced(place: Place, summaries: Sequence[ProfileSummary]) -> Iterator[str]:
    """Yield the files of batches that are replaced.

    These are the ones of what may still change, of segments and partitions that are gone, and of runs that began to
    read where this one does or later, which is all for what was read from its start.
    """
    known = {(directory_of(each.topic), each.number): each for each in summaries}
    for path in place.inside(BATCHES_TABLE).files():
        file = BatchFile.at(path)
        summary = known.get((file.directory, file.number)) if file else None
        if file is None or summary is None or file.segment not in summary.bases or file.start >= summary.start:
            yield path
