"""Output locations of Spark jobs that write to another filesystem.

Spark writes directly if it supports the filesystem, such as ``s3a`` with the jar ``hadoop-aws``. Otherwise the tables
are written locally, and copied by the filesystem that also reads inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_msgs.errors import JobPathError
from kafka_msgs.filesystems.location import is_remote, mask_uri
from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Destination", "destination"]

_HOME: Final = "kafka-msgs-on-its-way"
_NEEDED: Final = "Spark does not have this filesystem (for s3a: the jar hadoop-aws), and its executors are elsewhere"


class Destination(NamedTuple):
    """The location of a job's tables, and of its report if it is not next to them."""

    tables: str
    report: Path | None

    def named(self, file: Path, out: str) -> str:
        """Return the final name of a report file, after all files are in ``out``."""
        directory = Path(self.report or self.tables)
        return str(file) if directory.parent.name != _HOME else f"{mask_uri(out)}/{file.name}"


@contextmanager
def destination(
    spark: SparkSession, out: str, report: Path | None, settings: FilesystemOptions
) -> Iterator[Destination]:
    """Yield the output locations of a job, and copy local files to ``out`` at the end of the context.

    A ``report`` directory, if set, is used as it is. Raises ``JobPathError`` if ``out`` is not empty or cannot be
    reached, and if neither Spark can write to it nor its executors to a directory of this machine.
    """
    if not is_remote(out):
        yield Destination(out, report)
        return
    storage = Storage.at(out, settings)
    storage.check_empty()
    by_spark = _has_filesystem(spark, out)
    if not by_spark and not str(spark.sparkContext.master).startswith("local"):
        raise JobPathError(path=mask_uri(out), reason=_NEEDED)
    with TemporaryDirectory(prefix="kafka-msgs-out-") as home:
        local = Path(home) / _HOME / "out"
        local.mkdir(parents=True)
        yield Destination(out, report or local) if by_spark else Destination(str(local), report)
        storage.copy_from(local)


def _has_filesystem(spark: SparkSession, uri: str) -> bool:
    from py4j.protocol import Py4JJavaError

    session: Any = spark
    hadoop = session._jvm.org.apache.hadoop.fs.FileSystem
    try:
        hadoop.getFileSystemClass(uri.partition(":")[0], session._jsparkSession.sessionState().newHadoopConf())
    except Py4JJavaError:
        return False
    return True
