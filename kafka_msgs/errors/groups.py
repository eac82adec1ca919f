"""The error that a group coordinator answers, raised by what handles a request."""

from __future__ import annotations

from enum import IntEnum

from attrs import define

from kafka_msgs.errors.base import KafkaMsgsError

__all__ = ["AssignorError", "GroupError"]


@define(kw_only=True, slots=False, repr=False)
class GroupError(KafkaMsgsError):
    """An error that a group coordinator answers instead of a result.

    Attributes: ``error`` (the ``ErrorCode``) and ``message`` (the text that the answer carries, or None where the api
    has no text or Kafka gives none).
    """

    error: IntEnum
    message: str | None = None

    def _text(self) -> str:
        return self.error.name if self.message is None else f"{self.error.name}: {self.message}"


@define(kw_only=True, slots=False, repr=False)
class AssignorError(KafkaMsgsError):
    """An assignor found no assignment. Attribute: ``reason``."""

    reason: str

    def _text(self) -> str:
        return self.reason
