"""Files that Protobuf schemas import although no registry has them: generators expect them in every reader.

The serializers of Kafka Connect and Debezium annotate fields with ``confluent.field_meta`` and write decimals as
``confluent.type.Decimal``; other schemas use Google's common types. This module defines only names, numbers and types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["BUILT_IN_FILES"]

_FILES: Final = {
    "confluent/meta": "message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; "
    "repeated Rule rules = 4; } message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }"
    + "".join(
        f"extend google.protobuf.{kind.title().replace('_', '')}Options {{ Meta {kind}_meta = 1088; }}"
        for kind in ("file", "message", "field", "enum", "enum_value")
    ),
    "confluent/type/decimal": "message Decimal: bytes value, uint32 precision, int32 scale",
    "google/type/calendar_period": "enum CalendarPeriod: CALENDAR_PERIOD_UNSPECIFIED, DAY, WEEK, FORTNIGHT, MONTH, "
    "QUARTER, HALF, YEAR",
    "google/type/color": "message Color: float red, float green, float blue, google.protobuf.FloatValue alpha",
    "google/type/date": "message Date: int32 year, int32 month, int32 day",
    "google/type/datetime": "message DateTime { int32 year = 1; int32 month = 2; int32 day = 3; int32 hours = 4; "
    "int32 minutes = 5; int32 seconds = 6; int32 nanos = 7; "
    "oneof time_offset { google.protobuf.Duration utc_offset = 8; TimeZone time_zone = 9; } } "
    "message TimeZone { string id = 1; string version = 2; }",
    "google/type/dayofweek": "enum DayOfWeek: DAY_OF_WEEK_UNSPECIFIED, MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY, "
    "SATURDAY, SUNDAY",
    "google/type/decimal": "message Decimal: string value",
    "google/type/expr": "message Expr: string expression, string title, string description, string location",
    "google/type/fraction": "message Fraction: int64 numerator, int64 denominator",
    "google/type/interval": "message Interval: google.protobuf.Timestamp start_time, "
    "google.protobuf.Timestamp end_time",
    "google/type/latlng": "message LatLng: double latitude, double longitude",
    "google/type/localized_text": "message LocalizedText: string text, string language_code",
    "google/type/money": "message Money: string currency_code, int64 units, int32 nanos",
    "google/type/month": "enum Month: MONTH_UNSPECIFIED, JANUARY, FEBRUARY, MARCH, APRIL, MAY, JUNE, JULY, AUGUST, "
    "SEPTEMBER, OCTOBER, NOVEMBER, DECEMBER",
    "google/type/phone_number": "message PhoneNumber { "
    "message ShortCode { string region_code = 1; string number = 2; } "
    "oneof kind { string e164_number = 1; ShortCode short_code = 2; } string extension = 3; }",
    "google/type/postal_address": "message PostalAddress: int32 revision, string region_code, string language_code, "
    "string postal_code, string sorting_code, string administrative_area, string locality, string sublocality, "
    "repeated string address_lines, repeated string recipients, string organization",
    "google/type/quaternion": "message Quaternion: double x, double y, double z, double w",
    "google/type/timeofday": "message TimeOfDay: int32 hours, int32 minutes, int32 seconds, int32 nanos",
}
"""Declarations by file. After a colon, fields are numbered from 1 and enum values from 0."""
_IMPORTED: Final = {"Options ": "descriptor", "Duration ": "duration", "Timestamp ": "timestamp", "Value ": "wrappers"}
"""Google's files by the ends of the names of their types."""


def _file(name: str, declaration: str) -> str:
    head, colon, content = declaration.partition(": ")
    if colon:
        numbers = enumerate(content.split(", "), 1 if head.startswith("message") else 0)
        declaration = f"{head} {{ {' '.join(f'{each} = {number};' for number, each in numbers)} }}"
    imports = [f'import "google/protobuf/{file}.proto";' for end, file in _IMPORTED.items() if end in declaration]
    package = name.rpartition("/")[0].replace("/", ".")
    return "\n".join(['syntax = "proto3";', f"package {package};", *imports, declaration])


BUILT_IN_FILES: Final[Mapping[str, str]] = {f"{name}.proto": _file(name, text) for name, text in _FILES.items()}
"""The files by name. A registered reference with the same name takes precedence."""
