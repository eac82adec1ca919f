"""``kafka-msgs show``: a message's fields, their documentation, a response's errors, and its Kafka releases."""

from __future__ import annotations

import click

from kafka_msgs.cli.message_names import messages_argument
from kafka_msgs.cli.output_options import json_option
from kafka_msgs.cli.render.console import console, print_json
from kafka_msgs.cli.render.description import described, errors_table, fields_tree, history_table
from kafka_msgs.errors import UnsupportedVersionError
from kafka_msgs.message import Message
from kafka_msgs.versions import VersionRange

__all__ = ["show_command"]


@click.command("show")
@messages_argument
@click.argument("version", type=int, required=False)
@json_option("Print a JSON array with one object for each message.")
def show_command(messages: list[type[Message]], version: int | None, as_json: bool) -> None:
    """Show the fields of MESSAGE in all its versions, or in VERSION alone.

    MESSAGE is a name such as OffsetFetchRequest, in any case. A short name such as OffsetFetch, or an API key such
    as 9, shows the request and the response. Names of draft messages are prefixed with the draft, such as
    kip_88.OffsetFetchRequest.

    Example: kafka-msgs show OffsetFetch 2
    """
    requested = [(cls, _versions(cls, version)) for cls in messages]
    if as_json:
        print_json([described(cls, versions) for cls, versions in requested])
        return
    out = console()
    for cls, versions in requested:
        out.print(fields_tree(cls, versions))
        for table in (errors_table(cls, versions), history_table(cls, versions)):
            if table is not None:
                out.print(table)


def _versions(cls: type[Message], version: int | None) -> VersionRange:
    info = cls.INFO
    if version is None:
        return info.versions
    if version not in info.versions:
        raise UnsupportedVersionError(message=info.name, version=version, supported=info.versions)
    return VersionRange(version, version)
