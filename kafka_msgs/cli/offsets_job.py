"""The command ``pipeline group-offsets``: which engine runs the job, and the report that it ends with.

Owns the choice of the engine. What either is given is checked before Spark is started.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import click
from attrs import evolve, frozen

from kafka_msgs.cli.arrow_alone import import_arrow
from kafka_msgs.cli.render.progress import progress_over
from kafka_msgs.cli.spark_session import one_sentence, progress_of, require_spark, session_for, setting
from kafka_msgs.errors import JobPathError, MissingExtraError
from kafka_msgs.filesystems.settings import NO_SETTINGS, Settings, shown_uri
from kafka_msgs.formats import FORMAT_NAMES
from kafka_msgs.offline.directories import end_offsets_in

if TYPE_CHECKING:
    from kafka_msgs.pipeline.group_offsets import Found, Run
    from kafka_msgs.report import Report

__all__ = ["LOCAL", "SPARK", "OffsetsJob", "chosen_engine", "engine_option"]

LOCAL: Final = "local"
PARQUET: Final = FORMAT_NAMES[0]
SPARK: Final = "spark"
_FEATURE: Final = "kafka-msgs pipeline"
_REPORTING: Final = ("jinja2",)
"""What the report needs. It is looked for before the work, not after it."""
_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
"""The variable by which spark-submit tells a program how to reach its JVM."""

engine_option = click.option(
    "--engine",
    type=click.Choice((LOCAL, SPARK)),
    help="What runs the job: this process alone, or Spark; default: Spark where something of it is asked for.",
)


def chosen_engine(
    engine: str | None, places: Sequence[str], master: str | None = None, conf: Sequence[str] = ()
) -> str:
    """Return the engine that runs a job: the one that is given, or the one that the other arguments need.

    Settings of Spark, a session that is there and places on other filesystems need Spark.
    """
    if engine is not None:
        if engine == LOCAL and (master or conf):
            raise click.UsageError("--master and --conf are for --engine spark")
        return engine
    asked = master or conf or _GATEWAY in os.environ or any("://" in place for place in places) or _has_session()
    return SPARK if asked else LOCAL


def _has_session() -> bool:
    sql: Any = sys.modules.get("pyspark.sql")
    return sql is not None and sql.SparkSession.getActiveSession() is not None


@frozen(kw_only=True)
class OffsetsJob:
    """What the command was asked for."""

    inputs: tuple[str, ...]
    end_offsets: Path | None
    history: bool
    out: str
    report_to: Path | None
    facts: Mapping[str, str]
    table_format: str

    def run_here(self) -> tuple[Report, list[str]]:
        """Run in this process; return the report and its files."""
        for package in _REPORTING:
            if find_spec(package) is None:
                raise MissingExtraError(feature=_FEATURE, extra="local", package=package)
        import_arrow()
        from kafka_msgs.pipeline.group_offsets import in_this_process, run_job
        from kafka_msgs.pipeline.local import local_run

        self._check(NO_SETTINGS)
        run = local_run(self.inputs, self._ends(), history=self.history)
        with progress_over([Path(each.name) for log in run.logs for each in log.segments]) as progress:
            found = run_job(run, self._tables, in_this_process(progress))
        self._publish()
        return self._report(run, found, NO_SETTINGS)

    def run_in_spark(self, master: str | None, conf: Sequence[str]) -> tuple[Report, list[str]]:
        """Run in the session of Spark that is there, or in one of its own; return the report and its files."""
        conf_of_spark = [setting(each) for each in conf]
        require_spark(_FEATURE)
        from kafka_msgs.filesystems.files import is_remote
        from kafka_msgs.pipeline.group_offsets import run_job
        from kafka_msgs.spark.jobs.offsets_engine import in_tasks
        from kafka_msgs.spark.session import session_settings

        # What is elsewhere is looked at when Spark has started: its configuration has the settings of filesystems.
        run = None if any(map(is_remote, (*self.inputs, self.out))) else self._spark_run(NO_SETTINGS)
        with one_sentence(), session_for(_FEATURE, master, conf_of_spark, in_tasks=True) as spark:
            settings = session_settings(spark)
            with progress_of(spark) as show_step:
                show_step("reading partitions")
                run = run or self._spark_run(settings)
                found = run_job(run, self._tables, in_tasks(spark), settings)
        self._publish()
        return self._report(run, found, settings)

    @property
    def _tables(self) -> str:
        """Where the run has its own tables: in a directory of ``out`` if those in it are in another format."""
        return self.out if self.table_format == PARQUET else str(Path(self.out) / f".{self.table_format}-run")

    def _publish(self) -> None:
        from kafka_msgs.formats import format_named
        from kafka_msgs.pipeline.versions import publish_tables

        if self.table_format != PARQUET:
            publish_tables(format_named(self.table_format), Path(self._tables), Path(self.out))

    def _spark_run(self, settings: Settings) -> Run:
        from kafka_msgs.spark.jobs.offsets_engine import spark_run

        self._check(settings)
        return spark_run(self.inputs, self._ends(), history=self.history, settings=settings)

    def _check(self, settings: Settings) -> None:
        from kafka_msgs.formats import format_named
        from kafka_msgs.pipeline.group_offsets import check_out
        from kafka_msgs.pipeline.records import check_empty

        if self.table_format != PARQUET:
            format_named(self.table_format)
            if "://" in self.out:
                reason = f"tables of {self.table_format} are written to a local directory"
                raise JobPathError(path=self.out, reason=reason)
            if not Path(self._tables).exists():
                check_empty(Path(self.out))
        check_out(self._tables, self.inputs, history=self.history, settings=settings)

    def _ends(self) -> dict[tuple[str, int], int] | None:
        return None if self.end_offsets is None else end_offsets_in(self.end_offsets)

    def _report(self, run: Run, found: Found, settings: Settings) -> tuple[Report, list[str]]:
        from kafka_msgs.filesystems.copying import copy_directory
        from kafka_msgs.pipeline.offsets_report import offsets_report
        from kafka_msgs.report import write_report
        from kafka_msgs.report.facts import facts_of_now

        report = evolve(offsets_report(found, run.places), facts={**self.facts, **facts_of_now()})
        if self.report_to is None and "://" in self.out:
            with TemporaryDirectory() as home:
                files = write_report(report, Path(home))
                copy_directory(Path(home), self.out, settings)
            return report, [f"{shown_uri(self.out)}/{file.name}" for file in files]
        directory = self.report_to or Path(self.out)
        directory.mkdir(parents=True, exist_ok=True)
        return report, [str(file) for file in write_report(report, directory)]
