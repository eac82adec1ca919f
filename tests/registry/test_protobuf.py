"""Protobuf: payloads of Confluent's serializer, and the columns of their schemas."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from importlib import import_module
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_tools import protoc
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.errors import OptionError, RegisteredSchemaError
from kafka_msgs.registry import PayloadReader, Reference, RegisteredSchema, StaticSchemas, decode_payloads
from kafka_msgs.registry.protobuf import compile_file_set
from kafka_msgs.registry.protobuf_builtins import BUILT_IN_FILES
from tests.registry.confluent import Registry

COLOR = """
syntax = "proto3";
package shop.parts;
enum Color { RED = 0; GREEN = 3; }
message Part { string name = 1; Color color = 2; }
"""
ORDER = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "parts/color.proto";
message Other { bool b = 1; }
message Order {
  message Line { sint32 count = 1; fixed64 id = 2; }
  uint64 id = 1;
  google.protobuf.Timestamp at = 2;
  google.protobuf.Duration took = 3;
  google.protobuf.StringValue note = 4;
  repeated Line lines = 5;
  repeated shop.parts.Color colors = 6;
  map<string, shop.parts.Part> parts = 7;
  map<int64, uint32> counts = 8;
  oneof how { string card = 9; int32 cash = 10; }
  optional double weight = 11;
  float ratio = 12;
  bytes raw = 13;
  Other other = 14;
  repeated google.protobuf.Timestamp times = 15;
}
"""
TYPE = pa.struct(
    [
        ("id", pa.decimal128(20, 0)),
        ("at", pa.timestamp("us", "UTC")),
        ("took", pa.duration("us")),
        ("note", pa.string()),
        ("lines", pa.list_(pa.field("element", pa.struct([("count", pa.int32()), ("id", pa.decimal128(20, 0))])))),
        ("colors", pa.list_(pa.field("element", pa.int32()))),
        ("parts", pa.map_(pa.string(), pa.struct([("name", pa.string()), ("color", pa.int32())]))),
        ("counts", pa.map_(pa.int64(), pa.int64())),
        ("card", pa.string()),
        ("cash", pa.int32()),
        ("weight", pa.float64()),
        ("ratio", pa.float32()),
        ("raw", pa.binary()),
        ("other", pa.struct([("b", pa.bool_())])),
        ("times", pa.list_(pa.field("element", pa.timestamp("us", "UTC")))),
    ]
)
REFERENCES = (Reference("parts/color.proto", "color", 1),)
SCHEMAS = StaticSchemas(
    [
        RegisteredSchema(1, "PROTOBUF", COLOR, (), "color", 1),
        RegisteredSchema(1, "PROTOBUF", COLOR, (), "again", 1),
        RegisteredSchema(7, "PROTOBUF", ORDER, REFERENCES, "orders-value", 1),
    ],
    source="a test",
)
TARGET = SCHEMAS.latest("orders-value")


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> DescriptorPool:
    """The types of the files, created without this library."""
    folder = tmp_path_factory.mktemp("protobuf")
    (folder / "parts").mkdir()
    (folder / "parts" / "color.proto").write_text(COLOR)
    (folder / "order.proto").write_text(ORDER)
    known = f"{protoc.__file__.rpartition('/')[0]}/_proto"
    out = f"--descriptor_set_out={folder}/out"
    assert protoc.main(["protoc", "--include_imports", f"-I{folder}", f"-I{known}", out, "order.proto"]) == 0
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString((folder / "out").read_bytes()).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def made(classes: Any, name: str, **fields: Any) -> Any:
    return GetMessageClass(classes.FindMessageTypeByName(name))(**fields)


def sent(message: Any) -> bytes:
    """Return the payload of Confluent's serializer, with this test's schema id."""
    return b"\0\0\0\0\7" + Registry("protobuf").protobuf("orders", message)[5:]


def test_a_message_of_confluents_serializer_keeps_all_its_fields(classes: DescriptorPool) -> None:
    plain = {"id": 2**64 - 1, "colors": [3, 9], "counts": {-5: 2**32 - 1}, "card": "c", "raw": b"\0", "ratio": 0.5}
    order = made(classes, "shop.Order", **plain)
    order.at.FromDatetime(datetime.datetime(2026, 1, 2, 3, 4, 5, 678901))
    order.took.FromTimedelta(datetime.timedelta(seconds=-1, microseconds=-5))
    order.note.value = "n"
    order.lines.add(count=-1, id=5)
    order.parts["p"].color = 3
    order.times.add(seconds=-1, nanos=999_999_999)
    order.other.SetInParent()
    reader = PayloadReader(TARGET, SCHEMAS, message="shop.Order")
    assert reader.type == TYPE
    empty = made(classes, "shop.Order")
    found, blank, nothing = reader.decode([sent(order), sent(empty), None]).values.to_pylist()
    assert nothing is None
    assert found == {
        "id": Decimal(2**64 - 1),
        "at": datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, datetime.UTC),
        "took": datetime.timedelta(seconds=-1, microseconds=-5),
        "note": "n",
        "lines": [{"count": -1, "id": Decimal(5)}],
        "colors": [3, 9],
        "parts": [("p", {"name": "", "color": 3})],
        "counts": [(-5, 2**32 - 1)],
        "card": "c",
        "cash": None,
        "weight": None,
        "ratio": 0.5,
        "raw": b"\0",
        "other": {"b": False},
        "times": [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, datetime.UTC)],
    }
    assert {name for name, value in blank.items() if value is None} == {
        "at",
        "took",
        "note",
        "card",
        "cash",
        "weight",
        "other",
    }


