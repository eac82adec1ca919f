"""``kafka-msgs errors``: Kafka's error codes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.error_codes import ErrorCode

__all__ = ["errors_command"]

_COLUMNS: Final = ("code", "name", "retriable")


@click.command("errors", context_settings={"ignore_unknown_options": True})
@click.argument("requested", metavar="[CODE|NAME]", default="")
@listing_option
def errors_command(requested: str, output_format: str) -> None:
    """List error codes: all, the one with CODE, or those whose name contains NAME.

    Example: kafka-msgs errors coordinator
    """
    codes = list(_matching(requested))
    if not codes:
        raise click.ClickException(f"this release has no error {requested}")
    rows = [{"code": code.value, "name": code.name, "retriable": code.retriable} for code in codes]
    print_listing(output_format, _COLUMNS, rows)


def _matching(requested: str) -> Iterator[ErrorCode]:
    try:
        number = int(requested)
    except ValueError:
        yield from (code for code in ErrorCode if requested.upper().replace("-", "_") in code.name)
    else:
        yield from (code for code in ErrorCode if code == number)
