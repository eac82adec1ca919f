"""The start of ``consume`` without a group: its partitions, their positions, and their ends.

A partition without a leader does not stop the others: it is reported, and read as soon as it has a leader.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import click
from attrs import frozen

from kafka_msgs.admin.admin import Admin
from kafka_msgs.admin.partitions import OffsetSpec
from kafka_msgs.cli.render.output import CommandError, echo
from kafka_msgs.client.client import Client
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer import Consumer
from kafka_msgs.records.where_values import milliseconds

__all__ = ["Start", "assign", "parse_start"]

_START: Final = re.compile(r"beginning|end|-?\d{1,19}|@\d{1,15}", re.ASCII)


@frozen
class Start:
    """The assigned partitions: the current ends of those with a leader, and those without."""

    ends: Mapping[TopicPartition, int]
    leaderless: Sequence[TopicPartition]


def parse_start(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Parse the start position; a point in time becomes ``@`` and its milliseconds."""
    if value is None or _START.fullmatch(value):
        return value
    try:
        time = milliseconds(value.removeprefix("@"))
    except ValueError:
        reason = f"{value!r} is not beginning, end, an offset, -N for the last N, or @ with milliseconds or a time"
        raise click.BadParameter(reason, ctx, param) from None
    return f"@{max(0, time)}"


def assign(client: Client, consumer: Consumer, topics: Sequence[str], partitions: Collection[int], start: str) -> Start:
    """Assign the partitions, and seek to the start position."""
    admin = Admin(client)
    led, leaderless = _partitions(admin, topics, partitions)
    for partition in leaderless:
        echo(
            f"Warning: {partition.topic}-{partition.partition} has no leader; its records are missing until it has.",
            err=True,
        )
    first, last = (
        {partition: offset.offset for partition, offset in admin.list_offsets(dict.fromkeys(led, spec)).all().items()}
        for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
    )
    consumer.assign([*led, *leaderless])
    if start == "beginning":
        consumer.seek_to_beginning()
    elif start == "end":
        consumer.seek_to_end(*leaderless)
        consumer.seek(last)
    elif start.startswith("@"):
        consumer.seek_to_time(int(start[1:]))
    elif start.startswith("-"):
        consumer.seek_to_end(*leaderless)
        consumer.seek({partition: max(first[partition], last[partition] + int(start)) for partition in led})
    else:
        consumer.seek(dict.fromkeys(leaderless, int(start)))
        consumer.seek({partition: min(max(first[partition], int(start)), last[partition]) for partition in led})
    return Start(last, leaderless)


def _partitions(
    admin: Admin, topics: Sequence[str], numbers: Collection[int]
) -> tuple[list[TopicPartition], list[TopicPartition]]:
    """Return the selected partitions with a leader, and those without one."""
    led: list[TopicPartition] = []
    leaderless: list[TopicPartition] = []
    for name, topic in admin.describe_topics(topics).all().items():
        for partition in topic.partitions:
            if not numbers or partition.partition_index in numbers:
                (led if partition.leader_id >= 0 else leaderless).append(
                    TopicPartition(str(name), partition.partition_index)
                )
    missing = sorted(set(numbers) - {partition.partition for partition in (*led, *leaderless)})
    if missing:
        raise CommandError(f"there is no partition {missing[0]} of {', '.join(topics)}")
    return led, leaderless
