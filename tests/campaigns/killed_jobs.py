"""Campaign that kills a job before every change that it makes: ``python -m tests.campaigns.killed_jobs``.

Optionally with names of outputs: ``disk``, ``delta``, ``iceberg``, ``s3``, ``hdfs``. HDFS requires Java and Maven. Each
kill is followed by a check of the tables and by another run. The exit status is 1 after a difference.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from tests.support.hdfs_cluster import hdfs_cluster
from tests.support.killed_runs import Output, check_steps
from tests.support.s3_server import s3_process

__all__ = ["main"]

_NAMES: Final = ("disk", "delta", "iceberg", "s3", "hdfs")
_SHOWN_KILLS: Final = 10


@contextmanager
def output(name: str, home: Path) -> Iterator[Output]:
    """Yield the empty output with a name."""
    if name == "s3":
        with s3_process() as server:
            server.store().create_dir("bucket")
            yield Output("s3a://bucket/out", server.settings)
    elif name == "hdfs":
        with hdfs_cluster(home / "hdfs") as cluster:
            yield Output(f"{cluster.hdfs}/out")
    else:
        yield Output(str(home / "out"), form="parquet" if name == "disk" else name)


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(_NAMES))
def main(names: Sequence[str]) -> None:
    """Kill runs on the outputs of these names, by default on all."""
    failed = False
    for name in names or _NAMES:
        start, seen = time.monotonic(), Counter[str]()
        with tempfile.TemporaryDirectory(prefix="kafka-msgs-killed-") as home, output(name, Path(home)) as made:
            try:
                for state in check_steps(Path(home), made):
                    seen[state] += 1
                    if seen.total() % _SHOWN_KILLS == 0:
                        click.echo(f"{name}: {seen.total()} kills; {time.monotonic() - start:.0f} s")
            except AssertionError as difference:
                failed = True
                click.echo(f"{name}: DIFFERENT: {difference}")
        seconds = time.monotonic() - start
        click.echo(f"{name}: {seen.total()} kills: {seen['old']} old tables, {seen['new']} new ones; {seconds:.0f} s")
    sys.exit(failed)


if __name__ == "__main__":
    main()
