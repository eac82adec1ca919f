"""Section: a whole log directory through Spark: the lag of each group, and the tasks of each member."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import which
from tempfile import mkdtemp

from docs.demo.presenter import Stage, columns
from kafka_msgs.cli.spark_session import progress_of, session_for
from kafka_msgs.errors import MissingExtraError

__all__ = ["show"]

_SETTINGS = (("spark.sql.shuffle.partitions", "2"), ("spark.driver.memory", "1g"))


def show(stage: Stage) -> None:
    """Run two jobs over the recorded log directory of a broker, and show their tables and the path of the plot."""
    stage.section(
        "Ask a whole log directory (Spark)",
        "What a broker knows of its groups lies in its files. Two jobs read the log directory of a stopped broker, "
        "on a local Spark.",
    )
    if which("java") is None and "JAVA_HOME" not in os.environ:
        stage.say("NOT RUN: Spark needs Java, and there is none here.")
        return
    try:
        with session_for("this section", "local[2]", _SETTINGS) as spark, progress_of(spark) as progress:
            stage.names |= {"spark": spark, "progress": progress, "out": Path(mkdtemp(prefix="kafka-msgs-demo-"))}
            _offsets(stage)
            _tasks(stage)
    except MissingExtraError as error:
        stage.say(f"NOT RUN: {error}")


def _offsets(stage: Stage) -> None:
    stage.run(
        """
        from kafka_msgs.analysis.group_offsets_job import group_offsets_job
        from kafka_msgs.analysis.group_offsets_report import group_offsets_report
        from kafka_msgs.engines.job import run_job
        from kafka_msgs.engines.replicas import JobInputs
        from kafka_msgs.engines.spark import spark_engine
        from kafka_msgs.report import write_report

        logs, engine = JobInputs.at([recordings / "groups" / "log"]), spark_engine(spark)
        ran = run_job(group_offsets_job(), logs, str(out / "offsets"), engine)
        offsets = group_offsets_report(ran.report, ran.first_problems, ran.problems, ran.cluster.times())
        files = write_report(offsets, out / "offsets")
        """
    )
    stage.say("Every group that committed anything, those without a member included, and what it has left to read:")
    _table(stage, "offsets", "Groups", ("group", "kind", "state", "members", "partitions", "lag", "lastCommit"))
    plot = next(file for file in stage.names["files"] if file.suffix == ".svg")
    stage.say(f"As a plot, in a report with all tables: {plot}")


def _tasks(stage: Stage) -> None:
    stage.run(
        """
        from kafka_msgs.analysis.group_state_job import GROUP_STATE
        from kafka_msgs.analysis.group_state_report import group_state_report

        ran = run_job(GROUP_STATE, logs, str(out / "groups"), engine)
        groups = group_state_report(ran.report, ran.first_problems.to_pylist(), ran.problems)
        pages = write_report(groups, out / "groups")
        """
    )
    stage.say("What each member has and is to have, the tasks of a streams group by their role:")
    title = "What members have, are to have, and give up"
    _table(stage, "groups", title, ("group", "memberId", "status", "role", "count"))
    stage.say(f"The report: {stage.names['pages'][0]}")


def _table(stage: Stage, report: str, title: str, wanted: tuple[str, ...]) -> None:
    """Show some columns of a table of a report."""
    from kafka_msgs.report.cells import cell, kinds_of

    (found,) = (each for each in stage.names[report].sections if each.title == title)
    rows = columns(*wanted, numbers=("members", "partitions", "lag", "count"))
    for row in found.rows:
        values = dict(zip(found.columns, map(cell, row, kinds_of(found)), strict=True))
        rows.add_row(*(values[name] for name in wanted))
    stage.table(rows)
