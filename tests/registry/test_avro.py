"""Avro: payloads of Confluent's serializer, read by Confluent's deserializer and by this library."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from io import BytesIO
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.errors import PayloadError, RegisteredSchemaError
from kafka_msgs.registry import PayloadReader, Reference, RegisteredSchema, StaticSchemas, decode_payloads
from tests.registry.confluent import Registry, text

UTC = datetime.UTC
LINE = text(
    type="record", name="shop.Line", fields=[{"name": "sku", "type": "string"}, {"name": "count", "type": "int"}]
)
FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
    {"name": "time", "type": {"type": "int", "logicalType": "time-millis"}},
    {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
    {"name": "tax", "type": {"type": "fixed", "name": "Tax", "size": 4, "logicalType": "decimal", "precision": 6}},
    {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
    {"name": "before", "type": ["null", "State"], "default": None},
    {"name": "raw", "type": {"type": "fixed", "name": "Raw", "size": 2}},
    {"name": "lines", "type": {"type": "array", "items": "shop.Line"}},
    {"name": "notes", "type": {"type": "map", "values": ["null", "string"]}},
    {
        "name": "what",
        "type": ["null", "boolean", "double", "bytes", "State", "shop.Line", {"type": "array", "items": "int"}],
    },
    {"name": "ratio", "type": "float"},
]
ORDER = text(type="record", name="Order", namespace="shop", fields=FIELDS)
VALUE: dict[str, Any] = {
    "id": 2**60,
    "at": datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, UTC),
    "local": datetime.datetime(2026, 1, 2, 3, 4, 5, 678901),
    "day": datetime.date(2026, 1, 2),
    "time": datetime.time(0, 0, 1),
    "key": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "price": Decimal("12.34"),
    "tax": Decimal(7),
    "state": "PAID",
    "before": "NEW",
    "raw": b"\1\2",
    "lines": [{"sku": "a", "count": 1}, {"sku": "ü", "count": -1}],
    "notes": {"a": "b", "c": None},
    "what": None,
    "ratio": 0.5,
}
MEMBERS = [
    (True, "member0", True),
    (1.5, "member1", 1.5),
    (b"x", "member2", b"x"),
    (("shop.State", "NEW"), "member3", "NEW"),
    (("shop.Line", {"sku": "s", "count": 2}), "member4", {"sku": "s", "count": 2}),
    ([1, 2], "member5", [1, 2]),
]


@pytest.fixture
def registry() -> Registry:
    return Registry("avro")


def orders(registry: Registry) -> RegisteredSchema:
    registry.add("line", "AVRO", LINE)
    return registry.add("orders-value", "AVRO", ORDER, (Reference("shop.Line", "line", 1),))


def test_a_value_is_what_confluents_deserializer_returns(registry: Registry) -> None:
    schema = orders(registry)
    payload = registry.avro("orders", schema, VALUE)
    theirs = registry.avro_read("orders", schema, payload)
    decoded = decode_payloads([payload, None], schema, registry.schemas)
    ours, nothing = decoded.values.to_pylist()
    assert nothing is None
    assert decoded.error_count == 0
    assert ours["notes"] == list(theirs.pop("notes").items())
    assert ours["time"] == 1000
    assert theirs.pop("time") == VALUE["time"]
    assert str(theirs.pop("key")) == ours["key"]
    assert {name: ours[name] for name in theirs} == theirs == {name: VALUE[name] for name in theirs}


@pytest.mark.parametrize(("value", "member", "held"), MEMBERS)
def test_a_union_of_several_has_a_field_for_each(registry: Registry, value: object, member: str, held: object) -> None:
    schema = orders(registry)
    payload = registry.avro("orders", schema, VALUE | {"what": value})
    found = decode_payloads([payload], schema, registry.schemas).values[0].as_py()["what"]
    assert found == {f"member{number}": None for number in range(6)} | {member: held}


def test_values_of_an_older_schema_become_those_of_the_newer(registry: Registry) -> None:
    before = text(type="record", name="R", fields=[{"name": "a", "type": "int"}, {"name": "gone", "type": "string"}])
    after = text(
        type="record",
        name="R",
        fields=[
            {"name": "b", "type": ["null", "double"], "default": 2.5, "aliases": ["x"]},
            {"name": "a", "type": ["null", "long", "string"]},
            {"name": "new", "type": "string", "default": "n"},
        ],
    )
    old, new = registry.add("r-value", "AVRO", before), registry.add("r-value", "AVRO", after)
    payloads = [
        registry.avro("r", old, {"a": 1, "gone": "x"}),
        registry.avro("r", new, {"b": None, "a": "s", "new": "m"}),
    ]
    values = decode_payloads(payloads, registry.schemas.latest("r-value"), registry.schemas).values.to_pylist()
    assert values == [
        {"b": 2.5, "a": {"member0": 1, "member1": None}, "new": "n"},
        {"b": None, "a": {"member0": None, "member1": "s"}, "new": "m"},
    ]
    assert registry.avro_read("r", new, payloads[0]) == {"b": 2.5, "a": 1, "new": "n"}


def written(schema_id: int, schema: Any, value: object) -> bytes:
    """Return a payload written by another library: Confluent's serializer supports only records."""
    stream = BytesIO()
    schemaless_writer(stream, schema, value)
    return bytes(1) + schema_id.to_bytes(4) + stream.getvalue()


