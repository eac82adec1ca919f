"""Options that several commands have: in which form they print.

Owns how ``--format`` and its short form ``--json`` become one value, whatever their order.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

__all__ = ["FORMS", "format_option", "json_option", "log_dirs_option"]

F = TypeVar("F", bound=Callable[..., Any])

FORMS: Final = ("table", "json", "jsonl")
"""The forms in which rows are printed: for people, as one document, and as one JSON object per line."""

_JSON: Final = "kafka_msgs.json"
"""Where a click context keeps that ``--json`` was given."""


def format_option(command: F) -> F:
    """Give a command that lists rows ``--format`` and ``--json``; it gets one of ``FORMS`` as ``form``."""
    short = click.option(
        "--json",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_note,
        help="The same as --format json.",
    )
    long = click.option(
        "--format",
        "form",
        type=click.Choice(FORMS),
        default=FORMS[0],
        show_default=True,
        callback=_form,
        help="Print tables, one JSON document, or one JSON object per line.",
    )
    return long(short(command))


def log_dirs_option(command: F) -> F:
    """Give a command ``--log-dirs``, which may be repeated; it gets the paths as ``log_dirs``."""
    option = click.option(
        "--log-dirs",
        metavar="DIR",
        multiple=True,
        required=True,
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="A log directory of a broker, or the directory of one partition; may be repeated.",
    )
    return option(command)


def json_option(text: str) -> Callable[[F], F]:
    """Return what gives a command that prints one thing ``--json``; it gets ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def _note(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[_JSON] = value


def _form(ctx: click.Context, param: click.Parameter, value: str) -> str:
    return "json" if ctx.meta.get(_JSON) else value
