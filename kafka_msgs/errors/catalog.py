"""Errors of message catalogs: unknown names and API keys."""

from __future__ import annotations

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.base import KafkaMsgsError, shown

__all__ = ["UnknownMessageError", "UnknownNameError"]


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
