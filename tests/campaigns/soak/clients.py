"""The client processes of the campaign."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Final

from tests.campaigns.soak.history import History
from tests.campaigns.soak.python_clients import NAMES
from tests.recorders.broker import Jars, java_command
from tests.support.foreign_programs import Program

__all__ = ["CLIENTS", "OURS", "Client", "running", "topic_of"]

_HERE: Final = Path(__file__).parent
_ROOT: Final = _HERE.parents[2]
_GO: Final = Program(
    _HERE / "go", ("go",), ("go", "mod", "download"), ("go", "build", "-o", "soak", "."), ("HOME/soak",)
)
_END_SECONDS: Final = 40.0


def _python(name: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", "tests.campaigns.soak.python_clients", name]


def _java(kind: str) -> Callable[[], list[str]]:
    return lambda: java_command(str(_HERE / "Soak.java"), (kind,), heap_mb=192, jars=Jars.TOOLS)


CLIENTS: Final[dict[str, Callable[[], list[str]]]] = {
    **{name: _python(name) for name in NAMES},
    "java": _java("idempotent"),
    "java-transactional": _java("transactional"),
    "franz-go": _GO.command,
}
"""The command of each client, which takes the addresses and the topic. The commands build what they need."""
OURS: Final = tuple(name for name in CLIENTS if name.startswith("ours"))


def topic_of(name: str) -> str:
    """Return the topic of a client."""
    return f"soak-{name}"


class Client:
    """A client process and its history."""

    def __init__(self, name: str, command: Sequence[str], topic: str, output: Path) -> None:
        self.name = name
        self.topic = topic
        self.history = History()
        # A frozen process would outlive a killed campaign.
        leash = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        with output.open("wb") as stderr:
            self._process = subprocess.Popen(
                [*leash, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                cwd=_ROOT,
                env={**os.environ, "PYTHONPATH": f"{_ROOT}{os.pathsep}{_ROOT / 'generator'}"},
            )
        self._output = output
        self._reader = Thread(target=self._follow, daemon=True)
        self._reader.start()

    def drain(self) -> None:
        """Stop the writer."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write("drain\n")
            self._process.stdin.flush()

    def freeze(self) -> None:
        """Stop the process until ``thaw``."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Continue the process."""
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """End the process, and judge its history."""
        self._close_input()
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            self.history.broken.append(f"it did not end within {_END_SECONDS:.0f} s")
            return
        self._reader.join(10)
        self.history.judge()
        if code or not self.history.drained:
            shown = self._output.read_text(errors="replace")[-1000:]
            self.history.broken.append(f"exit code {code}, drained: {self.history.drained}. {shown}")

    def kill(self) -> None:
        """Kill the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._close_input()
        self._reader.join(10)

    def _close_input(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def _follow(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                try:
                    self.history.add(line.rstrip("\n"))
                except (KeyError, TypeError, ValueError):
                    self.history.broken.append(f"its output contains {line!r}")


@contextmanager
def running(commands: Mapping[str, Sequence[str]], servers: str, home: Path) -> Iterator[list[Client]]:
    """Run clients inside a block, each with its own topic. The end of the block kills unfinished clients."""
    clients: list[Client] = []
    try:
        for name, command in commands.items():
            topic = topic_of(name)
            clients.append(Client(name, [*command, servers, topic], topic, home / f"{name}.txt"))
        yield clients
    finally:
        for client in clients:
            client.kill()
