"""Avro in hostile and unusual forms: deep and recursive schemas, overlong integers, and defaults of every type."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Context, Decimal
from typing import Any

import pytest

from kafka_msgs.errors import PayloadError, RegisteredSchemaError
from kafka_msgs.registry import (
    PayloadDeserializer,
    PayloadReader,
    PayloadSerializer,
    Reference,
    RegisteredSchema,
    StaticSchemas,
    decode_payloads,
)
from kafka_msgs.registry.avro import decoder
from tests.registry.confluent import Registry, text

LIST = {"type": "record", "name": "List", "fields": [{"name": "next", "type": ["null", "List"]}]}
WITH_LIST = text(
    type="record", name="R", fields=[{"name": "a", "type": "int"}, {"name": "list", "type": ["null", LIST]}]
)
WITHOUT = text(type="record", name="R", fields=[{"name": "a", "type": "int"}])


def schemas(*texts: str) -> StaticSchemas:
    found = (RegisteredSchema(number, "AVRO", each, (), f"s{number}", 1) for number, each in enumerate(texts, 1))
    return StaticSchemas(found, source="a test")


def payload(schema_id: int, data: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + data


def read(source: StaticSchemas, target: int, *payloads: bytes) -> Any:
    return PayloadReader(source.by_id(target), source).decode(list(payloads))


def test_a_recursive_part_that_the_reader_lacks_is_read_to_a_limited_depth() -> None:
    source = schemas(WITH_LIST, WITHOUT)
    shallow, deep = (payload(1, b"\x0e\x02" + b"\x02" * depth + b"\0") for depth in (50, 1_000_000))
    found = read(source, 2, shallow, deep)
    assert found.values.to_pylist() == [{"a": 7}, None]
    assert "nested more than 200 levels deep" in found.errors.to_pylist()[1]["reason"]


def test_a_recursive_value_is_read_to_a_limited_depth() -> None:
    source = schemas(json.dumps(LIST))
    decode = decoder(source.by_id(1), None, source, None)
    assert decode(b"\x02\x02\0") == {"next": {"next": {"next": None}}}
    with pytest.raises(ValueError, match="nested more than 200 levels deep"):
        decode(b"\x02" * 1_000_000 + b"\0")


def nested(depth: int) -> str:
    return '{"type": "array", "items": ' * depth + '"int"' + "}" * depth


def chain(length: int) -> str:
    """Return records that each contain the next one by name, so that the JSON is flat."""
    records = [
        {"type": "record", "name": f"R{n}", "fields": [{"name": "x", "type": f"R{n + 1}" if n < length else "int"}]}
        for n in range(length + 1)
    ]
    return json.dumps(records[::-1])


@pytest.mark.parametrize("written", [nested(100_000), nested(400), chain(300)])
def test_a_schema_that_is_nested_too_deeply_is_refused_before_the_library_sees_it(written: str) -> None:
    source = schemas(written, '"int"')
    with pytest.raises(RegisteredSchemaError):
        PayloadReader(source.by_id(1), source)
    assert read(source, 2, payload(1, b"\x02")).values.to_pylist() == [None]


@pytest.mark.parametrize("data", [b"\x80" * 10 + b"\0", b"\xff" * 12 + b"\1", b"\x80" * 100 + b"\0"])
def test_an_integer_of_more_than_ten_bytes_is_an_error(data: bytes) -> None:
    source = schemas('"long"')
    found = read(source, 1, payload(1, data))
    assert found.values.to_pylist() == [None]
    assert "has more than 10 bytes" in found.errors.to_pylist()[0]["reason"]


@pytest.mark.parametrize("value", [-(2**63), 2**63 - 1])
def test_an_integer_of_ten_bytes_and_long_texts_are_read(value: int) -> None:
    zigzag = (value << 1) ^ (value >> 63)
    data = bytes((zigzag >> 7 * n & 0x7F) | (0x80 if n < 9 else 0) for n in range(10))
    fields = [{"name": "n", "type": "long"}, {"name": "t", "type": "string"}]
    source = schemas(text(type="record", name="R", fields=fields))
    written = "größer 大きい" * 5
    raw = written.encode()
    size = bytes([len(raw) << 1 & 0x7F | 0x80, len(raw) << 1 >> 7])
    (row,) = read(source, 1, payload(1, data + size + raw)).values.to_pylist()
    assert row == {"n": value, "t": written}


INNER = {
    "type": "record",
    "name": "Inner",
    "fields": [
        {"name": "n", "type": "int", "default": 3},
        {"name": "raw", "type": {"type": "fixed", "name": "Raw", "size": 2}, "default": "\u00fe\u0001"},
    ],
}
DEFAULTS: list[tuple[str, Any, Any, Any]] = [
    ("bytes", "bytes", "\u00ff\u0000a", b"\xff\0a"),
    ("fixed", {"type": "fixed", "name": "F", "size": 2}, "\u0080b", b"\x80b"),
    ("double", "double", 1, 1.0),
    ("float", "float", 2, 2.0),
    ("text", "string", "größe", "größe"),
    ("enum", {"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
    ("array", {"type": "array", "items": "bytes"}, ["\u00fe"], [b"\xfe"]),
    ("map", {"type": "map", "values": "double"}, {"a": 1}, [("a", 1.0)]),
    ("inner", INNER, {}, {"n": 3, "raw": b"\xfe\1"}),
    ("inner2", INNER, {"n": 9}, {"n": 9, "raw": b"\xfe\1"}),
    ("nested", {"type": "array", "items": INNER}, [{}], [{"n": 3, "raw": b"\xfe\1"}]),
    ("nullable", ["null", "bytes"], None, None),
    ("nullable2", ["bytes", "null"], "\u00ff", b"\xff"),
    ("record_first", [INNER, "null"], {}, {"n": 3, "raw": b"\xfe\1"}),
    (
        "decimal",
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
        "\u0001\u0000",
        Decimal("2.56"),
    ),
]


@pytest.mark.parametrize(("name", "kind", "default", "value"), DEFAULTS, ids=[each[0] for each in DEFAULTS])
def test_the_default_of_a_field_that_the_writer_lacks(name: str, kind: Any, default: Any, value: Any) -> None:
    fields = [{"name": "a", "type": "int"}, {"name": "x", "type": kind, "default": default}]
    source = schemas(WITHOUT, text(type="record", name="R", fields=fields))
    (row,) = read(source, 2, payload(1, b"\x02")).values.to_pylist()
    assert row == {"a": 1, "x": value}
    decoded = decoder(source.by_id(1), source.by_id(2), source, None)(b"\x02")
    assert decoded == {"a": 1, "x": dict(value) if name == "map" else value}


@pytest.mark.parametrize(("kind", "default"), [("bytes", 1), (INNER, None), ({"type": "array", "items": "int"}, 5)])
def test_a_default_of_another_type_is_an_error_of_the_schema(kind: Any, default: Any) -> None:
    fields = [{"name": "a", "type": "int"}, {"name": "x", "type": kind, "default": default}]
    source = schemas(WITHOUT, text(type="record", name="R", fields=fields))
    with pytest.raises(RegisteredSchemaError, match="it is not a schema of Avro"):
        PayloadReader(source.by_id(2), source)


@pytest.mark.parametrize(
    ("precision", "scale", "column", "value"),
    [
        (64, 2, Decimal("2.56"), Decimal("2.56")),
        (0, 0, b"\1\0", b"\1\0"),
        (-1, 0, b"\1\0", b"\1\0"),
        (100, 2, b"\1\0", Decimal("2.56")),
        (2, 5, b"\1\0", b"\1\0"),
        ("4", 0, b"\1\0", b"\1\0"),
    ],
)
def test_decimals_of_unusual_precision(precision: Any, scale: int, column: Any, value: Any) -> None:
    source = schemas(json.dumps({"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}))
    assert read(source, 1, payload(1, b"\x04\1\0")).values.to_pylist() == [column]
    assert decoder(source.by_id(1), None, source, None)(b"\x04\1\0") == value


@pytest.mark.parametrize(
    "schema",
    ['{"type": "record"}', '{"type": "fixed", "name": "f"}', "[]x", '{"type": "enum", "name": "e"}', '"nothing"', "7"],
)
def test_what_is_not_a_schema_is_one_kind_of_error(schema: str) -> None:
    source = schemas(schema)
    with pytest.raises(RegisteredSchemaError):
        PayloadReader(source.by_id(1), source)
    with pytest.raises(RegisteredSchemaError):
        decoder(source.by_id(1), None, source, None)


def test_no_module_of_the_working_directory_is_run(tmp_path: Any) -> None:
    (tmp_path / "grpc_tools").mkdir()
    (tmp_path / "grpc_tools" / "__init__.py").write_text("")
    (tmp_path / "grpc_tools" / "protoc.py").write_text("open('ran', 'w')")
    (tmp_path / "app.py").write_text(
        "from kafka_msgs.registry import RegisteredSchema, StaticSchemas, PayloadReader\n"
        "schema = RegisteredSchema(1, 'PROTOBUF', 'syntax = \"proto3\"; message M { int32 a = 1; }')\n"
        "print(PayloadReader(schema, StaticSchemas([schema], source='x')).type)\n"
    )
    code = (
        f"import sys; sys.path = [p for p in sys.path if p not in ('', {str(tmp_path)!r})]; exec(open('app.py').read())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()


def test_payload_errors_name_the_row() -> None:
    source = schemas('"long"')
    with pytest.raises(PayloadError, match="row 1"):
        PayloadReader(source.by_id(1), source).decode([payload(1, b"\2"), payload(1, b"\x80" * 11)], on_error="raise")


FIRST: dict[str, Any] = {"type": "record", "name": "first.Sale", "fields": [{"name": "units", "type": "int"}]}
SECOND: dict[str, Any] = {
    "type": "record",
    "name": "second.Sale",
    "fields": [{"name": "units", "type": "int"}, {"name": "shop", "type": "string"}],
}


def test_branches_that_differ_only_in_their_namespace_are_distinct() -> None:
    source = schemas(json.dumps([FIRST, SECOND]), json.dumps(["null", FIRST, SECOND]))
    data = payload(1, b"\2\6\2x")
    assert PayloadDeserializer(source, schema=source.by_id(2))(data) == {"units": 3, "shop": "x"}
    (row,) = read(source, 2, data).values.to_pylist()
    assert row == {"member0": None, "member1": {"units": 3, "shop": "x"}}


def test_a_renamed_branch_is_found_by_its_alias_although_another_has_the_same_short_name() -> None:
    renamed = SECOND | {"name": "third.Sale", "aliases": ["second.Sale"]}
    source = schemas(json.dumps([FIRST, SECOND]), json.dumps([FIRST, renamed]))
    assert PayloadDeserializer(source, schema=source.by_id(2))(payload(1, b"\2\6\2x")) == {"units": 3, "shop": "x"}


@pytest.mark.parametrize(
    ("root", "value", "data"),
    [
        (["first.Sale", "second.Sale"], {"units": 3, "shop": "x"}, "02060278"),
        ("first.Sale", {"units": 3}, "06"),
        ({"type": "array", "items": "first.Sale"}, [{"units": 3}], "020600"),
        ({"type": "map", "values": ["null", "first.Sale"]}, {"k": None}, "02026b0000"),
    ],
)
def test_schemas_other_than_records_may_refer_to_types_of_other_subjects(root: Any, value: Any, data: str) -> None:
    references = (Reference("first.Sale", "first", 1), Reference("second.Sale", "second", 1))
    texts = [(FIRST, "first", ()), (SECOND, "second", ()), (root, "events", references)]
    source = StaticSchemas(
        [
            RegisteredSchema(number, "AVRO", json.dumps(schema), uses, subject, 1)
            for number, (schema, subject, uses) in enumerate(texts, 1)
        ],
        source="test",
    )
    encoded = payload(3, bytes.fromhex(data))
    assert PayloadSerializer(source.by_id(3), source)(value) == encoded
    assert PayloadDeserializer(source)(encoded) == value
    assert read(source, 3, encoded).error_count == 0


def test_a_default_of_bytes_in_an_array_at_the_root() -> None:
    fields = [{"name": "units", "type": "int"}, {"name": "raw", "type": "bytes", "default": "\u00ff"}]
    items = FIRST | {"fields": fields}
    texts = [json.dumps({"type": "array", "items": each}) for each in (FIRST, items)]
    source = schemas(*texts)
    found = PayloadDeserializer(source, schema=source.by_id(2))(payload(1, b"\2\6\0"))
    assert found == [{"units": 3, "raw": b"\xff"}]


def test_bytes_at_the_root_have_no_length() -> None:
    """Confluent's serializers write them as they are, in Java and in Python."""
    registry = Registry("bytes")
    registered = registry.add("bytes-value", "AVRO", text(type="bytes"))
    written = registry.avro("bytes", registered, b"\2abc")
    assert PayloadSerializer(registered, registry.schemas)(b"\2abc") == written
    assert registry.avro_read("bytes", registered, written) == b"\2abc"
    assert PayloadDeserializer(registry.schemas)(written) == b"\2abc"
    assert decode_payloads([written], registered, registry.schemas).values.to_pylist() == [b"\2abc"]


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("int", 2**31),
        ("int", True),
        ("long", 2**63),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B"),
        ({"type": "fixed", "name": "F", "size": 2}, "abc"),
        ({"type": "array", "items": "int"}, ["x"]),
        ({"type": "map", "values": "string"}, {"k": 1}),
        (["null", "int"], 2**31),
    ],
)
def test_a_default_that_is_not_of_its_type_is_refused(type_: Any, default: Any) -> None:
    fields = [*FIRST["fields"], {"name": "added", "type": type_, "default": default}]
    source = schemas(json.dumps(FIRST), json.dumps(FIRST | {"fields": fields}))
    with pytest.raises(RegisteredSchemaError, match="a default of the type"):
        PayloadDeserializer(source, schema=source.by_id(2))(payload(1, b"\6"))


