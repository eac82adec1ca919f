"""The speed of scanning a segment: checksums verified, batches and records counted, the range of times found.

The library scans segments of 1 GiB, and once more in a separate process to measure its memory. A segment of 100 MB is
also passed to Kafka's ``DumpLogSegments``, with the Java options of its script; it prints one line per batch without
reading records, which is its minimum. Segments are generated in a temporary directory. Without Java and Maven the
comparison with Kafka is skipped.
"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.report import Figure, Times, print_figures, rows_table
from benchmarks.timing import Action, fastest
from kafka_msgs.log.summary import read_summary
from kafka_msgs.records import BatchBuilder

__all__ = ["run", "write_segment"]

ROOT: Final = Path(__file__).parents[1]
LARGE: Final = 2**30
SMALL: Final = 100_000_000
BATCHES: Final = {"1 MB": 2**20, "16 KB": 2**14, "1 KB": 2**10}
"""The batch sizes. Kafka's producers collect 16 KB if they have enough records."""
RECORD: Final = 100
"""The size of a record's value in bytes."""

LIBRARY: Final = "the library, in a running process"
SUMMARY: Final = "kafka-msgs dump-log --summary"
ROWS: Final = "kafka-msgs dump-log --output jsonl"
KAFKA: Final = "Kafka's dump-log"
_DUMP: Final = "org.apache.kafka.tools.DumpLogSegments"
JAVA_OPTIONS: Final = (
    "-Xmx256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true",
)  # fmt: skip
"""The options of Kafka's own scripts."""
PROTOCOL: Final = (
    "files in the page cache; 1 GiB: processor time, fastest of {large} rounds; 100 MB: wall time, of whole processes "
    "where there is one, interleaved, fastest of {small} rounds"
)
STATUS: Final = Path("/proc/self/status")
"""The file with a process's peak memory; without it, memory is not measured."""
_ROUNDS: Final = 5
_TARGET: Final = 20
_MEMORY: Final = """
import re, sys
from pathlib import Path
from kafka_msgs.log.summary import read_summary
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
before = peak()
read_summary(Path(sys.argv[1]))
print(peak() - before)
"""


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    large, small = min(rounds, _ROUNDS), min(rounds, 2 * _ROUNDS)
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-segment-") as directory:
        figures = _large(console, Path(directory), large) + _against_kafka(console, Path(directory), small)
    print_figures(console, "Scan of a segment", PROTOCOL.format(large=large, small=small), figures)
    return figures


def write_segment(directory: Path, size: int, batch_size: int) -> Path:
    """Write a segment of about ``size`` bytes, in batches of at most ``batch_size``; return its path."""
    builder, number = BatchBuilder(size_limit=batch_size), 0
    while builder.append(None, b"%0*d" % (RECORD, number), timestamp=1_700_000_000_000 + number):
        number += 1
    batch = bytearray(builder.build())
    path = directory / f"{0:020}.log"
    with path.open("wb") as file:
        for count in range(max(size // len(batch), 1)):
            # The checksum does not cover the offset.
            batch[:8] = (count * number).to_bytes(8, "big")
            file.write(batch)
    return path


def _large(console: Console, directory: Path, rounds: int) -> list[Figure]:
    """Scan 1 GiB in batches of each size."""
    table = rows_table("1 GiB scanned", "batches of", "batches", "records", "seconds", "GB/s")
    figures, memory = [], 0.0
    for name, batch_size in BATCHES.items():
        path = write_segment(directory, LARGE, batch_size)
        seconds = fastest({name: partial(read_summary, path)}, rounds)[name]
        summary, speed = read_summary(path), path.stat().st_size / seconds / 1e9
        table.add_row(name, f"{summary.batches:,}", f"{summary.records:,}", f"{seconds:.3f}", f"{speed:.2f}")
        figures.append(Figure(f"1 GiB in batches of {name}", speed, "GB/s"))
        memory = max(memory, _peak_memory(path) if STATUS.exists() else 0)
    console.print(table)
    if STATUS.exists():
        figures.append(Figure("1 GiB: peak of resident memory, the mapped file included", memory, "MB"))
    return figures


def _peak_memory(path: Path) -> float:
    """Return the megabytes by which a scan raises the peak memory of a process."""
    done = subprocess.run([sys.executable, "-c", _MEMORY, path], cwd=ROOT, capture_output=True, check=True, timeout=300)
    return int(done.stdout) * 1024 / 1e6


def _against_kafka(console: Console, directory: Path, rounds: int) -> list[Figure]:
    missing = [name for name in ("java", "mvn") if shutil.which(name) is None]
    if missing:
        console.print(f"{KAFKA}: not measured, since there is no {' and no '.join(missing)} here")
        return []
    table = rows_table("100 MB, milliseconds", "batches of", LIBRARY, SUMMARY, ROWS, KAFKA)
    figures = []
    for name, batch_size in BATCHES.items():
        path = write_segment(directory, SMALL, batch_size)
        times = Times(_wall_times(_cases(path), rounds))
        table.add_row(name, *(f"{1000 * times.seconds[case]:,.1f}" for case in (LIBRARY, SUMMARY, ROWS, KAFKA)))
        for case in (LIBRARY, SUMMARY, ROWS):
            target = _TARGET if case == LIBRARY else None
            figures.append(Figure(f"{case}, batches of {name}: {KAFKA} takes", times.ratio(KAFKA, case), target=target))
    console.print(table)
    return figures


def _cases(path: Path) -> dict[str, Action]:
    from tests.recorders.broker import Jars, classpath

    ours = [sys.executable, "-m", "kafka_msgs", "dump-log", str(path), "--output", "jsonl"]
    java = [
        "java",
        *JAVA_OPTIONS,
        "-cp",
        classpath(Jars.TOOLS),
        "org.apache.kafka.tools.DumpLogSegments",
        "--files",
        str(path),
    ]
    return {
        LIBRARY: partial(read_summary, path),
        SUMMARY: partial(_done, [*ours, "--summary"]),
        ROWS: partial(_done, ours),
        KAFKA: partial(_done, java),
    }


def _done(command: list[str]) -> None:
    subprocess.run(command, cwd=ROOT, env=os.environ, stdout=subprocess.DEVNULL, check=True, timeout=120)


def _wall_times(cases: Mapping[str, Action], rounds: int) -> dict[str, float]:
    """Return the minimum wall-clock seconds of each case over all rounds."""
    best = dict.fromkeys(cases, float("inf"))
    for number in range(rounds):
        for name in list(cases)[:: 1 if number % 2 else -1]:
            gc.collect()
            start = time.perf_counter()
            cases[name]()
            best[name] = min(best[name], time.perf_counter() - start)
    return best
