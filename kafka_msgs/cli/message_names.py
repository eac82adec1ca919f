"""Message names as users type them: ``OffsetFetchRequest``, ``offset-fetch``, ``9``, ``kip_88.OffsetFetchRequest``.

This module resolves a text to messages of the release, of drafts, and of the user's own definitions, which
``definition_options`` compiles. A draft's message needs the draft's name as a prefix, because it may share its name
with a released message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, TypeVar

import click

from kafka_msgs import drafts, messages
from kafka_msgs.cli.definition_options import Defined, definitions_options, user_messages
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.message import Message
from kafka_msgs.suggestions import similar_names

__all__ = [
    "draft_names",
    "draft_origins",
    "find_messages",
    "message_argument",
    "messages_argument",
    "origin",
    "released_names",
    "released_origins",
]

F = TypeVar("F", bound=Callable[..., Any])
_SUFFIXES: Final = (("",), ("request", "response"), ("key", "value"), ("record",), ("data",))
"""The name endings that may be omitted. The first of these groups that completes a message name wins."""


def released_names() -> list[str]:
    """Return the names of all messages of the release."""
    return sorted(messages.MODULES)


def draft_names() -> list[str]:
    """Return the names of all messages of drafts, each prefixed with its draft's name."""
    return sorted(
        f"{draft}.{name}" for draft in drafts.DRAFTS for name in import_module(f"{drafts.__name__}.{draft}").MODULES
    )


def released_origins() -> set[str]:
    """Return the parts of Kafka that the release's messages belong to, such as ``clients``."""
    return set(messages.ORIGINS.values())


def draft_origins() -> set[str]:
    """Return the names of the drafts."""
    return set(drafts.DRAFTS)


def origin(name: str) -> str:
    """Return the origin of a message definition: the part of Kafka, or the draft."""
    draft, _, _ = name.rpartition(".")
    return draft or messages.ORIGINS[name]


def find_messages(text: str, defined: Defined | None = None) -> list[type[Message]]:
    """Return the classes for a text: one, or the two of a short name such as ``OffsetFetch`` or ``9``.

    Messages of ``defined`` hide messages of the release with the same name. Raises ``LookupError``, with similar names,
    if no message has the name.
    """
    own = defined or {}
    names = _named(text, own) or _named(text, [*released_names(), *draft_names()])
    if not names:
        raise LookupError(f"there is no message {text!r}{_similar(text, [*own, *released_names(), *draft_names()])}")
    return [own.get(name) or _load(name) for name in names]


def _named(text: str, known: Iterable[str] | Defined) -> list[str]:
    if text.isascii() and text.isdigit():
        return _with_api_key(int(text), known)
    spellings = {_folded(name): name for name in known}
    for suffixes in _SUFFIXES:
        found = [spellings[each] for suffix in suffixes if (each := _folded(text) + suffix) in spellings]
        if found:
            return found
    return []


def _with_api_key(api_key: int, known: Iterable[str] | Defined) -> list[str]:
    if isinstance(known, Mapping):
        kinds = {cls.INFO.kind: name for name, cls in known.items() if cls.INFO.api_key == api_key}
        return [kinds[kind] for kind in ("request", "response") if kind in kinds]
    keys = (("clients", kind, api_key) for kind in ("request", "response"))
    return [messages.API_KEYS[key] for key in keys if key in messages.API_KEYS]


def _folded(name: str) -> str:
    """Return a name without spelling differences: case, hyphens, underscores."""
    return name.lower().replace("-", "").replace("_", "")


def _load(name: str) -> type[Message]:
    draft, _, own = name.rpartition(".")
    package: Any = import_module(f"{drafts.__name__}.{draft}") if draft else messages
    cls: type[Message] = getattr(package, own)
    return cls


def _similar(text: str, known: Iterable[str]) -> str:
    spellings: dict[str, list[str]] = {}
    for each in known:
        spellings.setdefault(each.rpartition(".")[2].lower(), []).append(each)
    close = similar_names(text.rpartition(".")[2].lower(), spellings)
    found = [each for key in close for each in spellings[key]]
    return f"; similar: {', '.join(found)}" if found else ""


def _find(ctx: click.Context, param: click.Parameter, value: str) -> list[type[Message]]:
    try:
        return find_messages(value, user_messages(ctx))
    except LookupError as error:
        raise click.BadParameter(error.args[0], ctx, param) from None


def _find_one(ctx: click.Context, param: click.Parameter, value: str) -> type[Message]:
    found = _find(ctx, param, value)
    if len(found) > 1:
        names = " or ".join(cls.INFO.name for cls in found)
        raise click.BadParameter(f"{value!r} may be two messages: {names}", ctx, param)
    return found[0]


def complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the message names that start with the incomplete text, for shells."""
    start, own = incomplete.lower(), []
    with suppress(KafkaMsgsError, OSError, click.UsageError):
        own = list(user_messages(ctx))
    return [name for name in [*own, *released_names(), *draft_names()] if name.lower().startswith(start)]


def message_argument(command: F) -> F:
    """Add the argument MESSAGE, which must name one message, and the definition options to a command.

    The command receives the class.
    """
    argument = click.argument("message", callback=_find_one, shell_complete=complete_names)
    return argument(definitions_options(command))


def messages_argument(command: F) -> F:
    """Add the argument MESSAGE, which may name a request and its response, and the definition options to a command.

    The command receives the classes.
    """
    argument = click.argument("messages", metavar="MESSAGE", callback=_find, shell_complete=complete_names)
    return argument(definitions_options(command))
