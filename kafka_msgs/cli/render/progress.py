"""How far the reading of files is, on a terminal, once it takes longer than one wants to wait without a word."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka_msgs.offline.directories import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

__all__ = ["PATIENCE_SECONDS", "progress_over"]

PATIENCE_SECONDS: Final = 2.0
"""How long nothing is shown."""


@contextmanager
def progress_over(files: Sequence[Path]) -> Iterator[Progress]:
    """Give what readers of ``files`` report to; it draws on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield Progress()
        return
    shown = _Shown(sum(path.stat().st_size for path in files))
    try:
        yield shown
    finally:
        shown.end()


class _Shown(Progress):
    """Draws a bar after ``PATIENCE_SECONDS``; what that takes is imported only then."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._begun = time.monotonic()
        self._before = 0
        self._path: Path | None = None
        self._bar: Bar | None = None

    def file(self, path: Path) -> None:
        if self._path is not None:
            self._before += self._path.stat().st_size
        self._path = path

    def read(self, position: int) -> None:
        if self._bar is None:
            if time.monotonic() - self._begun < PATIENCE_SECONDS:
                return
            self._bar = _bar(self._total)
        name = "" if self._path is None else self._path.name
        self._bar.update(self._bar.task_ids[0], description=name, completed=self._before + position)

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _bar(total: int) -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    bar.add_task("", total=total)
    bar.start()
    return bar
