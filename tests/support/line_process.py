"""A Java test program that responds to each line of JSON with one line: the process and its pipes."""

from __future__ import annotations

import atexit
import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from threading import Timer
from typing import IO, Any, Final, Self

__all__ = ["Command", "LineProcess", "OracleCrashError", "Result"]

Command = dict[str, Any]
"""One line of input to the program."""
Result = dict[str, Any]
"""The result of a command, or ``error`` if the command itself is wrong."""

ANSWER_SECONDS: Final = 120
"""How long to wait for the results of written commands before ending the process as hung."""

_WRITTEN_AHEAD: Final = 32_768
"""Bytes written before results are read: less than any pipe's capacity, so neither process blocks."""


class OracleCrashError(RuntimeError):
    """The Java process ended early or hung; the text contains the end of its error output."""


class LineProcess:
    """A Java process that responds to each line of JSON with one line."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start the process."""
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        atexit.register(self.close)

    def ask(self, lines: Iterable[Command]) -> list[Result]:
        """Send lines and return their results in order."""
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
        """Close the process. Further calls do nothing."""
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
    """Split lines into lists of texts that may be written before results are read."""
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
