"""Asks Kafka's group coordinator and its assignors: JSON lines in, JSON lines out, many a round trip.

Owns the Java processes and their pipes. What commands mean stands in ``CoordinatorOracle.java``; whether an answer is
right for this library is for the tests to say.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Timer
from typing import IO, Any, Final, Self

from tests.support.maven import JavaProject, OracleUnavailableError

__all__ = ["AssignorOracle", "Command", "CoordinatorOracle", "Result"]

Command = dict[str, Any]
"""One line to the coordinator; ``CoordinatorOracle.java`` lists what it may be."""
Result = dict[str, Any]
"""What a command led to: answers, records, timers; or ``error``, where the command itself is wrong."""

PROJECT: Final = JavaProject(Path(__file__).resolve().parent, "org.apache.kafka.coordinator.group.CoordinatorOracle")
_PROPERTIES: Final = (
    # Random seeds come from the counted ids as well: two runs of one script are equal to the byte.
    "-Djava.util.secureRandomSeed=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
)

ANSWER_SECONDS: Final = 120
"""How long the answers to what was written may take before the process is taken for hung and ended."""

_WRITTEN_AHEAD: Final = 32_768
"""Bytes written before their answers are read: less than any pipe holds, so neither side waits for the other."""


class OracleCrashError(RuntimeError):
    """The Java process ended early or hung; the text carries the end of its error output."""


class LineProcess:
    """A Java process that answers each line of JSON with one."""

    def __init__(self, *arguments: str) -> None:
        """Start the process, building it first where needed; raises ``OracleUnavailableError`` where it cannot be."""
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [*PROJECT.command(*_PROPERTIES), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        atexit.register(self.close)

    def ask(self, lines: Iterable[Command]) -> list[Result]:
        """Send lines and return their answers in order."""
        return [answer for texts in _chunks(lines) for answer in self._exchange(texts)]

    def _exchange(self, texts: list[bytes]) -> list[Result]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        watch = Timer(ANSWER_SECONDS, self._process.kill)
        watch.start()
        try:
            stdin.write(b"".join(texts))
            stdin.flush()
            return [self._parsed(stdout.readline()) for _ in texts]
        except BrokenPipeError:
            raise self._crash() from None
        finally:
            watch.cancel()

    def _parsed(self, line: bytes) -> Result:
        if not line:
            raise self._crash()
        result: Result = json.loads(line)
        return result

    def _crash(self) -> OracleCrashError:
        self._process.wait()
        self._errors.seek(0)
        return OracleCrashError(f"the oracle ended:\n{self._errors.read()[-2000:].decode(errors='replace')}")

    def close(self) -> None:
        """End the process. Does nothing the second time."""
        if self._errors.closed:
            return
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait()
        self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _chunks(lines: Iterable[Command]) -> Iterator[list[bytes]]:
    """Cut lines into lists of texts that may be written before anything is read."""
    chunk: list[bytes] = []
    size = 0
    for line in lines:
        text = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        if chunk and size + len(text) > _WRITTEN_AHEAD:
            yield chunk
            chunk, size = [], 0
        chunk.append(text)
        size += len(text)
    if chunk:
        yield chunk


class CoordinatorOracle:
    """Kafka's group coordinator. A ``start`` command makes a new one, so a process serves many scripts."""

    _shared: CoordinatorOracle | None = None
    _unavailable: str | None = None

    def __init__(self) -> None:
        """Start the process; raises ``OracleUnavailableError`` where it cannot run."""
        self._process = LineProcess()

    @classmethod
    def available(cls) -> tuple[bool, str]:
        """Whether the oracle can run here, and if not why; builds it where needed."""
        if cls._shared is None and cls._unavailable is None:
            try:
                cls._shared = cls()
            except OracleUnavailableError as reason:
                cls._unavailable = str(reason)
        return cls._shared is not None, cls._unavailable or ""

    @classmethod
    def shared(cls) -> CoordinatorOracle:
        """Return the one of this process; raises ``OracleUnavailableError`` where it cannot run."""
        available, reason = cls.available()
        if not available or cls._shared is None:
            raise OracleUnavailableError(reason)
        return cls._shared

    def run(self, commands: Iterable[Command]) -> list[Result]:
        """Run commands in order and return what each led to; a wrong command's result is its ``error``."""
        return self._process.ask(commands)

    def close(self) -> None:
        """End the process."""
        self._process.close()


class AssignorOracle:
    """Kafka's assignors as functions; ``AssignorOracle.java`` says what their inputs are."""

    def __init__(self) -> None:
        """Start the process; raises ``OracleUnavailableError`` where it cannot run."""
        self._process = LineProcess("assign")

    def assign(self, inputs: Iterable[Command]) -> list[Result]:
        """Return each input's assignment by member, or ``error`` where the assignor refuses it."""
        return self._process.ask(inputs)

    def close(self) -> None:
        """End the process."""
        self._process.close()
