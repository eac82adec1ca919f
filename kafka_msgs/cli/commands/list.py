"""``kafka-msgs list``: which messages there are."""

from __future__ import annotations

from typing import Any

import click

from kafka_msgs.cli.message_names import draft_names, find_message, origin, released_names
from kafka_msgs.cli.render.console import console, print_json, table
from kafka_msgs.schema import MessageInfo

__all__ = ["list_command"]

_COLUMNS = ("name", "origin", "kind", "api key", "versions", "flexible", "deprecated")


@click.command("list")
@click.argument("text", default="")
@click.option("--kind", help="Only this kind, such as request, response, data or coordinator-value.")
@click.option("--origin", "wanted", help="Only this part of Kafka, such as clients or metadata, or this draft.")
@click.option("--drafts", is_flag=True, help="List the drafts' messages instead of the release's.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def list_command(text: str, kind: str | None, wanted: str | None, drafts: bool, output: str) -> None:
    """List messages, or those whose name contains TEXT."""
    names = draft_names() if drafts else released_names()
    rows = [
        _row(name, info)
        for name in names
        if text.lower() in name.lower() and wanted in (None, origin(name))
        if kind in (None, (info := find_message(name).INFO).kind)
    ]
    if output == "json":
        keys = [column.replace(" ", "_") for column in _COLUMNS]
        print_json([dict(zip(keys, row, strict=True)) for row in rows])
        return
    shown = table(*_COLUMNS, title=f"{len(rows)} messages")
    for row in rows:
        shown.add_row(*("" if cell is None else str(cell) for cell in row))
    console().print(shown)


def _row(name: str, info: MessageInfo) -> tuple[Any, ...]:
    flexible, deprecated = info.flexible.intersect(info.versions), info.deprecated.intersect(info.versions)
    return (
        name,
        origin(name),
        info.kind,
        info.api_key,
        str(info.versions),
        None if flexible.empty else str(flexible),
        None if deprecated.empty else str(deprecated),
    )
