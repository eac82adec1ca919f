"""Errors of the recording proxy."""

from __future__ import annotations

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.base import KafkaMsgsError

__all__ = ["TapError"]


@define(kw_only=True, slots=False, repr=False)
class TapError(KafkaMsgsError):
    """The proxy cannot listen, or has no broker to connect to. Attributes: ``address`` and ``reason``."""

    address: str
    reason: str

    def _text(self) -> str:
        return f"{self.address}: {self.reason}"
