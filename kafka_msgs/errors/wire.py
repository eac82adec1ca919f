"""Errors of the frames of a connection."""

from __future__ import annotations

from attrs import define

from kafka_msgs.errors.base import KafkaMsgsError

__all__ = ["FrameSizeError"]


@define(kw_only=True, slots=False)
class FrameSizeError(KafkaMsgsError, ValueError):
    """A frame whose size is negative or beyond the limit. Attributes: ``size`` and ``limit`` in bytes."""

    size: int
    limit: int

    def _text(self) -> str:
        return f"a frame of {self.size} bytes, at most {self.limit} are allowed"
