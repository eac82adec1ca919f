"""The tables of jobs as lazy DataFrames: nothing is read before a table is used, and nothing is written.

Spark tasks list the directories, choose a replica of each partition, and reduce its records with the reducer of the
job, so that only the rows of the tables pass through the JVM. Each table reads the logs separately. For large clusters,
``run_job`` writes all tables in one pass, and splits large partitions.
"""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
from attrs import evolve

from kafka_msgs.analysis.group_offsets_job import group_offsets_job
from kafka_msgs.analysis.group_state_job import GROUP_STATE
from kafka_msgs.analysis.job import ClusterFacts, Job, LogRange
from kafka_msgs.analysis.memory_output import MemoryOutput
from kafka_msgs.analysis.profile_job import TOPIC_PROFILE
from kafka_msgs.engines.cluster import Cluster
from kafka_msgs.engines.partition_pass import PartitionPass
from kafka_msgs.engines.plan import NO_SPLIT, PlannedRange
from kafka_msgs.engines.replicas import REPLICAS, JobInputs, list_replicas, segments_in
from kafka_msgs.filesystems.path_resolution import LogFile
from kafka_msgs.log.metadata_log_state import METADATA_TOPIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["group_offsets", "group_state", "topic_profile"]

S = TypeVar("S")
Paths = Sequence["str | os.PathLike[str]"]

_LISTED: Final = pa.schema([each for each in REPLICAS if each.name not in ("segments", "marks")])
_PLACE: Final = ("topic", "partition", "root", "directory", "topicId")
_CHOSEN: Final = pa.schema(
    [*(REPLICAS.field(name) for name in _PLACE), ("partitions", pa.int32()), ("isPlacementKnown", pa.bool_())]
)
"""A chosen replica, the number of partitions of its topic, 0 if unknown, and ``ClusterFacts.is_placement_known``."""
_SUMMARY: Final = pa.schema([("summary", pa.binary())])
_TOTALS: Final = pa.schema([("totals", pa.binary())])


def group_offsets(
    spark: SparkSession,
    paths: Paths,
    *,
    history: bool = False,
    ends: Mapping[tuple[str, int], int] | None = None,
) -> dict[str, DataFrame]:
    """Return the tables of the job ``group-offsets`` over log directories, by name.

    ``ends`` are the log end offsets, by default the end offsets of the inputs, which each task reads after the records.
    If the inputs do not contain the metadata log, the partitions are read once more, to decide about the column
    ``stale``. Raises ``JobPathError`` for paths without partitions of ``__consumer_offsets``.
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
    chosen = listed.repartition(1).mapInArrow(partial(_choose, inputs, job.read_topics), _ddl(_CHOSEN))
    chosen = chosen.repartition("topic", "partition")
    if job.needs_facts:
        counted = chosen.mapInArrow(partial(_count, inputs, job), _ddl(_TOTALS))
        chosen = chosen.crossJoin(counted.repartition(1).mapInArrow(_add, _ddl(_TOTALS)))
    summaries = chosen.mapInArrow(partial(_reduce, inputs, job, ends, None), _ddl(_SUMMARY))
    return {
        name: summaries.repartition(1).mapInArrow(partial(_combine, job, name), _ddl(table.schema))
        if name in job.combined
        else chosen.mapInArrow(partial(_reduce, inputs, job, ends, name), _ddl(table.schema))
        for name, table in job.tables.items()
    }


def _ddl(schema: pa.Schema) -> Any:
    from kafka_msgs.spark.spark_types import spark_type

    return spark_type(pa.struct(list(schema)))


def _list(
    inputs: JobInputs, topics: Sequence[str] | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    wanted = None if topics is None else (*topics, METADATA_TOPIC)
    for number in (number for batch in batches for number in batch["id"].to_pylist()):
        rows = pa.RecordBatch.from_pylist(_replicas_in(inputs, number, wanted), REPLICAS)
        yield rows.select(_LISTED.names)


def _replicas_in(inputs: JobInputs, number: int, topics: Sequence[str] | None) -> list[dict[str, Any]]:
    directory = inputs.directories[number]
    root = inputs.roots[directory.root]
    return list(list_replicas(root, directory.root, directory.path, topics, NO_SPLIT))


def _choose(
    inputs: JobInputs, topics: Sequence[str] | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    cluster = Cluster.of(inputs, pa.Table.from_batches(batches, _LISTED), topics)
    partitions = cluster.counts
    for batch in cluster.replicas.select(_PLACE).to_batches():
        counts = pa.array([partitions.get(topic, 0) for topic in batch["topic"].to_pylist()], pa.int32())
        known = pa.repeat(pa.scalar(cluster.is_placement_known), batch.num_rows)
        yield pa.RecordBatch.from_arrays([*batch.columns, counts, known], schema=_CHOSEN)


def _count(inputs: JobInputs, job: Job[Any], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the numbers in the state of each partition, or none if the placement of groups is known without them."""
    for row in (row for batch in batches for row in batch.to_pylist()):
        found, segments = _start(inputs, job, row, MemoryOutput())
        if not row["isPlacementKnown"]:
            found.read(segments)
        yield _pickled(found.checkpoint(()).state.numbers, _TOTALS)


def _add(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    totals: Counter[str] = Counter()
    for each in (each for batch in batches for each in batch["totals"].to_pylist()):
        totals.update(pickle.loads(each))
    yield _pickled(dict(totals), _TOTALS)


def _reduce(
    inputs: JobInputs,
    job: Job[Any],
    ends: Mapping[tuple[str, int], int] | None,
    name: str | None,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table from the partitions of a task, or their summaries without a name."""
    for row in (row for batch in batches for row in batch.to_pylist()):
        output = MemoryOutput({} if name is None else {name: job.tables[name].schema})
        found, segments = _start(inputs, job, row, output)
        for _ in found.steps(segments):
            yield from (rows for _, rows in output.drain())
        found.checkpoint(())
        found.problems.finish()
        summary = found.reducer.finish(_facts(inputs, ends, row) if job.needs_facts else ClusterFacts())
        yield from (rows for _, rows in output.drain())
        if name is None:
            yield _pickled(summary, _SUMMARY)


def _start(
    inputs: JobInputs, job: Job[Any], row: Mapping[str, Any], output: MemoryOutput
) -> tuple[PartitionPass[Any], list[LogFile]]:
    topic, partition, root, directory, topic_id = (row[name] for name in _PLACE)
    planned = PlannedRange(topic=topic, partition=partition, root=root, directory=directory, topic_id=topic_id)
    segments = segments_in(inputs.roots[root], directory)
    bases = tuple(each.first for each in segments)
    of = LogRange(topic=topic, number=partition, bases=bases, partitions=row["partitions"])
    return PartitionPass.start(job, output, planned, of), segments


def _facts(inputs: JobInputs, ends: Mapping[tuple[str, int], int] | None, row: Mapping[str, Any]) -> ClusterFacts:
    rows = [row for number in range(len(inputs.directories)) for row in _replicas_in(inputs, number, None)]
    facts = ClusterFacts.of_replicas(Cluster.of(inputs, pa.Table.from_pylist(rows, REPLICAS)).facts(ends))
    return evolve(facts, totals=pickle.loads(row["totals"]), is_placement_known=row["isPlacementKnown"])


def _pickled(value: object, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(value)], pa.binary())], schema=schema)


def _combine(job: Job[S], name: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    summaries = [pickle.loads(each) for batch in batches for each in batch["summary"].to_pylist()]
    output = MemoryOutput({name: job.tables[name].schema})
    job.combine(job.merge(summaries), output)
    yield from (rows for _, rows in output.drain())
