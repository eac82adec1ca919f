"""Kafka's own Java classes: how the programs are built, and measured with JMH after warm-up.

Needs Java and Maven, which fetches Kafka's jars and JMH.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.support.releases import maven_releases

__all__ = ["JAVA", "built", "done", "fastest_iteration", "measured"]

JAVA: Final = "Kafka's Java"
HERE: Final = Path(__file__).with_name("java")
TARGET: Final = HERE / "target"
SECONDS: Final = 540
"""The time limit for building, or for measuring."""

ITERATIONS: Final = 200
_FLAGS: Final = ("-f", "1", "-wi", "5", "-w", "1s", "-i", str(ITERATIONS), "-r", "10ms", "-foe", "true")


def measured(java_class: str, files: Mapping[str, bytes], inputs: Sequence[str]) -> list[dict[str, Any]]:
    """Return JMH's results for the benchmarks of a Java class on inputs, which are file names."""
    class_path = built()
    with tempfile.TemporaryDirectory() as directory:
        for name, data in files.items():
            Path(directory, name).write_bytes(data)
        report = Path(directory, "report.json")
        jvm = ["-jvmArgsAppend", f"-Dinputs={directory}", "-p", f"input={','.join(inputs)}"]
        command = ["java", "-cp", class_path, "org.openjdk.jmh.Main", java_class]
        done([*command, *_FLAGS, *jvm, "-rf", "json", "-rff", str(report)])
        results: list[dict[str, Any]] = json.loads(report.read_text())
    return results


def fastest_iteration(result: dict[str, Any]) -> float:
    """Return the seconds of the fastest iteration of a result."""
    nanoseconds: float = min(value for fork in result["primaryMetric"]["rawData"] for value in fork)
    return nanoseconds / 1e9


def built() -> str:
    """Build the Java side; return its class path. Raises ``RuntimeError`` if Maven fails."""
    listing = TARGET / "classpath.txt"
    goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={listing}"]
    done(["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), *maven_releases(), *goals])
    return os.pathsep.join([str(TARGET / "classes"), listing.read_text().strip()])


def done(command: list[str], folder: Path = HERE) -> None:
    """Run a command in a directory until it ends; raises ``RuntimeError`` with its output if it fails."""
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    if ended.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{ended.stdout}{ended.stderr}".rstrip())
