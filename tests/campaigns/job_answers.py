"""Campaign with random log directories that change between runs: ``python -m tests.campaigns.job_answers``.

Runs that go on from an earlier one, runs from the start and commands must give the same answers. ``--seeds 500`` is the
number of directories, ``--first`` the first seed. With ``--spark``, Spark tasks and this process take turns. The exit
status is 1 after a difference.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from kafka_msgs.engines.job import Engine
from kafka_msgs.engines.local import local_engine
from tests.support.job_answers import differences

__all__ = ["main"]

_SHOWN_DIRECTORIES: Final = 50


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.job_answers", description=(__doc__ or "")[:72])
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--spark", action="store_true")
    arguments = parser.parse_args()
    # Tables are tiny: threads would only cost time.
    pa.set_cpu_count(1)
    found, start = 0, time.monotonic()
    with engines(spark=arguments.spark) as usable:
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            with tempfile.TemporaryDirectory(prefix="kafka-msgs-answers-") as home:
                for difference in differences(Path(home), seed, usable):
                    found += 1
                    print(difference, flush=True)
            if (done := seed - arguments.first + 1) % _SHOWN_DIRECTORIES == 0:
                print(f"{done} directories, {time.monotonic() - start:.0f} s", flush=True)
    print(f"{arguments.seeds} directories, {found} differences, {time.monotonic() - start:.0f} s")
    return min(found, 1)


@contextmanager
def engines(*, spark: bool) -> Iterator[list[Engine]]:
    """Yield the engine of this process, and optionally the engine of a Spark session."""
    if not spark:
        yield [local_engine()]
        return
    from pyspark.sql import SparkSession

    from kafka_msgs.engines.spark import spark_engine

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder: Any = SparkSession.builder.master("local[2]")
    for name, value in (("ui.enabled", "false"), ("log.level", "ERROR"), ("driver.memory", "512m")):
        builder = builder.config(f"spark.{name}", value)
    session = builder.getOrCreate()
    try:
        yield [local_engine(), spark_engine(session)]
    finally:
        session.stop()


if __name__ == "__main__":
    sys.exit(main())
