"""``kafka-msgs errors``: Kafka's error codes."""

from __future__ import annotations

from collections.abc import Iterator

import click

from kafka_msgs.cli.render.console import console, table
from kafka_msgs.error_codes import ErrorCode

__all__ = ["errors_command"]


@click.command("errors", context_settings={"ignore_unknown_options": True})
@click.argument("wanted", metavar="[CODE|NAME]", default="")
def errors_command(wanted: str) -> None:
    """List the error codes, or the one with this CODE, or those whose name contains NAME."""
    found = list(_matching(wanted))
    if not found:
        raise click.ClickException(f"this release has no error {wanted}")
    shown = table("code", "name", "retriable")
    for code in found:
        shown.add_row(str(code.value), code.name, "yes" if code.retriable else "no")
    console().print(shown)


def _matching(wanted: str) -> Iterator[ErrorCode]:
    try:
        number = int(wanted)
    except ValueError:
        yield from (code for code in ErrorCode if wanted.upper() in code.name)
    else:
        yield from (code for code in ErrorCode if code == number)
