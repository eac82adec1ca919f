"""The vectors of every message in an internal topic, with the prefix bytes of a record."""

from __future__ import annotations

import pytest

from kafka_msgs import DecodeError, Message, message_class
from kafka_msgs.internal_topics.records import TOPICS, TopicRecord, decode_record, encode_record
from kafka_msgs.primitives import write_uvarint
from tests.support.internal_records import TYPES, value_class
from tests.vectors.files import FOLDER, REASONS, Vectors, read


def vectors(cls: type[Message]) -> Vectors:
    return read(FOLDER / f"{cls.INFO.name}.json")


def some_key(topic: str, number: int) -> bytes | None:
    """Return the bytes of one key of a record type; none in a framed topic."""
    place = TOPICS[topic]
    if place.framed:
        return None
    key_class = message_class(number, "coordinator-key", place.origin)
    return number.to_bytes(2, "big") + bytes.fromhex(vectors(key_class).valid[0].hex)


def with_version(topic: str, number: int, version: int, data: str) -> bytes:
    if TOPICS[topic].framed:
        return b"\1" + write_uvarint(number) + write_uvarint(version) + bytes.fromhex(data)
    return version.to_bytes(2, "big") + bytes.fromhex(data)


@pytest.mark.parametrize(("topic", "number"), TYPES)
def test_values_read_as_their_json_says_and_are_written_back(topic: str, number: int) -> None:
    key = some_key(topic, number)
    valid = vectors(value_class(topic, number)).valid
    assert valid
    for vector in valid:
        value = with_version(topic, number, vector.version, vector.hex)
        record = decode_record(topic, key, value)
        assert isinstance(record, TopicRecord)
        assert record.value is not None
        assert (record.version, record.value.to_json(vector.version)) == (vector.version, vector.json)
        assert encode_record(record) == (key, value)


@pytest.mark.parametrize(("topic", "number"), TYPES)
def test_values_that_must_be_refused_are_refused_for_their_reason(topic: str, number: int) -> None:
    key = some_key(topic, number)
    invalid = vectors(value_class(topic, number)).invalid
    assert invalid
    for vector in invalid:
        with pytest.raises(DecodeError) as refused:
            decode_record(topic, key, with_version(topic, number, vector.version, vector.hex))
        assert type(refused.value) is REASONS[vector.reason]


@pytest.mark.parametrize(("topic", "number"), [each for each in TYPES if not TOPICS[each[0]].framed])
def test_keys_read_as_their_json_says_and_are_written_back(topic: str, number: int) -> None:
    key_class = message_class(number, "coordinator-key", TOPICS[topic].origin)
    prefix = number.to_bytes(2, "big")
    for vector in vectors(key_class).valid:
        record = decode_record(topic, prefix + bytes.fromhex(vector.hex), None)
        assert isinstance(record, TopicRecord)
        assert record.key is not None
        assert record.key.to_json(0) == vector.json
        assert encode_record(record) == (prefix + bytes.fromhex(vector.hex), None)
    for bad in vectors(key_class).invalid:
        with pytest.raises(REASONS[bad.reason]):
            decode_record(topic, prefix + bytes.fromhex(bad.hex), None)
