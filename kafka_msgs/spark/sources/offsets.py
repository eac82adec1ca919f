"""The data source ``kafka-offsets``: the records of ``__consumer_offsets`` as a table, one row per record.

Defines the columns of offset commits. The rows are the history of the topic, including tombstones;
``kafka_msgs.spark.jobs`` computes the resulting state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BooleanType, DataType, IntegerType, LongType, ShortType, StringType, TimestampType

from kafka_msgs.columns.log_table import in_microseconds
from kafka_msgs.columns.objects import timestamps
from kafka_msgs.internal_topics.records import TOPICS
from kafka_msgs.message import Message
from kafka_msgs.records import ControlType
from kafka_msgs.schema import fields
from kafka_msgs.spark.sources.internal import (
    BINARY,
    InternalReader,
    RecordType,
    TypedRows,
    decoded,
    record_types,
    scatter,
)
from kafka_msgs.spark.sources.log import FileSource
from kafka_msgs.spark.spark_types import arrow_schema

__all__ = ["KafkaOffsetsSource"]

_TOPIC: Final = TOPICS["__consumer_offsets"]
_TYPES: Final = record_types(_TOPIC)
_COMMITS: Final = ("OffsetCommit", "LegacyOffsetCommit")
_OF_KEYS: Final = {"topic": "topic", "topicPartition": "partition"}
"""The columns of commits that come from the key, and their fields."""
_OF_VALUES: Final = {
    "committedOffset": "offset",
    "leaderEpoch": "leader_epoch",
    "metadata": "metadata",
    "commitTimestamp": "commit_timestamp",
    "expireTimestamp": "expire_timestamp",
    "topicId": "topic_id",
}
"""The columns of commits that come from the value, and their fields."""
_TEXT, _INT, _LONG, _TIME = StringType(), IntegerType(), LongType(), TimestampType()


class OffsetsReader(InternalReader):
    """Reads the records of ``__consumer_offsets``."""

    topic = _TOPIC
    types: ClassVar = {each.name: each for each in _TYPES.values()}
    columns: ClassVar[Mapping[str, DataType | str | None]] = {
        "recordType": _TEXT,
        "version": ShortType(),
        "group": _TEXT,
        "topic": _TEXT,
        "topicPartition": _INT,
        "committedOffset": _LONG,
        "leaderEpoch": _INT,
        "metadata": _TEXT,
        "commitTimestamp": _TIME,
        "expireTimestamp": _TIME,
        "topicId": _TEXT,
        "tombstone": BooleanType(),
        "transactional": "transactional",
        "producerId": "producerId",
        "logPartition": "partition",
        "logOffset": "offset",
        "logTimestamp": "timestamp",
        "key": None,
        "value": None,
        "file": "file",
    }
    usual_form = BINARY

    def typed(self, log: pa.RecordBatch) -> TypedRows:
        """Return the record types of log rows, from their keys; for control records, the transaction result."""
        key, value, control = (log.column(name) for name in ("key", "value", "control"))
        kinds = {number: each.name for number, each in _TYPES.items()}
        names = _by_number(key, 0, lambda number: kinds.get(number, str(number)), pa.string())
        ends = _by_number(key, 2, _end, pa.string())
        short = pc.and_(pc.equal(control, False), pc.invert(names.is_valid()))
        return TypedRows(
            names=pc.if_else(pc.fill_null(control, False), ends, names),
            versions=_by_number(value, 0, lambda number: number, pa.int16()),
            key=key,
            value=value,
            errors=pc.if_else(pc.fill_null(short, False), "the key has no record type", pa.scalar(None, pa.string())),
        )

    def own_columns(self, typed: TypedRows) -> tuple[dict[str, pa.Array], list[pa.StringArray]]:
        """Return the group of each record, and the fields of commits."""
        count = len(typed.names)
        found: dict[str, list[tuple[pa.UInt64Array, pa.Array]]] = {}
        wrong: list[pa.StringArray] = []
        for name in self.types.keys() & set(typed.names.unique().to_pylist()):
            places = pc.indices_nonzero(typed.are(name))
            for part, message, wanted in self._wanted(self.types[name]):
                values, errors = decoded(getattr(typed, part).take(places), message, part, tuple(wanted.values()))
                for column, place in wanted.items():
                    content = pc.struct_field(values, place)
                    content = in_microseconds(timestamps(content)) if self.columns[column] is _TIME else content
                    found.setdefault(column, []).append((places, content))
                wrong += [scatter([(places, errors)], count)] if errors.null_count < len(errors) else []
        made = {each.name: pa.nulls(count, each.type) for each in arrow_schema(self.schema)}
        made |= {name: scatter(parts, count) for name, parts in found.items()}
        return made | {"tombstone": pc.and_(typed.names.is_valid(), typed.value.is_null())}, wrong

    def _wanted(self, type_: RecordType) -> Iterator[tuple[str, type[Message], dict[str, str]]]:
        """Yield the required decodings of a record type: the part, the message class, and the fields by column."""
        assert type_.key is not None, "records of this topic have keys"
        group = {"group": fields(type_.key)[0].attribute}
        of_key, of_value = (group | _OF_KEYS, _OF_VALUES) if type_.name in _COMMITS else (group, {})
        for part, message, places in (("key", type_.key, of_key), ("value", type_.value, of_value)):
            there = {info.attribute for info in fields(message)}
            wanted = {name: at for name, at in places.items() if at in there and name in self.schema.names}
            if wanted:
                yield part, message, wanted


class KafkaOffsetsSource(FileSource):
    """The data source ``kafka-offsets``; the documentation of Spark sources describes its options and columns."""

    label = "kafka-offsets"
    reader_type = OffsetsReader


def _end(number: int) -> str:
    return ControlType(number).name if number in ControlType._value2member_map_ else str(number)


def _by_number(data: pa.BinaryArray, at: int, meaning: Callable[[int], Any], type_: pa.DataType) -> pa.Array:
    """Return the meaning of the two bytes at a position of each row, null for rows that are too short."""
    heads = pc.binary_slice(data, at, at + 2).dictionary_encode()
    known = heads.dictionary.to_pylist()
    numbers = (int.from_bytes(each, "big", signed=True) if len(each) == 2 else None for each in known)
    meanings = [None if number is None else meaning(number) for number in numbers]
    return pa.array(meanings, type_).take(heads.indices)
