"""Finding message classes: by api key, or all of them.

Drafts are not found here: a draft and a shipped message may share an api key and differ on the wire.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from kafka_msgs.errors import UnknownMessageError, UnknownNameError
from kafka_msgs.message import Message

__all__ = ["message_class", "message_classes", "message_named"]


def message_class(api_key: int, kind: str, origin: str = "clients") -> type[Message]:
    """Return the class with an api key, such as 9 and ``"request"``.

    ``kind`` is the definition's type. Requests and responses are of the origin ``clients``; the numbers of
    ``metadata``, ``coordinator-key`` and ``coordinator-value`` messages mean something only within their origin, such
    as ``metadata``, ``storage`` or ``group-coordinator``. Raises ``UnknownMessageError``.
    """
    from kafka_msgs import messages
    from kafka_msgs.messages import _index

    name = _index.API_KEYS.get((origin, kind, api_key))
    if name is None:
        raise UnknownMessageError(api_key=api_key, kind=kind, origin=origin)
    found: type[Message] = getattr(messages, name)
    return found


def message_named(name: str) -> type[Message]:
    """Return the class of a name such as ``OffsetFetchRequest``; raises ``UnknownNameError``, with similar names."""
    from kafka_msgs import messages

    if name not in messages.__all__:
        raise UnknownNameError(name=name, near=tuple(get_close_matches(name, messages.__all__)))
    found: type[Message] = getattr(messages, name)
    return found


def message_classes() -> Iterator[type[Message]]:
    """Yield every message class of the release, by name; this imports all of their modules."""
    from kafka_msgs import messages

    for name in messages.__all__:
        cls: Any = getattr(messages, name)
        yield cls
