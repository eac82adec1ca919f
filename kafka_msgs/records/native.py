"""The records of a magic 2 batch in C: the functions of the core. Python builds the texts of their errors.

This module is imported only if the C core is in use. ``Record`` then extends the storage of the core.
"""

from __future__ import annotations

from typing import Any

from kafka_msgs._core import extension
from kafka_msgs.binary_layouts import RecordField
from kafka_msgs.records import record_decoder
from kafka_msgs.records.record import ConsumerRecord, Record
from kafka_msgs.records.write_checks import check_record

__all__ = ["RecordAppender", "appended_bytes", "exceeds_element_limit", "murmur2", "read", "view_source"]

extension.bind_records(Record, ConsumerRecord, check_record)
RecordAppender = extension.RecordAppender
exceeds_element_limit = extension.records_exceed
murmur2 = extension.murmur2


def view_source(view: memoryview) -> tuple[bytes, int] | None:
    """Return the ``bytes`` that a view shows a part of and the offset of the part; None for other views."""
    return extension.view_source(view)


def appended_bytes(collector: Any) -> memoryview:
    """Return the bytes in a collector."""
    return memoryview(collector)


def read(part: RecordField, body: bytes, at: int, end: int, count: int, *rest: Any) -> list[Any]:
    """Call the core, with ``record_decoder.read`` for numbers of more than 64 bits and for errors of damaged bytes."""
    found = extension.read_records(part, body, at, end, count, *rest)
    return record_decoder.read(part, body, at, end, count, *rest) if found is None else found
