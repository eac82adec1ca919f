"""The hash of topic metadata equals the hash in Kafka's group records."""

from __future__ import annotations

import sys
from hashlib import sha256
from uuid import UUID

import pytest

from kafka_msgs.errors import MissingExtraError
from kafka_msgs.groups.topics_image import EMPTY_IMAGE, CoordinatorTopicImage, group_hash


def topic(name: str, partitions: int) -> CoordinatorTopicImage:
    return CoordinatorTopicImage(
        name=name, id=UUID(bytes=sha256(name.encode()).digest()[:16]), racks=(("r0",),) * partitions
    )


def test_hash_is_kafkas() -> None:
    # From the group's record in the transcript of a consumer group with two members.
    image = EMPTY_IMAGE.changed(put=[topic("t", 3)])
    assert group_hash(image, ["t"]) == 7526476620504986264


def test_topics_that_do_not_exist_count_for_nothing() -> None:
    image = EMPTY_IMAGE.changed(put=[topic("t", 3)])
    assert group_hash(image, ["u", "t", "v"]) == group_hash(image, ["t"])
    assert group_hash(image, ["u"]) == 0


def test_each_fact_about_a_topic_changes_the_hash() -> None:
    image = EMPTY_IMAGE.changed(put=[topic("t", 3)])
    grown = image.changed(put=[topic("t", 4)])
    moved = image.changed(put=[CoordinatorTopicImage(name="t", id=topic("t", 3).id, racks=(("r0",), ("r0",), ("r1",)))])
    assert len({group_hash(each, ["t"]) for each in (image, grown, moved)}) == 3


def test_order_of_names_and_racks_plays_no_part() -> None:
    one = EMPTY_IMAGE.changed(
        put=[CoordinatorTopicImage(name="a", id=UUID(int=1), racks=(("r0", "r1"),)), topic("b", 1)]
    )
    other = EMPTY_IMAGE.changed(
        put=[topic("b", 1), CoordinatorTopicImage(name="a", id=UUID(int=1), racks=(("r1", "r0"),))]
    )

    assert group_hash(one, ["a", "b"]) == group_hash(other, ["b", "a", "a"])


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xxhash", None)
    image = EMPTY_IMAGE.changed(put=[topic("a topic of this test only", 1)])

    with pytest.raises(MissingExtraError, match=r"kafka-msgs\[groups\]"):
        group_hash(image, ["a topic of this test only"])
