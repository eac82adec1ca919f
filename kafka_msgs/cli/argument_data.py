"""Command inputs: an argument is the text itself, ``-`` for standard input, or ``@file``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

__all__ = ["read_binary", "read_text"]


def read_text(argument: str) -> str:
    """Return the text of an argument or of its file; raises ``click.ClickException`` for an unreadable file."""
    if argument == "-":
        return sys.stdin.read()
    if argument.startswith("@"):
        try:
            return _contents(argument[1:]).decode()
        except UnicodeDecodeError:
            raise click.ClickException(f"{argument[1:]}: not UTF-8 text") from None
    return argument


def read_binary(argument: str) -> bytes:
    """Return the bytes of an argument: hexadecimal text, or with ``@`` a file's raw bytes (``@-``: stdin).

    White space between the digits is ignored. Raises ``click.ClickException`` for an unreadable file and for text that
    is not hexadecimal.
    """
    if argument == "@-":
        return sys.stdin.buffer.read()
    if argument.startswith("@"):
        return _contents(argument[1:])
    try:
        return bytes.fromhex(read_text(argument))
    except ValueError as error:
        raise click.ClickException(f"not hexadecimal: {error}") from None


def _contents(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from None
