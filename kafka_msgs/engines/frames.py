"""The tables of jobs as lazy DataFrames: nothing is read before a table is used, and nothing is written.

Spark tasks list the directories, choose a replica of each partition, and reduce its records with the reducer of the
job, so that only the rows of the tables pass through the JVM. Each table reads the logs once. For large clusters,
``run_job`` writes all tables in one pass, and splits large partitions.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from kafka_msgs.analysis.group_offsets_job import group_offsets_job
from kafka_msgs.analysis.group_state_job import GROUP_STATE
from kafka_msgs.analysis.in_memory import MemoryOutput
from kafka_msgs.analysis.job import ClusterFacts, Job, LogRange
from kafka_msgs.analysis.offset_tables import EndOffsets
from kafka_msgs.analysis.profile_job import TOPIC_PROFILE
from kafka_msgs.engines.partition_pass import PartitionPass
from kafka_msgs.engines.plan import NO_SPLIT, PlannedRange
from kafka_msgs.engines.replicas import REPLICAS, JobInputs, choose_replicas, list_replicas, segments_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["group_offsets", "group_state", "topic_profile"]

S = TypeVar("S")
Paths = Sequence["str | os.PathLike[str]"]

_LISTED: Final = pa.schema([each for each in REPLICAS if each.name not in ("segments", "marks")])
_SUMMARY: Final = pa.schema([("summary", pa.binary())])


def group_offsets(
    spark: SparkSession,
    paths: Paths,
    *,
    history: bool = False,
    ends: Mapping[tuple[str, int], int] | None = None,
) -> dict[str, DataFrame]:
    """Return the tables of the job ``group-offsets`` over log directories, by name.

    ``ends`` are the log end offsets, by default the end offsets of the inputs, which each task reads after the records.
    The column ``stale`` is False. Raises ``JobPathError`` for paths without partitions of ``__consumer_offsets``.
    """
    return _frames(spark, group_offsets_job(history=history), paths, ends)


def group_state(spark: SparkSession, paths: Paths) -> dict[str, DataFrame]:
    """Return the tables of the job ``group-state`` over log directories, by name. Raises ``JobPathError``."""
    return _frames(spark, GROUP_STATE, paths)


def topic_profile(spark: SparkSession, paths: Paths) -> dict[str, DataFrame]:
    """Return the tables of the job ``topic-profile`` over log directories, by name. Raises ``JobPathError``."""
    return _frames(spark, TOPIC_PROFILE, paths)


def _frames(
    spark: SparkSession, job: Job[Any], paths: Paths, ends: Mapping[tuple[str, int], int] | None = None
) -> dict[str, DataFrame]:
    from kafka_msgs.spark.session import session_settings

    inputs = JobInputs.at(paths, session_settings(spark))
    inputs.check(job.topics)
    count = len(inputs.directories)
    listed = spark.range(0, count, 1, count).mapInArrow(partial(_list, inputs, job.read_topics), _ddl(_LISTED))
    replicas = listed.repartition("topic", "partition")
    summaries = replicas.mapInArrow(partial(_reduce, inputs, job, ends, None), _ddl(_SUMMARY))
    return {
        name: summaries.coalesce(1).mapInArrow(partial(_combine, job, name), _ddl(table.schema))
        if name in job.combined
        else replicas.mapInArrow(partial(_reduce, inputs, job, ends, name), _ddl(table.schema))
        for name, table in job.tables.items()
    }


def _ddl(schema: pa.Schema) -> Any:
    from kafka_msgs.spark.spark_types import spark_type

    return spark_type(pa.struct(list(schema)))


def _list(
    inputs: JobInputs, topics: Sequence[str] | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for number in (number for batch in batches for number in batch["id"].to_pylist()):
        rows = pa.RecordBatch.from_pylist(_replicas_in(inputs, number, topics), REPLICAS)
        yield rows.select(_LISTED.names)


def _replicas_in(inputs: JobInputs, number: int, topics: Sequence[str] | None) -> list[dict[str, Any]]:
    directory = inputs.directories[number]
    root = inputs.roots[directory.root]
    return list(list_replicas(root, directory.root, directory.path, topics, NO_SPLIT))


def _reduce(
    inputs: JobInputs,
    job: Job[Any],
    ends: Mapping[tuple[str, int], int] | None,
    name: str | None,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table from the partitions of a task, or their summaries without a name."""
    listed = pa.Table.from_batches(batches, _LISTED)
    chosen, _ = choose_replicas(listed)
    for row in chosen.select(["topic", "partition", "root", "directory", "topicId"]).to_pylist():
        planned = PlannedRange(**{"topic_id" if key == "topicId" else key: value for key, value in row.items()})
        output = MemoryOutput({} if name is None else {name: job.tables[name].schema})
        yield from _rows_of(inputs, job, ends, planned, output)


def _rows_of(
    inputs: JobInputs,
    job: Job[Any],
    ends: Mapping[tuple[str, int], int] | None,
    planned: PlannedRange,
    output: MemoryOutput,
) -> Iterator[pa.RecordBatch]:
    segments = segments_in(inputs.roots[planned.root], planned.directory)
    bases = tuple(each.first for each in segments)
    of = LogRange(topic=planned.topic, number=planned.partition, bases=bases)
    found = PartitionPass.start(job, output, planned, of)
    for _ in found.steps(segments):
        yield from (batch for _, batch in output.drain())
    found.reducer.checkpoint()
    found.problems.finish()
    summary = found.reducer.finish(_facts(inputs, ends) if job.needs_facts else ClusterFacts())
    yield from (batch for _, batch in output.drain())
    if not output.schemas:
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(summary)], pa.binary())], schema=_SUMMARY)


def _facts(inputs: JobInputs, ends: Mapping[tuple[str, int], int] | None) -> ClusterFacts:
    rows = [row for number in range(len(inputs.directories)) for row in _replicas_in(inputs, number, None)]
    found, _ = choose_replicas(pa.Table.from_pylist(rows, REPLICAS))
    known = found.filter(found["endOffset"].is_valid())
    own = EndOffsets.of_columns(known["topic"], known["partition"], known["endOffset"])
    pairs = zip(found["topicId"].to_pylist(), found["topic"].to_pylist(), strict=True)
    return ClusterFacts(
        ends=own if ends is None else EndOffsets.of(ends),
        names={topic_id: topic for topic_id, topic in pairs if topic_id is not None},
    )


def _combine(job: Job[S], name: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    summaries = [pickle.loads(each) for batch in batches for each in batch["summary"].to_pylist()]
    output = MemoryOutput({name: job.tables[name].schema})
    job.combine(job.merge(summaries), output)
    yield from (batch for _, batch in output.drain())
