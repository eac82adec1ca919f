"""Payloads compared with the Java libraries under Confluent's deserializers, over generated schemas and values."""

from __future__ import annotations

import pytest

from kafka_msgs.errors import PayloadError
from kafka_msgs.registry import PayloadDeserializer, RegisteredSchema, StaticSchemas
from tests.registry.differences import avro_differences, json_differences, protobuf_differences
from tests.registry.oracle import RegistryOracle
from tests.registry.proto_files import PROTO2, PROTO2_MESSAGES, PROTO3, PROTO3_MESSAGES

SEEDS = 300

JSON_TEXTS = [
    *(text.encode() for text in ("null", "true", '""', "{}", "[]", "0", "-0", "1.0", "1e400", "-1E-400", "1e5")),
    *(f'{{"a":{text}}}'.encode() for text in ("NaN", "Infinity", "-Infinity", "nan", "01", ".5", "5.", "+1", "0x1")),
    b"9223372036854775807", b"-9223372036854775809", b"123456789012345678901234567890", b"0.1", b"4.9e-324",
    b"123456789.123456789012", b"1.7976931348623157e308", b"1.7976931348623159e308", '"é\U0001f600"'.encode(),
    b'"\\ud83d\\ude00 \\u00e9"', b'{"a":1,"a":2}', b'{"":{"b":[1,[2,[]]]}}', b"[1,]", b"{'a':1}", b'{"a":1,}',
    b"[1] x", b"", b" \n\t", b" [1] ", b'"a\nb"', b'"a\x7fb"', b'"\\x41"', b'"\\u12"', b'"\xff"', b'"\xed\xa0\x80"',
    b'"\xc0\xaf"', b"// c\n1", b"tru", b"[" * 500 + b"]" * 500,
]  # fmt: skip


def test_avro_values_are_those_of_avro_for_java(registry_oracle: RegistryOracle) -> None:
    assert list(avro_differences(registry_oracle, range(SEEDS))) == []


@pytest.mark.parametrize(
    ("proto", "messages"), [(PROTO2, PROTO2_MESSAGES), (PROTO3, PROTO3_MESSAGES)], ids=["proto2", "proto3"]
)
def test_messages_are_those_of_protobuf_for_java(
    registry_oracle: RegistryOracle, proto: str, messages: tuple[tuple[str, bytes], ...]
) -> None:
    assert list(protobuf_differences(registry_oracle, proto, messages, range(40))) == []


def test_json_values_are_those_of_jackson(registry_oracle: RegistryOracle) -> None:
    assert list(json_differences(registry_oracle, JSON_TEXTS)) == []


def test_a_message_without_a_required_field_is_refused(registry_oracle: RegistryOracle) -> None:
    messages = [("old.First", b"\0"), ("old.Second", b"\2\2")]
    data = [b"", bytes.fromhex("5001f206020a00")]  # old.Second has an id, but not the one of firsts[""]
    for (name, indexes), each in zip(messages, data, strict=True):
        assert list(protobuf_differences(registry_oracle, PROTO2, [(name, indexes)], values=[each])) == []
        schemas = StaticSchemas([RegisteredSchema(1, "PROTOBUF", PROTO2)], source="test")
        with pytest.raises(PayloadError, match="which is required"):
            PayloadDeserializer(schemas)(b"\0\0\0\0\1" + indexes + each)
