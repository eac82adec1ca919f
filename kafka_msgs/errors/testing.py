"""Errors of the test helpers."""

from __future__ import annotations

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.base import KafkaMsgsError

__all__ = ["CassetteError"]


@define(kw_only=True, slots=False, repr=False)
class CassetteError(KafkaMsgsError):
    """A cassette cannot be played, or lacks a client's request. Attributes: ``path`` and ``reason``."""

    path: str
    reason: str

    def _text(self) -> str:
        return f"{self.path}: {self.reason}"
