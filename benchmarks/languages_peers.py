"""The programs of the other languages: how each program is built, started and controlled.

A program gets a directory with files MESSAGE.VERSION. It reads the files for which it has a class, compares its
encoding with the file, and prints their names on one line. Then each line ``warm|cold decode|encode NAME CALLS``
requests that number of calls, after reading 64 MB of other memory for ``cold``, and the program prints their wall time
in nanoseconds. CPU time is read from outside, in the same way for all: the time of the whole process, including its
garbage collector and its compiler. Programs are built with the standard tools of their languages into ``target``
directories.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from attrs import frozen

from benchmarks import kafka_java

__all__ = ["LANGUAGES", "OURS", "Language", "Peer", "PeerError"]

HERE: Final = Path(__file__).parent
OURS: Final = "kafka-msgs"


class PeerError(RuntimeError):
    """A program ended prematurely."""


@frozen
class Language:
    """One language: the required tools, and a function that builds its program and returns the start command."""

    name: str
    tools: tuple[str, ...]
    built: Callable[[], list[str]]

    def missing(self) -> str:
        """Return a sentence about missing tools, or an empty string."""
        absent = [f"no {tool}" for tool in self.tools if shutil.which(tool) is None]
        return f"{self.name}: not measured, since there is {' and '.join(absent)} here" if absent else ""


def _ours() -> list[str]:
    return [sys.executable, "-m", "benchmarks.languages_ours"]


def _go() -> list[str]:
    program = HERE / "go" / "target" / "peer"
    kafka_java.done(["go", "build", "-o", str(program), "."], HERE / "go")
    return [str(program)]


def _rust() -> list[str]:
    kafka_java.done(["cargo", "build", "--release", "--locked", "--quiet"], HERE / "rust")
    return [str(HERE / "rust" / "target" / "release" / "peer")]


def _java() -> list[str]:
    return ["java", "-cp", kafka_java.built(), "benchmarks.Peer"]


LANGUAGES: Final = (
    Language(OURS, (), _ours),
    Language("Java", ("java", "mvn"), _java),
    Language("Go", ("go",), _go),
    Language("Rust", ("cargo",), _rust),
)
"""kafka-msgs comes first. Java: Kafka's own classes. Go: kmsg of franz-go. Rust: kafka-protocol."""


class Peer:
    """A running program; it ends with the context."""

    def __init__(self, command: list[str], directory: Path) -> None:
        self._process = subprocess.Popen(
            [*command, str(directory)],
            cwd=HERE.parent,
            env=os.environ | {"PYTHONPATH": str(HERE.parent)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        # The CPU-time clock of another process: Linux' clock_getcpuclockid(3) computes the same number.
        self._clock = (~self._process.pid << 3) | 2

    def __enter__(self) -> Self:
        self.names = frozenset(self._line().split())
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, _: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def warm(self, direction: str, name: str, calls: int) -> float:
        """Return the CPU seconds of the calls."""
        start = time.clock_gettime(self._clock)
        self._asked("warm", direction, name, calls)
        return time.clock_gettime(self._clock) - start

    def cold(self, direction: str, name: str) -> float:
        """Return the wall-clock seconds of one call, after the program has read other memory."""
        return self._asked("cold", direction, name, 1)

    def _asked(self, caches: str, direction: str, name: str, calls: int) -> float:
        assert self._process.stdin is not None, "the process was started with pipes"
        try:
            self._process.stdin.write(f"{caches} {direction} {name} {calls}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the program has ended, and reading says so
        return int(self._line()) / 1e9

    def _line(self) -> str:
        assert self._process.stdout is not None, "the process was started with pipes"
        line = self._process.stdout.readline()
        if not line:
            raise PeerError(f"a program ended with status {self._process.wait()}; what it wrote is above")
        return line