DECIMAL: dict[str, Any] = {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 1}


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("int", 2**31),
        ("int", 1.5),
        ("int", True),
        ("boolean", "false"),
        ("null", 5),
        ({"type": "array", "items": "string"}, "abc"),
        ({"type": "array", "items": "int"}, {1: 2}),
        (DECIMAL, Decimal("99")),
        (DECIMAL, Decimal("0.12")),
        (DECIMAL, Decimal("NaN")),
        (DECIMAL, Decimal("Infinity")),
        (DECIMAL | {"type": "fixed", "name": "F", "size": 1}, Decimal("-99")),
        (FIRST, {"units": 1, "unit": 2}),
        (FIRST | {"fields": [{"name": "units", "type": ["null", "int"]}]}, {}),
    ],
)
def test_a_value_that_the_schema_does_not_allow_is_not_written(type_: Any, value: Any) -> None:
    """``fastavro`` would write another value: 1 for 1.5, true for "false", 3.4 for -99, null for a missing field."""
    source = schemas(json.dumps(FIRST | {"fields": [{"name": "field", "type": type_}]} if type_ == "null" else type_))
    with pytest.raises(PayloadError):
        PayloadSerializer(source.by_id(1), source)({"field": value} if type_ == "null" else value)


@pytest.mark.parametrize("precision", range(1, 65))
def test_decimals_of_every_precision_are_written_and_read(precision: int) -> None:
    for scale in {0, precision // 2, precision}:
        source = schemas(json.dumps(DECIMAL | {"precision": precision, "scale": scale}))
        for unscaled in (10**precision - 1, 1 - 10**precision, 0, -1, 127, -128):
            if abs(unscaled) < 10**precision:
                value = Decimal(unscaled).scaleb(-scale, Context(prec=100))
                written = PayloadSerializer(source.by_id(1), source)(value)
                assert written is not None
                assert PayloadDeserializer(source)(written) == value
                assert read(source, 1, written).values.to_pylist() == [value]


def test_an_integer_in_a_union_belongs_to_an_integer_branch() -> None:
    source = schemas('["double", "long"]')
    write = PayloadSerializer(source.by_id(1), source)
    assert PayloadDeserializer(source)(write(2**60 + 1)) == 2**60 + 1
    assert PayloadDeserializer(source)(write(1.0)) == 1.0
