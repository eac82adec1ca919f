"""Shared parts of commands that write recordings: the option ``--redact``, and files that only their owner can read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, Final

import click

from kafka_msgs.redaction import ALL_KINDS, RedactKind

__all__ = ["new_file", "redact_option"]

_OWNER_ONLY: Final = 0o600


def _kinds(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> frozenset[RedactKind]:
    return ALL_KINDS if "all" in value else frozenset(map(RedactKind, value))


def new_file(path: Path) -> BinaryIO:
    """Open a new file that only its owner can read: it contains the clients' data."""
    try:
        return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "wb")
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from None


redact_option: Final = click.option(
    "--redact",
    "kinds",
    multiple=True,
    callback=_kinds,
    type=click.Choice([*(kind.value for kind in RedactKind), "all"]),
    help="Replace this kind of text with other text of the same length; may be repeated.",
)
