"""The processor time of this process and of all that it has started, those that have ended included."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["tree_seconds"]

_PARENT: Final = 1
_TIMES: Final = slice(11, 15)
"""Fields after the name in ``/proc/PID/stat``: user and system time, and those of children that were waited for."""


def tree_seconds() -> float:
    """Return the seconds; needs a system with ``/proc``."""
    found = {process: fields for process, fields in _processes()}
    children: dict[int, list[int]] = {}
    for process, fields in found.items():
        children.setdefault(int(fields[_PARENT]), []).append(process)
    tree, ticks = [os.getpid()], 0
    for process in tree:
        ticks += sum(map(int, found[process][_TIMES]))
        tree += children.get(process, [])
    return ticks / os.sysconf("SC_CLK_TCK")


def _processes() -> Iterator[tuple[int, list[str]]]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            yield int(path.parent.name), path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
