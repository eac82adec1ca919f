"""A command in its own pseudo terminal: its output there, and the effect of Ctrl-C."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

__all__ = ["AtTerminal"]

_PATIENCE_SECONDS: Final = 120
_TAKE_THE_TERMINAL: Final = (
    "import fcntl, os, signal, sys, termios\n"
    "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    "os.execv(sys.executable, [sys.executable, '-m', 'kafka_msgs', *sys.argv[1:]])"
)
"""Makes the terminal the controlling one of the new session, so that its Ctrl-C reaches the command. Tests run in the
background of a shell ignore this signal, and so would all their child processes."""


class AtTerminal:
    """``kafka-msgs`` with arguments, inside a ``with`` block. ``shown`` is all its output so far."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._master, slave = pty.openpty()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _TAKE_THE_TERMINAL, *arguments],
                stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
            )  # fmt: skip
        finally:
            os.close(slave)
        self.shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def until(self, text: str, times: int = 1) -> None:
        """Read until a text has appeared this many times."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while self.shown.count(text) < times:
            assert time.monotonic() < end, f"{text!r} was not shown: {self.shown!r}"
            assert self._read(), f"the command ended: {self.shown!r}"

    def type(self, text: str) -> None:
        """Type a text. Character 3 is Ctrl-C."""
        os.write(self._master, text.encode())

    def status(self) -> int:
        """Read the remaining output and return the exit status."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while self._read():
            assert time.monotonic() < end, f"the command does not end: {self.shown[-1000:]!r}"
        return self._process.wait(_PATIENCE_SECONDS)

    def _read(self) -> bool:
        """Read the output of up to one second. Return False after the end."""
        if not select.select([self._master], [], [], 1.0)[0]:
            return self._process.poll() is None
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux's error when the other end has no open descriptor
            return False
        self.shown += data.decode(errors="replace")
        return bool(data)
