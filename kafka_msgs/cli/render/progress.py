"""Progress of a command on a terminal, shown only after the command takes longer than a short delay."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka_msgs.log.partition_discovery import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn

__all__ = ["PATIENCE_SECONDS", "counting", "progress_over"]

PATIENCE_SECONDS: Final = 2.0
"""The delay before progress is shown."""


@contextmanager
def progress_over(files: Sequence[Path]) -> Iterator[Progress]:
    """Yield the progress object for readers of ``files``, which draws on standard error if it is a terminal."""
    if not sys.stderr.isatty():
        yield Progress()
        return
    with _late(_bytes_columns, sum(path.stat().st_size for path in files)) as late:
        yield _Shown(late)


@contextmanager
def counting(things: str, *, when: bool = True) -> Iterator[Callable[[int], None]]:
    """Yield a callback for the number of completed ``things``, which draws on standard error if it is a terminal.

    ``when`` is false if the terminal shows other output.
    """
    if not (when and sys.stderr.isatty()):
        yield lambda done: None
        return
    with _late(_count_columns, None) as late:
        yield lambda done: late.draw(things, done)


class _Shown(Progress):
    """Adds up the bytes of files."""

    def __init__(self, late: _DelayedBar) -> None:
        self._late = late
        self._before = self._position = 0
        self._path: Path | None = None

    def file(self, path: Path) -> None:
        self._before, self._position, self._path = self._before + self._position, 0, path

    def read(self, position: int) -> None:
        self._position = position
        self._late.draw("" if self._path is None else self._path.name, self._before + position)


class _DelayedBar:
    """A bar that appears after ``PATIENCE_SECONDS``; its packages are imported only then."""

    def __init__(self, columns: Callable[[], Sequence[ProgressColumn]], total: int | None) -> None:
        self._columns = columns
        self._total = total
        self._begun = time.monotonic()
        self._bar: Bar | None = None

    def draw(self, description: str, completed: int) -> None:
        if self._bar is None:
            if time.monotonic() - self._begun < PATIENCE_SECONDS:
                return
            self._bar = _bar(self._columns(), self._total)
        self._bar.update(self._bar.task_ids[0], description=description, completed=completed)

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def _late(columns: Callable[[], Sequence[ProgressColumn]], total: int | None) -> Iterator[_DelayedBar]:
    late = _DelayedBar(columns, total)
    try:
        yield late
    finally:
        late.end()


def _bar(columns: Sequence[ProgressColumn], total: int | None) -> Bar:
    from rich.console import Console
    from rich.progress import Progress as Bar

    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    bar.add_task("", total=total)
    bar.start()
    return bar


def _bytes_columns() -> Sequence[ProgressColumn]:
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn

    return TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()


def _count_columns() -> Sequence[ProgressColumn]:
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    return SpinnerColumn(), TextColumn("{task.completed:,} {task.description}"), TimeElapsedColumn()
