"""``kafka-msgs dump-log``: print the contents of log directory files, and their damage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from kafka_msgs.cli.log_paths import log_files
from kafka_msgs.cli.output_options import rows_option
from kafka_msgs.cli.render.log_files import LogDumpOptions, rows
from kafka_msgs.cli.render.progress import progress_over
from kafka_msgs.cli.render.records import DECODERS
from kafka_msgs.cli.render.rows import Named, print_rows
from kafka_msgs.cli.render.timestamps import with_times
from kafka_msgs.log.summary import LogSummary

__all__ = ["dump_log_command"]

F = TypeVar("F", bound=Callable[..., Any])


def _topic(flag: str, topic: str) -> Callable[[F], F]:
    text = f"Decode the records as those of {topic}."
    return click.option(f"--{flag}", "topic", flag_value=topic, default=None, help=text)


def _decoder(side: str) -> Callable[[F], F]:
    text = (
        f"What the bytes of a {side} are; what does not fit is shown in hexadecimal. By default they are text, and "
        "records of internal topics are decoded."
    )
    return click.option(f"--{side}-decoder", type=click.Choice([*DECODERS]), help=text)


@click.command("dump-log")
@click.argument("paths", metavar="PATHS...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@_topic("offsets", "__consumer_offsets")
@_topic("transactions", "__transaction_state")
@_topic("cluster-metadata", "__cluster_metadata")
@_topic("share-state", "__share_group_state")
@_topic("remote-log-metadata", "__remote_log_metadata")
@click.option("--deep", is_flag=True, help="Print the records; implied by record decoders.")
@_decoder("key")
@_decoder("value")
@click.option("--skip-record-metadata", is_flag=True, help="Print only the key and the value of records.")
@click.option("--from-offset", type=click.IntRange(min=0), default=0, help="Skip offsets before this one.")
@click.option("--max-bytes", type=click.IntRange(min=0), help="Read at most this many bytes of each batch file.")
@click.option("--verify-index-only", is_flag=True, help="Print only index entries that contradict their segment.")
@click.option("--index-sanity-check", is_flag=True, help="Print only corrupt index entries; do not read segments.")
@click.option(
    "--summary",
    "only_summary",
    is_flag=True,
    help="Print only corruption and the summary, which is several times faster.",
)
@rows_option
@click.pass_context
def dump_log_command(
    ctx: click.Context, /, paths: tuple[Path, ...], output_format: str, only_summary: bool, deep: bool, **asked: Any
) -> None:
    """Print the batches and records of segments and KRaft snapshots, index entries and small files.

    PATHS are files, partition directories or log directories. An option such as --offsets selects the partitions of
    that topic in a log directory.

    A summary follows the rows. Corruption is reported at its position and does not stop the command; the exit
    status is then 1. Index entries are compared with their segment. Zeros at the end of the last segment are space
    that the broker allocated in advance; the summary counts them.

    Example: kafka-msgs dump-log kafka-logs/orders-0 --deep
    """
    summary = LogSummary()
    view = _view(only_summary=only_summary, deep=deep, **asked)
    rows = _all_rows(log_files(paths, view.topic), view, summary)
    print_rows(output_format, rows, lambda: with_times(summary.facts()))
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
    key_decoder: str | None,
    value_decoder: str | None,
) -> LogDumpOptions:
    kinds = {"batch", "entry"}
    if deep or topic is not None:
        kinds |= {"record"}
    if verify_index_only or index_sanity_check:
        kinds -= {"entry"}
    return LogDumpOptions(
        kinds=frozenset() if only_summary else frozenset(kinds),
        from_offset=from_offset,
        max_bytes=max_bytes,
        topic=topic,
        keys=key_decoder,
        values=value_decoder,
        metadata=not skip_record_metadata,
        compared=not index_sanity_check,
    )


def _all_rows(paths: Sequence[Path], view: LogDumpOptions, summary: LogSummary) -> Iterator[Named]:
    with progress_over(paths) as progress:
        for path in paths:
            progress.file(path)
            for row in rows(path, view, summary, progress.read):
                yield path, row
