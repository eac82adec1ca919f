"""Errors of internal topics."""

from __future__ import annotations

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.base import KafkaMsgsError, shown

__all__ = ["UnknownInternalTopicError"]


@define(kw_only=True, slots=False, repr=False)
class UnknownInternalTopicError(KafkaMsgsError, LookupError):
    """A topic that is not one of Kafka's internal topics. Attribute: ``topic``."""

    topic: str

    def _text(self) -> str:
        return f"{shown(self.topic)} is not an internal topic"
