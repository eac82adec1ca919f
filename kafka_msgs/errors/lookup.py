"""Lookup errors: unknown names and numbers of messages, topics and columns."""

from __future__ import annotations

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.base import KafkaMsgsError, shown

__all__ = [
    "UnknownColumnError",
    "UnknownInternalTopicError",
    "UnknownMessageError",
    "UnknownNameError",
]


@define(kw_only=True, slots=False, repr=False)
class UnknownMessageError(KafkaMsgsError, LookupError):
    """An unknown API key. Attributes: ``api_key``, ``kind`` and ``origin``."""

    api_key: int
    kind: str
    origin: str

    def _text(self) -> str:
        return f"no {self.kind} of {self.origin} has the api key {self.api_key}"


@define(kw_only=True, slots=False, repr=False)
class UnknownNameError(KafkaMsgsError, LookupError):
    """An unknown message name. Attributes: ``name`` and ``near`` (similar names)."""

    name: str
    near: tuple[str, ...]

    def _text(self) -> str:
        near = f"; similar: {', '.join(self.near)}" if self.near else ""
        return f"there is no message {shown(self.name)}{near}"


@define(kw_only=True, slots=False, repr=False)
class UnknownInternalTopicError(KafkaMsgsError, LookupError):
    """A topic that is not one of Kafka's internal topics. Attribute: ``topic``."""

    topic: str

    def _text(self) -> str:
        return f"{shown(self.topic)} is not an internal topic"


@define(kw_only=True, slots=False, repr=False)
class UnknownColumnError(KafkaMsgsError, LookupError):
    """An unknown column. Attributes: ``source`` (its table), ``column`` (dotted) and ``near`` (similar names)."""

    source: str
    column: str
    near: tuple[str, ...]

    def _text(self) -> str:
        near = f"; similar: {', '.join(self.near)}" if self.near else ""
        return f"{self.source} has no column {shown(self.column)}{near}"
