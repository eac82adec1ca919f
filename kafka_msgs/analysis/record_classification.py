"""The classification of ``__consumer_offsets`` records: commits, group records, markers, and unreadable records.

Converts record columns to rows of ``live_records``. Records are validated by decoding as little as possible. An
unreadable record, and one of an unknown type, is a problem even if a later record replaces it. It replaces nothing
itself.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from kafka_msgs.analysis.arrow_tables import columns, filled
from kafka_msgs.analysis.live_records import ABORTS, COMMITS, EFFECTIVE, GROUP_RECORD, ROWS, UNDECIDED
from kafka_msgs.columns.decode import DecodedColumn, decode_column, error_texts
from kafka_msgs.internal_topics.records import TOPICS, record_classes
from kafka_msgs.message import Message
from kafka_msgs.messages.offset_commit_key import OffsetCommitKey
from kafka_msgs.messages.offset_commit_value import OffsetCommitValue
from kafka_msgs.schema import fields

__all__ = [
    "OFFSETS_TOPIC",
    "PROBLEMS",
    "RECORD_COLUMNS",
    "ClassifiedRecords",
    "classify",
    "unknown_type",
]

OFFSETS_TOPIC: Final = "__consumer_offsets"
"""The topic of committed offsets and of groups."""

RECORD_COLUMNS: Final = ("offset", "timestamp_ms", "key", "value", "producer_id", "is_transactional", "is_control")
"""The record columns that the classification needs."""

PROBLEMS: Final = columns("logOffset file problem")
"""Unreadable data: the offset of a record, null for a part of a file, and the reason."""

_IN_ROWS: Final = ("offset", "timestamp", "key", "value", "producer", "transactional")
"""The columns of rows that contain the record columns, in the same order."""
_KEYLESS: Final = "the key contains no record type"
_OLDEST, _COMMIT = b"\0\0", b"\0\1"
_COMMIT_TYPES: Final = pa.array([_OLDEST, _COMMIT])
_MARKERS: Final = pa.array([b"\0\0", b"\0\1"])
_ROLES: Final = pa.array([ABORTS, COMMITS], pa.int8())


@frozen
class ClassifiedRecords:
    """Records by role. ``commits`` have their keys in the current format; ``groups`` contains the group of each commit.

    ``values`` contains the offset and the time of each commit, null for deletions. ``rows`` contains all rows for
    ``LiveRecords``. Rows of the same role keep their log order.
    """

    commits: pa.Table
    groups: pa.Array
    values: pa.StructArray
    others: pa.Table
    markers: pa.Table
    problems: pa.Table

    @property
    def rows(self) -> pa.Table:
        """All rows with a role, without problems."""
        return pa.concat_tables([self.commits, self.others, self.markers])


def classify(records: pa.RecordBatch, file: str, segment: int = 0) -> ClassifiedRecords:
    """Classify records of the segment with this base offset, from a file that problems name.

    ``records`` has the columns ``RECORD_COLUMNS``.
    """
    control, keys = records.column("is_control"), records.column("key")
    is_commit = pc.and_not(pc.fill_null(pc.is_in(pc.binary_slice(keys, 0, 2), _COMMIT_TYPES), False), control)
    commits, groups, values, unreadable = _commits(records.filter(is_commit), file, segment)
    others, keyless = _classify_groups(records, file, segment)
    markers = _markers(records.filter(control), segment)
    return ClassifiedRecords(commits, groups, values, others, markers, _joined([unreadable, keyless]))


def _classify_groups(records: pa.RecordBatch, file: str, segment: int = 0) -> tuple[pa.Table, pa.Table]:
    """Return the group records, and the problems: unreadable records, unknown types, and keys without a type."""
    of_client = pc.invert(records.column("is_control"))
    types = pc.binary_slice(records.column("key"), 0, 2)
    typed = pc.fill_null(pc.equal(pc.binary_length(types), 2), False)
    is_group = pc.and_(of_client, pc.and_not(typed, pc.fill_null(pc.is_in(types, _COMMIT_TYPES), False)))
    keyless = records.filter(pc.and_not(of_client, typed))
    problems = _problems(keyless, pa.repeat(pa.scalar(_KEYLESS), keyless.num_rows), file)
    others, unreadable = _readable(records.filter(is_group), file)
    roles = pa.repeat(pa.scalar(GROUP_RECORD, pa.int8()), others.num_rows)
    return _rows(others, roles, segment), _joined([problems, unreadable])


def unknown_type(record_type: int) -> str:
    """Return the reason why a record of an unknown type is a problem."""
    return f"this release has no records of type {record_type}"


def _readable(records: pa.RecordBatch, file: str) -> tuple[pa.RecordBatch, pa.Table]:
    """Return the readable group records, and the problems of the others."""
    types = pc.binary_slice(records.column("key"), 0, 2)
    texts = pa.nulls(records.num_rows, pa.string())
    for kind in pc.unique(types).to_pylist():
        of_kind = pc.equal(types, pa.scalar(kind, types.type))
        texts = pc.replace_with_mask(texts, of_kind, _texts_of_type(records.filter(of_kind), kind))
    return records.filter(texts.is_null()), _problems(records.filter(texts.is_valid()), texts.drop_null(), file)


def _texts_of_type(records: pa.RecordBatch, kind: bytes) -> pa.Array:
    number = int.from_bytes(kind, signed=True)
    classes = record_classes(TOPICS[OFFSETS_TOPIC], number)
    if classes is None:
        return pa.repeat(pa.scalar(unknown_type(number)), records.num_rows)
    parts = zip(("key", "value"), classes, strict=True)
    return pc.coalesce(*(_decoding_texts(records.column(name), message) for name, message in parts))


def _decoding_texts(column: pa.Array, message: type[Message]) -> pa.StringArray:
    """Return the errors of a column of messages, of which only the first field is kept."""
    names = [each.attribute for each in fields(message)[:1]]
    return _texts(decode_column(column, message, columns=names), message)


def _commits(records: pa.RecordBatch, file: str, segment: int) -> tuple[pa.Table, pa.Array, pa.StructArray, pa.Table]:
    """Return the readable commits, the group and the value of each, and the problems of the unreadable commits."""
    keys = records.column("key")
    if pc.any(pc.equal(pc.binary_slice(keys, 0, 2), _OLDEST)).as_py():
        # The oldest keys and values use today's layout; only the leading number of the key differs.
        keys = pc.binary_replace_slice(keys, 0, 2, _COMMIT)
        records = records.set_column(records.schema.get_field_index("key"), "key", keys)
    read = decode_column(keys, OffsetCommitKey, columns=["group"])
    written = decode_column(records.column("value"), OffsetCommitValue, columns=["offset", "commit_timestamp"])
    groups, values, problems = read.values.field("group"), written.values, PROBLEMS.empty_table()
    if read.error_count or written.error_count:
        texts = pc.coalesce(_texts(read, OffsetCommitKey), _texts(written, OffsetCommitValue))
        sound, bad = texts.is_null(), texts.is_valid()
        problems = _problems(records.filter(bad), texts.filter(bad), file)
        records, groups, values = records.filter(sound), groups.filter(sound), values.filter(sound)
    waits = pc.and_(records.column("is_transactional"), records.column("value").is_valid())
    roles = pc.if_else(waits, pa.scalar(UNDECIDED, pa.int8()), pa.scalar(EFFECTIVE, pa.int8()))
    return _rows(records, roles, segment), groups, values, problems


def _texts(column: DecodedColumn, message: type[Message]) -> pa.StringArray:
    return error_texts(column.errors, message.INFO.name)


def _markers(records: pa.RecordBatch, segment: int) -> pa.Table:
    """Return the transaction markers; other control records do not concern groups."""
    kind = pc.index_in(pc.binary_slice(records.column("key"), 2, 4), _MARKERS)
    known = kind.is_valid()
    return _rows(records.filter(known), _ROLES.take(kind.filter(known)), segment)


def _rows(records: pa.RecordBatch, roles: pa.Array, segment: int) -> pa.Table:
    values = dict(zip(_IN_ROWS, records.select(RECORD_COLUMNS[:-1]).columns, strict=True))
    return filled(ROWS, records.num_rows, values | {"role": roles, "stands_for": 1, "segment": segment})


def _problems(records: pa.RecordBatch, texts: pa.Array, file: str) -> pa.Table:
    return filled(PROBLEMS, records.num_rows, {"logOffset": records["offset"], "file": file, "problem": texts})


def _joined(problems: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(problems).sort_by("logOffset")
