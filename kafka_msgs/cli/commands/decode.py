"""``kafka-msgs decode``: decode bytes to a readable message, to JSON, or to an annotated hex dump."""

from __future__ import annotations

import click

from kafka_msgs.cli.argument_data import read_binary
from kafka_msgs.cli.message_names import message_argument
from kafka_msgs.cli.render.console import console, print_json
from kafka_msgs.cli.render.hex_dump import annotate, print_dump, refuse_trailing
from kafka_msgs.cli.render.tree import message_tree
from kafka_msgs.message import Message

__all__ = ["decode_command"]


@click.command("decode")
@message_argument
@click.argument("version", type=int)
@click.argument("data", default="-")
@click.option("--json", "as_json", is_flag=True, help="Print JSON in the format of Kafka's own tools.")
@click.option("--explain", is_flag=True, help="Print the meaning of each byte, also of malformed data.")
def decode_command(message: type[Message], version: int, data: str, as_json: bool, explain: bool) -> None:
    """Decode DATA, a message without its header, as MESSAGE at VERSION.

    DATA is hexadecimal text, - for hexadecimal text on standard input, or @FILE for the bytes of a file.

    Example: kafka-msgs decode HeartbeatRequest 0 00037465610000000700036d2d31
    """
    raw = read_binary(data)
    if explain:
        annotation = refuse_trailing(annotate(message, version, raw), message, version, len(raw))
        print_dump(raw, [annotation], as_json)
        if annotation.error is not None:
            raise annotation.error
        return
    decoded = message.decode(raw, version)
    if as_json:
        print_json(decoded.to_json(version))
    else:
        console().print(message_tree(decoded, version))
