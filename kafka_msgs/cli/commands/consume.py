"""``kafka-msgs consume``: the records of topics, one per line."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_msgs.cli.broker_options import broker_options, client_config
from kafka_msgs.cli.render.progress import counting
from kafka_msgs.cli.render.records import DECODERS, content_of, headers_of
from kafka_msgs.cli.render.timestamps import iso_of_ms
from kafka_msgs.internal_topics.records import TOPICS

if TYPE_CHECKING:
    from kafka_msgs.client import Client, TopicPartition
    from kafka_msgs.client.consumer import Consumer
    from kafka_msgs.records import ConsumerRecord

__all__ = ["consume_command"]

_POLL_SECONDS: Final = 1.0
_ROOM: Final = 1000
"""The maximum number of records per poll."""

_START: Final = re.compile(r"beginning|end|-?\d{1,19}|@\d{1,15}", re.ASCII)


def _start(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Parse the start position; a point in time becomes ``@`` and its milliseconds."""
    if value is None or _START.fullmatch(value):
        return value
    try:
        moment = datetime.fromisoformat(value.removeprefix("@"))
    except ValueError:
        reason = f"{value!r} is not beginning, end, an offset, -N for the last N, or @ with milliseconds or a time"
        raise click.BadParameter(reason, ctx, param) from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return f"@{max(0, int(moment.timestamp() * 1000))}"


@click.command("consume")
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@broker_options()
@click.option("--group", metavar="ID", help="Join this group, begin at its offsets, and commit what was printed.")
@click.option("--no-commit", is_flag=True, help="With --group, commit nothing.")
@click.option("--partition", "partitions", metavar="N", type=click.IntRange(min=0), multiple=True)
@click.option(
    "--from",
    "start",
    metavar="WHERE",
    callback=_start,
    help="beginning (the default), end, an offset, -N for the last N, or @ and milliseconds or a time such as "
    "@2024-05-01T12:00:00. Not with --group.",
)
@click.option("--until-end", is_flag=True, help="Stop at the ends that the partitions have now. Not with --group.")
@click.option("--max-messages", metavar="N", type=click.IntRange(min=1), help="Stop after N records.")
@click.option("--read-committed", is_flag=True, help="Leave out the records of open and of aborted transactions.")
@click.option("--key-decoder", type=click.Choice([*DECODERS]), help="What the bytes of keys are; text by default.")
@click.option("--value-decoder", type=click.Choice([*DECODERS]), help="What the bytes of values are; text by default.")
@click.option("--keys", metavar="SEPARATOR", help="As text, print the key and SEPARATOR in front of the value.")
@click.option(
    "--output", "output_format", type=click.Choice(["text", "jsonl"]), default="text", show_default=True,
    help="Values as lines of text, or one JSON object per record, with offset, time and headers.",
)  # fmt: skip
def consume_command(
    topics: tuple[str, ...],
    bootstrap_server: str,
    command_config: Path | None,
    timeout: int,
    group: str | None,
    no_commit: bool,
    partitions: tuple[int, ...],
    start: str | None,
    until_end: bool,
    max_messages: int | None,
    read_committed: bool,
    key_decoder: str | None,
    value_decoder: str | None,
    keys: str | None,
    output_format: str,
) -> None:
    """Print the records of topics as they come, until you interrupt it.

    Keys and values of internal topics, such as __consumer_offsets, are opened by their messages. A value that is not
    text is printed as JSON, and so is null.
    """
    if group is not None and (partitions or start is not None or until_end):
        raise click.UsageError("--group decides about partitions and offsets, without --partition, --from, --until-end")
    from kafka_msgs.client import Client
    from kafka_msgs.client.consumer import Consumer

    decoders = (key_decoder, value_decoder)
    with (
        Client(client_config(bootstrap_server, command_config, timeout)) as client,
        Consumer(
            client,
            group_id=group,
            auto_offset_reset="earliest",
            isolation_level="read_committed" if read_committed else "read_uncommitted",
        ) as consumer,
    ):
        ends = None
        if group is not None:
            consumer.subscribe(topics)
        else:
            ends = _begin(client, consumer, topics, partitions, start)
        commits = group is not None and not no_commit
        try:
            with counting("records read", when=not sys.stdout.isatty()) as progress:
                found = _records(consumer, ends if until_end else None, max_messages, commits=commits)
                for number, record in enumerate(found, 1):
                    click.echo(_line(record, decoders, keys, output_format))
                    progress(number)
        except KeyboardInterrupt:
            return


def _begin(
    client: Client, consumer: Consumer, topics: tuple[str, ...], partitions: tuple[int, ...], start: str | None
) -> Mapping[TopicPartition, int]:
    """Assign the partitions, seek to the start position, and return the current end offsets."""
    from kafka_msgs.admin.admin import Admin
    from kafka_msgs.admin.partitions import OffsetSpec
    from kafka_msgs.client import TopicPartition

    admin = Admin(client)
    described = admin.describe_topics(topics).all()
    places = [
        TopicPartition(str(name), each.partition_index)
        for name, topic in described.items()
        for each in topic.partitions
        if not partitions or each.partition_index in partitions
    ]
    missing = sorted(set(partitions) - {each.partition for each in places})
    if missing:
        raise click.ClickException(f"there is no partition {missing[0]} of {', '.join(topics)}")
    first, last = (
        {place: each.offset for place, each in admin.list_offsets(dict.fromkeys(places, spec)).all().items()}
        for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
    )
    consumer.assign(places)
    if start is not None and start.startswith("@"):
        consumer.seek_to_time(int(start[1:]))
    else:
        consumer.seek({place: _offset(start or "beginning", first[place], last[place]) for place in places})
    return last


def _offset(start: str, first: int, last: int) -> int:
    if start in ("beginning", "end"):
        return first if start == "beginning" else last
    number = int(start)
    return max(first, last + number) if start.startswith("-") else min(max(first, number), last)


def _records(
    consumer: Consumer, ends: Mapping[TopicPartition, int] | None, most: int | None, *, commits: bool
) -> Iterator[ConsumerRecord]:
    """Yield at most ``most`` records, up to the ends. After each poll, the yielded records are committed."""
    left = most
    while (left is None or left > 0) and not _at(consumer, ends):
        found = consumer.poll(_POLL_SECONDS, max_records=_ROOM if left is None else min(left, _ROOM))
        yield from (each for each in found if ends is None or each.offset < ends[each.topic, each.partition])  # type: ignore[index]
        if found and commits:
            consumer.commit()
        left = None if left is None else left - len(found)


def _at(consumer: Consumer, ends: Mapping[TopicPartition, int] | None) -> bool:
    return ends is not None and all(consumer.position(place) >= end for place, end in ends.items())


def _line(record: ConsumerRecord, decoders: tuple[str | None, str | None], keys: str | None, output_format: str) -> str:
    topic = record.topic if record.topic in TOPICS else None
    content = content_of(record, topic, *decoders)
    if output_format == "jsonl":
        facts = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "time": iso_of_ms(record.timestamp),
        }
        return _json({**facts, **content, "headers": headers_of(record)})
    if topic is not None:
        return _json(content)
    value = _text(content["value"])
    return value if keys is None else f"{_text(content['key'])}{keys}{value}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
