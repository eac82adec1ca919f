"""Typed rows of Kafka's internal topics: the base of the sources for single topics.

Defines the output forms of keys and values, and the handling of unreadable records. ``log`` and ``log_rows`` read the
log. The source of a topic determines record types and defines further columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cache
from typing import ClassVar, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, DataType, ShortType, StringType, StructField, StructType

from kafka_msgs.catalog import message_by_name, message_class
from kafka_msgs.columns import decode_column
from kafka_msgs.columns.decode import error_texts
from kafka_msgs.errors import KafkaMsgsError, LogFileError
from kafka_msgs.internal_topics.records import InternalTopic
from kafka_msgs.message import Message
from kafka_msgs.messages import API_KEYS
from kafka_msgs.spark.message_json import compact_json, record_type, versioned_json
from kafka_msgs.spark.sources.log import FileSource, reading_of
from kafka_msgs.spark.sources.log_rows import RowOptions, column_type, log_columns
from kafka_msgs.spark.sources.options import DROPMALFORMED, PERMISSIVE, Options
from kafka_msgs.spark.sources.read_plan import LogReader, ReadPlan
from kafka_msgs.spark.sources.splits import FilePart
from kafka_msgs.spark.spark_types import ERROR, arrow_schema, schema_of
from kafka_msgs.suggestions import no_such

__all__ = [
    "BINARY",
    "JSON",
    "InternalSource",
    "InternalTable",
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

    def places(self, name: str) -> pa.UInt64Array:
        """Return the row numbers of the records of one type."""
        return pc.indices_nonzero(pc.fill_null(pc.equal(self.names, name), False))

    def present(self) -> list[str]:
        """Return the record types that occur."""
        return [name for name in self.names.unique().to_pylist() if name is not None]


class InternalTable(ABC):
    """Converts rows of ``kafka-log`` to rows of a topic's source, in the form that the options choose."""

    topic: ClassVar[InternalTopic]
    layout: ClassVar[tuple[str, ...]]
    """The columns in order, without the error column."""
    from_log: ClassVar[Mapping[str, str]]
    """Columns copied from ``kafka-log``, with their names there."""
    from_messages: ClassVar[Mapping[str, DataType]]
    """Columns specific to this topic, and their types."""
    usual_form: ClassVar[str]

    def __init__(self, options: Options) -> None:
        self.mode = options.mode()
        self.record_type = options.text("recordType")
        known = self.types()
        if self.record_type is not None and self.record_type not in known:
            options.refuse("recordType", no_such("type", self.record_type, known))
        usual = self.usual_form if self.record_type is None else STRUCT
        self.form = options.choice("form", (BINARY, JSON, STRUCT), usual)
        if self.form == STRUCT and self.record_type is None:
            options.refuse("form", "a struct of which type? recordType has to say it")
        self.schema = StructType([StructField(name, self._type(name)) for name in self._chosen(options)])

    @abstractmethod
    def types(self) -> Mapping[str, RecordType]:
        """Return the record types by name."""

    @abstractmethod
    def typed(self, log: pa.RecordBatch) -> TypedRows:
        """Return the rows of the log with their record types."""

    def own_columns(self, typed: TypedRows) -> tuple[dict[str, pa.Array], list[pa.StringArray]]:
        """Return the requested columns of ``from_messages``, and the errors of their rows."""
        return {}, []

    def rows(self, log: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of the source; raises ``LogFileError`` in the mode ``FAILFAST``."""
        typed = self.typed(log)
        if self.record_type is not None:
            kept = pc.or_(pc.fill_null(pc.equal(typed.names, self.record_type), False), _with_errors(log, typed))
            log, typed = log.filter(kept), TypedRows(*(column.filter(kept) for column in typed))
        made = {name: log.column(place) for name, place in self.from_log.items() if name in self.schema.names}
        made |= {"recordType": typed.names, "version": typed.versions}
        forms, wrong = self._forms(log, typed)
        more, wrong_too = self.own_columns(typed)
        found = [log.column(ERROR)] if ERROR in log.schema.names else []
        errors = pc.coalesce(*found, typed.errors, *wrong, *wrong_too)
        return self._apply_mode(made | forms | more | {ERROR: errors}, log, errors)

    def _chosen(self, options: Options) -> list[str]:
        own = [*self.layout, ERROR] if self.mode == PERMISSIVE else list(self.layout)
        asked = options.columns(own)
        return own if asked is None else [name for name in own if name in (*asked, ERROR)]

    def _type(self, name: str) -> DataType:
        if name in ("key", "value"):
            return self._form_type(name)
        if name in self.from_log:
            return column_type(self.from_log[name])
        return self.from_messages.get(name) or (ShortType() if name == "version" else StringType())

    def _form_type(self, part: str) -> DataType:
        if self.form == STRUCT:
            return schema_of(getattr(self.types()[self.record_type or ""], part))
        return BinaryType() if self.form == BINARY else StringType()

    def _forms(self, log: pa.RecordBatch, typed: TypedRows) -> tuple[dict[str, pa.Array], list[pa.StringArray]]:
        made: dict[str, pa.Array] = {}
        wrong: list[pa.StringArray] = []
        for part in [name for name in ("key", "value") if name in self.schema.names]:
            if self.form == BINARY:
                made[part] = log.column(part)
            else:
                form = self._structs if self.form == STRUCT else self._texts
                made[part], errors = form(typed, part)
                wrong.append(errors)
        return made, wrong

    def _structs(self, typed: TypedRows, part: str) -> tuple[pa.Array, pa.StringArray]:
        name = self.record_type or ""
        message, data = getattr(self.types()[name], part), getattr(typed, part)
        # Rows with an error are always included.
        return decoded(pc.if_else(pc.fill_null(pc.equal(typed.names, name), False), data, None), message, part)

    def _texts(self, typed: TypedRows, part: str) -> tuple[pa.Array, pa.StringArray]:
        types = self.types()
        texts, errors = [], []
        for name, data in zip(typed.names.to_pylist(), getattr(typed, part).to_pylist(), strict=True):
            message = getattr(types[name], part) if name in types else None
            text, error = _text(message, data)
            texts.append(text)
            errors.append(error)
        return pa.array(texts, pa.string()), pa.array(errors, pa.string())

    def _apply_mode(self, made: dict[str, pa.Array], log: pa.RecordBatch, errors: pa.StringArray) -> pa.RecordBatch:
        schema = arrow_schema(self.schema)
        rows = pa.RecordBatch.from_arrays([made[name] for name in schema.names], schema=schema)
        if self.mode == PERMISSIVE or errors.null_count == len(errors):
            return rows
        if self.mode == DROPMALFORMED:
            return rows.filter(errors.is_null())
        first = pc.indices_nonzero(errors.is_valid())[0].as_py()
        file, position = (log.column(name)[first].as_py() for name in ("file", "batchPosition"))
        raise LogFileError(file=file, position=position, skipped=0, reason=errors[first].as_py())


class InternalReader(LogReader):
    """Reads the rows of a log, and converts them to the rows of a table."""

    def __init__(self, plan: ReadPlan, reading: RowOptions, table: InternalTable) -> None:
        super().__init__(plan, reading)
        self.table = table

    @property
    def schema(self) -> StructType:
        """The columns of the rows."""
        return self.table.schema

    def rows(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part."""
        return (rows for log in super().rows(part) if (rows := self.table.rows(log)).num_rows)


class InternalSource(FileSource):
    """A data source of one internal topic."""

    table_type: ClassVar[type[InternalTable]]

    def rows(self, options: Options) -> LogReader:
        """Return the reader of the rows. Raises ``OptionError``."""
        table = self.table_type(options)
        places = [place for name, place in table.from_log.items() if name in table.schema.names]
        rows = RowOptions(columns=log_columns([*_NEEDED, *places], table.mode), mode=table.mode)
        return InternalReader(ReadPlan.of(options, table.topic.name), reading_of(options, rows), table)


@cache
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
    taken = pa.concat_arrays([where for where, _ in parts])
    values = pa.concat_arrays([values for _, values in parts])
    if len(taken) == count:
        return values.take(pc.sort_indices(taken))
    rest = pa.array(sorted(set(range(count)) - set(taken.to_pylist())), pa.uint64())
    order = pc.sort_indices(pa.concat_arrays([taken, rest]))
    return pa.concat_arrays([values, pa.nulls(len(rest), values.type)]).take(order)


def _with_errors(log: pa.RecordBatch, typed: TypedRows) -> pa.BooleanArray:
    """Mark the rows that have an error; these are always included."""
    damaged = log.column(ERROR).is_valid() if ERROR in log.schema.names else pa.array([False] * len(log))
    return pc.or_(damaged, typed.errors.is_valid())


def _text(message: type[Message] | None, data: bytes | None) -> tuple[str | None, str | None]:
    """Return bytes as JSON, or as hexadecimal if their type is unknown, and their error."""
    if data is None:
        return None, None
    try:
        return compact_json(data.hex() if message is None else versioned_json(message, data)), None
    except KafkaMsgsError as error:
        return None, str(error)
