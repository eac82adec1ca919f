"""Output options that several commands share.

This module combines ``--output`` and its short form ``--json`` into one value, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

__all__ = ["FORMS", "isolation_option", "json_option", "listing_option", "log_dirs_option", "rows_option"]

F = TypeVar("F", bound=Callable[..., Any])

FORMS: Final = ("table", "json", "jsonl", "csv")
"""The output forms of lists: for people, as one document, as one JSON object per line, for spreadsheets."""

_JSON: Final = "kafka_msgs.json"
"""The key of a click context for whether ``--json`` was passed."""


def listing_option(command: F) -> F:
    """Add ``--output`` and ``--json`` to a command that lists rows of one kind. The value is one of ``FORMS``.

    The command receives it as ``output_format``.
    """
    return _output(FORMS, "Print a table, one JSON document, one JSON object per line, or CSV.", command)


def rows_option(command: F) -> F:
    """Add the same options, without CSV, to a command that prints rows of several kinds."""
    return _output(FORMS[:-1], "Print tables, one JSON document, or one JSON object per line.", command)


def _output(forms: Sequence[str], text: str, command: F) -> F:
    short = click.option(
        "--json",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_keep_json,
        help="The same as --output json.",
    )
    long = click.option(
        "--output",
        "output_format",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        callback=_chosen_form,
        help=text,
    )
    return long(short(command))


def log_dirs_option(*, required: bool = True) -> Callable[[F], F]:
    """Return a decorator that adds the repeatable option ``--log-dirs``; its value is the paths ``log_dirs``."""
    return click.option(
        "--log-dirs",
        metavar="DIR",
        multiple=True,
        required=required,
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="A broker's log directory, or a partition directory; may be repeated.",
    )


def isolation_option(command: F) -> F:
    """Add ``--isolation-level`` to a command that reads log directories; it receives ``isolation``."""
    return click.option(
        "--isolation-level",
        "isolation",
        type=click.Choice(["read_uncommitted", "read_committed"]),
        default="read_uncommitted",
        show_default=True,
        help="With read_committed, leave out records of aborted and of open transactions, as a consumer does.",
    )(command)


def json_option(text: str) -> Callable[[F], F]:
    """Return a decorator that adds ``--json`` to a command that prints one item; the command receives ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def _keep_json(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[_JSON] = value


def _chosen_form(ctx: click.Context, param: click.Parameter, value: str) -> str:
    return "json" if ctx.meta.get(_JSON) else value
