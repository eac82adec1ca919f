"""Kafka's own codec in Java on the same bytes: what a just-in-time compiler makes of generated code.

JMH measures it, after warming up, in a process of its own; our side is measured beside it in this one. Needs Java and
Maven, which fetches Kafka's clients and JMH; without them nothing is measured.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from benchmarks import codec_metadata, content, peers
from benchmarks.measure import fastest
from benchmarks.report import Figure, Times, print_figures, rows_table
from kafka_msgs import HeartbeatResponse, Message
from tests.support.releases import maven_releases

__all__ = ["JAVA", "fastest_iteration", "measured", "run"]

JAVA: Final = "Kafka's Java"
HERE: Final = Path(__file__).with_name("java")
TARGET: Final = HERE / "target"
SECONDS: Final = 540
"""How long building, or measuring, may take."""

DIRECTIONS: Final = ("decode", "encode")
ITERATIONS: Final = 200
PROTOCOL: Final = (
    "Java: one JMH process for each line, 5 s of warming up, fastest of {iterations} times 10 ms; "
    "ours: fastest of {rounds} rounds, as in the other benchmarks; one after the other, not interleaved"
)
_FLAGS: Final = ("-f", "1", "-wi", "5", "-w", "1s", "-i", str(ITERATIONS), "-r", "10ms", "-foe", "true")


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures; none without Java and Maven."""
    missing = [name for name in ("java", "mvn") if shutil.which(name) is None]
    if missing:
        console.print(f"{JAVA}: not measured, since there is no {' and no '.join(missing)} here")
        return []
    inputs = _inputs()
    java = _measured_by_jmh(inputs)
    ours, figures = peers.OURS[0], []
    table = rows_table(f"{JAVA} codec and executor {ours}", "", "bytes", "Java ns", f"{ours} ns")
    for name, (message, version) in inputs.items():
        case = peers.executor(ours, message, version)
        seconds = fastest({direction: getattr(case, direction) for direction in DIRECTIONS}, rounds)
        for direction in DIRECTIONS:
            times = Times({JAVA: java[name, direction], ours: seconds[direction]})
            row = (f"{each * 1e9:,.0f}" for each in times.seconds.values())
            table.add_row(f"{name}, {direction}", f"{len(message.encode(version)):,}", *row)
            figures.append(Figure(f"{ours}, {direction}, {name}: {JAVA} takes", times.ratio(JAVA, ours)))
    console.print(table)
    print_figures(console, JAVA, PROTOCOL.format(iterations=ITERATIONS, rounds=rounds), figures)
    return figures


def _inputs() -> dict[str, tuple[Message, int]]:
    """Return messages and versions by the names of their files, as the Java side reads them."""
    version = codec_metadata.VERSION
    found: dict[str, tuple[Message, int]] = {
        f"{codec_metadata.MESSAGE}.{version}.{name}": (content.metadata(name), version) for name in content.CONTENTS
    }
    return found | {"HeartbeatResponse.4.default": (HeartbeatResponse(), 4)}


def _measured_by_jmh(inputs: dict[str, tuple[Message, int]]) -> dict[tuple[str, str], float]:
    """Return the seconds that Java takes, by input and direction."""
    files = {name: message.encode(version) for name, (message, version) in inputs.items()}
    return {
        (each["params"]["input"], each["benchmark"].rpartition(".")[2]): fastest_iteration(each)
        for each in measured("KafkaCodec", files, list(inputs))
    }


def measured(java_class: str, files: Mapping[str, bytes], inputs: Sequence[str]) -> list[dict[str, Any]]:
    """Return JMH's results of the benchmarks of a Java class on inputs, which are names of files."""
    class_path = _built()
    with tempfile.TemporaryDirectory() as directory:
        for name, data in files.items():
            Path(directory, name).write_bytes(data)
        report = Path(directory, "report.json")
        jvm = ["-jvmArgsAppend", f"-Dinputs={directory}", "-p", f"input={','.join(inputs)}"]
        command = ["java", "-cp", class_path, "org.openjdk.jmh.Main", java_class]
        _done([*command, *_FLAGS, *jvm, "-rf", "json", "-rff", str(report)])
        results: list[dict[str, Any]] = json.loads(report.read_text())
    return results


def fastest_iteration(result: dict[str, Any]) -> float:
    """Return the seconds of the fastest iteration of a result."""
    nanoseconds: float = min(value for fork in result["primaryMetric"]["rawData"] for value in fork)
    return nanoseconds / 1e9


def _built() -> str:
    """Build the Java side; return its class path."""
    listing = TARGET / "classpath.txt"
    goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={listing}"]
    _done(["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), *maven_releases(), *goals])
    return os.pathsep.join([str(TARGET / "classes"), listing.read_text().strip()])


def _done(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout}{done.stderr}".rstrip())
