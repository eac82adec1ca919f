"""The data source ``kafka-cluster-metadata``: the records of ``__cluster_metadata`` as a table, one row per record.

Defines the types of records and of the control records between them. The rows are the history of
the log, or the content of a KRaft snapshot if its file is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.types import DataType, ShortType, StringType

from kafka_msgs.catalog import message_by_name
from kafka_msgs.errors import KafkaMsgsError, RecordError
from kafka_msgs.internal_topics.records import TOPICS, read_frame
from kafka_msgs.records import Record
from kafka_msgs.records.control_records import read_control
from kafka_msgs.spark.sources.internal import JSON, InternalReader, RecordType, TypedRows, record_types
from kafka_msgs.spark.sources.log import FileSource

__all__ = ["KafkaClusterMetadataSource"]

_TOPIC: Final = TOPICS["__cluster_metadata"]
_TYPES: Final = record_types(_TOPIC)
_CONTROL: Final = (
    "KRaftVersionRecord",
    "LeaderChangeMessage",
    "SnapshotFooterRecord",
    "SnapshotHeaderRecord",
    "VotersRecord",
)
"""The messages in this topic's control records, which start with their version."""


class _Row(NamedTuple):
    """The content of one record: its type, the version of its value, and the value prefixed with that version."""

    name: str | None = None
    version: int | None = None
    value: bytes | None = None
    error: str | None = None


class ClusterMetadataReader(InternalReader):
    """Reads the records of ``__cluster_metadata``, and of snapshots of it."""

    topic = _TOPIC
    types: ClassVar = {
        **{each.name: each for each in _TYPES.values()},
        **{name: RecordType(name, None, message_by_name(name)) for name in _CONTROL},
    }
    columns: ClassVar[Mapping[str, DataType | str | None]] = {
        "recordType": StringType(),
        "version": ShortType(),
        **{name: name for name in ("offset", "timestamp", "leaderEpoch", "control")},
        "value": None,
        "file": "file",
    }
    usual_form = JSON

    def typed(self, log: pa.RecordBatch) -> TypedRows:
        """Return the record types of rows of the log; each value starts with its type."""
        columns = (log.column(name).to_pylist() for name in ("control", "key", "value"))
        rows = [_row(*each) for each in zip(*columns, strict=True)]
        return TypedRows(
            names=pa.array([row.name for row in rows], pa.string()),
            versions=pa.array([row.version for row in rows], pa.int16()),
            key=pa.nulls(len(rows), pa.binary()),
            value=pa.array([row.value for row in rows], pa.binary()),
            errors=pa.array([row.error for row in rows], pa.string()),
        )


class KafkaClusterMetadataSource(FileSource):
    """The data source ``kafka-cluster-metadata``; the documentation of Spark sources describes options and columns."""

    label = "kafka-cluster-metadata"
    reader_type = ClusterMetadataReader


def _row(control: bool | None, key: bytes | None, value: bytes | None) -> _Row:
    if control is None:
        return _Row()
    if control:
        return _control(key, value)
    try:
        number, version, data, at = read_frame(_TOPIC, value)
    except KafkaMsgsError as error:
        return _Row(error=str(error))
    if number not in _TYPES:
        return _Row(str(number), version, value)
    return _Row(_TYPES[number].name, version, version.to_bytes(2, "big") + data[at:])


def _control(key: bytes | None, value: bytes | None) -> _Row:
    try:
        record = read_control(Record(0, 0, key, value), 0, 0)
    except RecordError as error:
        return _Row(error=error.reason)
    name = None if record.message is None else record.message.INFO.name
    if name not in _CONTROL or value is None:
        return _Row(str(int(record.type)), None, value)
    return _Row(name, int.from_bytes(value[:2], "big"), value[:2] + value)
