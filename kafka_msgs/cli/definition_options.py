"""``--definitions``, ``--lenient`` and ``--bind``: the user's own messages, compiled when a command runs.

This module defines these options and compiles the definitions. ``message_names`` resolves user input to a message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.message import Message
from kafka_msgs.schema_compiler import compile_schemas

__all__ = ["Defined", "current_catalog", "definitions_options", "user_messages"]

F = TypeVar("F", bound=Callable[..., Any])
Defined = Mapping[str, type[Message]]
"""Messages of the user's own definitions by name."""

_PATH: Final = "kafka_msgs.definitions.path"
_LENIENT: Final = "kafka_msgs.definitions.lenient"
_BINDINGS: Final = "kafka_msgs.definitions.bindings"
_COMPILED: Final = "kafka_msgs.definitions.compiled"
"""The keys of a click context for the values of the three options, and for the compiled messages."""


def definitions_options(command: F) -> F:
    """Add the three options to a command. Its arguments find the messages with ``user_messages``."""
    for option in (_BIND, _LENIENT_FLAG, _DEFINITIONS):
        command = option(command)
    return command


def user_messages(ctx: click.Context) -> Defined:
    """Return the messages of ``--definitions``, or none without that option; they are compiled once.

    Raises ``SchemaError``, ``MissingExtraError`` and ``OSError``.
    """
    if _COMPILED not in ctx.meta:
        ctx.meta[_COMPILED] = _compiled(ctx)
    own: Defined = ctx.meta[_COMPILED]
    return own


def current_catalog() -> MessageCatalog:
    """Return the messages of the running command's ``--definitions``, followed by the messages of the release."""
    own = user_messages(click.get_current_context())
    return MessageCatalog.of(own.values(), fallback=release_catalog()) if own else release_catalog()


def _compiled(ctx: click.Context) -> Defined:
    path: Path | None = ctx.meta.get(_PATH)
    lenient, bindings = ctx.meta.get(_LENIENT, False), ctx.meta.get(_BINDINGS, {})
    if bindings and not lenient:
        raise click.UsageError("--bind needs --lenient", ctx)
    if path is None:
        if lenient:
            raise click.UsageError("--lenient needs --definitions", ctx)
        return {}
    return {cls.INFO.name: cls for cls in compile_schemas(path, lenient=lenient, bindings=bindings)}


def _keep(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def note(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        ctx.meta[name] = value

    return note


def _keep_bindings(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> None:
    pairs = [text.partition("=") for text in value]
    for word, equals, _ in pairs:
        if not (equals and word.isidentifier()):
            raise click.BadParameter(f"{word!r} is not WORD=VALUE", ctx, param)
    ctx.meta[_BINDINGS] = {word: meaning for word, _, meaning in pairs}


_DEFINITIONS: Final = click.option(
    "--definitions",
    metavar="PATH",
    type=click.Path(exists=True, path_type=Path),
    is_eager=True,
    expose_value=False,
    callback=_keep(_PATH),
    help="Your own definition, a directory of definitions, or an import of another release; their messages take "
    "precedence.",
)
_LENIENT_FLAG: Final = click.option(
    "--lenient",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_keep(_LENIENT),
    help="Accept the informal syntax of wiki pages; a file may contain several definitions.",
)
_BIND: Final = click.option(
    "--bind",
    metavar="WORD=VALUE",
    multiple=True,
    is_eager=True,
    expose_value=False,
    callback=_keep_bindings,
    help="Value of a placeholder such as TBD in the definitions; may be repeated.",
)
