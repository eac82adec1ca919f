"""``kafka-msgs produce``: write lines of text, or JSON objects, as records of a topic."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

import click

from kafka_msgs.cli.broker_options import broker_options, client_config
from kafka_msgs.cli.render.progress import counting

if TYPE_CHECKING:
    from kafka_msgs.client.producer import Delivery, Producer
    from kafka_msgs.client.producer.config import Acks

__all__ = ["produce_command"]

_WAITING: Final = 10_000
"""The maximum number of records in flight before the command waits for the oldest."""

_FIELDS: Final = ("topic", "partition", "offset", "timestamp", "time", "key", "value", "headers")
"""The allowed fields of an object: all fields of ``consume --output jsonl``. Offset and readable time are ignored."""

_ACKS: Final[Mapping[str, Acks]] = {"all": "all", "1": 1, "0": 0}


class _New(NamedTuple):
    """A record to write; if the time or the partition is None, the producer sets it."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp: int | None = None


def _header(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, bytes], ...]:
    pairs = [value.partition("=") for value in values]
    for name, equals, _ in pairs:
        if not equals:
            raise click.BadParameter(f"{name!r} does not read NAME=VALUE", ctx, param)
    return tuple((name, value.encode()) for name, _, value in pairs)


@click.command("produce")
@click.argument("topic")
@click.argument("source", metavar="[FILE]", type=click.File("rb"), default="-")
@broker_options()
@click.option("--key-separator", metavar="TEXT", help="What is before TEXT in a line is the key.")
@click.option("--jsonl", is_flag=True, help="Each line is an object, as consume --output jsonl prints them.")
@click.option("--empty-is-null", is_flag=True, help="An empty value is null: a tombstone in a compacted topic.")
@click.option("--header", "headers", metavar="NAME=VALUE", multiple=True, callback=_header, help="May be repeated.")
@click.option("--partition", metavar="N", type=click.IntRange(min=0), help="By default the key decides.")
@click.option("--compression", type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]), default="none")
@click.option("--acks", type=click.Choice(list(_ACKS)), default="all", show_default=True)
def produce_command(
    topic: str,
    source: BinaryIO,
    bootstrap_server: str,
    command_config: Path | None,
    timeout: int,
    key_separator: str | None,
    jsonl: bool,
    empty_is_null: bool,
    headers: tuple[tuple[str, bytes], ...],
    partition: int | None,
    compression: str,
    acks: str,
) -> None:
    """Write each line of FILE, by default standard input, as a record of TOPIC.

    In a JSON object, key and value are text, null, or {"hex": ...}; other values are written as JSON. Standard error
    says how many records were written. The exit status is 1 if some were not.
    """
    if jsonl and key_separator is not None:
        raise click.UsageError("give --jsonl or --key-separator")
    from kafka_msgs.client.producer import Producer

    separator = None if key_separator is None else key_separator.encode()
    found = _objects(source) if jsonl else _lines(source, separator)
    with Producer(
        client_config(bootstrap_server, command_config, timeout),
        compression=compression,
        acks=_ACKS[acks],
        delivery_timeout=timeout / 1000,
        request_timeout=timeout / 1000,
        max_block=timeout / 1000,
    ) as producer:
        records = (
            each._replace(
                value=None if empty_is_null and not each.value else each.value,
                headers=(*headers, *each.headers),
                partition=each.partition if partition is None else partition,
            )
            for each in found
        )
        with counting("records written", when=not source.isatty()) as progress:
            written, failures = _send(producer, topic, records, progress)
    click.echo(f"{written} record{'' if written == 1 else 's'} written to {topic}", err=True)
    for error in failures[:1]:
        raise click.ClickException(f"{len(failures)} not written; the first failed with: {error}")


def _lines(source: Iterable[bytes], separator: bytes | None) -> Iterator[_New]:
    for line in source:
        text = line.rstrip(b"\r\n")
        key, found, value = text.partition(separator) if separator else (b"", b"", text)
        yield _New(value, key) if found else _New(text)


def _objects(source: Iterable[bytes]) -> Iterator[_New]:
    for number, line in enumerate(source, 1):
        if line.strip():
            yield _object(line, number)


def _object(line: bytes, number: int) -> _New:
    try:
        found = json.loads(line)
        if not isinstance(found, dict) or not found.keys() <= {*_FIELDS}:
            raise ValueError(f"expected an object with some of {', '.join(_FIELDS)}")
        headers = tuple((str(name), _bytes(value)) for name, value in found.get("headers", ()))
        return _New(
            _bytes(found.get("value")),
            _bytes(found.get("key")),
            headers,
            found.get("partition"),
            found.get("timestamp"),
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise click.ClickException(f"line {number}: {error}") from None


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, str):
        return None if value is None else value.encode()
    if isinstance(value, dict) and [*value] == ["hex"]:
        return bytes.fromhex(value["hex"])
    return json.dumps(value, ensure_ascii=False).encode()


def _send(
    producer: Producer, topic: str, records: Iterable[_New], progress: Callable[[int], None]
) -> tuple[int, list[Exception]]:
    """Write records; return the number of written records, and the errors of the others."""
    waiting: deque[Delivery] = deque()
    failures: list[Exception] = []
    written = 0

    def settle(most: int) -> None:
        nonlocal written
        while len(waiting) > most or (waiting and waiting[0].done):
            try:
                waiting.popleft().result()
                written += 1
            except Exception as error:
                failures.append(error)
        progress(written)

    try:
        for each in records:
            waiting.append(
                producer.send(
                    topic,
                    each.value,
                    key=each.key,
                    partition=each.partition,
                    timestamp=each.timestamp,
                    headers=each.headers,
                )
            )
            settle(_WAITING)
    finally:
        settle(0)
    return written, failures
