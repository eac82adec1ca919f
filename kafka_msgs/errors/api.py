"""The error that a server returns: a Kafka error code and a text."""

from __future__ import annotations

from enum import IntEnum

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.base import KafkaMsgsError

__all__ = ["ApiError"]


@define(slots=False, repr=False)
class ApiError(KafkaMsgsError):
    """A request handler returns an error code instead of a result.

    Attributes: ``error`` (the ``ErrorCode``) and ``message`` (the text in the response, or None if the API has no
    message field or Kafka leaves it empty).
    """

    error: IntEnum
    message: str | None = None

    def _text(self) -> str:
        return self.error.name if self.message is None else f"{self.error.name}: {self.message}"
