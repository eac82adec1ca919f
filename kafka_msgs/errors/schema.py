"""Errors of message definitions."""

from __future__ import annotations

from attrs import field

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.base import KafkaMsgsError

__all__ = ["SchemaError"]


@define(slots=False, repr=False)
class SchemaError(KafkaMsgsError, ValueError):
    """A message definition (or a class made from one) that breaks a rule.

    Attributes: ``source`` (file name or None), ``line`` and ``column`` (from 1, or None), ``path`` (message and field,
    dotted, may be empty), ``rule`` (such as ``"V17"``, or None) and ``reason``.
    """

    reason: str
    source: str | None = field(default=None, kw_only=True)
    line: int | None = field(default=None, kw_only=True)
    column: int | None = field(default=None, kw_only=True)
    path: str = field(default="", kw_only=True)
    rule: str | None = field(default=None, kw_only=True)

    def _text(self) -> str:
        where = ":".join(str(part) for part in (self.source, self.line, self.column) if part is not None)
        rule = f" [{self.rule}]" if self.rule else ""
        return ": ".join(part for part in (where, self.path, self.reason) if part) + rule
