"""Changes between two topic images, as coordinators compute them."""

from __future__ import annotations

from uuid import UUID

from kafka_msgs.groups.group_protocol import TopicChange
from kafka_msgs.groups.topics_image import EMPTY_IMAGE, CoordinatorTopicImage


def _topic(name: str, number: int, partitions: int = 1) -> CoordinatorTopicImage:
    return CoordinatorTopicImage(name=name, id=UUID(int=number), racks=((),) * partitions)


def test_new_larger_and_deleted_topics_are_told_apart() -> None:
    before = EMPTY_IMAGE.changed(put=[_topic("same", 1), _topic("grows", 2), _topic("goes", 3)])
    after = before.changed(put=[_topic("grows", 2, 2), _topic("comes", 4)], delete=["goes"])

    assert TopicChange.between(before, after)[2:] == (("comes",), ("grows",), ("goes",))
    assert TopicChange.between(after, after)[2:] == ((), (), ())


def test_a_topic_with_a_new_id_was_deleted_and_created_again() -> None:
    before = EMPTY_IMAGE.changed(put=[_topic("again", 1)])
    after = before.changed(put=[_topic("again", 2)])

    assert TopicChange.between(before, after)[2:] == (("again",), (), ("again",))
