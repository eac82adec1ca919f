"""Pickles: small, equal, and readable from every earlier form."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from random import Random
from typing import Any

import pytest

from kafka_msgs import FetchRequest, HeartbeatResponse, OffsetFetchRequest, evolve, iter_message_classes
from kafka_msgs._backend import BACKENDS
from kafka_msgs.messages.metadata_response import MetadataResponsePartition
from kafka_msgs.testing.random_values import random_message
from tests.support.damage import same

CLASSES = sorted(iter_message_classes(), key=lambda cls: cls.INFO.name)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_message_comes_back(protocol: int) -> None:
    for cls in CLASSES:
        for version in {cls.INFO.versions.highest, cls.INFO.versions.lowest}:
            message = random_message(cls, version, Random(version), max_elements=2)
            for value in (message, cls()):
                again = pickle.loads(pickle.dumps(value, protocol))
                assert again == value
                assert repr(again) == repr(value)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.INFO.name)
def test_every_version_is_pickled_and_copied(cls: Any) -> None:
    """A decoded message pickles to bytes at a version that can represent it; an immutable message is its own copy."""
    for version in cls.INFO.versions:
        rng = Random(f"{cls.INFO.name} {version}")
        message = cls.decode(random_message(cls, version, rng, max_elements=3).encode(version), version)
        if not cls._sealed:  # a class without fields
            assert pickle.loads(pickle.dumps(message)) == copy.deepcopy(message) == message
            continue
        if message == message:  # false for NaN
            _, (pickled, held, data) = message.__reduce_ex__(4)
            assert pickled.decode(data, held) == message
        assert same(pickle.loads(pickle.dumps(message)), message)
        assert copy.copy(message) is message
        assert copy.deepcopy(message) is message
        listed = evolve(message, unknown_tagged_fields=[])
        again = copy.deepcopy(listed)
        assert same(again, listed)
        assert again is not listed
        assert again.unknown_tagged_fields is not listed.unknown_tagged_fields


def test_bytes_are_used_at_the_highest_version_that_holds_the_message() -> None:
    message = random_message(HeartbeatResponse, 4, Random(3))
    _, (cls, version, data) = message.__reduce_ex__(4)
    assert (cls, version, data) == (HeartbeatResponse, 4, message.encode(4))
    assert copy.deepcopy(message) is message


def test_decoded_messages_are_pickled_as_bytes_where_no_version_has_all_fields() -> None:
    for version in OffsetFetchRequest.INFO.versions:
        message = random_message(OffsetFetchRequest, version, Random(3))
        decoded = OffsetFetchRequest.decode(message.encode(version), version)
        _, (cls, held, data) = decoded.__reduce_ex__(4)
        assert cls.decode(data, held) == decoded


def test_fields_with_their_defaults_are_left_out() -> None:
    _, (cls, values) = HeartbeatResponse(error_code="x").__reduce_ex__(4)  # type: ignore[arg-type]
    assert (cls, values) == (HeartbeatResponse, {"error_code": "x"})
    _, (nested, values) = MetadataResponsePartition(leader_id=3).__reduce_ex__(4)
    assert (nested, values) == (MetadataResponsePartition, {"leader_id": 3})


@pytest.mark.parametrize(
    "value",
    [
        HeartbeatResponse(error_code="no number"),  # type: ignore[arg-type]
        HeartbeatResponse(error_code=1 << 40),
        FetchRequest(topics=[]),  # type: ignore[arg-type]
        FetchRequest(replica_id=7, cluster_id="x"),
        OffsetFetchRequest(group_id="\udcff", topics=None),
    ],
)
def test_what_cannot_be_encoded_is_pickled_by_field(value: Any) -> None:
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.deepcopy(value) == value
    assert copy.copy(value) == value


def test_pickles_of_the_form_before_can_be_read() -> None:
    """As attrs pickles a class with slots: an instance without values, then its state."""
    made = object.__new__(HeartbeatResponse)
    made.__setstate__({"unknown_tagged_fields": (), "throttle_time_ms": 3, "error_code": 4})  # type: ignore[attr-defined]
    assert made == HeartbeatResponse(throttle_time_ms=3, error_code=4)


def test_pickles_are_small() -> None:
    message = random_message(HeartbeatResponse, 4, Random(1))
    assert len(pickle.dumps(message)) < 150


def test_methods_can_be_pickled() -> None:
    message = HeartbeatResponse(error_code=3)
    for method in (HeartbeatResponse.encode, HeartbeatResponse.decode):
        again: Any = pickle.loads(pickle.dumps(method))
        assert again == method
    assert pickle.loads(pickle.dumps(message.encode))(4) == message.encode(4)


def test_the_backends_read_each_others_pickles() -> None:
    code = (
        "import pickle, sys\n"
        "from kafka_msgs import HeartbeatResponse, OffsetFetchRequest\n"
        "values = [HeartbeatResponse(error_code=3), OffsetFetchRequest(group_id='g')]\n"
        "data = sys.stdin.buffer.read()\n"
        "assert not data or pickle.loads(data) == values\n"
        "sys.stdout.buffer.write(pickle.dumps(values))\n"
    )
    data, found = b"", set()
    for name in (*BACKENDS, BACKENDS[0]):
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=data,
            env=os.environ | {"KAFKA_MSGS_BACKEND": name},
            capture_output=True,
            check=True,
            timeout=120,
        )
        data = done.stdout
        found.add(data)
    assert len(found) == 1
