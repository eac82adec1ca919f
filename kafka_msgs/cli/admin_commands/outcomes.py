"""The common parts of the admin commands: their action flags, their partitions, and the outcomes of changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import click
from click.core import ParameterSource

from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.output import CommandError
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError

if TYPE_CHECKING:
    from kafka_msgs.admin.results import Results
    from kafka_msgs.client.cluster_metadata import TopicPartition

__all__ = [
    "FILE",
    "OptionActions",
    "action_options",
    "failure_reason",
    "load_json",
    "pairs",
    "parse_partition",
    "print_outcomes",
    "required",
    "words",
]

F = TypeVar("F", bound=Callable[..., Any])
K = TypeVar("K")
OptionActions: TypeAlias = Mapping[str, Collection[str]]
"""The actions that use a parameter, for parameters that not all actions use."""

FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


def action_options(default: str, only_with: OptionActions, /, **actions: str) -> Callable[[F], F]:
    """Return a decorator that adds one flag per action, with its help; the command receives ``action``.

    A parameter in ``only_with`` is a usage error with any other action, because a command ignores no option.
    """

    def add(command: F) -> F:
        for name, text in reversed(actions.items()):
            note = " This is the default." if name == default else ""
            chosen: dict[str, Any] = {"default": True} if name == default else {}
            flag = click.option(_flag(name), "action", flag_value=name, help=f"{text}{note}", **chosen)
            command = flag(command)
        return command

    def check(command: F) -> F:
        @wraps(command)
        def checked(*arguments: Any, action: str, **options: Any) -> Any:
            _check_parameters(click.get_current_context(), action, only_with)
            return command(*arguments, action=action, **options)

        return cast(F, checked)

    return lambda command: add(check(command))


def _check_parameters(context: click.Context, action: str, only_with: OptionActions) -> None:
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and action not in only_with.get(name, (action,)):
            label = parameter.human_readable_name if isinstance(parameter, click.Argument) else parameter.opts[-1]
            raise click.UsageError(f"{label} applies only to {' and '.join(map(_flag, only_with[name]))}", context)


def _flag(action: str) -> str:
    return f"--{action.replace('_', '-')}"


def print_outcomes(
    output_format: str,
    columns: Sequence[str],
    results: Results[K, Any],
    row_of: Callable[[K, Any], Mapping[str, Any]],
    *,
    ignored: Collection[ErrorCode] = (),
) -> None:
    """Print a row for each item: its columns, and the error if it failed. Exit with status 1 after any failure.

    ``row_of`` gets the key and the value, which is None after a failure. ``ignored`` errors count as success.
    """
    rows = []
    errors = results.errors
    for key, outcome in results.outcomes.items():
        failed = key in errors and not _is_one_of(errors[key], ignored)
        row = row_of(key, None if key in errors else outcome)
        rows.append({**dict.fromkeys(columns), **row, "error": failure_reason(errors[key]) if failed else None})
    print_listing(output_format, (*columns, "error"), rows)
    if any(row["error"] for row in rows):
        click.get_current_context().exit(1)


def failure_reason(error: Exception) -> str:
    """Return the error without the subject, which the row shows."""
    if not isinstance(error, BrokerError):
        return str(error)
    return error.error.name if error.message is None else f"{error.error.name}: {error.message}"


def _is_one_of(error: Exception, codes: Collection[ErrorCode]) -> bool:
    return isinstance(error, BrokerError) and error.error in codes


def required(value: Any, *options: str) -> Any:
    """Return the value of an option. Raises ``click.UsageError`` if it is missing."""
    if value is None or value == ():
        raise click.UsageError(f"Missing option {' or '.join(map(repr, options))}")
    return value


def words(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a repeatable option, whose values may be separated by commas."""
    return tuple(word.strip() for value in values for word in value.split(",") if word.strip())


def pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return ``NAME=VALUE,...`` as a dict. A value in brackets may contain commas, as in Kafka's tools."""
    entries: dict[str, str] = {}
    for text in _split(values):
        name, sign, value = text.partition("=")
        if not (name.strip() and sign):
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", ctx, param)
        entries[name.strip()] = value.removeprefix("[").removesuffix("]") if value.startswith("[") else value
    return entries


def _split(values: Iterable[str]) -> Iterable[str]:
    for value in values:
        start, depth = 0, 0
        for at, letter in enumerate(f"{value},"):
            depth += (letter == "[") - (letter == "]")
            if letter == "," and depth <= 0:
                yield value[start:at]
                start = at + 1


def parse_partition(text: str) -> TopicPartition:
    """Return the partition in ``TOPIC:NUMBER`` or ``TOPIC-NUMBER``. Raises ``click.BadParameter``."""
    from kafka_msgs.client.cluster_metadata import TopicPartition

    topic, _, partition = text.rpartition(":" if ":" in text else "-")
    if not topic or not (partition.isascii() and partition.isdigit()):
        raise click.BadParameter(f"{text!r} is not TOPIC:PARTITION")
    return TopicPartition(topic, int(partition))


def load_json(path: Path, field: str) -> list[dict[str, Any]]:
    """Return the list of objects in a field of a file of Kafka's tools. Raises ``CommandError``."""
    try:
        entries = json.loads(path.read_bytes())[field]
        if not all(isinstance(entry, dict) for entry in entries):
            raise TypeError("expected objects")
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise CommandError(f"{path}: expected a JSON object with a list {field!r}: {error}") from None
    return list(entries)
