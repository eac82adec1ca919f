"""Kills executors of a standalone Spark cluster during reads, exports, jobs and streams, and drivers during jobs.

``python -m tests.campaigns.spark_cluster --bytes 64M``: creates a log directory, starts a master and two single-core
workers on loopback, and a Spark Connect server. Results are compared with ``kafka_msgs.log`` and with runs of the jobs
in one process. The exit status is 1 if they differ, or if no executor was killed. ``--only`` selects a part: actions in
a ``classic`` or ``connect`` session, or commands: ``jobs`` with killed executors, with a killed ``driver``, and with
workers that have another ``disk``. All files are temporary, and all processes end after ``--minutes``. Requires Java,
and Linux; workers with another disk also need root.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from benchmarks.big_directory import CONTENTS, byte_count, write_directory
from kafka_msgs.cli.render.console import console
from tests.campaigns.spark_cluster.cluster import Cluster, running_cluster, running_server
from tests.campaigns.spark_cluster.jobs import check_jobs, check_killed_driver, check_other_disk
from tests.support.digests import by_library, records_in

__all__ = ["main"]

_TAIL: Final = 3000
_PARTS: Final = ("classic", "connect", "jobs", "driver", "disk")


def main() -> int:
    """Run the campaign; return 1 if a result differs."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.spark_cluster", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--bytes", type=byte_count, default=byte_count("64M"), help="of the log (default: 64M)")
    parser.add_argument("--minutes", type=int, default=30, help="after which all ends (default: 30)")
    parser.add_argument("--only", choices=_PARTS, action="append", help="a part; may be repeated (default: all)")
    arguments = parser.parse_args()
    parts = arguments.only or _PARTS
    out = console()
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-spark-cluster-", ignore_cleanup_errors=True) as temporary:
        home, logs = Path(temporary), Path(temporary) / "logs"
        for content in CONTENTS:
            write_directory(logs, arguments.bytes // len(CONTENTS), content)
        expected = by_library(logs)
        out.print(f"{records_in(expected):,} records")
        wanted = sorted([*place, list(sums)] for place, sums in expected.items())
        seconds = arguments.minutes * 60
        with running_cluster(home, seconds) as cluster:
            found = list(check_jobs(out, cluster, home, logs)) if "jobs" in parts else []
            if "driver" in parts:
                found.append(check_killed_driver(out, cluster, home, logs))
            if "classic" in parts:
                found.append(_holds(out, "classic", _run("classic", cluster.master, cluster, home, seconds), wanted))
            if "connect" in parts:
                with running_server(cluster, home, seconds) as url:
                    found.append(_holds(out, "connect", _run("connect", url, cluster, home, seconds), wanted))
        if "disk" in parts and os.geteuid() == 0:
            found.append(check_other_disk(out, home, logs, seconds))
    return not all(found)


def _run(name: str, url: str, cluster: Cluster, home: Path, seconds: int) -> dict[str, Any]:
    place = home / name
    place.mkdir()
    arguments = [url, str(home / "logs"), str(place), *map(str, cluster.workers)]
    done = subprocess.run(
        [
            "timeout", "--kill-after=10", str(seconds),
            sys.executable, "-m", "tests.campaigns.spark_cluster.actions", *arguments,
        ],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        print(f"{name}: {done.stderr[-_TAIL:]}", file=sys.stderr)
    found: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        found |= json.loads(line)
    return found


def _holds(out: Console, name: str, found: dict[str, Any], wanted: list[list[Any]]) -> bool:
    """Print the result of each action, and return whether all are correct."""
    checks: dict[str, Callable[[dict[str, Any]], bool]] = {
        "read": lambda read: read["digests"] == wanted,
        "records": lambda records: records["digests"] == wanted,
        "job": lambda job: job["tables"]["quiet"] == job["tables"]["killed"] and bool(job["tables"]["killed"][0][0]),
        "stream": lambda stream: stream["digests"] == wanted and stream["batches"] > 1,
    }
    return all([_holds_of(out, f"{name}: {action}", found.get(action), equal) for action, equal in checks.items()])


def _holds_of(out: Console, what: str, found: dict[str, Any] | None, equal: Callable[[dict[str, Any]], bool]) -> bool:
    if found is None:
        out.print(f"{what}: did not end")
        return False
    same, killed = equal(found), found["killed"]
    how = f"executor {killed[0]} killed" if killed else "ended before an executor was killed: give more --bytes"
    out.print(f"{what}: {'EQUAL' if same else 'DIFFERENT'}, {how}, {found['seconds']} s")
    return same and bool(killed)


if __name__ == "__main__":
    sys.exit(main())
