"""The hash of topics is the one that Kafka wrote."""

from __future__ import annotations

import sys
from hashlib import sha256
from uuid import UUID

import pytest

from kafka_msgs.errors import MissingExtraError
from kafka_msgs.groups.image import EMPTY_IMAGE, Image, Topic
from kafka_msgs.groups.topic_hash import group_hash
from tests.coordinator.transcripts import read


def _image(**racks: tuple[tuple[str, ...], ...]) -> Image:
    topics = (
        Topic(name=name, id=UUID(bytes=sha256(name.encode()).digest()[:16]), racks=each) for name, each in racks.items()
    )
    return EMPTY_IMAGE.changed(put=topics)


def test_a_streams_group_has_the_hash_that_kafka_wrote() -> None:
    _, results = read("streams-two-members")
    written = {
        record["value"]["metadataHash"]
        for result in results
        for record in result.get("records", ())
        if record["type"] == "StreamsGroupMetadata" and record["value"]
    }
    image = _image(**{"in": (("r0",), ("r0",))})

    assert group_hash(image, ["in", "not-there"]) in written


def test_without_topics_the_hash_is_zero() -> None:
    assert group_hash(EMPTY_IMAGE, ["not-there"]) == 0


def test_order_of_names_and_racks_plays_no_part() -> None:
    one = _image(a=(("r0", "r1"),), b=((),))
    other = _image(b=((),), a=(("r1", "r0"),))

    assert group_hash(one, ["a", "b"]) == group_hash(other, ["b", "a", "a"])
    assert group_hash(one, ["a"]) != group_hash(one, ["a", "b"])


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xxhash", None)

    with pytest.raises(MissingExtraError, match=r"kafka-msgs\[groups\]"):
        group_hash(_image(only=(("a rack of this test",),)), ["only"])
