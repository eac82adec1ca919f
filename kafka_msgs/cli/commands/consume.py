"""``kafka-msgs consume``: the records of topics, one per line."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.record_commands.record_filters import header_pattern, pattern, record_filter
from kafka_msgs.cli.record_commands.record_printers import Part, RecordPrinter, parse_delimiter, parse_format
from kafka_msgs.cli.record_commands.where_option import parse_where_option, where_option
from kafka_msgs.cli.render.output import echo
from kafka_msgs.cli.render.progress import counting
from kafka_msgs.cli.render.records import DECODERS

if TYPE_CHECKING:
    from kafka_msgs.cli.record_commands.start_positions import Start
    from kafka_msgs.client import Client
    from kafka_msgs.client.consumer import Consumer
    from kafka_msgs.registry.schemas import SchemaResolver

__all__ = ["consume_command"]

_REGISTRY: Final = "registry"
_DECODERS: Final = (*DECODERS, _REGISTRY)


def _start(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    from kafka_msgs.cli.record_commands.start_positions import parse_start

    return parse_start(ctx, param, value)


@click.command("consume")
@click.argument("topics", metavar="[TOPIC]...", nargs=-1)
@click.option("-t", "--topic", "more_topics", metavar="TOPIC", multiple=True, help="The same as the argument.")
@broker_options()
@click.option(
    "-G", "--group", metavar="ID", help="Join this group, start at its offsets, and commit the printed records."
)
@click.option("--no-commit", is_flag=True, help="With --group, commit no offsets.")
@click.option(
    "-p",
    "--partition",
    "partitions",
    metavar="N",
    type=click.IntRange(min=0),
    multiple=True,
    help="Read only this partition; may be repeated.",
)
@click.option(
    "-o",
    "--from",
    "start",
    metavar="POSITION",
    callback=_start,
    help="Start position: beginning (the default, as in kcat; Kafka's console consumer starts at the end), end for new "
    "records only, an offset, -N for the last N records of each partition, or @TIME in milliseconds or ISO 8601, such "
    "as @2024-05-01T12:00:00. With --group only beginning or end, for partitions without a committed offset.",
)
@click.option("--from-beginning", is_flag=True, help="The same as --from beginning.")
@click.option("-e", "--until-end", is_flag=True, help="Stop at the current end of each partition. Not with --group.")
@click.option("-c", "--max-messages", metavar="N", type=click.IntRange(min=1), help="Stop after N printed records.")
@click.option("--read-committed", is_flag=True, help="Omit records of open and aborted transactions.")
@click.option(
    "--isolation-level",
    type=click.Choice(["read_committed", "read_uncommitted"]),
    help="Kafka's name for the same setting.",
)
@click.option(
    "--match-key",
    "keys",
    metavar="REGEX",
    type=pattern,
    multiple=True,
    help="Print only records whose key contains a match; may be repeated.",
)
@click.option(
    "--match-value",
    "values",
    metavar="REGEX",
    type=pattern,
    multiple=True,
    help="Print only records whose value contains a match; may be repeated.",
)
@click.option(
    "--match-header",
    "headers",
    metavar="NAME[=REGEX]",
    type=header_pattern,
    multiple=True,
    help="Print only records with this header, whose value contains a match; may be repeated.",
)
@where_option
@click.option("--key-decoder", type=click.Choice(_DECODERS), help="Key format; text by default.")
@click.option("--value-decoder", type=click.Choice(_DECODERS), help="Value format; text by default.")
@click.option(
    "--registry", metavar="URL", help="Schema registry of the decoder registry, which becomes the default for values."
)
@click.option(
    "-K", "--keys", "key_separator", metavar="SEPARATOR", help="Print the key and SEPARATOR before each value."
)
@click.option(
    "-D",
    "--delimiter",
    default="\\n",
    metavar="TEXT",
    type=parse_delimiter,
    help="Text after each record; default: a line feed.",
)
@click.option("--null-marker", metavar="TEXT", default="<null>", show_default=True, help="Text that stands for null.")
@click.option(
    "-f",
    "--format",
    "template",
    metavar="FORMAT",
    type=parse_format,
    help="Print each record in a kcat format: %t topic, %p partition, %o offset, %k key, %s value, %K and %S their "
    "lengths (-1 for null), %T timestamp, %h headers, \\n line feed.",
)
@click.option(
    "--output",
    "output_format",
    type=click.Choice(["text", "raw", "jsonl"]),
    default="text",
    show_default=True,
    help="Values as text, values as unchanged bytes, or one JSON object per record.",
)
@click.pass_context
def consume_command(
    ctx: click.Context,
    /,
    topics: tuple[str, ...],
    more_topics: tuple[str, ...],
    cluster: ClusterOptions,
    group: str | None,
    no_commit: bool,
    partitions: tuple[int, ...],
    start: str | None,
    from_beginning: bool,
    until_end: bool,
    max_messages: int | None,
    read_committed: bool,
    isolation_level: str | None,
    keys: tuple[re.Pattern[bytes], ...],
    values: tuple[re.Pattern[bytes], ...],
    headers: tuple[tuple[str, re.Pattern[bytes]], ...],
    where: str | None,
    template: tuple[Part, ...] | None,
    output_format: str,
    **output: Any,
) -> None:
    r"""Print the records of topics as they arrive, until Ctrl-C.

    Keys and values of internal topics, such as __consumer_offsets, are decoded to JSON. Values that are not UTF-8 are
    printed as {"hex": ...}, and null as <null>; JSON output shows null as null. --timeout limits the start of the
    command, and with --until-end each wait for records.

    Example: kafka-msgs consume orders -b localhost --from -10 --until-end -f '%p:%o %k %s\n'
    """
    start = "beginning" if from_beginning else start
    if group is not None and (partitions or until_end or start not in (None, "beginning", "end")):
        raise click.UsageError("--group excludes --partition and --until-end, and allows only --from beginning or end")
    names = (*topics, *more_topics)
    if not names:
        raise click.UsageError("Missing argument 'TOPIC'")
    from kafka_msgs.cli.record_commands.consumption import Consumption
    from kafka_msgs.client.consumer import Consumer
    from kafka_msgs.client.consumer.config import parse_consumer_properties

    options: dict[str, Any] = {
        "auto_offset_reset": "earliest",
        **parse_consumer_properties(cluster.properties),
        **({} if start is None else {"auto_offset_reset": "latest" if start == "end" else "earliest"}),
        **({"isolation_level": "read_committed"} if read_committed else {}),
        **({} if isolation_level is None else {"isolation_level": isolation_level}),
        "group_id": group,
        "auto_commit": False,
    }
    printer = _printer(cluster, template, output_format, output)
    selection = parse_where_option(where, _schemas(cluster, output["registry"]))
    with cluster.client() as client, Consumer(client, **options) as consumer:
        begun = _begin(client, consumer, names, group, partitions, start)
        client.core.final_deadline = None
        with counting("records read", when=not sys.stdout.isatty()) as progress:
            consumption = Consumption(
                consumer, record_filter(keys, values, headers, selection), printer, progress,
                ends=begun.ends if begun and until_end else None, stall_seconds=cluster.timeout,
                max_records=max_messages, commits=group is not None and not no_commit,
            )  # fmt: skip
            try:
                consumption.run()
            except KeyboardInterrupt:
                echo(f"{consumption.printed} record{'' if consumption.printed == 1 else 's'} read", err=True)
            finally:
                if selection is not None:
                    selection.report(", ".join(names))
    if begun and until_end and begun.leaderless:
        ctx.exit(1)


def _schemas(cluster: ClusterOptions, registry: str | None) -> SchemaResolver | None:
    """Return the schemas of the option or of the connection profile, or None without one."""
    url = registry or cluster.registry
    if url is None:
        return None
    from kafka_msgs.cli.record_commands.registry_payloads import open_registry

    return open_registry(url, cluster.timeout)


def _begin(
    client: Client,
    consumer: Consumer,
    topics: tuple[str, ...],
    group: str | None,
    partitions: tuple[int, ...],
    start: str | None,
) -> Start | None:
    """Subscribe with a group, or assign partitions and return the start."""
    if group is not None:
        consumer.subscribe(topics)
        return None
    from kafka_msgs.cli.record_commands.start_positions import assign

    return assign(client, consumer, topics, partitions, start or "beginning")


def _printer(
    cluster: ClusterOptions, template: tuple[Part, ...] | None, output_format: str, output: Mapping[str, Any]
) -> RecordPrinter:
    """Return the printer of the output options. With a format and in raw output, payloads are unchanged by default."""
    schemas = _schemas(cluster, output["registry"])
    exact = template is not None or output_format == "raw"

    def decoder(name: str | None, default: str) -> Callable[[Any], Any]:
        chosen = name or default
        if chosen != _REGISTRY:
            return bytes if exact and name is None else DECODERS[chosen]
        if schemas is None:
            raise click.UsageError("the decoder registry needs --registry")
        from kafka_msgs.cli.record_commands.registry_payloads import payload_decoder

        return payload_decoder(schemas)

    return RecordPrinter(
        output_format, template,
        key_decoder=decoder(output["key_decoder"], "text"),
        value_decoder=decoder(output["value_decoder"], _REGISTRY if output["registry"] else "text"),
        key_separator=output["key_separator"],
        delimiter=output["delimiter"],
        null_marker=output["null_marker"],
    )  # fmt: skip
