"""JSON Schema: payloads of Confluent's serializer, and the columns of their schemas."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.errors import RegisteredSchemaError
from kafka_msgs.registry import PayloadReader, Reference, RegisteredSchema, StaticSchemas
from tests.registry.confluent import Registry, text

PLACE = text(
    type="object",
    properties={"city": {"type": "string"}, "at": {"$ref": "#/definitions/Point"}},
    definitions={"Point": {"type": "array", "items": {"type": "number"}}},
)
PERSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "$id": "http://example.com/person.json",
    "title": "Person",
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": ["null", "integer"]},
        "score": {"oneOf": [{"type": "null"}, {"type": "number"}]},
        "home": {"$ref": "place.json"},
        "kind": {"enum": ["a", "b", None]},
        "tags": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "self": {"$ref": "http://example.com/person.json#/definitions/Small"},
        "free": {"type": "object"},
        "either": {"type": ["string", "integer"]},
    },
    "definitions": {"Small": {"type": "object", "properties": {"n": {"type": "integer"}}}},
}
VALUE: dict[str, Any] = {
    "name": "ü",
    "age": 2**40,
    "score": 1.5,
    "home": {"city": "x", "at": [1.0, 2.5]},
    "kind": "b",
    "tags": {"t": True},
    "self": {"n": 1},
    "free": {"z": [1, {"ü": None}]},
    "either": 7,
}
POINT = pa.struct([("city", pa.string()), ("at", pa.list_(pa.field("element", pa.float64())))])
TYPE = pa.struct(
    [
        ("name", pa.string()),
        ("age", pa.int64()),
        ("score", pa.float64()),
        ("home", POINT),
        ("kind", pa.string()),
        ("tags", pa.map_(pa.string(), pa.bool_())),
        ("self", pa.struct([("n", pa.int64())])),
        ("free", pa.string()),
        ("either", pa.string()),
    ]
)


def of(schema: Any) -> PayloadReader:
    found = RegisteredSchema(7, "JSON", json.dumps(schema))
    return PayloadReader(found, StaticSchemas([found], source="a test"))


def payload(value: object) -> bytes:
    return b"\0\0\0\0\7" + json.dumps(value).encode()


def test_a_value_of_confluents_serializer_keeps_all_that_its_schema_names() -> None:
    place = RegisteredSchema(1, "JSON", PLACE, (), "place", 1)
    person = RegisteredSchema(2, "JSON", json.dumps(PERSON), (Reference("place.json", "place", 1),), "p-value", 1)
    registry = Registry("json")
    sent = registry.add("p-value", "JSON", text(type="object", title="Person"))
    bytes_ = registry.json("p", sent, VALUE)
    reader = PayloadReader(person, StaticSchemas([place, person, sent], source="a test"))
    assert reader.type == TYPE
    found = reader.decode([bytes_, None]).values.to_pylist()
    assert found == [VALUE | {"tags": [("t", True)], "free": '{"z":[1,{"ü":null}]}', "either": "7"}, None]


def test_values_that_the_type_has_no_place_for_are_bad_rows_alone() -> None:
    reader = of({"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "f": {}}})
    good = {"n": 1, "s": "x", "f": [1]}
    rows = [good, {"n": "1"}, {"n": 2**64}, [good], {"s": "\ud800"}, good | {"more": 1}, {}, {"n": 1.0}]
    decoded = reader.decode([payload(each) for each in rows] + [b"\0\0\0\0\7{", b"\0\0\0\0\7" + b"[" * 10**5])
    shown = {"n": 1, "s": "x", "f": "[1]"}
    assert decoded.values.to_pylist() == [
        shown,
        None,
        None,
        None,
        None,
        shown,
        dict.fromkeys(shown),
        {"n": 1, "s": None, "f": None},
        None,
        None,
    ]
    assert decoded.errors.is_valid().to_pylist() == [False, True, True, True, True, False, False, False, True, True]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, "# contains itself"),
        ({"type": "object", "properties": {"a": {"$ref": "other.json"}}}, "it is not a JSON Schema: Unresolvable"),
        ({"oneOf": 5}, "it is not a JSON Schema"),
    ],
)
def test_a_schema_that_cannot_become_a_column_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises(RegisteredSchemaError, match=reason):
        of(schema)


@pytest.mark.parametrize("schema", [True, {}, {"type": ["string", "integer"]}, {"enum": [1, "a"]}, {"type": "array"}])
def test_what_has_no_one_type_is_its_text(schema: Any) -> None:
    assert of(schema).decode([payload({"a": [1]}), payload(None)]).values.to_pylist() == ['{"a":[1]}', None]


SOME = {
    "name": {"type": "string"},
    "list": {"type": "array", "items": {"type": "integer"}},
    "map": {"type": "object", "additionalProperties": {"type": "number"}},
}
FIXED = [{"name": "x"}, [["name", "x"]], {"map": [["a", 1]]}, {"map": {"a": True}}]
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
)


@given(ANY_JSON)
def test_any_json_is_a_value_or_a_bad_row(value: Any) -> None:
    rows = [value, *({name: value} for name in SOME), *FIXED]
    decoded = of({"type": "object", "properties": SOME}).decode([payload(each) for each in rows])
    for row, found, error in zip(rows, decoded.values.to_pylist(), decoded.errors.to_pylist(), strict=True):
        assert (found is None) == (error is not None or row is None)
    assert decoded.values[-4].as_py() == {"name": "x", "list": None, "map": None}
    assert decoded.errors.is_valid().to_pylist()[-4:] == [False, True, True, True]


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf"])
@pytest.mark.parametrize(
    "null", [{"type": "null", "title": "Not included"}, {"type": ["null"]}, {"enum": [None]}, {"const": None}]
)
def test_a_nullable_part_may_have_a_title_of_null(keyword: str, null: dict[str, Any]) -> None:
    parts = {"n": {keyword: [null, {"type": "integer"}]}, "o": {keyword: [{"$ref": "#/definitions/O"}, null]}}
    other = {"O": {"type": "object", "properties": {"x": {"type": "string"}}}}
    schema = RegisteredSchema(1, "JSON", text(type="object", properties=parts, definitions=other))
    found = PayloadReader(schema, StaticSchemas([schema], source="a test"))
    assert found.type == pa.struct([("n", pa.int64()), ("o", pa.struct([("x", pa.string())]))])


@pytest.mark.parametrize("word", ["definitions", "$defs"])
@pytest.mark.parametrize("siblings", [{}, {"$schema": "http://json-schema.org/draft-07/schema#", "title": "t"}])
def test_a_reference_at_the_root(word: str, siblings: dict[str, Any]) -> None:
    point = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"$ref": f"#/{word}/Y"}}}
    content = {"$ref": f"#/{word}/Point", word: {"Point": point, "Y": {"type": "string"}}, **siblings}
    schema = RegisteredSchema(1, "JSON", json.dumps(content))
    found = PayloadReader(schema, StaticSchemas([schema], source="a test"))
    assert found.type == pa.struct([("x", pa.int64()), ("y", pa.string())])


def test_a_root_that_is_a_registered_reference() -> None:
    place = RegisteredSchema(1, "JSON", PLACE, (), "place", 1)
    root = RegisteredSchema(2, "JSON", text(**{"$ref": "place.json"}), (Reference("place.json", "place", 1),), "r", 1)
    assert PayloadReader(root, StaticSchemas([place, root], source="a test")).type.names == ["city", "at"]


INTEGER = {"type": "integer"}


def column(schema: dict[str, Any], value: bytes) -> Any:
    registered = RegisteredSchema(1, "JSON", json.dumps(schema))
    reader = PayloadReader(registered, StaticSchemas([registered], source="test"))
    found = reader.decode([b"\0\0\0\0\1" + value])
    assert found.error_count == 0
    return found.values.to_pylist()[0]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": INTEGER}, "allOf": [{"properties": {"b": INTEGER}}]},
        {"properties": {"a": INTEGER}, "oneOf": [{"type": "null"}, {"properties": {"b": INTEGER}}]},
        {"anyOf": [{"properties": {"a": INTEGER}}], "allOf": [{"properties": {"b": INTEGER}}]},
        {"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": INTEGER}}}, "properties": {"b": INTEGER}},
    ],
)
def test_fields_that_a_schema_describes_in_two_places_are_not_lost(schema: dict[str, Any]) -> None:
    assert column(schema, b'{"a":1,"b":2}') == '{"a":1,"b":2}'


def test_a_combination_may_allow_or_refuse_further_properties() -> None:
    schema = {"allOf": [{"properties": {"a": INTEGER}}], "additionalProperties": False, "title": "Order"}
    assert column(schema, b'{"a":1}') == {"a": 1}


@pytest.mark.parametrize(
    "schema",
    [
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "properties": {"a": {"$ref": "#number"}},
            "$defs": {"number": {"$anchor": "number", **INTEGER}},
        },
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "id": "http://example.com/order.json",
            "properties": {"a": {"$ref": "#number"}},
            "definitions": {"number": {"id": "#number", **INTEGER}},
        },
        {"$schema": "http://example.com/unknown", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": INTEGER}},
    ],
)
def test_references_follow_the_rules_of_their_draft(schema: dict[str, Any]) -> None:
    assert column(schema, b'{"a":1}') == {"a": 1}


def test_a_part_with_an_address_contains_its_own_definitions() -> None:
    part = {
        "$id": "http://example.com/part.json",
        "properties": {"b": {"$ref": "#/definitions/value"}},
        "definitions": {"value": INTEGER},
    }
    schema = {"properties": {"a": part}, "definitions": {"value": {"type": "string"}}}
    assert column(schema, b'{"a":{"b":1}}') == {"a": {"b": 1}}


def test_text_is_never_infinite() -> None:
    registered = RegisteredSchema(1, "JSON", "{}")
    found = PayloadReader(registered, StaticSchemas([registered], source="test")).decode([b"\0\0\0\0\1[1e400]"])
    assert found.values.to_pylist() == [None]
    assert found.error_count == 1
