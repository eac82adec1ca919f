"""Message names as the command line spells them: ``OffsetFetchRequest``, or ``kip_1071.StreamsGroupHeartbeatRequest``.

A draft's message needs the draft's name in front, because it may share its own with a released message.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from kafka_msgs import drafts, messages
from kafka_msgs.drafts import _index as drafts_index
from kafka_msgs.message import Message
from kafka_msgs.messages import _index as messages_index

__all__ = ["draft_names", "find_message", "message_argument", "origin", "released_names"]


def released_names() -> list[str]:
    """Return the names of all messages of the release."""
    return sorted(messages_index.MODULES)


def draft_names() -> list[str]:
    """Return the names of all messages of drafts, with their drafts'."""
    return sorted(
        f"{draft}.{name}"
        for draft in drafts_index.DRAFTS
        for name in import_module(f"{drafts.__name__}.{draft}._index").MODULES
    )


def origin(name: str) -> str:
    """Return where the definition of a name is from: the part of Kafka, or the draft."""
    draft, _, _ = name.rpartition(".")
    return draft or messages_index.ORIGINS[name]


def find_message(name: str) -> type[Message]:
    """Return the class of a name; raises ``LookupError``, with similar names, when there is none."""
    known = released_names() + draft_names()
    if name not in known:
        raise LookupError(f"there is no message {name!r}{_similar(name, known)}")
    draft, _, own = name.rpartition(".")
    package: Any = import_module(f"{drafts.__name__}.{draft}") if draft else messages
    cls: type[Message] = getattr(package, own)
    return cls


def _similar(name: str, known: Iterable[str]) -> str:
    spellings: dict[str, list[str]] = {}
    for each in known:
        spellings.setdefault(each.rpartition(".")[2].lower(), []).append(each)
    close = get_close_matches(name.rpartition(".")[2].lower(), spellings, n=3)
    found = [each for key in close for each in spellings[key]]
    return f"; similar: {', '.join(found)}" if found else ""


def _convert(ctx: click.Context, param: click.Parameter, value: str) -> type[Message]:
    try:
        return find_message(value)
    except LookupError as error:
        raise click.BadParameter(error.args[0], ctx, param) from None


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in released_names() + draft_names() if name.startswith(incomplete)]


message_argument = click.argument("message", callback=_convert, shell_complete=_complete)
"""Decorates a command that takes a message's name and gets its class."""
