"""``kafka-msgs encode``: encode the JSON form of a message to bytes."""

from __future__ import annotations

import json

import click

from kafka_msgs.cli.argument_data import read_text
from kafka_msgs.cli.message_names import message_argument
from kafka_msgs.cli.render.output import echo, write_bytes
from kafka_msgs.message import Message

__all__ = ["encode_command"]


@click.command("encode")
@message_argument
@click.argument("version", type=int)
@click.argument("text", metavar="JSON", default="-")
@click.option("--binary", is_flag=True, help="Write the raw bytes instead of hexadecimal text.")
def encode_command(message: type[Message], version: int, text: str, binary: bool) -> None:
    """Encode JSON, in the format of Kafka's own tools, as MESSAGE at VERSION.

    JSON is the text itself, - for standard input, or @FILE for a file.

    Example: kafka-msgs encode HeartbeatRequest 0 '{"groupId": "tea", "generationId": 7, "memberId": "m-1"}'
    """
    try:
        obj = json.loads(read_text(text))
    except (json.JSONDecodeError, RecursionError) as error:
        raise click.ClickException(f"not JSON: {error}") from None
    data = message.from_json(obj, version).encode(version)
    if binary:
        write_bytes(data)
    else:
        echo(data.hex())
