"""Unreadable data that a command found in log directories."""

from __future__ import annotations

from attrs import frozen

__all__ = ["ReadProblem"]


@frozen(kw_only=True)
class ReadProblem:
    """Unreadable data: the ``topic``, ``partition`` and ``file``, the ``offset`` if it is a record, and the reason."""

    topic: str
    partition: int
    offset: int | None
    file: str
    reason: str
