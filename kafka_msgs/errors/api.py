"""The error that a server answers: an error code of Kafka, and a text."""

from __future__ import annotations

from enum import IntEnum

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.base import KafkaMsgsError

__all__ = ["ApiError"]


@define(kw_only=True, slots=False, repr=False)
class ApiError(KafkaMsgsError):
    """What handles a request answers an error instead of a result.

    Attributes: ``error`` (the ``ErrorCode``) and ``message`` (the text that the answer carries, or None where the api
    has no text or Kafka gives none).
    """

    error: IntEnum
    message: str | None = None

    def _text(self) -> str:
        return self.error.name if self.message is None else f"{self.error.name}: {self.message}"
