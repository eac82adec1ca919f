"""The ``pipeline`` commands over logs: the choice of the engine, the output location, and the final report.

The arguments of either engine are checked before Spark starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import click
from attrs import evolve, frozen

from kafka_msgs.cli.arrow_import import import_arrow_without_pandas
from kafka_msgs.cli.render.output import echo
from kafka_msgs.cli.render.progress import counting
from kafka_msgs.cli.report_options import input_facts
from kafka_msgs.cli.spark_session import one_sentence, progress_of, require_spark, session_for, setting
from kafka_msgs.errors import ConcurrentRunError, JobPathError, MissingExtraError
from kafka_msgs.filesystems.location import Location, is_remote, mask_uri
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.tables import FORMAT_NAMES

if TYPE_CHECKING:
    from kafka_msgs.analysis.job import Job
    from kafka_msgs.engines.job import Engine, RunResult
    from kafka_msgs.report import Report

__all__ = ["LogJob", "LogJobSpec", "chosen_engine", "engine_option", "wait_option", "workers_option"]

LOCAL: Final = "local"
PARQUET: Final = FORMAT_NAMES[0]
SPARK: Final = "spark"
_FEATURE: Final = "kafka-msgs pipeline"
_ELSEWHERE: Final = "the local engine reads directories of this machine only"
_REPORTING: Final = ("jinja2",)
"""The packages that the report needs. They are checked before the work starts."""
_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
"""The environment variable with which spark-submit passes the port of its JVM."""

engine_option = click.option(
    "--engine",
    type=click.Choice((LOCAL, SPARK)),
    help="Execution engine; default: spark with Spark options, in a Spark session or for URIs, otherwise local.",
)

workers_option = click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes of the engine local."
)

wait_option = click.option(
    "--wait", is_flag=True, help="If another run commits its output first, run again on top of it; default: status 3."
)


def chosen_engine(
    engine: str | None, places: Sequence[str], master: str | None = None, conf: Sequence[str] = ()
) -> str:
    """Return the selected engine, or the engine that the other arguments need.

    Spark is needed for its config options, for an existing session and for paths on other filesystems.
    """
    if engine is not None:
        if engine == LOCAL and (master or conf):
            raise click.UsageError("--master and --conf are for --engine spark")
        return engine
    asked = master or conf or _GATEWAY in os.environ or any(map(is_remote, places)) or _has_session()
    return SPARK if asked else LOCAL


def _has_session() -> bool:
    sql: Any = sys.modules.get("pyspark.sql")
    return sql is not None and sql.SparkSession.getActiveSession() is not None


@frozen(kw_only=True)
class LogJobSpec:
    """A job over logs, loaded when it is needed, and its report. ``ends`` are given log end offsets."""

    job: Callable[[], Job[Any]]
    report: Callable[[RunResult[Any]], Report]
    ends: Mapping[tuple[str, int], int] | None = None


@frozen(kw_only=True)
class LogJob:
    """The arguments of a job command."""

    kind: LogJobSpec
    inputs: tuple[str, ...]
    out: str
    report_dir: Path | None
    table_format: str
    wait: bool = False
    """Whether the job is repeated if another run commits its output first."""
    workers: int = 1

    def run_in(
        self, engine: str | None, master: str | None = None, conf: Sequence[str] = ()
    ) -> tuple[Report, list[str]]:
        """Run the job with the selected or required engine; return the report and its files."""
        chosen = chosen_engine(engine, (*self.inputs, self.out), master, conf)
        while True:
            try:
                return self._run_here() if chosen == LOCAL else self._run_in_spark(master, conf)
            except ConcurrentRunError as error:
                if not self.wait:
                    raise
                echo(f"{error}; it is repeated", err=True)

    def _run_here(self) -> tuple[Report, list[str]]:
        for package in _REPORTING:
            if find_spec(package) is None:
                raise MissingExtraError(feature=_FEATURE, extra="local", package=package)
        for path in filter(is_remote, self.inputs):
            raise JobPathError(path=mask_uri(path), reason=_ELSEWHERE)
        import_arrow_without_pandas()
        self._check_format()
        from kafka_msgs.engines.local import local_engine
        from kafka_msgs.engines.plan import NO_SPLIT, SPLIT_BYTES

        self._check(NO_OPTIONS)
        with counting("tasks") as done:
            split_bytes = NO_SPLIT if self.workers == 1 else SPLIT_BYTES
            return self._run(local_engine(self.workers, done), NO_OPTIONS, split_bytes)

    def _run_in_spark(self, master: str | None, conf: Sequence[str]) -> tuple[Report, list[str]]:
        """Run the job in the active Spark session, or in a new one."""
        conf_of_spark = [setting(text) for text in conf]
        require_spark(_FEATURE)
        self._check_format()
        from kafka_msgs.engines.plan import SPLIT_BYTES
        from kafka_msgs.engines.spark import spark_engine
        from kafka_msgs.spark.session import session_settings

        # Remote paths are checked after Spark has started: its configuration has the filesystem options.
        early = not any(map(is_remote, (*self.inputs, self.out)))
        if early:
            self._check(NO_OPTIONS)
        with one_sentence(), session_for(_FEATURE, master, conf_of_spark, in_tasks=True) as spark:
            settings = session_settings(spark)
            with progress_of(spark) as show_step:
                show_step("reading partitions")
                if not early:
                    self._check(settings)
                return self._run(spark_engine(spark), settings, SPLIT_BYTES)

    def _check(self, settings: FilesystemOptions) -> None:
        """Raise an error for wrong inputs, and an output location that holds anything else."""
        from kafka_msgs.engines.job import job_tables
        from kafka_msgs.engines.replicas import JobInputs

        job, inputs = self.kind.job(), JobInputs.at(self.inputs, settings)
        inputs.check(job.topics)
        job_tables(job, inputs, self.out, settings, self.table_format).find_base()

    def _check_format(self) -> None:
        """Raise an error for a format that does not support the output location."""
        from kafka_msgs.filesystems.store_options import SCHEMES

        place = Location.parse(self.out)
        if self.table_format != PARQUET and not place.is_local and (place.scheme not in SCHEMES or place.query):
            schemes = ", ".join(SCHEMES)
            reason = f"tables of {self.table_format} are written to a directory, or to {schemes} without parameters"
            raise JobPathError(path=mask_uri(self.out), reason=reason)

    def _run(self, engine: Engine, settings: FilesystemOptions, split_bytes: int) -> tuple[Report, list[str]]:
        """Run the job, print notes on partitions, and write the report."""
        from kafka_msgs.engines.job import run_job
        from kafka_msgs.engines.replicas import JobInputs
        from kafka_msgs.report.facts import facts_of_now

        job, inputs = self.kind.job(), JobInputs.at(self.inputs, settings)
        found = run_job(
            job, inputs, self.out, engine, settings, lambda note: echo(note, err=True),
            ends=self.kind.ends, split_bytes=split_bytes, table_format=self.table_format,
        )  # fmt: skip
        facts = {**input_facts(self.inputs), **facts_of_now()}
        return self._written(evolve(self.kind.report(found), facts=facts), settings)

    def _written(self, report: Report, settings: FilesystemOptions) -> tuple[Report, list[str]]:
        from kafka_msgs.filesystems.storage import Storage
        from kafka_msgs.report import write_report

        if self.report_dir is None and is_remote(self.out):
            with TemporaryDirectory() as home:
                files = write_report(report, Path(home))
                Storage.at(self.out, settings).copy_from(Path(home))
            return report, [f"{mask_uri(self.out)}/{file.name}" for file in files]
        directory = self.report_dir or Path(self.out)
        directory.mkdir(parents=True, exist_ok=True)
        return report, [str(file) for file in write_report(report, directory)]
