"""Runs the vectors over every executor, and, where there is a Java, over Kafka's own classes again."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs import iter_message_classes
from kafka_msgs.codec import DEFAULT_OPTIONS
from kafka_msgs.codec.codec import Codec
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.message import Message
from tests.oracle import Decoded, Oracle
from tests.vectors.files import FOLDER, REASONS, Vectors, read, read_all

CLASSES: dict[str, type[Message]] = {cls.INFO.name: cls for cls in iter_message_classes()}
FILES = sorted(FOLDER.glob("*.json"))


@pytest.fixture(params=EXECUTORS)
def executor(request: pytest.FixtureRequest) -> str:
    """The name of an executor."""
    name: str = request.param
    return name


@cache
def codec(message: str, version: int, executor: str) -> Codec[Any]:
    return Codec(compile_plan(CLASSES[message], version), DEFAULT_OPTIONS, EXECUTORS[executor])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_valid_bytes_are_read_and_written(file: Path, executor: str) -> None:
    vectors = read(file)
    for vector in vectors.valid:
        value = codec(vectors.message, vector.version, executor).decode(bytes.fromhex(vector.hex))
        assert value.to_json(vector.version) == vector.json
        assert codec(vectors.message, vector.version, executor).encode(value).hex() == vector.hex


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_json_gives_the_same_bytes(file: Path, executor: str) -> None:
    vectors = read(file)
    for vector in vectors.valid:
        value = CLASSES[vectors.message].from_json(vector.json, vector.version)
        written = codec(vectors.message, vector.version, executor).encode(value).hex()
        assert (written == vector.hex) is not vector.unknown_tags


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_invalid_bytes_are_refused_for_their_reason(file: Path, executor: str) -> None:
    vectors = read(file)
    for vector in vectors.invalid:
        with pytest.raises(REASONS[vector.reason]):
            codec(vectors.message, vector.version, executor).decode(bytes.fromhex(vector.hex))


def test_every_message_has_valid_and_invalid_vectors_at_every_version() -> None:
    valid = {(vectors.message, vector.version) for vectors in read_all() for vector in vectors.valid}
    invalid = {(vectors.message, vector.version) for vectors in read_all() for vector in vectors.invalid}
    pairs = {(name, version) for name, cls in CLASSES.items() for version in cls.INFO.versions}
    assert valid == invalid == pairs


def test_every_reason_occurs() -> None:
    assert {vector.reason for vectors in read_all() for vector in vectors.invalid} == set(REASONS)


def _questions(vectors: Vectors) -> Iterator[tuple[str, int, bytes]]:
    for valid in vectors.valid:
        yield vectors.message, valid.version, bytes.fromhex(valid.hex)
    for invalid in vectors.invalid:
        yield vectors.message, invalid.version, bytes.fromhex(invalid.hex)


@pytest.mark.oracle
def test_kafka_confirms_every_vector(oracle: Oracle) -> None:
    for vectors in read_all():
        answers = oracle.decode_many(_questions(vectors))
        verdicts = ["accepts" if isinstance(answer, Decoded) else "refuses" for answer in answers]
        expected = ["accepts"] * len(vectors.valid) + [vector.kafka for vector in vectors.invalid]
        assert verdicts == expected, vectors.message
        for vector, answer in zip(vectors.valid, answers, strict=False):
            assert isinstance(answer, Decoded)
            assert answer.reencoded == bytes.fromhex(vector.hex)
