"""The error response of a group coordinator, raised by request handlers, and the error of assignors."""

from __future__ import annotations

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.api import ApiError
from kafka_msgs.errors.base import KafkaMsgsError

__all__ = ["AssignorError", "GroupError"]


@define(slots=False, repr=False)
class GroupError(ApiError):
    """An error that a group coordinator returns instead of a result."""


@define(kw_only=True, slots=False, repr=False)
class AssignorError(KafkaMsgsError):
    """An assignor found no assignment. Attribute: ``reason``."""

    reason: str

    def _text(self) -> str:
        return self.reason
