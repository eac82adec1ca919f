"""Real share group members of Kafka's own client, controlled by a test."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Final

from attrs import define

from tests.recorders.broker import java_command
from tests.support.eventually import until

__all__ = ["ShareMember", "ShareProcess", "share_process"]

_SOURCE: Final = Path(__file__).parent / "ShareMembers.java"
_ANSWER_SECONDS: Final = 120


class ShareProcess:
    """A process that runs members."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._members = 0

    def member(self, servers: str, group: str, topic: str, **settings: str) -> ShareMember:
        """Create a member of a group. ``settings`` have ``_`` for ``.``."""
        self._members += 1
        made = ShareMember(self, f"member-{self._members}")
        more = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
        assert made.ask("open", servers, group, topic, *more) == "opened"
        return made

    def crash(self) -> None:
        """End the process without notifying the broker."""
        self._process.kill()
        self._process.wait()

    def ask(self, *words: str) -> str:
        """Send a line and return the result."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        watch = Timer(_ANSWER_SECONDS, self._process.kill)
        watch.start()
        try:
            stdin.write(" ".join(words) + "\n")
            stdin.flush()
            answer = stdout.readline()
        finally:
            watch.cancel()
        assert answer.endswith("\n"), f"the process ended at {words}"
        assert not answer.startswith("error"), answer
        return answer.rstrip("\n")


@define
class ShareMember:
    """A member. Each method waits for its result."""

    process: ShareProcess
    name: str

    def ask(self, *words: str) -> str:
        """Send a command and return the result."""
        return self.process.ask(self.name, *words)

    def poll(self, ms: int = 500) -> dict[str, int]:
        """Poll once, and return the record values with their delivery counts."""
        pairs = (each.partition(":") for each in self.ask("poll", str(ms)).split())
        return {value: int(count) for value, _, count in pairs}

    def collect(self, count: int) -> dict[str, int]:
        """Poll until this many records have arrived."""
        found: dict[str, int] = {}

        def enough() -> bool:
            found.update(self.poll())
            return len(found) >= count

        until(enough)
        return found

    def say(self, kind: str, *values: str) -> None:
        """Acknowledge records with these values: ``accept``, ``release``, ``reject`` or ``renew``."""
        assert self.ask(kind, *values) == "done"

    def commit(self) -> None:
        """Commit the acknowledgements. Fail unless the broker accepts all of them."""
        answer = self.ask("commit")
        assert "Optional[" not in answer, answer

    def close(self) -> None:
        """Leave the group."""
        assert self.ask("close") == "closed"


@contextmanager
def share_process() -> Iterator[ShareProcess]:
    """Start a process for members, and end it with the block."""
    process = subprocess.Popen(
        java_command(str(_SOURCE), [], heap_mb=192),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield ShareProcess(process)
    finally:
        process.kill()
        process.communicate()