def test_the_place_in_the_payload_says_which_message_of_the_file_it_is(classes: DescriptorPool) -> None:
    line = PayloadReader(TARGET, SCHEMAS, message="shop.Order.Line")
    first = PayloadReader(TARGET, SCHEMAS)
    rows = [sent(made(classes, "shop.Order.Line", count=4)), sent(made(classes, "shop.Other", b=True))]
    rows.append(b"\0\0\0\0\7\2\x10")
    found = line.decode(rows)
    assert found.values.to_pylist() == [{"count": 4, "id": 0}, None, None]
    assert [error and error["reason"] for error in found.errors.to_pylist()] == [
        None,
        "it is a shop.Other, not a shop.Order.Line",
        "its schema has no message [8]",
    ]
    assert first.decode(rows).values.to_pylist() == [None, {"b": True}, None]


@given(st.binary(max_size=40))
def test_any_bytes_are_a_message_or_a_bad_row(noise: bytes) -> None:
    rows = [b"\0\0\0\0\7" + noise, b"\0\0\0\0\7\2\2" + noise, b"\0\0\0\0\7\0\x08\1"]
    decoded = READER.decode(rows)
    for found, error in zip(decoded.values.to_pylist(), decoded.errors.to_pylist(), strict=True):
        assert (found is None) == (error is not None)
    assert decoded.values[-1].as_py() == {"b": True}


READER = PayloadReader(TARGET, SCHEMAS)


@pytest.mark.parametrize(
    ("schema", "references", "reason"),
    [
        ("message M {", (), "it is not a schema of Protobuf: line 1"),
        ('syntax = "proto3"; message M { M next = 1; }', (), "M contains itself: a column cannot"),
        ('syntax = "proto3"; enum E { A = 0; }', (), "it has no message "),
        (ORDER, (Reference("../color.proto", "color", 1),), "a reference has the name '../color.proto'"),
        (ORDER, (Reference("/color.proto", "color", 1),), "a reference has the name '/color.proto'"),
        (ORDER, (Reference("color.proto", "color", 1),), "parts/color.proto: File not found"),
        (ORDER, (Reference("a", "color", 1), Reference("a/b", "again", 1)), "the file 'a/b' cannot be written"),
    ],
)
def test_a_schema_that_cannot_become_a_column_is_refused(schema: str, references: Any, reason: str) -> None:
    found = RegisteredSchema(8, "PROTOBUF", schema, references)
    with pytest.raises(RegisteredSchemaError, match=reason):
        PayloadReader(found, SCHEMAS)


def test_a_message_is_named_for_protobuf_only() -> None:
    found = RegisteredSchema(8, "AVRO", '"int"')
    with pytest.raises(OptionError, match="it is for Protobuf only"):
        PayloadReader(found, SCHEMAS, message="M")


CONNECT = """
syntax = "proto3";
package shop;
import "confluent/meta.proto";
import "confluent/type/decimal.proto";
import "google/type/date.proto";
import "google/type/timeofday.proto";
message Order {
  int32 id = 1 [(confluent.field_meta) = {params: [{key: "connect.type", value: "int16"}]}];
  confluent.type.Decimal price = 2 [(confluent.field_meta) = {params: [{key: "scale", value: "2"}]}];
  google.type.Date day = 3;
  google.type.TimeOfDay time = 4;
}
"""


def test_the_files_that_generators_import_are_built_in() -> None:
    schema = RegisteredSchema(1, "PROTOBUF", CONNECT)
    reader = PayloadReader(schema, StaticSchemas([schema], source="a test"))
    data = b"\0\0\0\0\1\0" + bytes.fromhex("080712080a020100100418021a0708ea0f10011802")
    (row,) = reader.decode([data]).values.to_pylist()
    assert row == {
        "id": 7,
        "price": {"value": b"\1\0", "precision": 4, "scale": 2},
        "day": {"year": 2026, "month": 1, "day": 2},
        "time": None,
    }


def test_every_built_in_file_compiles() -> None:
    imports = "".join(f'import "{name}";\n' for name in BUILT_IN_FILES)
    schema = RegisteredSchema(1, "PROTOBUF", f'syntax = "proto3";\n{imports}message M {{ int32 a = 1; }}')
    assert PayloadReader(schema, StaticSchemas([schema], source="a test")).type.names == ["a"]


@pytest.mark.parametrize("name", sorted(BUILT_IN_FILES))
def test_built_in_files_equal_the_published_ones(name: str) -> None:
    module = name.removesuffix(".proto").replace("/", ".") + "_pb2"
    published = import_module(module if name.startswith("google") else f"confluent_kafka.schema_registry.{module}")
    expected = FileDescriptorProto.FromString(published.DESCRIPTOR.serialized_pb)
    schema = RegisteredSchema(1, "PROTOBUF", f'syntax = "proto3"; import "{name}"; message M {{}}')
    files = FileDescriptorSet.FromString(compile_file_set(schema, StaticSchemas([], source="test"))).file
    (found,) = (each for each in files if each.name == name)
    for file in (expected, found):
        for part in ("options", "source_code_info", "name"):
            file.ClearField(part)
        file.dependency.sort()
    own, theirs = (re.sub(' *json_name: ".*"\n', "", str(each)) for each in (found, expected))
    assert own == theirs


def test_fields_may_have_the_names_of_methods() -> None:
    fields = "optional int32 HasField = 1; int32 IsInitialized = 2; int32 DESCRIPTOR = 3; optional int32 Clear = 4;"
    schema = RegisteredSchema(1, "PROTOBUF", f'syntax = "proto3"; message M {{ {fields} }}')
    source = StaticSchemas([schema], source="test")
    found = decode_payloads([b"\0\0\0\0\1\0" + bytes.fromhex("080110021803")], schema, source)
    assert found.values.to_pylist() == [{"HasField": 1, "IsInitialized": 2, "DESCRIPTOR": 3, "Clear": None}]
