"""Confluent's own serializers over a registry in memory: payloads from code other than this library."""

from __future__ import annotations

import json
import warnings
from typing import Any

from kafka_msgs.registry import Reference, RegisteredSchema, StaticSchemas

with warnings.catch_warnings():
    # Warnings by one of Confluent's dependencies about another dependency.
    warnings.simplefilter("ignore")
    from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    from confluent_kafka.schema_registry.json_schema import JSONSerializer
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

__all__ = ["Registry", "SchemaRegistryClient", "text"]


_USED = {"auto.register.schemas": False, "use.latest.version": False}


class Registry:
    """A registry in memory, with its client and the same schemas for this library."""

    def __init__(self, name: str) -> None:
        self.client: Any = SchemaRegistryClient.new_client({"url": f"mock://{name}"})
        self._added: list[RegisteredSchema] = []

    @property
    def schemas(self) -> StaticSchemas:
        """All schemas that were added."""
        return StaticSchemas(self._added, source="the registry of a test")

    def add(self, subject: str, kind: str, text: str, references: tuple[Reference, ...] = ()) -> RegisteredSchema:
        """Register a schema and return it as a ``RegisteredSchema``."""
        theirs = [SchemaReference(each.name, each.subject, each.version) for each in references]
        schema_id = self.client.register_schema(subject, Schema(text, kind, theirs))
        known = self.client.lookup_schema(subject, Schema(text, kind, theirs))
        found = RegisteredSchema(schema_id, kind, text, references, subject, known.version)  # type: ignore[arg-type]
        self._added.append(found)
        return found

    def avro(self, topic: str, schema: RegisteredSchema, value: object) -> bytes:
        """Return the bytes that a producer with an ``AvroSerializer`` sends for a value."""
        made = AvroSerializer(self.client, Schema(schema.text, "AVRO", self._references(schema)), conf=_USED)
        return bytes(made(value, SerializationContext(topic, MessageField.VALUE)))

    def avro_read(self, topic: str, schema: RegisteredSchema, payload: bytes) -> Any:
        """Return the value that a consumer with an ``AvroDeserializer`` of a schema receives."""
        made = AvroDeserializer(self.client, Schema(schema.text, "AVRO", self._references(schema)))
        return made(payload, SerializationContext(topic, MessageField.VALUE))

    def json(self, topic: str, schema: RegisteredSchema, value: object) -> bytes:
        """Return the bytes that a producer with a ``JSONSerializer`` sends for a value."""
        made = JSONSerializer(Schema(schema.text, "JSON", self._references(schema)), self.client, conf=_USED)
        return bytes(made(value, SerializationContext(topic, MessageField.VALUE)))

    def protobuf(self, topic: str, message: Any) -> bytes:
        """Register a message's schema, and return the bytes that a ``ProtobufSerializer`` produces for it."""
        made = ProtobufSerializer(type(message), self.client, {"use.deprecated.format": False})
        return bytes(made(message, SerializationContext(topic, MessageField.VALUE)))

    @staticmethod
    def _references(schema: RegisteredSchema) -> list[Any]:
        return [SchemaReference(each.name, each.subject, each.version) for each in schema.references]


def text(**schema: object) -> str:
    """Return a schema in JSON."""
    return json.dumps(schema)
