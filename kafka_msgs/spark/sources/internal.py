"""Typed rows of Kafka's internal topics: the base of the sources for single topics.

Defines the output forms of keys and values, and the handling of unreadable records. ``log`` and ``log_rows`` read the
log. The source of a topic determines record types and defines further columns.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType

from kafka_msgs.catalog import message_by_name, message_class
from kafka_msgs.columns import decode_column
from kafka_msgs.columns.decode import error_texts
from kafka_msgs.columns.log_table import column_type
from kafka_msgs.errors import KafkaMsgsError, LogFileError
from kafka_msgs.internal_topics.records import InternalTopic
from kafka_msgs.message import Message
from kafka_msgs.messages import API_KEYS
from kafka_msgs.spark.message_json import compact_json, record_type, versioned_json
from kafka_msgs.spark.sources.log import log_reading
from kafka_msgs.spark.sources.options import DROPMALFORMED, PERMISSIVE, Options
from kafka_msgs.spark.sources.read_plan import LogReader, ReadPlan
from kafka_msgs.spark.sources.splits import FilePart
from kafka_msgs.spark.spark_types import ERROR, arrow_schema, schema_of, spark_type
from kafka_msgs.suggestions import no_such

__all__ = [
    "BINARY",
    "JSON",
    "InternalReader",
    "RecordType",
    "TypedRows",
    "decoded",
    "record_types",
    "scatter",
]

BINARY: Final = "binary"
JSON: Final = "json"
STRUCT: Final = "struct"

_NEEDED: Final = ("key", "value", "control", "batchPosition", "file")
"""The log columns that every table needs to determine the types and positions of records."""


class RecordType(NamedTuple):
    """A record type: its name and its messages; ``key`` is None if its records have no key."""

    name: str
    key: type[Message] | None
    value: type[Message]


class TypedRows(NamedTuple):
    """Rows of a log with their record types.

    ``names`` contains the record types, null for rows that are not records, and ``versions`` the versions of the
    values. The bytes of ``key`` and ``value`` start with a version, unless the type is unknown. ``errors`` is null for
    valid rows.
    """

    names: pa.StringArray
    versions: pa.Int16Array
    key: pa.BinaryArray
    value: pa.BinaryArray
    errors: pa.StringArray

    def are(self, name: str) -> pa.BooleanArray:
        """Return for each row whether it is a record of one type."""
        return pc.fill_null(pc.equal(self.names, name), False)


class InternalReader(LogReader):
    """Reads rows of ``kafka-log`` as rows of a topic's source, in the form that the options choose.

    Raises ``OptionError`` and ``UnknownColumnError``.
    """

    topic: ClassVar[InternalTopic]
    types: ClassVar[Mapping[str, RecordType]]
    """The record types by name."""
    columns: ClassVar[Mapping[str, DataType | str | None]]
    """The columns in order: the type, or the name of a column of ``kafka-log``, or None for keys and values."""
    usual_form: ClassVar[str]

    def __init__(self, options: Options) -> None:
        self.record_type = options.text("recordType")
        if self.record_type is not None and self.record_type not in self.types:
            options.refuse("recordType", no_such("type", self.record_type, self.types))
        usual = self.usual_form if self.record_type is None else STRUCT
        self.form = options.choice("form", (BINARY, JSON, STRUCT), usual)
        if self.form == STRUCT and self.record_type is None:
            options.refuse("form", "a struct of which type? recordType has to say it")
        own = [*self.columns, ERROR] if options.mode() == PERMISSIVE else list(self.columns)
        chosen = options.columns(own, own)
        self.from_log = {name: place for name in chosen if isinstance(place := self.columns.get(name), str)}
        super().__init__(
            ReadPlan.of(options, self.topic.name),
            log_reading(options, [*_NEEDED, *self.from_log.values()]),
            StructType([StructField(name, self._type(name)) for name in chosen]),
        )

    @abstractmethod
    def typed(self, log: pa.RecordBatch) -> TypedRows:
        """Return the rows of the log with their record types."""

    def own_columns(self, typed: TypedRows) -> tuple[dict[str, pa.Array], list[pa.StringArray]]:
        """Return the columns of this topic, and the errors of their rows."""
        return {}, []

    def rows(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part; raises ``LogFileError`` in the mode ``FAILFAST``."""
        return (rows for log in super().rows(part) if (rows := self._rows(log)).num_rows)

    def _rows(self, log: pa.RecordBatch) -> pa.RecordBatch:
        typed = self.typed(log)
        if self.record_type is not None:
            # Rows with an error are always included.
            damaged = typed.errors.is_valid()
            damaged = pc.or_(damaged, log.column(ERROR).is_valid()) if ERROR in log.schema.names else damaged
            kept = pc.or_(typed.are(self.record_type), damaged)
            log, typed = log.filter(kept), TypedRows(*(column.filter(kept) for column in typed))
        made, wrong = self.own_columns(typed)
        made |= {name: log.column(place) for name, place in self.from_log.items()}
        made |= {"recordType": typed.names, "version": typed.versions}
        for part in [name for name in ("key", "value") if name in self.schema.names]:
            if self.form == BINARY:
                made[part] = log.column(part)
            else:
                made[part], errors = (self._structs if self.form == STRUCT else self._texts)(typed, part)
                wrong.append(errors)
        errors = pc.coalesce(*([log.column(ERROR)] if ERROR in log.schema.names else []), typed.errors, *wrong)
        return self._apply_mode(made | {ERROR: errors}, log, errors)

    def _type(self, name: str) -> DataType:
        place = self.columns.get(name, StringType())
        if isinstance(place, str):
            return spark_type(column_type(place))
        if place is None and self.form == STRUCT:
            return schema_of(getattr(self.types[self.record_type or ""], name))
        return place or (BinaryType() if self.form == BINARY else StringType())

    def _structs(self, typed: TypedRows, part: str) -> tuple[pa.Array, pa.StringArray]:
        name = self.record_type or ""
        message, data = getattr(self.types[name], part), getattr(typed, part)
        return decoded(pc.if_else(typed.are(name), data, None), message, part)

    def _texts(self, typed: TypedRows, part: str) -> tuple[pa.Array, pa.StringArray]:
        types = self.types
        rows = zip(typed.names.to_pylist(), getattr(typed, part).to_pylist(), strict=True)
        made = [_text(getattr(types[name], part) if name in types else None, data) for name, data in rows]
        texts, errors = zip(*made, strict=True) if made else ((), ())
        return pa.array(texts, pa.string()), pa.array(errors, pa.string())

    def _apply_mode(self, made: dict[str, pa.Array], log: pa.RecordBatch, errors: pa.StringArray) -> pa.RecordBatch:
        schema, mode = arrow_schema(self.schema), self.reading.mode
        rows = pa.RecordBatch.from_arrays([made[name] for name in schema.names], schema=schema)
        if mode == PERMISSIVE or errors.null_count == len(errors):
            return rows
        if mode == DROPMALFORMED:
            return rows.filter(errors.is_null())
        first = pc.indices_nonzero(errors.is_valid())[0].as_py()
        file, position = (log.column(name)[first].as_py() for name in ("file", "batchPosition"))
        raise LogFileError(file=file, position=position, skipped=0, reason=errors[first].as_py())


