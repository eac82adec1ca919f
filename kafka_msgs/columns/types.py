"""The Arrow type of each message: the one place where Kafka's types become columns.

This module owns the mapping of types, the selection of columns by dotted path, and the columns of records. The types of
Spark are made from these types. No other module builds a type by hand. The executors make arrays of these types.

=================  ====================  ==========================================================================
Kafka              Arrow                 remark
=================  ====================  ==========================================================================
bool, int8-int64   the same
uint16, uint32     int32, int64          Spark has no unsigned types
float64            float64
string             string
bytes, records     binary
uuid               string                36 characters, as from ``str(uuid)``, and from ``uuid()`` of Spark
array              list                  of ``element``
struct             struct                fields in the order of the definition, with the names of the attributes
tagged fields      map of int32, binary  ``unknown_tagged_fields``, the last field; null if there are none
=================  ====================  ==========================================================================

All fields are nullable. If the Arrow type does not show the type on the wire (unsigned, uuid, records), the field has
the metadata ``kafka.type``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final
from weakref import WeakKeyDictionary

import pyarrow as pa

from kafka_msgs.errors import ColumnTypeError, SchemaError, UnknownColumnError, UnsupportedVersionError
from kafka_msgs.primitive_types import PRIMITIVES
from kafka_msgs.schema import FieldInfo, MessageInfo, MessageStruct, Struct, fields
from kafka_msgs.suggestions import similar_names
from kafka_msgs.versions import VersionRange, version_number

__all__ = [
    "ERROR_TYPE",
    "KAFKA_TYPE",
    "RECORD_SCHEMA",
    "TIMESTAMP",
    "UNKNOWN_TAGS",
    "arrow_type",
    "check_columns",
    "record_schema",
]

UNKNOWN_TAGS: Final = "unknown_tagged_fields"
"""Name of the column for tagged fields that the definition does not name. It is null if there are none, and never
empty.
"""

KAFKA_TYPE: Final = b"kafka.type"
"""The metadata key of a field's type on the wire."""

ERROR_TYPE: Final = pa.struct([("path", pa.string()), ("offset", pa.int64()), ("reason", pa.string())])
"""The error of a null row: the field, the byte offset in the row (null when writing), and the reason."""

_ELEMENT: Final = "element"
_UNKNOWN_TAGS_TYPE: Final = pa.map_(pa.int32(), pa.binary())
_PRIMITIVES: Final[Mapping[str, pa.DataType]] = {name: pa.type_for_alias(op.arrow) for name, op in PRIMITIVES.items()}
_NOT_SAID_BY_ARROW: Final = {name for name, op in PRIMITIVES.items() if name not in (op.arrow, "bytes")}

TIMESTAMP: Final = pa.timestamp("ms", tz="UTC")
"""The type of times: milliseconds in UTC, as in Kafka."""

_HEADERS_TYPE: Final = pa.list_(pa.field(_ELEMENT, pa.struct([("name", pa.string()), ("value", pa.binary())])))

