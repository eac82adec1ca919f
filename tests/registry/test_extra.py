"""Schema Registry payloads without the format libraries."""

from __future__ import annotations

import sys

import pytest

from kafka_msgs.errors import MissingExtraError
from kafka_msgs.registry import PayloadDeserializer, PayloadReader, RegisteredSchema, StaticSchemas
from kafka_msgs.registry.schemas import SchemaKind


@pytest.mark.parametrize(
    ("kind", "package"), [("AVRO", "fastavro"), ("PROTOBUF", "grpc_tools"), ("JSON", "referencing")]
)
def test_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch, kind: SchemaKind, package: str) -> None:
    monkeypatch.delitem(sys.modules, f"kafka_msgs.registry.{kind.lower()}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'kafka-msgs\[registry\]'"):
        PayloadReader(RegisteredSchema(1, kind, "{}"), StaticSchemas([], source="a test"))


def test_the_error_of_single_messages_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "kafka_msgs.registry.protobuf", raising=False)
    monkeypatch.setitem(sys.modules, "google.protobuf.json_format", None)
    schemas = StaticSchemas([RegisteredSchema(1, "PROTOBUF", "")], source="a test")
    with pytest.raises(MissingExtraError, match=r"pip install 'kafka-msgs\[registry\]'"):
        PayloadDeserializer(schemas)(b"\0\0\0\0\1\0")
