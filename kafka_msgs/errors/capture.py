"""Errors of packet capture files."""

from __future__ import annotations

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.base import KafkaMsgsError

__all__ = ["CaptureError"]


@define(kw_only=True, slots=False, repr=False)
class CaptureError(KafkaMsgsError, ValueError):
    """A damaged or missing part of a packet capture file.

    Attributes: ``file`` (its path), ``packet`` (its number in the file, from 1, or None) and ``reason``.
    """

    file: str
    packet: int | None
    reason: str

    def _text(self) -> str:
        return f"{self.file}: {self.reason}"
