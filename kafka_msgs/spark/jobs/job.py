"""The definition and execution of a job: executors write tables one by one to Parquet, then comes a report about them.

Defines the order of steps and the output locations. The module of a job defines the content of its tables, and
``publishing`` commits them in formats other than Parquet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from attrs import evolve, frozen

from kafka_msgs.errors import JobPathError
from kafka_msgs.filesystems.location import is_remote
from kafka_msgs.report import Report, write_report
from kafka_msgs.report.facts import facts_of_now
from kafka_msgs.spark.jobs.publishing import IDENTITY, TablePublisher
from kafka_msgs.spark.spark_types import arrow_schema
from kafka_msgs.tables import FORMAT_NAMES, get_format
from kafka_msgs.tables.commit_log import NOT_EMPTY
from kafka_msgs.tables.job_tables import JobTables
from kafka_msgs.tables.task_output import TableSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["DataFrameJob", "JobResult", "TableStep", "Tables", "check_output", "run"]

PARQUET: Final = FORMAT_NAMES[0]
_TIMESTAMP_TYPE: Final = "spark.sql.parquet.outputTimestampType"
Tables: TypeAlias = "Mapping[str, DataFrame]"
"""DataFrames by name: the inputs of a job, and the tables built so far."""


@frozen
class TableStep:
    """One table of a job: its name, the function that builds it from inputs and earlier tables, and its partitions."""

    name: str
    build: Callable[[Tables], DataFrame]
    partition_by: tuple[str, ...] = ()


@frozen(kw_only=True)
class DataFrameJob:
    """A job: tables that build on each other, and the report about them.

    ``report`` receives the inputs and the tables as written, so that it can read small tables. It bounds the rows that
    it fetches to the driver.
    """

    name: str
    summary: str
    steps: tuple[TableStep, ...]
    report: Callable[[Tables], Report]

    def tables(self, inputs: Tables) -> dict[str, DataFrame]:
        """Return all tables lazily: Spark runs no query until a table is used."""
        known = dict(inputs)
        for step in self.steps:
            known[step.name] = step.build(known)
        return {step.name: known[step.name] for step in self.steps}


@frozen
class JobResult:
    """The result of a run: the report and its files, starting with the HTML page."""

    report: Report
    files: tuple[Path, ...]


def run(
    job: DataFrameJob,
    inputs: Tables,
    out: str,
    report_to: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
    facts: Mapping[str, str] | None = None,
    table_format: str = PARQUET,
) -> JobResult:
    """Build the tables of a job, write each to ``out/<table>`` in a format, and write the report about them.

    ``out`` is any location that Spark can write to. The report is written to ``report_to``, a local directory, by
    default ``out`` if that is a local path. Later tables are built from the files of earlier ones, so that inputs are
    not read more often than needed. ``progress`` is called with the name of the current step. ``facts`` are shown at
    the top of the report, before the time, its zone and the version.

    With the ``table_format`` ``delta`` or ``iceberg``, ``out`` must be a path and may contain the tables of an earlier
    run. After all tables are built, each one gets a new version. Raises the errors of ``check_output`` and
    ``JobTables.commit``.
    """
    output = check_output(out, report_to, table_format)
    publisher = TablePublisher.start(output) if output else None
    directory = report_to or Path(out)
    directory.mkdir(parents=True, exist_ok=True)
    known = dict(inputs)
    for step in job.steps:
        progress(step.name)
        place = publisher.directory(step.name).as_uri() if publisher else f"{_uri(out)}/{step.name}"
        known[step.name] = _written(step, step.build(known), place)
    progress("report")
    report = evolve(job.report(known), facts={**(facts or {}), **facts_of_now()})
    if publisher:
        progress(f"tables as {table_format}")
        schemas = {step.name: arrow_schema(known[step.name].schema) for step in job.steps}
        publisher.publish({step.name: TableSpec(schemas[step.name], step.partition_by) for step in job.steps})
    return JobResult(report, tuple(write_report(report, directory)))


def _uri(out: str) -> str:
    return out.rstrip("/") if is_remote(out) else Path(out).absolute().as_uri()


def check_output(out: str, report_to: Path | None = None, table_format: str = PARQUET) -> JobTables | None:
    """Check the output locations and return the tables to publish, or None for Parquet.

    Raises ``JobPathError`` if ``out`` contains anything else than tables of an earlier run in this format, or if it is
    not a path and ``report_to`` is missing. Raises ``OptionError`` and ``MissingExtraError`` for an unavailable format.
    """
    get_format(table_format)
    if is_remote(out):
        if table_format != PARQUET:
            raise JobPathError(path=out, reason=f"tables of {table_format} are written to a local directory")
        if report_to is None:
            raise JobPathError(path=out, reason="the report needs a local directory of its own")
        return None
    if table_format != PARQUET:
        output = JobTables.at(str(Path(out).absolute()), {}, IDENTITY, table_format)
        output.find_base()
        return output
    path = Path(out)
    if path.exists() and (path.is_file() or any(path.iterdir())):
        raise JobPathError(path=out, reason=NOT_EMPTY)
    return None


def _written(step: TableStep, rows: DataFrame, place: str) -> DataFrame:
    """Write a table, and return it as read from its files, with its original types."""
    conf = rows.sparkSession.conf
    before = conf.get(_TIMESTAMP_TYPE)
    # Other programs expect microseconds. Spark's default type, INT96, is not one of Iceberg.
    conf.set(_TIMESTAMP_TYPE, "TIMESTAMP_MICROS")
    try:
        rows.write.partitionBy(*step.partition_by).parquet(place)
    finally:
        conf.set(_TIMESTAMP_TYPE, str(before))
    return rows.sparkSession.read.schema(rows.schema).parquet(place).select(*rows.columns)
