"""The definition and execution of a job: it writes tables one by one to Parquet, then a report about them.

Defines the order of steps and the output locations. The module of a job defines the content of its tables, and
``publishing`` supports formats other than Parquet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from attrs import evolve, frozen

from kafka_msgs.errors import JobPathError
from kafka_msgs.filesystems.location import is_remote
from kafka_msgs.report import Report, write_report
from kafka_msgs.report.facts import facts_of_now
from kafka_msgs.spark.jobs.publishing import TablePublisher, publisher_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["DataFrameJob", "JobResult", "TableStep", "Tables", "check_output", "run"]

Tables: TypeAlias = "Mapping[str, DataFrame]"
"""DataFrames by name: the inputs of a job, and the tables built so far."""


@frozen
class TableStep:
    """One table of a job: its name, the function that builds it from inputs and earlier tables, and its partitioning.

    ``keys`` are columns whose combined values are unique and never null, if the table has any. ``time`` is the time
    column by whose days formats other than Parquet are partitioned.
    """

    name: str
    build: Callable[[Tables], DataFrame]
    partition_by: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    time: str = ""


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
    table_format: str = "parquet",
) -> JobResult:
    """Build the tables of a job, write each to ``out/<table>`` in a format, and write the report about them.

    ``out`` is any location that Spark can write to. The report is written to ``report_to``, a local directory, by
    default ``out`` if that is a local path. Later tables are built from the files of earlier ones, so that inputs are
    not read more often than needed. ``progress`` is called with the name of the current step. ``facts`` are shown at
    the top of the report, before the time, its zone and the version.

    With the ``table_format`` ``delta`` or ``iceberg``, ``out`` must be a path and may contain the tables of an earlier
    run. Each table gets a new version after all are built. Raises the errors of ``check_output``.
    """
    publisher = check_output(out, report_to, table_format)
    if publisher:
        publisher.start()
        out = str(publisher.out)
    tables = str(publisher.work) if publisher else out
    place = tables.rstrip("/") if is_remote(tables) else Path(tables).absolute().as_uri()
    directory = report_to or Path(out)
    directory.mkdir(parents=True, exist_ok=True)
    known = dict(inputs)
    for step in job.steps:
        progress(step.name)
        known[step.name] = _written(step, step.build(known), f"{place}/{step.name}")
    progress("report")
    report = evolve(job.report(known), facts={**(facts or {}), **facts_of_now()})
    if publisher:
        _publish(publisher, job, known, progress)
    return JobResult(report, tuple(write_report(report, directory)))


def _publish(publisher: TablePublisher, job: DataFrameJob, tables: Tables, progress: Callable[[str], None]) -> None:
    for step in job.steps:
        progress(f"{step.name} as {publisher.form.name}")
        publisher.publish(step.name, tables[step.name], step.partition_by, step.keys, step.time)
    publisher.end()


def check_output(out: str, report_to: Path | None = None, table_format: str = "parquet") -> TablePublisher | None:
    """Check the output locations and return the table publisher, or None if executors write the tables directly.

    Raises ``JobPathError`` if ``out`` is not empty and has no tables of this format, or if it is not a path and
    ``report_to`` is missing. Raises ``OptionError`` and ``MissingExtraError`` for an unavailable format.
    """
    publisher = publisher_of(table_format, out)
    if is_remote(out):
        if publisher:
            raise JobPathError(path=out, reason=f"tables of {table_format} are written to a local directory")
        if report_to is None:
            raise JobPathError(path=out, reason="the report needs a local directory of its own")
        return None
    path = Path(out)
    if not path.exists() or (path.is_dir() and (not any(path.iterdir()) or (publisher and publisher.has_tables()))):
        return publisher
    raise JobPathError(path=out, reason="it exists and is not an empty directory; nothing is overwritten")


def _written(step: TableStep, rows: DataFrame, place: str) -> DataFrame:
    """Write a table, and return it as read from its files, with its original types."""
    rows.write.partitionBy(*step.partition_by).parquet(place)
    return rows.sparkSession.read.schema(rows.schema).parquet(place).select(*rows.columns)
