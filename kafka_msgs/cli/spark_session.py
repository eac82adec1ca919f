"""The Spark session of a command, and its progress display.

This module starts a session if none is active, and stops it. Spark is imported when a session is needed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from kafka_msgs.errors import MissingExtraError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["master_url", "one_sentence", "progress_of", "require_spark", "session_for", "setting"]

_PACKAGES: Final = ("pyspark", "pyarrow", "pandas", "jinja2")
_NO_JAVA: Final = "needs Java 17 or later: set JAVA_HOME, or put java on the PATH"
_OWN_ERROR: Final = re.compile(r"^kafka_msgs\.errors[.\w]*\.\w+: (.*)$", re.MULTILINE)
"""A kafka-msgs error as the last line of a worker's traceback."""
_MASTER: Final = re.compile(
    r"local(?:\[(?:[0-9]+|\*)(?:, ?[0-9]+)?\])?|local-cluster\[[0-9, ]+\]|spark://.+|yarn|k8s://.+"
)
_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
"""Default config of a session that this command starts: no server, and no progress bar of Spark over our own."""

_QUICK_START: Final = "-XX:TieredStopAtLevel=1"
"""Limits the JVM to one quick compilation. A driver without rows never regains the cost of a second one."""

_LOGGING: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c: %m%n
"""
"""The logging config of the JVM: errors only."""


def require_spark(feature: str) -> None:
    """Raise ``MissingExtraError`` without a package that jobs need, and ``ClickException`` without Java."""
    for package in _PACKAGES:
        try:
            import_module(package)
        except ImportError as error:
            raise MissingExtraError(feature=feature, extra="pipeline", package=package) from error
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is None and not _has_java():
        raise click.ClickException(f"{feature} {_NO_JAVA}")


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return which("java", path=str(Path(home) / "bin") if home else None) is not None


@contextmanager
def one_sentence() -> Iterator[None]:
    """Convert Spark and filesystem errors to one sentence, without the tracebacks of workers and of the JVM."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise click.ClickException(_sentence(error)) from error
    except OSError as error:
        raise click.ClickException(str(error)) from error


def _sentence(error: Exception) -> str:
    text = str(error)
    if "JAVA_GATEWAY_EXITED" in text:
        return "Spark could not be started; the lines above have the reason; it needs Java 17 or later"
    own = _OWN_ERROR.findall(text)
    if own:
        return str(own[-1])
    java = getattr(error, "java_exception", None)
    lines = (java.getMessage() or java.toString() if java is not None else text).strip().splitlines()
    return f"Spark: {lines[0]}" if lines else type(error).__name__


@contextmanager
def session_for(
    feature: str, master: str | None, settings: Sequence[tuple[str, str]], *, in_tasks: bool = False
) -> Iterator[SparkSession]:
    """Yield the active session, or a new one that ends with the context, with kafka-msgs sources registered.

    ``master`` and ``settings`` are for a new session. With ``in_tasks`` all work is in Python, as in
    ``kafka_msgs.engines.spark``: then the sources are not registered, which saves a third of the time of a small
    run, and the JVM of a new session uses quick compilation. Raises the errors of ``require_spark``, which name
    ``feature``.
    """
    require_spark(feature)
    from pyspark.sql import SparkSession

    from kafka_msgs.spark import register

    active = SparkSession.getActiveSession()
    with nullcontext(active) if active is not None else _own_session(feature, master, settings, in_tasks) as spark:
        if not in_tasks:
            register(spark)
        yield spark


@contextmanager
def _own_session(
    name: str, master: str | None, settings: Sequence[tuple[str, str]], in_tasks: bool
) -> Iterator[SparkSession]:
    with TemporaryDirectory(prefix="kafka-msgs-spark-") as home:
        logging = Path(home) / "log4j2.properties"
        logging.write_text(_LOGGING, encoding="ascii")
        java = f"-Dlog4j2.configurationFile={logging} {_QUICK_START if in_tasks else ''}"
        spark = _new_session(name, master, {"spark.driver.extraJavaOptions": java.strip(), **dict(settings)})
        try:
            yield spark
        finally:
            spark.stop()


def _new_session(name: str, master: str | None, settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    # Otherwise the workers would run any "python3", without the packages of this one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    for setting_name, value in {**_SETTINGS, **settings}.items():
        builder = builder.config(setting_name, value)
    return (builder.master(master) if master else builder).getOrCreate()


def master_url(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Return the master URL; raises ``BadParameter`` if Spark does not support it."""
    if value is not None and _MASTER.fullmatch(value) is None:
        raise click.BadParameter(
            f"{value}: local, local[4], local[*], spark://HOST:PORT, yarn or k8s://... was expected"
        )
    return value


def setting(text: str) -> tuple[str, str]:
    """Return the name and the value of a setting written as ``NAME=VALUE``."""
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text}: NAME=VALUE was expected")
    return name, value


@contextmanager
def progress_of(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    """Show the current step on a terminal, with the numbers of completed and known Spark tasks.

    Yields a callback that receives the name of each step when it starts.
    """
    screen = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}"), _Tasks(spark), TimeElapsedColumn()
    with Progress(
        *columns, console=screen, transient=True, refresh_per_second=2, disable=not screen.is_terminal
    ) as shown:
        task = shown.add_task("", total=None)
        yield lambda step: shown.update(task, description=step)


class _Tasks(ProgressColumn):
    """The number of completed tasks, of all tasks in the running stages."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__()
        self._tracker = spark.sparkContext.statusTracker()

    def render(self, task: Task) -> Text:
        stages = [self._tracker.getStageInfo(number) for number in self._tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        if not known:
            return Text("")
        return Text(f"{sum(stage.numCompletedTasks for stage in known)}/{sum(stage.numTasks for stage in known)} tasks")
