"""The targets of offset resets, from options or from the files of ``--from-file``."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from kafka_msgs.admin.offset_resets import OffsetTarget
from kafka_msgs.cli.group_commands.datetimes import milliseconds_of
from kafka_msgs.cli.group_commands.option_rules import GroupCommandOptions
from kafka_msgs.cli.render.output import text_of_csv_cell
from kafka_msgs.client.cluster_metadata import TopicPartition

__all__ = ["offsets_in", "target_of"]

_NUMBER: Final = re.compile(r"\d{1,19}", re.ASCII)
_FIELDS: Final = ("group", "topic", "partition", "offset")
_NAMED: Final = {"newOffset": "offset"}
"""The names that our output columns have here."""


def target_of(asked: GroupCommandOptions, now: datetime | None = None) -> OffsetTarget | Mapping[TopicPartition, int]:
    """Return the target of an offset reset. ``--by-duration`` counts back from ``now``."""
    if asked.from_file is not None:
        return offsets_in(asked.from_file, asked.group[0])
    if asked.to_datetime is not None:
        return OffsetTarget.timestamp(milliseconds_of(asked.to_datetime))
    if asked.by_duration is not None:
        return OffsetTarget.timestamp(milliseconds_of((now or datetime.now(UTC)) - asked.by_duration))
    if asked.shift_by is not None:
        return OffsetTarget.shift(asked.shift_by)
    if asked.to_offset is not None:
        return OffsetTarget.offset(asked.to_offset)
    if asked.to_current:
        return OffsetTarget.current()
    return OffsetTarget.earliest() if asked.to_earliest else OffsetTarget.latest()


def offsets_in(path: Path, group: str) -> dict[TopicPartition, int]:
    """Return the offsets of ``group`` in a file of lines ``topic,partition,offset``, or with ``group`` as first column.

    A header line may name additional columns, as in the output of ``--reset-offsets --output csv``. Raises
    ``click.ClickException`` for any other line, for a duplicate partition, for a file that cannot be read, and for a
    file without offsets of the group.
    """
    offsets: dict[TopicPartition, int] = {}
    for where, row in _rows(path):
        place, offset = _line(row, where)
        if text_of_csv_cell(row.get("group", group)) != group:
            continue
        if place in offsets:
            raise click.ClickException(f"{where}: {place.topic}-{place.partition} is there twice")
        offsets[place] = offset
    if not offsets:
        raise click.ClickException(f"{path}: there is no offset for the group {group!r} in it")
    return offsets


def _rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the location of each line, and its fields by name: none if the number of fields is wrong."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = [(f"{path}, line {number}", fields) for number, fields in enumerate(csv.reader(file), 1) if fields]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise click.ClickException(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    named = bool(lines) and {"topic", "partition"} <= set(lines[0][1])
    names = [_NAMED.get(name, name) for name in lines[0][1]] if named else None
    for where, fields in lines[named:]:
        columns = names or (_FIELDS if len(fields) == len(_FIELDS) else _FIELDS[1:])
        yield where, dict(zip(columns, fields, strict=True)) if len(columns) == len(fields) else {}


def _line(row: Mapping[str, str], where: str) -> tuple[TopicPartition, int]:
    numbers = [row.get(name, "") for name in ("partition", "offset")]
    if not row.get("topic") or not all(map(_NUMBER.fullmatch, numbers)):
        raise click.ClickException(f"{where}: expected topic,partition,offset or group,topic,partition,offset")
    return TopicPartition(text_of_csv_cell(row["topic"]), int(numbers[0])), int(numbers[1])
