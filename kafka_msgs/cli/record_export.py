"""``kafka-msgs pipeline records`` in this process: its output files, and its displayed rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from kafka_msgs.cli.record_commands.where_option import parse_where_option
from kafka_msgs.cli.registry_options import payload_schemas
from kafka_msgs.cli.render.console import console, table
from kafka_msgs.cli.render.progress import progress_over
from kafka_msgs.log.partition_discovery import Progress
from kafka_msgs.log.transaction_index import IsolationLevel

if TYPE_CHECKING:
    from kafka_msgs.columns.log_table import LogTable
    from kafka_msgs.engines.record_files import RecordFile

__all__ = ["run_records"]

_COLUMNS: Final = ("topic", "partition", "records", "damaged", "bytes of log", "bytes of Parquet", "files")


def run_records(
    *,
    inputs: Sequence[str],
    out: str,
    engine: str,
    columns: str | None,
    topics: Sequence[str],
    partitions: Sequence[int],
    control: bool,
    isolation: IsolationLevel,
    where: str | None,
    registry: str | None,
    compression: str,
    workers: int,
) -> None:
    """Write the records of log directories to Parquet, and print a row about each partition."""
    from kafka_msgs.columns.log_table import DEFAULT_COLUMNS, LogTable
    from kafka_msgs.engines.record_files import write_records

    # Topic and partition are left out of the rows: the directory names contain them.
    selection = parse_where_option(where, payload_schemas(registry))
    names = sorted(DEFAULT_COLUMNS - {"topic", "partition"}) if columns is None else columns.split(",")

    def made(progress: Progress) -> LogTable:
        return LogTable(
            *inputs,
            columns=names,
            topics=topics or None,
            partitions=partitions or None,
            control=control,
            isolation=isolation,
            where=selection,
            progress=progress,
        )

    with progress_over(made(Progress()).files) as progress:
        written = write_records(made(progress), out, compression=compression, workers=workers)
    _show(written)


def _show(written: Iterable[RecordFile]) -> None:
    shown = table(*_COLUMNS)
    for (topic, partition), group in groupby(written, key=lambda file: (file.topic, file.partition)):
        files = list(group)
        counts = [sum(getattr(file, name) for file in files) for name in ("records", "damaged", "read", "size")]
        shown.add_row(topic, *(f"{number:,}" for number in (partition, *counts, len(files))))
    console().print(shown)
