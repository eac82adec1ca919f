"""``kafka-msgs produce``: write lines of text, or JSON objects, as records of a topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click
from attrs import define

from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.record_commands.record_input import Encoder, NewRecord, records_of_json_lines, records_of_lines
from kafka_msgs.cli.render.output import CommandError, echo
from kafka_msgs.cli.render.progress import counting

if TYPE_CHECKING:
    from kafka_msgs.client.producer import Producer

__all__ = ["produce_command"]


def _header(text: str) -> tuple[str, bytes]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE")
    return name, value.encode()


@click.command("produce")
@click.argument("topic", required=False)
@click.argument("source", metavar="[FILE]", type=click.File("rb"), default="-")
@click.option("-t", "--topic", "named_topic", metavar="TOPIC", help="The same as the argument TOPIC.")
@broker_options()
@click.option("-K", "--key-separator", metavar="TEXT", help="The text before the first TEXT in a line is the key.")
@click.option("--jsonl", is_flag=True, help="Each line is a JSON object in the format of consume --output jsonl.")
@click.option("-Z", "--empty-is-null", is_flag=True, help="Write empty values as null: tombstones in compacted topics.")
@click.option("--null-marker", metavar="TEXT", help="Write keys and values equal to TEXT as null.")
@click.option(
    "-H",
    "--header",
    "headers",
    metavar="NAME=VALUE",
    type=_header,
    multiple=True,
    help="Add a header to each record; may be repeated.",
)
@click.option(
    "-p", "--partition", metavar="N", type=click.IntRange(min=0), help="By default, the key selects the partition."
)
@click.option(
    "-z",
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="Compression codec.",
)
@click.option("--acks", type=click.Choice(["all", "1", "0"]), default="all", show_default=True, help="Required acks.")
@click.option("--registry", metavar="URL", help="The schema registry of the following options.")
@click.option("--key-schema", metavar="SCHEMA", help="Encode keys, which are JSON, with a registered schema.")
@click.option(
    "--value-schema",
    metavar="SCHEMA",
    help="Encode values, which are JSON, with a registered schema: an id, SUBJECT or SUBJECT:VERSION.",
)
def produce_command(
    topic: str | None,
    source: BinaryIO,
    named_topic: str | None,
    cluster: ClusterOptions,
    key_separator: str | None,
    jsonl: bool,
    empty_is_null: bool,
    null_marker: str | None,
    headers: tuple[tuple[str, bytes], ...],
    partition: int | None,
    compression: str,
    acks: str,
    **schemas: str | None,
) -> None:
    """Write each line of FILE, by default standard input, as a record of TOPIC.

    Lines are sent as they arrive, for example from tail -f. In a JSON object, key and value are text, null, or
    {"hex": ...}; other values are written as JSON. The number of written records is printed on standard error. The exit
    status is 1 if some were not written. --timeout limits the delivery of each record.

    Example: echo '42:{"total": 7}' | kafka-msgs produce orders -b localhost -K :
    """
    if named_topic is not None and topic is not None:
        source, topic = cast(BinaryIO, click.File("rb")(topic)), named_topic
    name = topic or named_topic
    if name is None:
        raise click.UsageError("Missing argument 'TOPIC'")
    if jsonl and key_separator is not None:
        raise click.UsageError("--jsonl excludes --key-separator")
    from kafka_msgs.client.producer import Producer
    from kafka_msgs.client.producer.config import parse_producer_properties

    encoders = _encoder(cluster, schemas, "key_schema"), _encoder(cluster, schemas, "value_schema")
    if jsonl:
        records = records_of_json_lines(source, *encoders)
    else:
        separator, marker = (None if text is None else text.encode() for text in (key_separator, null_marker))
        records = records_of_lines(source, separator, marker, *encoders)
    options: dict[str, Any] = {
        **parse_producer_properties(cluster.properties),
        "compression": compression,
        "acks": acks if acks == "all" else int(acks),
        **dict.fromkeys(("delivery_timeout", "request_timeout", "max_block"), cluster.timeout),
    }
    records = (
        record._replace(
            value=None if empty_is_null and not record.value else record.value,
            headers=(*headers, *record.headers),
            partition=record.partition if partition is None else partition,
        )
        for record in records
    )
    producer = Producer(cluster.config, **options)
    transfer = _Transfer(producer, name)
    complete = False
    try:
        with producer, counting("records written", when=not source.isatty()) as progress:
            transfer.run(records, progress)
            complete = True
    finally:
        if complete or transfer.written:
            echo(f"{transfer.written} record{'' if transfer.written == 1 else 's'} written to {name}", err=True)
    if transfer.error is not None:
        raise CommandError(f"{transfer.failed} not written; the first failed with: {transfer.error}")


def _encoder(cluster: ClusterOptions, schemas: dict[str, str | None], option: str) -> Encoder | None:
    schema, url = schemas[option], schemas["registry"] or cluster.registry
    if schema is None:
        return None
    if url is None:
        raise click.UsageError(f"--{option.replace('_', '-')} needs --registry")
    from kafka_msgs.cli.record_commands.registry_payloads import open_registry, payload_encoder

    return payload_encoder(open_registry(url, cluster.timeout), schema)


@define
class _Transfer:
    """Writes records, and counts the outcomes of their deliveries. ``error`` is the first failure."""

    producer: Producer
    topic: str
    written: int = 0
    failed: int = 0
    error: Exception | None = None

    def run(self, records: Iterable[NewRecord], progress: Callable[[int], None]) -> None:
        """Send the records, and wait until each is written or has failed."""
        try:
            for record in records:
                self.producer.send(
                    self.topic,
                    record.value,
                    key=record.key,
                    partition=record.partition,
                    timestamp=record.timestamp,
                    headers=record.headers,
                    on_delivery=self._count,
                )
                progress(self.written)
        finally:
            self.producer.flush()
            progress(self.written)

    def _count(self, metadata: object, error: Exception | None) -> None:
        if error is None:
            self.written += 1
            return
        self.failed += 1
        self.error = self.error or error