@pytest.mark.parametrize(
    ("schema", "value"),
    [("string", "text"), ("long", 5), (["null", "int"], None), ({"type": "array", "items": "int"}, [1])],
)
def test_a_schema_need_not_be_a_record(schema: Any, value: object) -> None:
    found = RegisteredSchema(7, "AVRO", json.dumps(schema))
    schemas = StaticSchemas([found], source="a test")
    assert decode_payloads([written(7, schema, value)], found, schemas).values.to_pylist() == [value]


NOISY = {
    "type": "record",
    "name": "N",
    "fields": [
        {"name": "a", "type": {"type": "array", "items": ["null", "long", {"type": "map", "values": "bytes"}]}},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1}},
        {"name": "s", "type": "string"},
    ],
}


@given(st.binary(max_size=60), st.integers(0, 60))
def test_any_bytes_are_a_value_or_a_bad_row(noise: bytes, cut: int) -> None:
    schema = RegisteredSchema(7, "AVRO", json.dumps(NOISY))
    good = written(
        7, parse_schema(NOISY), {"a": [None, 5, {"k": b"v"}] * 3, "t": 10**12, "d": Decimal("1.5"), "s": "x"}
    )
    rows = [noise, good[:5] + noise, good[:cut] + noise, None, good]
    decoded = decode_payloads(rows, schema, StaticSchemas([schema], source="a test"))
    for value, error, row in zip(decoded.values.to_pylist(), decoded.errors.to_pylist(), rows, strict=True):
        assert (value is None) == (error is not None or row is None)
    assert decoded.values[-1].is_valid


def test_a_bad_row_ends_the_work_on_request(registry: Registry) -> None:
    schema = orders(registry)
    payload = registry.avro("orders", schema, VALUE)
    with pytest.raises(PayloadError, match=f"row 1 of schema {schema.id}: 1 bytes follow the value") as caught:
        decode_payloads([payload, payload + b"1"], schema, registry.schemas, on_error="raise")
    assert (caught.value.row, caught.value.schema_id) == (1, schema.id)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{", "it is not a schema of Avro"),
        ('{"type": "record", "name": "R", "fields": [{"name": "f", "type": "Q"}]}', "it is not a schema of Avro"),
        (
            '{"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}',
            "R contains itself: a column cannot",
        ),
        ("[" * 5000, "it is not a schema of Avro"),
    ],
)
def test_a_schema_that_cannot_become_a_column_is_refused(schema: str, reason: str) -> None:
    found = RegisteredSchema(7, "AVRO", schema)
    with pytest.raises(RegisteredSchemaError, match=f"schema 7: {reason}"):
        PayloadReader(found, StaticSchemas([found], source="a test"))


def test_types_that_multiply_are_refused_before_they_have_filled_the_memory() -> None:
    fields = [{"name": "f0", "type": {"type": "record", "name": "R0", "fields": [{"name": "a", "type": "int"}]}}]
    for level in range(1, 40):
        pair = [{"name": "a", "type": f"R{level - 1}"}, {"name": "b", "type": f"R{level - 1}"}]
        fields.append({"name": f"f{level}", "type": {"type": "record", "name": f"R{level}", "fields": pair}})
    found = RegisteredSchema(7, "AVRO", text(type="record", name="R", fields=fields))
    with pytest.raises(RegisteredSchemaError, match="more than 10,000 fields"):
        PayloadReader(found, StaticSchemas([found], source="a test"))


def test_an_array_of_nothing_is_refused_since_a_few_bytes_could_announce_any_number() -> None:
    inner = {"type": "record", "name": "E", "fields": [{"name": "n", "type": "null"}]}
    for items in ("null", inner, {"type": "fixed", "name": "F", "size": 0}):
        found = RegisteredSchema(7, "AVRO", text(type="array", items=items))
        decoded = decode_payloads([b"\0\0\0\0\7" + b"\xfe" * 8 + b"\1"], found, StaticSchemas([found], source="a test"))
        assert decoded.errors[0].as_py()["reason"] == "schema 7: it has an array of items without bytes"
