"""Runs one suite with one broker in a subprocess with a time limit, and follows its report."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from attrs import Factory, define
from rich.console import Console

from tests.campaigns.client_suites.brokers import BROKERS
from tests.campaigns.client_suites.outcomes import FAILED, PASSED, SKIPPED, Outcome, Run
from tests.campaigns.client_suites.suites import Read, Suite

__all__ = ["run_suite"]

_POLL_SECONDS: Final = 1
_PROGRESS_SECONDS: Final = 20
_END_SECONDS: Final = 10
_OUTPUT_SHOWN: Final = 4000
_LIMIT: Final = ("setpriv", "--pdeathsig", "TERM", "timeout", "--kill-after=10")
"""Ends a suite even if the campaign is killed."""


def run_suite(
    out: Console, suite: Suite, broker: str, *, source: Path | None, seconds: float, tests: str | None = None
) -> Run:
    """Run a suite, or its ``tests``, with its own broker for at most ``seconds``; print the progress."""
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-suite-") as temporary:
        directory, report, printed = (Path(temporary, name) for name in ("suite", "report.jsonl", "printed.txt"))
        directory.mkdir()
        report.touch()
        prepared = suite.prepare(source, directory)
        with BROKERS[broker](suite.wanted, out) as address:
            command = suite.command(prepared, address, report)
            chosen = [command.selects, tests] if tests else []
            limited = [*_LIMIT, str(seconds + _END_SECONDS), *command.arguments, *chosen]
            with _started(limited, command.directory, command.environment, printed) as process:
                following = _Following(out, f"{suite.name}, {broker}", process, command.read, seconds)
                with (printed if command.prints_report else report).open(encoding="utf-8", errors="replace") as file:
                    ended = following.to_the_end(file)
        if not following.outcomes:
            out.print(printed.read_text(errors="replace")[-_OUTPUT_SHOWN:], markup=False)
    return Run(
        suite=suite.name,
        version=suite.version,
        broker=broker,
        ended=ended,
        passed=following.count(PASSED),
        others={test: outcome for test, outcome in following.outcomes.items() if outcome.verdict != PASSED},
    )


@contextmanager
def _started(
    arguments: Sequence[str], directory: Path, environment: Any, printed: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that ends with the ``with`` block, together with its child processes."""
    with printed.open("wb") as output:
        process = subprocess.Popen(
            arguments,
            cwd=directory,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        for end in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, end)
                process.wait(_END_SECONDS)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        process.wait()


@define
class _Following:
    """A running suite, and its outcomes so far."""

    out: Console
    what: str
    process: subprocess.Popen[bytes]
    read: Read
    seconds: float
    outcomes: dict[str, Outcome] = Factory(dict)

    def count(self, verdict: str) -> int:
        """Return the number of tests with a verdict."""
        return [each.verdict for each in self.outcomes.values()].count(verdict)

    def to_the_end(self, file: IO[str]) -> bool:
        """Collect outcomes until the suite ends or its time limit is reached; return whether it ended."""
        begin = shown = time.monotonic()
        while True:
            running = self.process.poll() is None
            self.outcomes.update(filter(None, map(self.read, _lines(file))))
            now = time.monotonic()
            over = now - begin > self.seconds
            if over or not running or now - shown > _PROGRESS_SECONDS:
                shown = now
                counts = ", ".join(f"{self.count(verdict)} {verdict}" for verdict in (PASSED, FAILED, SKIPPED))
                self.out.print(f"{self.what}: {now - begin:.0f} s, {counts}{', no time left' * over}")
            if over or not running:
                return not running
            time.sleep(_POLL_SECONDS)


def _lines(file: IO[str]) -> Iterator[dict[str, Any]]:
    """Yield the complete JSON lines added to a growing file since the last call. Other lines are skipped."""
    while True:
        place = file.tell()
        line = file.readline()
        if not line.endswith("\n"):
            file.seek(place)
            return
        if line.startswith("{"):
            yield json.loads(line)
