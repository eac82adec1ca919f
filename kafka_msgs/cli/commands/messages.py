"""``kafka-msgs messages``: list the messages."""

from __future__ import annotations

from typing import Any, Final

import click

from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.cli.message_names import (
    draft_names,
    draft_origins,
    find_messages,
    origin,
    released_names,
    released_origins,
)
from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.message import Message
from kafka_msgs.versions import VersionRange

__all__ = ["messages_command"]

_COLUMNS: Final = ("name", "origin", "kind", "apiKey", "versions", "flexible", "deprecated")


def _kind(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    return _one_of({cls.INFO.kind for cls in iter_message_classes()}, value, ctx, param) if value else None


def _origin(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    return _one_of({*released_origins(), *draft_origins()}, value, ctx, param) if value else None


def _one_of(allowed: set[str], value: str, ctx: click.Context, param: click.Parameter) -> str:
    if value not in allowed:
        raise click.BadParameter(f"{value!r} is not one of {', '.join(sorted(allowed))}", ctx, param)
    return value


@click.command("messages")
@click.argument("text", default="")
@click.option(
    "--kind", callback=_kind, help="List only this kind, such as request, response, data or coordinator-value."
)
@click.option(
    "--origin",
    "requested",
    callback=_origin,
    help="List only this part of Kafka, such as clients or metadata, or this draft.",
)
@click.option("--drafts", "of_drafts", is_flag=True, help="List draft messages instead of released messages.")
@listing_option
def messages_command(text: str, kind: str | None, requested: str | None, of_drafts: bool, output_format: str) -> None:
    """List messages, optionally only those whose name contains TEXT.

    Example: kafka-msgs messages offset --kind request
    """
    names = draft_names() if of_drafts or requested in draft_origins() else released_names()
    matching = [(name, find_messages(name)[0]) for name in names if text.lower() in name.lower()]
    listed = [
        _row(name, cls) for name, cls in matching if requested in (None, origin(name)) if kind in (None, cls.INFO.kind)
    ]
    print_listing(output_format, _COLUMNS, listed, title=f"{len(listed)} message{'' if len(listed) == 1 else 's'}")


def _row(name: str, cls: type[Message]) -> dict[str, Any]:
    info = cls.INFO
    return {
        "name": name,
        "origin": origin(name),
        "kind": info.kind,
        "apiKey": info.api_key,
        "versions": str(info.versions),
        "flexible": _some(info.flexible, info.versions),
        "deprecated": _some(info.deprecated, info.versions),
    }


def _some(part: VersionRange, whole: VersionRange) -> str | None:
    common = part.intersect(whole)
    return None if common.empty else str(common)
