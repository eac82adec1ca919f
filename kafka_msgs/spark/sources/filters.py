"""Filters of a query that spare reading: which files and batches cannot hold a row that passes.

Owns what is known of a file or a batch before it is read. Spark applies every filter again to the rows, so what is let
through too much costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from attrs import frozen
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from kafka_msgs.log.scan import AnyBatch
from kafka_msgs.records import NO_TIMESTAMP, RecordBatch
from kafka_msgs.spark.sources.files import LogFile

__all__ = ["Predicate", "predicates_of"]

_Span: TypeAlias = "tuple[Any, Any]"
"""The least and the greatest value that a column can have somewhere; None where that is not known."""

_ANY: Final[_Span] = (None, None)
_COMPARED: Final[Mapping[type[Filter], Callable[[Any, Any, Any], bool]]] = {
    EqualTo: lambda low, high, value: low is None or low <= value <= high,
    EqualNullSafe: lambda low, high, value: value is None or low is None or low <= value <= high,
    In: lambda low, high, values: low is None or any(low <= value <= high for value in values if value is not None),
    GreaterThan: lambda low, high, value: high is None or high > value,
    GreaterThanOrEqual: lambda low, high, value: high is None or high >= value,
    LessThan: lambda low, high, value: low is None or low < value,
    LessThanOrEqual: lambda low, high, value: low is None or low <= value,
}


def _times(batch: AnyBatch) -> _Span:
    known = isinstance(batch, RecordBatch) and batch.max_timestamp != NO_TIMESTAMP
    return (None, batch.max_timestamp) if known else _ANY


def _flag(name: str) -> Callable[[AnyBatch], _Span]:
    def span(batch: AnyBatch) -> _Span:
        value = isinstance(batch, RecordBatch) and getattr(batch, name)
        return value, value

    return span


_OF_FILES: Final[Mapping[str, Callable[[LogFile], _Span]]] = {
    "topic": lambda file: (file.topic, file.topic),
    "partition": lambda file: (file.partition, file.partition),
}
_OF_BATCHES: Final[Mapping[str, Callable[[AnyBatch], _Span]]] = {
    "offset": lambda batch: (batch.base_offset, batch.last_offset) if isinstance(batch, RecordBatch) else _ANY,
    "timestamp": _times,
    "control": _flag("is_control"),
    "transactional": _flag("is_transactional"),
}


@frozen
class Predicate:
    """A filter on one column: ``kind`` is its class, and ``value`` what it compares with."""

    column: str
    kind: type[Filter]
    value: Any

    def selects(self, file: LogFile) -> bool:
        """Whether a file can have rows that pass."""
        return self.column not in _OF_FILES or self._passes(_OF_FILES[self.column](file))

    def admits(self, batch: AnyBatch) -> bool:
        """Whether a batch can have records that pass."""
        return self.column not in _OF_BATCHES or self._passes(_OF_BATCHES[self.column](batch))

    def _passes(self, span: _Span) -> bool:
        return _COMPARED[self.kind](*span, self.value)


def predicates_of(filters: list[Filter]) -> tuple[Predicate, ...]:
    """Return the filters that spare something."""
    useful = _OF_FILES.keys() | _OF_BATCHES.keys()
    return tuple(
        Predicate(each.attribute[0], type(each), each.value)  # type: ignore[attr-defined]
        for each in filters
        if type(each) in _COMPARED and len(each.attribute) == 1 and each.attribute[0] in useful  # type: ignore[attr-defined]
    )
