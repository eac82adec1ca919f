"""Campaign for ``kafka-msgs pipeline`` jobs on other filesystems: their tables must equal the tables of local runs.

``python -m tests.campaigns.remote_jobs``, optionally with names of filesystems: ``s3``, ``hdfs``, ``gs``, ``abfs``. It
takes some minutes, requires Java, Maven, Go, and Node with npm, and exits with status 1 if a table differs. The Spark
session contains the options of the filesystems. Incremental jobs run twice.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import click
import pyarrow.dataset as ds
from attrs import frozen
from click.testing import CliRunner
from pyarrow import fs
from pyspark.sql import SparkSession

from kafka_msgs.cli.command_group import command
from kafka_msgs.filesystems.resolver import filesystem_of
from tests.support.committed_tables import committed_tables
from tests.support.hdfs_cluster import hdfs_cluster
from tests.support.object_stores import azure_store, gcs_store
from tests.support.recordings import GROUP_LOGS
from tests.support.s3_server import s3_server

__all__ = ["main"]

PACKETS: Final = GROUP_LOGS.parents[1] / "packets"
JOBS: Final[Mapping[str, Path]] = {
    "group-offsets": GROUP_LOGS,
    "group-state": GROUP_LOGS,
    "topic-profile": GROUP_LOGS,
    "capture-report": PACKETS / "shop.pcapng",
}
"""The jobs that read files, and their inputs."""
_WITH_PATHS: Final = frozenset({"file", "problem", "checkpoint"})
"""The columns that contain paths of inputs."""
_ONCE: Final = ("capture-report",)
"""The jobs without incremental runs."""

_OF_SPARK: Final = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


@frozen
class Place:
    """A directory of a filesystem: the prefix and suffix of its URIs, and its location for Arrow."""

    name: str
    start: str
    filesystem: fs.FileSystem
    inner: str
    settings: Mapping[str, str]
    end: str = ""

    def uri(self, path: str) -> str:
        """Return the URI of a path in the directory."""
        return f"{self.start}/{path}{self.end}"


def run(job: str, source: str, out: str) -> None:
    """Run a job in the active session."""
    done = CliRunner().invoke(command, ["pipeline", job, source, "--out", out])
    if done.exit_code:
        raise click.ClickException(f"{job} {source}: {done.output[-1000:]}")


@contextmanager
def session(settings: Mapping[str, str]) -> Iterator[None]:
    """Run a session with options of filesystems."""
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder: Any = SparkSession.builder.master("local[2]")
    for name, value in {**_OF_SPARK, **{f"spark.hadoop.{name}": each for name, each in settings.items()}}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    yield
    spark.stop()


def tables(filesystem: fs.FileSystem, place: str) -> dict[str, list[str]]:
    """Return the sorted rows of each table in a directory, without columns that name the filesystem."""
    found = filesystem.get_file_info(fs.FileSelector(place))
    names = [info.base_name for info in found if info.type == fs.FileType.Directory and info.base_name[0] != "_"]
    return {name: sorted(_rows(filesystem, f"{place}/{name}")) for name in names}


def _committed(out: str, settings: Mapping[str, str]) -> dict[str, list[str]]:
    return {name: sorted(map(_shown, rows)) for name, rows in committed_tables(out, settings).items()}


def _rows(filesystem: fs.FileSystem, place: str) -> Iterator[str]:
    data: Any = ds.dataset(place, filesystem=filesystem, format="parquet", partitioning="hive")
    yield from map(_shown, data.to_table().to_pylist())


def _shown(row: Mapping[str, Any]) -> str:
    return repr({name: value for name, value in sorted(row.items()) if name not in _WITH_PATHS})


def compare(place: Place, home: Path) -> Iterator[str]:
    """Yield the result of each job on a filesystem."""
    for job, source in JOBS.items():
        for _ in range(1 if job in _ONCE else 2):
            run(job, place.uri(f"in/{source.name}"), place.uri(f"out/{job}"))
        if job in _ONCE:
            here = tables(fs.LocalFileSystem(), str(home / job))
            there = tables(place.filesystem, f"{place.inner}/out/{job}")
        else:
            here = _committed(str(home / job), {})
            there = _committed(place.uri(f"out/{job}"), place.settings)
        wrong = [name for name in here.keys() | there.keys() if here.get(name) != there.get(name)]
        rows = sum(map(len, here.values()))
        yield f"{place.name} {job}: {len(here)} tables, {rows} rows, " + (f"DIFFERENT: {wrong}" if wrong else "equal")


def _fill(place: Place) -> None:
    for source in set(JOBS.values()):
        target = f"{place.inner}/in" if source.is_file() else f"{place.inner}/in/{source.name}"
        place.filesystem.create_dir(target)
        origin = str(source) if source.is_dir() else str(source.parent)
        fs.copy_files(origin, target, fs.LocalFileSystem(), place.filesystem)


@contextmanager
def _s3(_: Path) -> Iterator[Place]:
    with s3_server() as made:
        yield Place("s3", "s3a://jobs", made.store(), "jobs", made.settings)


@contextmanager
def _hdfs(home: Path) -> Iterator[Place]:
    with hdfs_cluster(home / "hdfs") as made:
        yield Place("hdfs", f"{made.hdfs}/jobs", filesystem_of(made.hdfs).filesystem, "/jobs", {})


@contextmanager
def _gs(_: Path) -> Iterator[Place]:
    with gcs_store("jobs") as made:
        yield Place("gs", made.start, made.store(), made.bucket, made.settings)


@contextmanager
def _abfs(_: Path) -> Iterator[Place]:
    with azure_store("jobs") as made:
        yield Place("abfs", made.start, made.store(), made.bucket, made.settings, made.end)


_PLACES: Final = {"s3": _s3, "hdfs": _hdfs, "gs": _gs, "abfs": _abfs}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([*_PLACES]))
def main(names: Sequence[str]) -> None:
    """Run all jobs locally and on the filesystems of these names, by default all."""
    failed = False
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="remote-jobs-")))
        places = [stack.enter_context(_PLACES[name](home)) for name in names or _PLACES]
        stack.enter_context(session({name: each for place in places for name, each in place.settings.items()}))
        for job, source in JOBS.items():
            run(job, str(source), str(home / job))
        for place in places:
            _fill(place)
            for line in compare(place, home):
                click.echo(line)
                failed |= "DIFFERENT" in line
    sys.exit(failed)


if __name__ == "__main__":
    main()