def record_types(topic: InternalTopic) -> Mapping[int, RecordType]:
    """Return the record types of a topic by the numbers that identify them in records."""
    found: dict[int, RecordType] = {}
    for (origin, kind, number), name in API_KEYS.items():
        if origin == topic.origin and kind in ("coordinator-key", "metadata"):
            cls = message_by_name(name)
            key, value = (None, cls) if topic.framed else (cls, message_class(number, "coordinator-value", origin))
            found[number] = RecordType(record_type(cls), key, value)
    return found


def decoded(
    data: pa.BinaryArray, message: type[Message], part: str, columns: tuple[str, ...] | None = None
) -> tuple[pa.StructArray, pa.StringArray]:
    """Return the messages in keys or values, as ``part`` chooses, and their errors."""
    found = decode_column(data, message, columns=columns)
    return found.values, error_texts(found.errors, f"{part}: {message.INFO.name}")


def scatter(parts: list[tuple[pa.UInt64Array, pa.Array]], count: int) -> pa.Array:
    """Return an array of ``count`` values: the values of each part at its row numbers, and null in all other rows."""
    taken, values = (pa.concat_arrays(each) for each in zip(*parts, strict=True))
    return values.take(pc.index_in(pa.array(range(count), pa.uint64()), value_set=taken))


def _text(message: type[Message] | None, data: bytes | None) -> tuple[str | None, str | None]:
    """Return bytes as JSON, or as hexadecimal if their type is unknown, and their error."""
    if data is None:
        return None, None
    try:
        return compact_json(data.hex() if message is None else versioned_json(message, data)), None
    except KafkaMsgsError as error:
        return None, str(error)
