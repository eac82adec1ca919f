"""The Kafka releases that contain a message, its versions and its fields.

The data comes from the definitions of every release since 2.2, the first one with definitions: "2.2" means 2.2 or
earlier. Drafts and messages from user definitions have no history.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import Factory, frozen

from kafka_msgs import messages
from kafka_msgs.message import Message
from kafka_msgs.messages import _history
from kafka_msgs.versions import VersionRange

__all__ = ["MessageHistory", "VersionSpan", "message_history"]


@frozen
class VersionSpan:
    """Versions that were added in the release ``since``, and ``removed`` in a later one, if not None."""

    versions: VersionRange
    since: str
    removed: str | None


@frozen
class MessageHistory:
    """The first release of a message, its versions by age, and the first release of fields added later, by path."""

    since: str
    versions: tuple[VersionSpan, ...]
    fields: Mapping[str, str] = Factory(dict)


def message_history(cls: type[Message]) -> MessageHistory | None:
    """Return the history of a message of the release; None for any other class."""
    name = cls.INFO.name
    spans = _history.VERSIONS.get(name)
    if spans is None or not cls.__module__.startswith(f"{messages.__name__}."):
        return None
    versions = tuple(_span(text, span) for text, span in spans.items())
    return MessageHistory(versions[0].since, versions, _history.FIELDS.get(name, {}))


def _span(versions: str, span: str) -> VersionSpan:
    since, _, removed = span.partition("-")
    return VersionSpan(VersionRange.parse(versions), since, removed or None)
