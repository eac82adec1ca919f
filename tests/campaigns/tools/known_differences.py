"""The intended differences as data, each with its reason. Every other difference is a bug of the embedded broker."""

from __future__ import annotations

from typing import Final

from attrs import frozen

__all__ = ["KNOWN", "Known"]


@frozen
class Known:
    """Output lines (a regular expression) of invocations (another one) that may differ, and the reason."""

    invocations: str
    lines: str
    reason: str


KNOWN: Final[tuple[Known, ...]] = ()
