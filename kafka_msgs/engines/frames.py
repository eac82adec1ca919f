"""The tables of jobs as lazy DataFrames: nothing is read before a table is used, and nothing is written.

Spark tasks list the directories, choose a replica of each partition, and reduce its records with the reducer of the
job, so that only the rows of the tables pass through the JVM. Each table reads the logs once. For large clusters,
``run_job`` writes all tables in one pass, and splits large partitions.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote

import pyarrow as pa

from kafka_msgs.analysis.group_offsets_job import group_offsets_job
from kafka_msgs.analysis.group_state_job import GROUP_STATE
from kafka_msgs.analysis.job import ClusterFacts, Job, LogRange
from kafka_msgs.analysis.offset_tables import EndOffsets
from kafka_msgs.analysis.profile_job import TOPIC_PROFILE
from kafka_msgs.engines.partition_pass import PartitionPass
from kafka_msgs.engines.plan import NO_SPLIT, PlannedRange
from kafka_msgs.engines.replicas import REPLICAS, JobInputs, choose_replicas, list_replicas, segments_in
from kafka_msgs.tables.task_output import TaskOutput

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
        output = _Rows(name, None if name is None else job.tables[name].schema)
        yield from _rows_of(inputs, job, ends, planned, output)


def _rows_of(
    inputs: JobInputs, job: Job[Any], ends: Mapping[tuple[str, int], int] | None, planned: PlannedRange, output: _Rows
) -> Iterator[pa.RecordBatch]:
    segments = segments_in(inputs.roots[planned.root], planned.directory)
    bases = tuple(each.first for each in segments)
    of = LogRange(topic=planned.topic, number=planned.partition, bases=bases)
    found = PartitionPass.start(job, output, planned, of)
    for _ in found.steps(segments):
        yield from output.drain()
    found.reducer.checkpoint()
    found.problems.finish()
    summary = found.reducer.finish(_facts(inputs, ends) if job.needs_facts else ClusterFacts())
    yield from output.drain()
    if output.table is None:
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
    output = _Rows(name, job.tables[name].schema)
    job.combine(job.merge(summaries), output)
    yield from output.drain()


class _Rows(TaskOutput):
    """Collects the rows of one table instead of writing files."""

    def __init__(self, table: str | None, schema: pa.Schema | None) -> None:
        self.table = table
        self.attempt = ""
        self.files = {}
        self._schema = schema
        self._found: list[pa.RecordBatch] = []

    def writer(self, schema: pa.Schema, table: str, name: str, **_: Any) -> Any:
        """Return a writer that collects rows."""
        return _RowWriter(lambda rows: self.append(table, rows, name.rpartition("/")[0]))

    def append(self, table: str, rows: pa.Table | pa.RecordBatch, directory: str = "") -> None:
        """Collect rows, with the columns in the name of their directory."""
        if table == self.table and self._schema is not None and rows.num_rows:
            for part in filter(None, directory.split("/")):
                column, _, value = part.partition("=")
                repeated = pa.repeat(pa.scalar(unquote(value)), rows.num_rows).cast(self._schema.field(column).type)
                rows = rows.append_column(column, repeated)
            if isinstance(rows, pa.RecordBatch):
                rows = pa.Table.from_batches([rows])
            self._found += rows.select(self._schema.names).cast(self._schema).combine_chunks().to_batches()

    def discard(self, log: str) -> None:
        """Forget the collected rows."""
        self._found = []

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that were collected since the last call."""
        found, self._found = self._found, []
        yield from found


class _RowWriter:
    """Stands for the writer of a file."""

    def __init__(self, write: Callable[[Any], None]) -> None:
        self.write = write

    def __enter__(self) -> _RowWriter:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def close(self) -> None:
        """Do nothing."""

    def abandon(self) -> None:
        """Do nothing."""
