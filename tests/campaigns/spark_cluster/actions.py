"""The actions on the cluster: a read, an export, a job and a stream, during each of which an executor is killed.

``python -m tests.campaigns.spark_cluster.actions URL LOG_DIRECTORY HOME WORKER...``: ``URL`` is the URL of the master
or of the Spark Connect server. Prints the result of each action as a line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafka_msgs.analysis.profile_job import TOPIC_PROFILE
from kafka_msgs.engines.job import run_job
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.engines.spark import spark_engine
from kafka_msgs.spark import register
from tests.campaigns.spark_cluster.cluster import SETTINGS, executors_of, kill_one
from tests.support.digests import COLUMNS, Digests, by_spark, digests_of

SPLIT: Final = 2 << 20
OFFSETS_A_BATCH: Final = 400_000
STREAM_SECONDS: Final = 600
_POLL: Final = 0.05


@contextmanager
def killing(workers: tuple[int, ...], due: Callable[[], bool]) -> Iterator[list[int]]:
    """Kill an executor as soon as it is due; yield the list of killed executors, which may stay empty."""
    ended, killed = threading.Event(), list[int]()

    def watch() -> None:
        while not ended.wait(_POLL):
            if due() and executors_of(workers):
                killed.append(kill_one(workers))
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


def busy(
    workers: tuple[int, ...], seconds: float, of: Callable[[tuple[int, ...]], list[int]] = executors_of
) -> Callable[[], bool]:
    """Return a function that returns whether executors have used this much processor time since now.

    With ``python_of``, the time of their Python processes counts.
    """

    def ticks() -> int:
        return sum(_ticks_of(each) for each in of(workers))

    before = ticks()
    return lambda: (ticks() - before) / os.sysconf("SC_CLK_TCK") > seconds


def _ticks_of(process: int) -> int:
    try:
        fields = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def read(spark: SparkSession, directory: Path, workers: tuple[int, ...]) -> dict[str, Any]:
    """Read all rows of the source, and return their digests."""
    with killing(workers, busy(workers, 1)) as killed:
        found = by_spark(spark, directory, splitBytes=SPLIT)
    return {"killed": killed, "digests": _as_json(found)}


def records(spark: SparkSession, directory: Path, home: Path, workers: tuple[int, ...]) -> dict[str, Any]:
    """Write all rows of the source to Parquet, and return the digests of the written rows."""
    options = {"control": "true", "columns": COLUMNS, "splitBytes": str(SPLIT)}
    out = str(home / "records")
    with killing(workers, busy(workers, 1)) as killed:
        spark.read.format("kafka-log").options(**options).load(str(directory)).write.parquet(out)
    return {"killed": killed, "digests": _as_json(_stored(spark, out))}


def stream(spark: SparkSession, directory: Path, home: Path, workers: tuple[int, ...]) -> dict[str, Any]:
    """Run a stream, and return the digests of its rows; an executor is killed after the first micro-batch."""
    options = {"control": "true", "columns": COLUMNS, "maxOffsetsPerTrigger": str(OFFSETS_A_BATCH)}
    rows = spark.readStream.format("kafka-log").options(**options).load(str(directory))
    commits, out = home / "checkpoint" / "commits", str(home / "rows")
    with killing(workers, lambda: commits.is_dir() and any(commits.glob("[0-9]*"))) as killed:
        query = (
            rows.writeStream.format("parquet")
            .option("checkpointLocation", str(home / "checkpoint"))
            .trigger(availableNow=True)
            .start(out)
        )
        ended = query.awaitTermination(STREAM_SECONDS)
    batches = len(list(commits.glob("[0-9]*")))
    return {"killed": killed, "ended": ended, "batches": batches, "digests": _as_json(_stored(spark, out))}


def _stored(spark: SparkSession, out: str) -> Digests:
    return digests_of(spark.read.parquet(out))


def job(spark: SparkSession, directory: Path, home: Path, workers: tuple[int, ...]) -> dict[str, Any]:
    """Run a job once undisturbed and once with a killed executor, and return the tables of both."""
    inputs = JobInputs.at([directory])
    run_job(TOPIC_PROFILE, inputs, str(home / "quiet"), spark_engine(spark))
    with killing(workers, busy(workers, 2)) as killed:
        run_job(TOPIC_PROFILE, inputs, str(home / "killed"), spark_engine(spark))
    homes = {out: home / out / "current" for out in _RUNS}
    tables = {
        out: [_sums(spark.read.parquet(str(each / name))) for name in TOPIC_PROFILE.tables]
        for out, each in homes.items()
    }
    return {"killed": killed, "tables": tables}


_RUNS: Final = ("quiet", "killed")


def _sums(rows: DataFrame) -> list[int]:
    """Return the number of rows, and a sum that changes with any value."""
    names = sorted(rows.columns)
    (row,) = rows.agg(sf.count("*"), sf.sum(sf.xxhash64(*names).cast("decimal(38, 0)"))).collect()
    return [int(each or 0) for each in row]


def _as_json(digests: Digests) -> list[list[Any]]:
    return sorted([*place, list(sums)] for place, sums in digests.items())


def main(url: str, directory: str, home: str, *workers: str) -> None:
    """Run all actions in one session."""
    builder: Any = SparkSession.builder
    if url.startswith("sc://"):
        spark = builder.remote(url).getOrCreate()
    else:
        spark = builder.master(url).config(map=SETTINGS).getOrCreate()
    register(spark)
    logs, place, processes = Path(directory), Path(home), tuple(map(int, workers))
    actions: dict[str, Callable[[], dict[str, Any]]] = {
        "read": lambda: read(spark, logs, processes),
        "records": lambda: records(spark, logs, place, processes),
        "job": lambda: job(spark, logs, place, processes),
        "stream": lambda: stream(spark, logs, place, processes),
    }
    for name, action in actions.items():
        start = time.monotonic()
        found = {**action(), "seconds": round(time.monotonic() - start, 1)}
        print(json.dumps({name: found}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
