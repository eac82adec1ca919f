"""``kafka-msgs guess``: the messages and versions that read given bytes."""

from __future__ import annotations

from typing import Any, Final

import click

from kafka_msgs.cli.argument_data import read_binary
from kafka_msgs.cli.definition_options import current_catalog, definitions_options
from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.message_guesses import MessageGuess, guess_messages

__all__ = ["guess_command"]

_COLUMNS: Final = ("message", "version", "form", "framed", "score")
_SHOWN: Final = 20


@click.command("guess")
@click.argument("data", default="-")
@click.option(
    "--limit", type=click.IntRange(1), default=_SHOWN, show_default=True, help="Print at most this many rows."
)
@definitions_options
@listing_option
def guess_command(data: str, limit: int, output_format: str) -> None:
    """List the messages and versions that read all bytes of DATA, the most plausible first.

    DATA is hexadecimal text, - for hexadecimal text on standard input, or @FILE for the bytes of a file. It is a
    message, with or without its header, its size, or its version. Scores compare guesses of one call.

    Example: kafka-msgs guess 00037465610000000700036d2d31
    """
    found = guess_messages(read_binary(data), catalog=current_catalog())
    if not found:
        raise click.ClickException("no message of this release reads all of these bytes")
    rows = list(map(_row, found))
    print_listing(output_format, _COLUMNS, rows[:limit])
    if len(rows) > limit:
        click.echo(f"{len(rows) - limit} more; --limit shows them", err=True)


def _row(guess: MessageGuess) -> dict[str, Any]:
    return {
        "message": guess.name,
        "version": guess.version,
        "form": guess.form,
        "framed": guess.framed,
        "score": round(guess.score, 1),
    }
