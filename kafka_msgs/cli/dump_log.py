"""``kafka-msgs dump-log``: what stands in the files of a log directory, and where they are damaged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from kafka_msgs.cli.log_rows import Row, View, rows
from kafka_msgs.cli.output import console, table
from kafka_msgs.log.summary import LogSummary

__all__ = ["dump_log_command"]

_LONG: Final = 2**26
"""Bytes of all files from which on progress is shown."""
_ROWS_A_TABLE: Final = 500

F = TypeVar("F", bound=Callable[..., Any])

_Named = tuple[Path, Row]


def _topic(flag: str, topic: str) -> Callable[[F], F]:
    text = f"Decode the records as those of {topic}."
    return click.option(f"--{flag}", "topic", flag_value=topic, default=None, help=text)


@click.command("dump-log")
@click.argument(
    "paths", metavar="FILES...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@_topic("offsets", "__consumer_offsets")
@_topic("transactions", "__transaction_state")
@_topic("cluster-metadata", "__cluster_metadata")
@_topic("share-state", "__share_group_state")
@click.option("--deep", is_flag=True, help="Print the records too; decoding them implies it.")
@click.option("--from-offset", type=click.IntRange(min=0), default=0, help="Leave out what is before this offset.")
@click.option("--output", "form", type=click.Choice(["table", "json", "jsonl"]), default="table", show_default=True)
@click.pass_context
def dump_log_command(
    ctx: click.Context, paths: tuple[Path, ...], topic: str | None, deep: bool, from_offset: int, form: str
) -> None:
    """Print the batches and records in segments and KRaft snapshots, the entries of indexes and the small files.

    At the end comes a summary. Damage is told where it stands, and what follows is read; then the exit status is 1.
    """
    summary = LogSummary()
    view = View(deep=deep or topic is not None, from_offset=from_offset, topic=topic)
    _PRINTERS[form](_all_rows(paths, view, summary), summary)
    if summary.errors:
        ctx.exit(1)


def _all_rows(paths: tuple[Path, ...], view: View, summary: LogSummary) -> Iterator[_Named]:
    total = sum(path.stat().st_size for path in paths)
    err = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Progress(*columns, console=err, transient=True, disable=total < _LONG or not err.is_terminal) as progress:
        task, before = progress.add_task("", total=total), 0
        for path in paths:
            progress.update(task, description=path.name)
            for row in rows(path, view, summary, partial(_advance, progress, task, before)):
                yield path, row
            before += path.stat().st_size


def _advance(progress: Progress, task: TaskID, before: int, position: int) -> None:
    progress.update(task, completed=before + position)


def _fact(path: Path, row: Row) -> dict[str, Any]:
    return {"kind": row.kind, "file": str(path), **row.facts}


def _print_lines(found: Iterable[_Named], summary: LogSummary) -> None:
    for path, row in found:
        click.echo(_json(_fact(path, row)))
    click.echo(_json({"kind": "summary", **summary.facts()}))


def _print_json(found: Iterable[_Named], summary: LogSummary) -> None:
    listed = [_fact(path, row) for path, row in found]
    click.echo(json.dumps({"rows": listed, "summary": summary.facts()}, indent=2))


def _print_tables(found: Iterable[_Named], summary: LogSummary) -> None:
    """Print a table for each run of rows of one form; a long run is cut, so that it need not be held as a whole."""
    show = _show_folded if console().is_terminal else _show_aligned
    for (path, kind, names), run in groupby(found, lambda each: (each[0], each[1].kind, tuple(each[1].facts))):
        while part := list(islice(run, _ROWS_A_TABLE)):
            cells = [[_cell(value) for value in row.facts.values()] for _, row in part]
            show(f"{path}: {kind}", names, cells)
    show("summary", ("what", ""), [[name, _cell(value)] for name, value in summary.facts().items()])


def _show_folded(title: str, names: Sequence[str], cells: list[list[str]]) -> None:
    shown = table(*names, title=title)
    for row in cells:
        shown.add_row(*row)
    console().print(shown)


def _show_aligned(title: str, names: Sequence[str], cells: list[list[str]]) -> None:
    """Print what nothing needs to be folded for; laying out a cell with rich takes longer than reading a record."""
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in (names, *cells))
    click.echo("\n".join((title, *lines, "")))


def _cell(value: Any) -> str:
    return value if isinstance(value, str) and value.isprintable() else _json(value)


def _json(value: Any) -> str:
    """Return JSON on one line, in which nothing can be taken for a command to the terminal, and all can be written."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)


_PRINTERS: Final = {"table": _print_tables, "json": _print_json, "jsonl": _print_lines}
