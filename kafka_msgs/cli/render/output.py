r"""Output of data: exact in files and pipes, harmless on terminals, strict JSON, and CSV without formulas.

Every command prints through ``echo``. Data of brokers and files may contain escape sequences, which a terminal would
execute. On a terminal, ``echo`` shows them as ``\u001b``; elsewhere it passes them on unchanged.
"""

from __future__ import annotations

import json
import re
import sys
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final
from uuid import UUID

import click

__all__ = [
    "CommandError",
    "OvertakenError",
    "csv_cell",
    "echo",
    "id_text",
    "is_terminal",
    "json_text",
    "number_text",
    "one_line",
    "text_of_csv_cell",
    "visible",
    "write_bytes",
]

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters except tab and line feed, bidirectional controls, tags, and lone surrogates."""

_FORMULA: Final = re.compile(r"'*[=+\-@\t\r]")
"""A formula, or the cell of one: its apostrophes are preserved as well."""

_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


class CommandError(click.ClickException):
    """The failure of a command: one line on standard error, exit status 1."""

    def show(self, file: Any = None) -> None:
        """Print the message; it may contain data of brokers and files."""
        echo(f"Error: {self.format_message()}", err=True)


class OvertakenError(CommandError):
    """The failure of a run that another one overtook."""

    exit_code = 3


def is_terminal(*, err: bool = False) -> bool:
    """Return whether standard output, or with ``err`` standard error, is a terminal."""
    return (sys.stderr if err else sys.stdout).isatty()


def visible(text: str) -> str:
    r"""Return text with ``\u`` escapes, as in JSON, for the characters that a terminal interprets or hides."""
    return _HIDDEN.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]


def one_line(text: str) -> str:
    """Return text like ``visible``, with escapes for tabs and line breaks, for cells of tables and lines of logs."""
    return visible(text).replace("\t", "\\t").replace("\n", "\\n")


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line: unchanged in files and pipes, with ``visible`` escapes on terminals."""
    line = f"{text}\n" if nl else str(text)
    if is_terminal(err=err):
        click.echo(visible(line), nl=False, err=err, color=True)
    else:
        click.echo(_encoded(line), nl=False, err=err)


def _encoded(text: str) -> bytes:
    """Return UTF-8; surrogates that stand for undecodable bytes become these bytes again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def write_bytes(data: bytes) -> None:
    """Write bytes: unchanged in files and pipes, as text with ``visible`` escapes on terminals."""
    if is_terminal():
        echo(data.decode("utf-8", "surrogateescape"), nl=False)
    else:
        click.echo(data, nl=False)


def json_text(value: Any, indent: int | None = None) -> str:
    """Return strict JSON (RFC 8259). Like Kafka's tools, it has ``"NaN"`` and ``"Infinity"`` as strings."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError:
        text = json.dumps(_with_finite_numbers(value), ensure_ascii=False, allow_nan=False, indent=indent)
    return _HIDDEN.sub(_escape, text)


def _with_finite_numbers(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return number_text(value)
    if isinstance(value, Mapping):
        return {key: _with_finite_numbers(each) for key, each in value.items()}
    return list(map(_with_finite_numbers, value)) if isinstance(value, list | tuple) else value


def number_text(value: float) -> str:
    """Return a number in Java's notation of the values that are not finite."""
    return str(value).replace("nan", "NaN").replace("inf", "Infinity")


def csv_cell(text: str) -> str:
    """Return text for CSV, with an apostrophe before a formula: spreadsheets then show it instead of running it."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def text_of_csv_cell(cell: str) -> str:
    """Return the text of which ``csv_cell`` made a cell."""
    text = cell.removeprefix("'")
    return text if csv_cell(text) == cell else cell


def id_text(value: UUID) -> str:
    """Return an id as Kafka's tools print it: base64 for URLs, without padding."""
    return urlsafe_b64encode(value.bytes).decode("ascii").rstrip("=")
