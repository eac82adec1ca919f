"""Single values both ways, compared with Confluent's serializers and deserializers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from kafka_msgs.errors import OptionError, PayloadError, RegisteredSchemaError, UnknownSchemaError
from kafka_msgs.registry import PayloadDeserializer, PayloadSerializer, RegisteredSchema, StaticSchemas
from tests.registry import test_protobuf as protobuf
from tests.registry.confluent import Registry, text

OLD = text(type="record", name="Order", fields=[{"name": "id", "type": "long"}, {"name": "note", "type": "string"}])
NEW = text(
    type="record",
    name="Order",
    fields=[{"name": "id", "type": "long"}, {"name": "state", "type": "string", "default": "NEW"}],
)
SCHEMA = text(type="object", properties={"id": {"type": "integer"}}, title="Order")


def test_avro_payloads_are_those_of_confluents_serializer() -> None:
    registry = Registry("avro-values")
    schema = registry.add("orders-value", "AVRO", OLD)
    value = {"id": 2**60, "note": "ü"}
    payload = PayloadSerializer(schema, registry.schemas)(value)
    assert payload == registry.avro("orders", schema, value)
    assert payload is not None
    assert registry.avro_read("orders", schema, payload) == value
    assert PayloadDeserializer(registry.schemas)(payload) == value


def test_avro_values_are_resolved_to_the_schema_of_the_reader() -> None:
    registry = Registry("avro-resolution")
    old, new = registry.add("orders-value", "AVRO", OLD), registry.add("new-value", "AVRO", NEW)
    payload = PayloadSerializer(old, registry.schemas)({"id": 1, "note": "n"})
    assert payload is not None
    assert PayloadDeserializer(registry.schemas, schema=new)(payload) == {"id": 1, "state": "NEW"}
    assert registry.avro_read("orders", new, payload) == {"id": 1, "state": "NEW"}


def test_json_payloads_are_those_of_confluents_serializer() -> None:
    registry = Registry("json-values")
    schema = registry.add("orders-value", "JSON", SCHEMA)
    value = {"id": 1, "more": [None, "ü", 0.5]}
    payload = PayloadSerializer(schema, registry.schemas)(value)
    theirs = registry.json("orders", schema, value)
    assert payload is not None
    assert (payload[:5], json.loads(payload[5:])) == (theirs[:5], json.loads(theirs[5:]))
    read = JSONDeserializer(SCHEMA, schema_registry_client=registry.client)
    assert read(payload, SerializationContext("orders", MessageField.VALUE)) == value
    assert PayloadDeserializer(registry.schemas)(theirs) == value


classes = protobuf.classes


@pytest.mark.parametrize("name", ["shop.Other", "shop.Order", "shop.Order.Line"])
def test_protobuf_payloads_are_those_of_confluents_serializer(classes: Any, name: str) -> None:
    message = protobuf.made(classes, name)
    for field in message.DESCRIPTOR.fields:
        if not field.is_repeated and field.message_type is None:
            setattr(message, field.name, type(getattr(message, field.name))(1) if field.type != 12 else b"1")
    theirs = protobuf.sent(message)
    serialize = PayloadSerializer(protobuf.TARGET, protobuf.SCHEMAS)
    assert serialize(message) == theirs
    read = PayloadDeserializer(protobuf.SCHEMAS, message=name)(theirs)
    assert read.SerializeToString() == message.SerializeToString()


def test_protobuf_takes_dicts(classes: Any) -> None:
    message = protobuf.made(classes, "shop.Order", id=7, card="c")
    serialize = PayloadSerializer(protobuf.TARGET, protobuf.SCHEMAS, message="shop.Order")
    assert serialize({"id": 7, "card": "c"}) == protobuf.sent(message)


def test_a_tombstone_stays_one() -> None:
    registry = Registry("tombstones")
    schema = registry.add("orders-value", "AVRO", OLD)
    assert PayloadSerializer(schema, registry.schemas)(None) is None
    assert PayloadDeserializer(registry.schemas)(None) is None


def test_what_does_not_fit_is_an_error() -> None:
    registry = Registry("errors")
    schema = registry.add("orders-value", "AVRO", OLD)
    serialize, deserialize = PayloadSerializer(schema, registry.schemas), PayloadDeserializer(registry.schemas)
    with pytest.raises(PayloadError):
        serialize({"id": "x"})
    good = serialize({"id": 1, "note": "n"}) or b""
    for payload in (b"", b"\1\0\0\0\1", good[:-1], good + b"x"):
        with pytest.raises(PayloadError):
            deserialize(payload)
    with pytest.raises(UnknownSchemaError):
        deserialize(b"\0\0\0\1\0x")
    with pytest.raises(OptionError, match="for Protobuf only"):
        PayloadSerializer(schema, registry.schemas, message="M")
    bad = RegisteredSchema(9, "AVRO", '{"type": "nonsense"}')
    with pytest.raises(RegisteredSchemaError):
        PayloadSerializer(bad, StaticSchemas([bad], source="a test"))
    other = registry.add("json-value", "JSON", SCHEMA)
    with pytest.raises(PayloadError, match="of the kind AVRO, expected JSON"):
        PayloadDeserializer(registry.schemas, schema=other)(serialize({"id": 1, "note": "n"}))
