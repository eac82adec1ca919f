"""Files that Protobuf schemas import although no registry has them: generators expect them in every reader.

The serializers of Kafka Connect and Debezium annotate fields with ``confluent.field_meta`` and write decimals as
``confluent.type.Decimal``; other schemas use Google's common types. This module defines only names, numbers and types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["BUILT_IN_FILES"]


def _file(package: str, *content: str, imports: tuple[str, ...] = ()) -> str:
    head = ['syntax = "proto3";', f"package {package};", *(f'import "{name}";' for name in imports)]
    return "\n".join([*head, *content])


def _message(name: str, **fields: str) -> str:
    """Return a message whose fields are numbered from 1."""
    body = " ".join(f"{kind} {field} = {number};" for number, (field, kind) in enumerate(fields.items(), 1))
    return f"message {name} {{ {body} }}"


def _enum(name: str, *values: str) -> str:
    """Return an enum whose values are numbered from 0."""
    body = " ".join(f"{value} = {number};" for number, value in enumerate(values))
    return f"enum {name} {{ {body} }}"


_META: Final = 1088
"""The number of Confluent's options."""
_OPTIONS: Final = {
    "FileOptions": "file_meta",
    "MessageOptions": "message_meta",
    "FieldOptions": "field_meta",
    "EnumOptions": "enum_meta",
    "EnumValueOptions": "enum_value_meta",
}
_MONTHS: Final = (
    "JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE", "JULY", "AUGUST", "SEPTEMBER", "OCTOBER", "NOVEMBER",
    "DECEMBER",
)  # fmt: skip
_DAYS: Final = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")

BUILT_IN_FILES: Final[Mapping[str, str]] = {
    "confluent/meta.proto": _file(
        "confluent",
        "message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }",
        *(f"extend google.protobuf.{kind} {{ Meta {name} = {_META}; }}" for kind, name in _OPTIONS.items()),
        imports=("google/protobuf/descriptor.proto",),
    ),
    "confluent/type/decimal.proto": _file(
        "confluent.type", _message("Decimal", value="bytes", precision="uint32", scale="int32")
    ),
    "google/type/date.proto": _file("google.type", _message("Date", year="int32", month="int32", day="int32")),
    "google/type/dayofweek.proto": _file("google.type", _enum("DayOfWeek", "DAY_OF_WEEK_UNSPECIFIED", *_DAYS)),
    "google/type/decimal.proto": _file("google.type", _message("Decimal", value="string")),
    "google/type/fraction.proto": _file("google.type", _message("Fraction", numerator="int64", denominator="int64")),
    "google/type/interval.proto": _file(
        "google.type",
        _message("Interval", start_time="google.protobuf.Timestamp", end_time="google.protobuf.Timestamp"),
        imports=("google/protobuf/timestamp.proto",),
    ),
    "google/type/latlng.proto": _file("google.type", _message("LatLng", latitude="double", longitude="double")),
    "google/type/money.proto": _file(
        "google.type", _message("Money", currency_code="string", units="int64", nanos="int32")
    ),
    "google/type/month.proto": _file("google.type", _enum("Month", "MONTH_UNSPECIFIED", *_MONTHS)),
    "google/type/timeofday.proto": _file(
        "google.type", _message("TimeOfDay", hours="int32", minutes="int32", seconds="int32", nanos="int32")
    ),
}
"""The files by name. A registered reference with the same name takes precedence."""
