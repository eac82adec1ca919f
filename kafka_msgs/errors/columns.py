"""Errors of Arrow columns."""

from __future__ import annotations

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.base import KafkaMsgsError, shown

__all__ = ["ColumnSizeError", "ColumnTypeError", "UnknownColumnError"]


@define(kw_only=True, slots=False, repr=False)
class ColumnTypeError(KafkaMsgsError, TypeError):
    """A column of the wrong type.

    Attributes: ``column`` (dotted, empty for the full column), ``expected`` and ``found`` (names of Arrow types).
    """

    column: str
    expected: str
    found: str

    def _text(self) -> str:
        column = f"column {self.column}" if self.column else "the column"
        return f"{column} is {shown(self.found)}, expected {shown(self.expected)}"


@define(kw_only=True, slots=False, repr=False)
class ColumnSizeError(KafkaMsgsError, OverflowError):
    """A column whose values do not fit into one array. Attributes: ``rows`` and ``size`` (bytes of the input)."""

    rows: int
    size: int

    def _text(self) -> str:
        return f"the values of {self.rows} rows of {self.size} bytes need more than one array: give them in chunks"


@define(kw_only=True, slots=False, repr=False)
class UnknownColumnError(KafkaMsgsError, LookupError):
    """An unknown column. Attributes: ``source`` (its table), ``column`` (dotted) and ``near`` (similar names)."""

    source: str
    column: str
    near: tuple[str, ...]

    def _text(self) -> str:
        near = f"; similar: {', '.join(self.near)}" if self.near else ""
        return f"{self.source} has no column {shown(self.column)}{near}"
