"""Protobuf files with fields of every kind, in proto2 and proto3, and their messages with their indexes."""

from __future__ import annotations

from typing import Final

__all__ = ["PROTO2", "PROTO2_MESSAGES", "PROTO3", "PROTO3_MESSAGES"]

_SCALARS: Final = (
    "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
    "sfixed64", "bool", "string", "bytes",
)  # fmt: skip
_KEYS: Final = tuple(name for name in _SCALARS if name not in ("double", "float", "bytes"))
_IMPORTS: Final = "".join(
    f'import "{name}.proto";\n'
    for name in (
        "google/protobuf/any", "google/protobuf/duration", "google/protobuf/empty", "google/protobuf/timestamp",
        "google/protobuf/wrappers", "google/type/date", "google/type/money", "google/type/timeofday",
        "google/type/color", "google/type/datetime", "google/type/phone_number", "google/type/postal_address",
        "confluent/meta", "confluent/type/decimal",
    )
)  # fmt: skip
_WRAPPERS: Final = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")


def _fields(start: int, label: str, prefix: str) -> str:
    return "\n".join(f"  {label} {name} {prefix}{name} = {start + at};" for at, name in enumerate(_SCALARS))


_WELL_KNOWN: Final = "\n".join(
    f"  {name} w{at} = {200 + at};"
    for at, name in enumerate(
        [
            *(f"google.protobuf.{each}Value" for each in _WRAPPERS),
            *(f"google.protobuf.{each}" for each in ("Timestamp", "Duration", "Empty", "Any")),
            *(f"google.type.{each}" for each in ("Date", "Money", "TimeOfDay")),
            "confluent.type.Decimal",
            *(f"google.type.{each}" for each in ("Color", "DateTime", "PhoneNumber", "PostalAddress")),
        ]
    )
)
_MAPS: Final = "\n".join(f"  map<{name}, {name}> m_{name} = {300 + at};" for at, name in enumerate(_KEYS))

PROTO3: Final = f"""syntax = "proto3";
package shop.v1;
{_IMPORTS}
enum Color {{ NONE = 0; RED = 5; BLUE = -3; }}
message Order {{
{_fields(1, "", "s_")}
{_fields(50, "optional", "o_")}
{_fields(100, "repeated", "r_")}
  oneof choice {{ int64 number = 150; string text = 151; Line one_line = 152; Color color = 153; }}
  Color plain = 160; optional Color maybe = 161; repeated Color many = 162;
  Line line = 170; repeated Line lines = 171;
  map<string, Line> by_name = 180; map<int32, Color> by_number = 181;
{_MAPS}
  message Line {{
    string name = 1; bytes data = 2 [(confluent.field_meta).doc = "content"];
    message Inner {{ sint64 depth = 1; repeated fixed32 packed = 2; repeated int32 loose = 3 [packed = false]; }}
    Inner inner = 3;
  }}
  message Empty {{}}
}}
message Known {{
{_WELL_KNOWN}
  repeated google.protobuf.Timestamp times = 250; map<string, google.protobuf.Int64Value> counts = 251;
}}
"""
PROTO3_MESSAGES: Final = (
    ("shop.v1.Order", b"\0"),
    ("shop.v1.Known", b"\2\2"),
    ("shop.v1.Order.Line", b"\4\0\0"),
    ("shop.v1.Order.Empty", b"\4\0\2"),
    ("shop.v1.Order.Line.Inner", b"\6\0\0\0"),
)
"""The names of messages, and their indexes as Confluent's serializers write them: zigzag numbers after their count."""

_DEFAULTS: Final = (
    'optional int32 number = 1 [default = -7]; optional string text = 2 [default = "a\\"b"]; '
    "optional bytes data = 3 [default = '\\001x']; optional double ratio = 4 [default = -inf]; "
    "optional Kind kind = 5 [default = SECOND]; optional bool flag = 6 [default = true];"
)
PROTO2: Final = f"""syntax = "proto2";
package old;
message First {{ required int32 id = 1; }}
message Second {{
  enum Kind {{ FIRST = 1; SECOND = 2; }}
  {_DEFAULTS}
  required int64 id = 10;
{_fields(20, "optional", "o_")}
{_fields(50, "repeated", "r_")}
  repeated int32 packed = 80 [packed = true];
  optional group Part = 90 {{ optional string name = 91; repeated group Deep = 92 {{ optional int32 level = 93; }} }}
  oneof choice {{ string one = 100; First two = 101; }}
  map<string, First> firsts = 110;
  extensions 1000 to 1010;
}}
extend Second {{ optional string extra = 1000; }}
"""
PROTO2_MESSAGES: Final = (
    ("old.First", b"\0"),
    ("old.Second", b"\2\2"),
    ("old.Second.Part", b"\4\2\0"),
    ("old.Second.Part.Deep", b"\6\2\0\0"),
)
