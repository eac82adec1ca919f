"""``kafka-msgs pipeline``: jobs over files, which write tables and reports to a directory.

This module defines the options of each job, and the displayed part of its report. ``spark_session`` manages the
session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from rich.console import Console

from kafka_msgs.catalog import message_by_name
from kafka_msgs.cli.help import FullHelpGroup
from kafka_msgs.cli.log_job import LogJob, LogJobSpec, engine_option, wait_option, workers_option
from kafka_msgs.cli.output_options import isolation_option
from kafka_msgs.cli.record_commands.where_option import where_option
from kafka_msgs.cli.registry_options import registry_option
from kafka_msgs.cli.render.console import console, table
from kafka_msgs.cli.render.output import echo
from kafka_msgs.cli.report_options import input_facts
from kafka_msgs.cli.spark_session import master_url, one_sentence, progress_of, require_spark, session_for, setting
from kafka_msgs.errors import JobPathError, OptionError
from kafka_msgs.log.partition_discovery import end_offsets_in
from kafka_msgs.tables import FORMAT_NAMES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kafka_msgs.analysis.job import Job
    from kafka_msgs.engines.job import RunResult
    from kafka_msgs.filesystems.options import FilesystemOptions
    from kafka_msgs.report import Report
    from kafka_msgs.spark.jobs.job import JobResult

__all__ = ["pipeline_command", "show_tables"]

F = TypeVar("F", bound=Callable[..., Any])
Frames = Callable[["SparkSession"], "Mapping[str, DataFrame]"]
"""Creates the inputs of a job in a session. The arguments are checked before it is returned."""
Check = Callable[["FilesystemOptions"], Frames]
"""Checks the arguments of a job, with filesystem options."""

_FEATURE: Final = "kafka-msgs pipeline"
_PROBLEMS: Final = "Problems"
_ROWS: Final = 20
"""The number of table rows on the screen; the report has more, and the Parquet tables have all rows."""

_OUT: Final = "Directory of the tables: new or empty; jobs over log directories also continue an earlier run."

_Paths = click.argument("inputs", metavar="INPUT...", nargs=-1, required=True)


@click.group("pipeline", cls=FullHelpGroup)
def pipeline_command() -> None:
    """Run a job over log directories or captures that writes Parquet tables and a report with plots.

    Jobs over log directories run in this process, or in Spark with --engine spark, a Spark option, a URI or
    spark-submit. capture-report and wire-compat always run in Spark.

    Example: kafka-msgs pipeline group-offsets kafka-logs --out offsets
    """


def _options(command: F) -> F:
    """Add the common options of all jobs."""
    for option in (
        click.option("--conf", metavar="NAME=VALUE", multiple=True, help="A Spark property; may be repeated."),
        click.option(
            "--master",
            metavar="URL",
            callback=master_url,
            help="Spark master, such as local[4]; default: Spark's configuration, or all cores.",
        ),
        click.option(
            "--report",
            "report_dir",
            type=click.Path(file_okay=False, path_type=Path),
            help="Directory of the report; default: --out.",
        ),
        click.option(
            "--format",
            "table_format",
            type=click.Choice(FORMAT_NAMES),
            default=FORMAT_NAMES[0],
            show_default=True,
            help="Table format; delta and iceberg add a version to the tables of an earlier run.",
        ),
        click.option("--out", required=True, metavar="DIR", help=_OUT),
    ):
        command = option(command)
    return command


@pipeline_command.command("group-offsets")
@_Paths
@click.option(
    "--end-offsets",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Output of kafka-get-offsets, for the lag; default: the ends of the partitions in the inputs.",
)
@click.option("--history", is_flag=True, help="Also write the table history: every commit in the log.")
@click.option("--status", is_flag=True, help="Add the status of groups by their latest commits to the report.")
@engine_option
@workers_option
@wait_option
@_options
def group_offsets_command(
    inputs: tuple[str, ...],
    end_offsets: Path | None,
    history: bool,
    status: bool,
    **options: Any,
) -> None:
    """Write every committed offset of every group, including empty groups, and the lag.

    INPUT is a log directory, or the directory of a partition of __consumer_offsets; with Spark also a URI such as
    s3://. If --out contains an earlier run over the same inputs, the job reads only new data. The exit status is 1
    if something could not be read; the table problems lists it.

    Example: kafka-msgs pipeline group-offsets kafka-logs --out offsets
    """

    def job() -> Job[Any]:
        from kafka_msgs.analysis.group_offsets_job import group_offsets_job

        return group_offsets_job(history=history, status=status)

    def report(found: RunResult[Any]) -> Report:
        from kafka_msgs.analysis.group_offsets_report import group_offsets_report

        return group_offsets_report(found.report, found.first_problems, found.problems, found.cluster.times())

    ends = None if end_offsets is None else end_offsets_in(end_offsets)
    _run_over_logs(LogJobSpec(job=job, report=report, ends=ends), inputs, **options)


@pipeline_command.command("group-state")
@_Paths
@engine_option
@workers_option
@wait_option
@_options
def group_state_command(inputs: tuple[str, ...], **options: Any) -> None:
    """Write the members, assignments, epochs and topologies of all groups.

    INPUT is a log directory, or the directory of a partition of __consumer_offsets; with Spark also a URI such as
    s3://. If --out contains an earlier run over the same inputs, the job reads only new data. The exit status is 1
    if something could not be read; the table problems lists it.

    Example: kafka-msgs pipeline group-state kafka-logs --out groups
    """

    def job() -> Job[Any]:
        from kafka_msgs.analysis.group_state_job import GROUP_STATE

        return GROUP_STATE

    def report(found: RunResult[Any]) -> Report:
        from kafka_msgs.analysis.group_state_report import group_state_report

        return group_state_report(found.report, found.first_problems.to_pylist(), found.problems)

    _run_over_logs(LogJobSpec(job=job, report=report), inputs, **options)


@pipeline_command.command("topic-profile")
@_Paths
@engine_option
@workers_option
@wait_option
@_options
def topic_profile_command(inputs: tuple[str, ...], **options: Any) -> None:
    """Profile topics by partition and hour: records, bytes, codecs, sizes, producers, transactions, timestamp order.

    INPUT is a log directory or a partition directory; with Spark also a URI such as s3://. If --out contains an
    earlier run over the same inputs, the job reads only new data. The exit status is 1 if something could not be
    read; the table problems lists it.

    Example: kafka-msgs pipeline topic-profile kafka-logs --out profile
    """

    def job() -> Job[Any]:
        from kafka_msgs.analysis.profile_job import TOPIC_PROFILE

        return TOPIC_PROFILE

    def report(found: RunResult[Any]) -> Report:
        from kafka_msgs.analysis.topic_profile_report import topic_profile_report

        shown = found.first_problems.to_pylist()
        return topic_profile_report(found.report, shown, found.problems, found.cluster.metadata)

    _run_over_logs(LogJobSpec(job=job, report=report), inputs, **options)


@pipeline_command.command("records")
@_Paths
@click.option("--out", required=True, metavar="DIR", help="Directory of the table: new or empty.")
@click.option("--engine", type=click.Choice(["local"]), default="local", show_default=True, help="Execution engine.")
@click.option(
    "--columns",
    metavar="NAMES",
    help="Columns, separated by commas; * for all; default: the columns of the source kafka-log.",
)
@click.option("--topic", "topics", metavar="NAME", multiple=True, help="Export only this topic; may be repeated.")
@click.option("--partition", "partitions", type=int, multiple=True, help="Export only this partition; may be repeated.")
@click.option("--control", is_flag=True, help="Include control records.")
@isolation_option
@where_option
@registry_option
@click.option(
    "--compression",
    type=click.Choice(["snappy", "zstd", "lz4", "none"]),
    default="snappy",
    show_default=True,
    help="Compression codec of the Parquet files.",
)
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Number of writer processes.")
def records_command(**options: Any) -> None:
    """Export every record to Parquet, one file per segment, without Spark.

    INPUT is a log directory or a partition directory. The files are below current/records/topic=NAME/partition=NUMBER,
    and appear together at the end. Memory use does not grow with the files. Corrupt records are rows with the reason
    in the column _error. The Spark source kafka-log has the same rows.

    Example: kafka-msgs pipeline records kafka-logs --out records --topic orders
    """
    from kafka_msgs.cli.record_export import run_records

    run_records(**options)


@pipeline_command.command("capture-report")
@_Paths
@click.option("--port", "ports", type=int, multiple=True, help="A broker port; may be repeated; default: 9092.")
@click.option("--any-port", is_flag=True, help="Recognize Kafka connections on any port by their contents.")
@_options
def capture_report_command(inputs: tuple[str, ...], ports: tuple[int, ...], any_port: bool, **options: Any) -> None:
    """Report the traffic in captures by API and version: counts, latencies, sizes, errors, clients.

    INPUT is a pcap or pcapng file; a path, or a URI such as s3://.

    Example: kafka-msgs pipeline capture-report traffic.pcapng --out report
    """
    requested = {"ports": "any" if any_port else ",".join(map(str, ports))} if any_port or ports else {}

    def check(settings: FilesystemOptions) -> Frames:
        job = import_module("kafka_msgs.spark.jobs.capture_report")
        _check_captures(inputs, settings)
        return lambda spark: {"exchanges": job.exchanges_frame(spark, inputs, requested)}

    _run("capture_report", check, inputs, **options)


@pipeline_command.command("wire-compat")
@click.option("--seeds", type=click.IntRange(min=1), default=10, show_default=True, help="Number of seeds.")
@click.option("--first-seed", type=click.IntRange(min=0), default=0, show_default=True, help="The first seed.")
@click.option("--message", "messages", multiple=True, help="Test only this message; may be repeated.")
@_options
@click.pass_context
def wire_compat_command(
    ctx: click.Context, /, seeds: int, first_seed: int, messages: tuple[str, ...], **options: Any
) -> None:
    """Fuzz all executors with random messages and corrupt bytes, and compare their results.

    The exit status is 1 if they differ.

    Example: kafka-msgs pipeline wire-compat --seeds 100 --out fuzz
    """

    def check(_: FilesystemOptions) -> Frames:
        for name in messages:
            message_by_name(name)
        units = import_module("kafka_msgs.spark.jobs.wire_compat").fuzz_units
        return lambda spark: {"units": units(spark, range(first_seed, first_seed + seeds), messages or None)}

    outcome = _run("wire_compat", check, facts={"seeds": f"{first_seed} to {first_seed + seeds - 1}"}, **options)
    if _has_rows(outcome.report, "Mismatches"):
        ctx.exit(1)


def _check_captures(inputs: Sequence[str], settings: FilesystemOptions) -> None:
    from kafka_msgs.filesystems.path_resolution import CAPTURES, log_files

    try:
        log_files("kafka-capture", inputs, CAPTURES, settings)
    except OptionError as error:
        raise JobPathError(path=str(error.value), reason=error.reason) from None


def _run_over_logs(
    kind: LogJobSpec,
    inputs: tuple[str, ...],
    *,
    engine: str | None,
    master: str | None,
    conf: tuple[str, ...],
    **where: Any,
) -> None:
    """Run a job with an engine; print its results and their location. With problems, the exit status is 1."""
    report, files = LogJob(kind=kind, inputs=inputs, **where).run_in(engine, master, conf)
    _show(report, files)
    if _has_rows(report, "Problems"):
        click.get_current_context().exit(1)


def _run(
    module: str,
    check: Check,
    inputs: Sequence[str] = (),
    *,
    out: str,
    report_dir: Path | None,
    master: str | None,
    conf: tuple[str, ...],
    table_format: str,
    facts: Mapping[str, str] | None = None,
) -> JobResult:
    """Check the arguments, then start Spark and run a job; print its results and their location.

    Inputs on other filesystems are checked after Spark has started, because its configuration has their options.
    """
    conf_of_spark = [setting(text) for text in conf]
    require_spark(_FEATURE)
    from kafka_msgs.cli.job_output import destination
    from kafka_msgs.filesystems.location import is_remote
    from kafka_msgs.filesystems.options import NO_OPTIONS
    from kafka_msgs.spark.session import session_settings

    jobs = import_module("kafka_msgs.spark.jobs.job")
    if not is_remote(out) or table_format != FORMAT_NAMES[0]:
        jobs.check_output(out, report_dir, table_format)
    checked = None if any(map(is_remote, inputs)) else check(NO_OPTIONS)
    with one_sentence(), session_for(_FEATURE, master, conf_of_spark) as spark, progress_of(spark) as show_step:
        show_step("reading directories")
        settings = session_settings(spark)
        checked = checked or check(settings)
        job = import_module(f"kafka_msgs.spark.jobs.{module}").JOB
        with destination(spark, out, report_dir, settings) as to:
            facts = input_facts(inputs) if facts is None else facts
            outcome: JobResult = jobs.run(job, checked(spark), to.tables, to.report, show_step, facts, table_format)
    _show(outcome.report, [to.named(path, out) for path in outcome.files])
    return outcome


def _show(report: Report, files: Iterable[str]) -> None:
    show_tables(report, console())
    for path in files:
        echo(path)


def _has_rows(report: Report, title: str) -> bool:
    """Whether the table of a report with this title has rows."""
    return any(getattr(each, "rows", ()) for each in report.sections if getattr(each, "title", "") == title)


def show_tables(report: Report, screen: Console) -> None:
    """Print the tables of a report that have rows, limited to a screen each."""
    from kafka_msgs.report import Table
    from kafka_msgs.report.cells import cell, kinds_of

    for section in report.sections:
        if isinstance(section, Table) and section.rows:
            screen.print(section.title)
            shown = table(*section.columns)
            kinds = kinds_of(section)
            for row in section.rows[:_ROWS]:
                shown.add_row(*map(cell, row, kinds))
            screen.print(shown)
            if len(section.rows) > _ROWS:
                screen.print(f"{len(section.rows) - _ROWS} more in the report\n")
