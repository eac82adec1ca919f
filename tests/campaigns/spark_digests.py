"""Compares a large log directory as read by Spark, by ``kafka_msgs.log`` and by Kafka's own classes.

``python -m tests.campaigns.spark_digests --bytes 2G``: creates the directory (half group records, half events), reads
it in these three ways, and reports whether the tables are equal. The exit status is 1 if they differ. The directory is
temporary. Two gigabytes take some minutes. Requires Java and Maven.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.big_directory import CONTENTS, byte_count, write_directory
from kafka_msgs.cli.render.console import console
from kafka_msgs.spark import register
from tests.support.digests import Digests, by_kafka, by_library, by_spark, records_in

__all__ = ["main"]

_DIFFERENCES_SHOWN: Final = 5


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.spark_digests", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--bytes", type=byte_count, default=byte_count("2G"), help="such as 512M or 2G (default: 2G)")
    arguments = parser.parse_args()
    out = console()
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-campaign-") as temporary:
        directory = Path(temporary)
        for content in CONTENTS:
            written = write_directory(directory, arguments.bytes // len(CONTENTS), content)
            out.print(f"{content}: {written.records + written.markers:,} records in {written.size:,} bytes")
        equal = _compare(out, directory)
    sys.exit(not equal)


def _compare(out: Console, directory: Path) -> bool:
    readings = {
        "Spark": lambda: by_spark(_session(), directory),
        "Spark, splits of 5 MB": lambda: by_spark(_session(), directory, splitBytes=5 << 20),
        "Kafka's classes": lambda: by_kafka(directory),
        "kafka_msgs.log": lambda: by_library(directory),
    }
    tables = {name: _timed(out, name, read) for name, read in readings.items()}
    reference = tables["Kafka's classes"]
    for name, table in tables.items():
        _show_differences(out, name, table, reference)
    equal = all(table == reference for table in tables.values())
    out.print(f"{len(reference)} rows of {records_in(reference):,} records: {'EQUAL' if equal else 'DIFFERENT'}")
    return equal


def _timed(out: Console, name: str, read: Callable[[], Digests]) -> Digests:
    start = time.perf_counter()
    table = read()
    out.print(f"{name}: {time.perf_counter() - start:.0f} s")
    return table


def _show_differences(out: Console, name: str, table: Digests, reference: Digests) -> None:
    places = [place for place in sorted({*table, *reference}) if table.get(place) != reference.get(place)]
    for place in places[:_DIFFERENCES_SHOWN]:
        out.print(f"{name}: {place}: {table.get(place)}, not {reference.get(place)}")


def _session() -> SparkSession:
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    settings: dict[str, bool | float | int | str | None] = {
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
        "spark.log.level": "ERROR",
    }
    session: SparkSession = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    register(session)
    return session


if __name__ == "__main__":
    main()
