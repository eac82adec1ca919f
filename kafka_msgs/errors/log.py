"""Errors of log directory files and of remote storage."""

from __future__ import annotations

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.base import KafkaMsgsError

__all__ = ["LogFileError", "RemoteFormatError"]


@define(kw_only=True, slots=False, repr=False)
class LogFileError(KafkaMsgsError, ValueError):
    """A file of a log directory that is damaged in one place.

    Attributes: ``file`` (its path), ``position`` (the byte where the damage starts, from 0), ``skipped`` (how many
    bytes from there could not be read) and ``reason``.
    """

    file: str
    position: int
    skipped: int
    reason: str

    def _text(self) -> str:
        return f"{self.file} at byte {self.position}: {self.reason}"


@define(kw_only=True, slots=False, repr=False)
class RemoteFormatError(KafkaMsgsError, ValueError):
    """A segment in remote storage whose stored form cannot be read.

    Attributes: ``file`` (the name of the segment or of its manifest) and ``reason``.
    """

    file: str
    reason: str

    def _text(self) -> str:
        return f"{self.file}: {self.reason}"
