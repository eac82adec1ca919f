"""CPU time of processes and their descendants, as counted by Linux in ``/proc``."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from attrs import define, field, frozen

__all__ = ["Taken", "measured", "tree_seconds"]

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAUSE_SECONDS: Final = 0.1
_LIMIT_SECONDS: Final = 1800
_PARENT: Final = 1
_OWN: Final = slice(11, 13)
"""Fields after the name in ``/proc/PID/stat``: user and system time."""
_TIMES: Final = slice(11, 15)
"""User and system time, including child processes that were waited for."""


@frozen
class Taken:
    """The cost of a command: CPU seconds, wall-clock seconds, and the peak resident memory.

    ``own_memory`` is the memory of the first process alone.
    """

    processor: float
    seconds: float
    memory: int
    own_memory: int


def tree_seconds() -> float:
    """Return the CPU seconds of this process and all its descendants, including ended processes."""
    found = dict(_processes())
    children: dict[int, list[int]] = {}
    for process, fields in found.items():
        children.setdefault(int(fields[_PARENT]), []).append(process)
    tree, ticks = [os.getpid()], 0
    for process in tree:
        ticks += sum(map(int, found[process][_TIMES]))
        tree += children.get(process, [])
    return ticks / _TICKS


def measured(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None, limit: float = _LIMIT_SECONDS
) -> Taken:
    """Run a command and return its cost, including all processes that it started.

    Processes are sampled ten times per second; CPU time after the last sample of a process is missed, except for the
    first process. Raises ``CalledProcessError`` if the command fails, and ``TimeoutExpired`` after ``limit`` seconds;
    then all its processes are killed.
    """
    start = time.perf_counter()
    output = subprocess.DEVNULL
    running = subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
    tree = _Tree(running.pid)
    while not _ended(running):
        tree.look()
        if time.perf_counter() - start > limit:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            raise subprocess.TimeoutExpired(command, limit)
        time.sleep(_PAUSE_SECONDS)
    tree.look()
    if running.wait():
        raise subprocess.CalledProcessError(running.returncode, command)
    return Taken(tree.processor, time.perf_counter() - start, tree.memory, tree.own_memory)


def _ended(running: subprocess.Popen[bytes]) -> bool:
    """Return whether a process has ended, without reaping it, so that its times can still be read."""
    return os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


@define
class _Tree:
    """The descendants of a process, and the ticks that each had used at the last sample."""

    root: int
    memory: int = 0
    own_memory: int = 0
    _ticks: dict[int, int] = field(factory=dict)

    @property
    def processor(self) -> float:
        """Return the CPU seconds of all processes."""
        return sum(self._ticks.values()) / _TICKS

    def look(self) -> None:
        """Sample all processes."""
        facts = dict(_processes())
        below = {self.root}
        # A parent is older than its children, but process ids wrap: so repeat until no process is added.
        while more := {pid for pid, fields in facts.items() if int(fields[_PARENT]) in below} - below:
            below |= more
        here = {pid: facts[pid] for pid in below if pid in facts}
        self._ticks |= {pid: sum(map(int, fields[_OWN])) for pid, fields in here.items()}
        memory = {pid: _resident(pid) for pid in here}
        self.memory = max(self.memory, sum(memory.values()))
        self.own_memory = max(self.own_memory, memory.get(self.root, 0))


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Yield all processes, each with the fields after its name in ``/proc/PID/stat``."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            yield int(path.parent.name), path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue


def _resident(process: int) -> int:
    """Return the resident bytes of a process, 0 if it has ended."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0
