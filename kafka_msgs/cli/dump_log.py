"""``kafka-msgs dump-log``: what stands in the files of a log directory, and where they are damaged."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from kafka_msgs.cli.log_rows import DECODERS, Row, View, rows
from kafka_msgs.log.summary import LogSummary

__all__ = ["dump_log_command"]

_LONG: Final = 2**26
"""Bytes of all files from which on progress is shown."""
_ROWS_A_TABLE: Final = 500
_ROWS_A_WRITE: Final = 100

F = TypeVar("F", bound=Callable[..., Any])

_Named = tuple[Path, Row]


def _topic(flag: str, topic: str) -> Callable[[F], F]:
    text = f"Decode the records as those of {topic}."
    return click.option(f"--{flag}", "topic", flag_value=topic, default=None, help=text)


def _decoder(side: str) -> Callable[[F], F]:
    text = f"What the bytes of a {side} are; what does not fit is shown in hexadecimal."
    return click.option(
        f"--{side}-decoder", type=click.Choice([*DECODERS]), default="text", show_default=True, help=text
    )


@click.command("dump-log")
@click.argument(
    "paths", metavar="FILES...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@_topic("offsets", "__consumer_offsets")
@_topic("transactions", "__transaction_state")
@_topic("cluster-metadata", "__cluster_metadata")
@_topic("share-state", "__share_group_state")
@_topic("remote-log-metadata", "__remote_log_metadata")
@click.option("--deep", is_flag=True, help="Print the records too; decoding them implies it.")
@_decoder("key")
@_decoder("value")
@click.option("--skip-record-metadata", is_flag=True, help="Of records, print the key and the value only.")
@click.option("--from-offset", type=click.IntRange(min=0), default=0, help="Leave out what is before this offset.")
@click.option("--max-bytes", type=click.IntRange(min=0), help="Read no further than this into each file of batches.")
@click.option("--verify-index-only", is_flag=True, help="Of indexes, print only what their segment says against them.")
@click.option("--index-sanity-check", is_flag=True, help="Of indexes, print only damage; leave their segment alone.")
@click.option(
    "--summary", "only_summary", is_flag=True, help="Print only damage and the summary: several times as fast."
)
@click.option("--output", "form", type=click.Choice(["table", "json", "jsonl"]), default="table", show_default=True)
@click.pass_context
def dump_log_command(
    ctx: click.Context, /, paths: tuple[Path, ...], form: str, only_summary: bool, deep: bool, **asked: Any
) -> None:
    """Print the batches and records in segments and KRaft snapshots, the entries of indexes and the small files.

    At the end comes a summary. Damage is told where it stands, and what follows is read; then the exit status is 1.
    Entries of an index are compared with the segment beside it. Zeros at the end of a segment are space that the broker
    allocated in advance, and are told in the summary.
    """
    summary = LogSummary()
    _PRINTERS[form](_all_rows(paths, _view(only_summary=only_summary, deep=deep, **asked), summary), summary)
    if summary.errors:
        ctx.exit(1)


def _view(
    *,
    only_summary: bool,
    deep: bool,
    topic: str | None,
    skip_record_metadata: bool,
    from_offset: int,
    max_bytes: int | None,
    verify_index_only: bool,
    index_sanity_check: bool,
    key_decoder: str,
    value_decoder: str,
) -> View:
    kinds = {"batch", "entry"}
    if deep or topic is not None:
        kinds |= {"record"}
    if verify_index_only or index_sanity_check:
        kinds -= {"entry"}
    return View(
        kinds=frozenset() if only_summary else frozenset(kinds),
        from_offset=from_offset,
        max_bytes=max_bytes,
        topic=topic,
        keys=key_decoder,
        values=value_decoder,
        metadata=not skip_record_metadata,
        compared=not index_sanity_check,
    )


def _all_rows(paths: tuple[Path, ...], view: View, summary: LogSummary) -> Iterator[_Named]:
    before = 0
    with _progress(sum(path.stat().st_size for path in paths)) as progress:
        for path in paths:
            for row in rows(path, view, summary, partial(progress, path, before)):
                yield path, row
            before += path.stat().st_size


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Path, int, int], None]]:
    """Show on a terminal how far the reading of long files is; what it takes is loaded only then."""
    if total < _LONG or not sys.stderr.isatty():
        yield lambda path, before, position: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=total)
        yield lambda path, before, position: shown.update(task, description=path.name, completed=before + position)


def _fact(named: _Named) -> dict[str, Any]:
    path, row = named
    return {"kind": row.kind, "file": str(path), **row.facts}


def _print_lines(found: Iterator[_Named], summary: LogSummary) -> None:
    while part := list(islice(found, _ROWS_A_WRITE)):
        click.echo("\n".join(_json(_fact(each)) for each in part))
    click.echo(_json({"kind": "summary", **summary.facts()}))


def _print_json(found: Iterator[_Named], summary: LogSummary) -> None:
    listed = [_fact(each) for each in found]
    click.echo(json.dumps({"rows": listed, "summary": summary.facts()}, indent=2))


def _print_tables(found: Iterator[_Named], summary: LogSummary) -> None:
    """Print a table for each run of rows of one form; a long run is cut, so that it need not be held as a whole."""
    show = _show_folded if sys.stdout.isatty() or os.environ.get("FORCE_COLOR") else _show_aligned
    for (path, kind, names), run in groupby(found, lambda each: (each[0], each[1].kind, tuple(each[1].facts))):
        while part := list(islice(run, _ROWS_A_TABLE)):
            cells = [[_cell(value) for value in row.facts.values()] for _, row in part]
            show(f"{path}: {kind}", names, cells)
    show("summary", ("what", ""), [[name, _cell(value)] for name, value in summary.facts().items()])


def _show_folded(title: str, names: Sequence[str], cells: list[list[str]]) -> None:
    from kafka_msgs.cli.output import console, table

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


_encoded: Final = json.JSONEncoder(ensure_ascii=False).encode


def _json(value: Any) -> str:
    """Return JSON on one line, in which nothing can be taken for a command to the terminal, and all can be written."""
    text = _encoded(value)
    return text if text.isprintable() else json.dumps(value)


_PRINTERS: Final = {"table": _print_tables, "json": _print_json, "jsonl": _print_lines}