RECORD_SCHEMA: Final = pa.schema(
    [
        ("offset", pa.int64()),
        ("timestamp", TIMESTAMP),
        ("timestamp_ms", pa.int64()),
        ("timestamp_type", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", _HEADERS_TYPE),
        ("raw_header_names", pa.list_(pa.field(_ELEMENT, pa.binary()))),
        ("batch_offset", pa.int64()),
        ("batch_position", pa.int64()),
        ("batch_size", pa.int32()),
        ("partition_leader_epoch", pa.int32()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int16()),
        ("sequence", pa.int32()),
        ("is_transactional", pa.bool_()),
        ("is_control", pa.bool_()),
        ("codec", pa.string()),
        ("magic", pa.int8()),
    ]
)
"""The columns of records. ``record_table`` describes them."""


def arrow_type(
    message: type[MessageStruct], version: int | None = None, *, columns: Iterable[str] | None = None
) -> pa.StructType:
    """Return the Arrow type of a message at one version. Without a version, the type has the fields of all versions.

    ``columns`` selects fields by their attributes. The path of a nested field has dots, also through arrays:
    ``["group_id", "topics.name"]``. The fields keep the order of the definition. Raises ``UnsupportedVersionError``,
    ``UnknownColumnError`` for a name that the message (or the version) does not have, ``ColumnTypeError`` for an
    argument that is not a sequence of names, and ``SchemaError`` for a message that contains itself.
    """
    whole = _whole(message, version)
    if columns is None:
        return whole
    paths = [path.split(".") for path in _names(message.INFO.name, columns)]
    return _Selection(message.INFO.name, version, whole).of(whole, paths)


def _names(source: str, columns: Iterable[str]) -> tuple[str, ...]:
    """Return the column names. A single string is refused, because it would become one name per letter."""
    if isinstance(columns, str | bytes) or not isinstance(columns, Iterable):
        raise ColumnTypeError(column="", expected="a sequence of names", found=type(columns).__name__)
    names = tuple(columns)
    for name in names:
        if not isinstance(name, str):
            raise ColumnTypeError(column="", expected="named by a text", found=type(name).__name__)
        if not name.isascii():
            raise UnknownColumnError(source=source, column=name, near=())
    return names


def record_schema(columns: Sequence[str] | None = None) -> pa.Schema:
    """Return the schema of records: the named columns in the given order, or all columns.

    Raises ``UnknownColumnError``, and ``ColumnTypeError`` for an argument that is not a sequence of names.
    """
    return RECORD_SCHEMA if columns is None else _chosen(_names("a record", columns))


@lru_cache(maxsize=128)
def _chosen(columns: tuple[str, ...]) -> pa.Schema:
    for name in columns:
        if name not in RECORD_SCHEMA.names:
            near = similar_names(name, RECORD_SCHEMA.names)
            raise UnknownColumnError(source="a record", column=name, near=near)
    return pa.schema([RECORD_SCHEMA.field(name) for name in columns])


_WHOLE: WeakKeyDictionary[type[MessageStruct], dict[int | None, pa.StructType]] = WeakKeyDictionary()


def _whole(message: type[MessageStruct], version: int | None) -> pa.StructType:
    known = _WHOLE.setdefault(message, {})
    info = message.INFO
    number = None if version is None else version_number(version)
    if version is not None and (number is None or number not in info.versions):
        raise UnsupportedVersionError(message=info.name, version=version, supported=info.versions)
    if number not in known:
        wanted = info.versions if number is None else VersionRange(number, number)
        known[number] = _Mapping(info, wanted).struct(message, ())
    return known[number]


def check_columns(type_: pa.StructType, message: type[MessageStruct]) -> None:
    """Refuse a struct type with a field that ``message`` lacks, or with a field of another shape.

    Columns may be missing, and may be in any order. Encoding finds values of a wrong type. Raises
    ``UnknownColumnError`` and ``ColumnTypeError``.
    """
    whole = _whole(message, None)
    _check(type_, whole, _Selection(message.INFO.name, None, whole), ())


def _check(type_: pa.StructType, whole: pa.StructType, selection: _Selection, above: tuple[str, ...]) -> None:
    for field in type_:
        path = (*above, field.name)
        if whole.get_field_index(field.name) < 0:
            raise selection.unknown(path)
        expected = whole.field(field.name).type
        if _shape(field.type) != _shape(expected) or type_.get_field_index(field.name) < 0:
            raise ColumnTypeError(column=".".join(path), expected=str(expected), found=str(field.type))
        if _inner(expected) is not None:
            _check(_inner(field.type), _inner(expected), selection, path)


def _shape(type_: pa.DataType) -> tuple[bool, bool, bool]:
    item = type_.value_type if _is_list(type_) else type_
    return _is_list(type_), pa.types.is_struct(item), pa.types.is_map(item)


class _Mapping:
    """Builds the Arrow type of a message from the fields that exist in any of the ``wanted`` versions."""

    def __init__(self, info: MessageInfo, wanted: VersionRange) -> None:
        self._name = info.name
        self._wanted = wanted
        self._tags = not wanted.intersect(info.flexible).empty

    def struct(self, cls: type[Struct], above: tuple[type[Struct], ...]) -> pa.StructType:
        if cls in above:
            raise SchemaError(f"{cls.__name__} contains itself, which no Arrow type can say", path=self._name)
        found = [
            self.field(info, (*above, cls)) for info in fields(cls) if not self._wanted.intersect(info.versions).empty
        ]
        if self._tags:
            found.append(pa.field(UNKNOWN_TAGS, _UNKNOWN_TAGS_TYPE))
        return pa.struct(found)

    def field(self, info: FieldInfo, above: tuple[type[Struct], ...]) -> pa.Field:
        item_type = _PRIMITIVES[info.element_type] if info.struct is None else self.struct(info.struct, above)
        note = {KAFKA_TYPE: info.type} if info.element_type in _NOT_SAID_BY_ARROW else None
        return pa.field(
            info.attribute, pa.list_(pa.field(_ELEMENT, item_type)) if info.is_array else item_type, metadata=note
        )


class _Selection:
    """Selects fields from the type of a message."""

    def __init__(self, message: str, version: int | None, whole: pa.StructType) -> None:
        self._source = message if version is None else f"{message} v{version}"
        self._whole = whole

    def of(self, type_: pa.StructType, paths: Iterable[Sequence[str]], above: tuple[str, ...] = ()) -> pa.StructType:
        """Return ``type_`` with the fields that ``paths`` select. The paths start below ``above``."""
        wanted: dict[str, list[Sequence[str]]] = {}
        for first, *rest in paths:
            if type_.get_field_index(first) < 0:
                raise self.unknown((*above, first, *rest))
            wanted.setdefault(first, []).append(rest)
        return pa.struct(
            [self._field(field, wanted[field.name], (*above, field.name)) for field in type_ if field.name in wanted]
        )

    def _field(self, field: pa.Field, rests: list[Sequence[str]], above: tuple[str, ...]) -> pa.Field:
        inner, deeper = _inner(field.type), [rest for rest in rests if rest]
        if deeper and inner is None:
            raise self.unknown((*above, *deeper[0]))
        chosen = self.of(inner, deeper, above) if deeper else None
        if len(deeper) < len(rests):
            return field
        return field.with_type(pa.list_(pa.field(_ELEMENT, chosen)) if _is_list(field.type) else chosen)

    def unknown(self, path: Sequence[str]) -> UnknownColumnError:
        """Return the error of a path that does not lead to a field."""
        name = ".".join(path)
        near = similar_names(name, _paths(self._whole), cutoff=0.5)
        return UnknownColumnError(source=self._source, column=name, near=near)


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def _inner(type_: pa.DataType) -> Any:
    """Return the struct in a column, or in the list of a column, or None."""
    type_ = type_.value_type if _is_list(type_) else type_
    return type_ if pa.types.is_struct(type_) else None


def _paths(type_: pa.StructType, above: str = "") -> Iterator[str]:
    for field in type_:
        yield above + field.name
        inner = _inner(field.type)
        if inner is not None:
            yield from _paths(inner, f"{above}{field.name}.")
