"""The groups of a real broker: a coordinator loaded from the broker's log describes them like that broker.

The recording contains the log directory of a stopped broker (Kafka 4.3.1), and its responses just before the stop. The
coordinator loads the partitions of ``__consumer_offsets`` and gets the same requests in the same versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from attrs import evolve

from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.groups.config import CoordinatorConfig
from kafka_msgs.groups.coordinator import PROTOCOLS, GroupCoordinator
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.memory_log import MemoryLog
from kafka_msgs.groups.topics_image import EMPTY_IMAGE, CoordinatorTopicImage, TopicsImage
from kafka_msgs.internal_topics.batch_decoding import decode_batches
from kafka_msgs.internal_topics.records import internal_topic
from kafka_msgs.message import Message, Request
from kafka_msgs.messages import ORIGINS
from kafka_msgs.messages.metadata_response import MetadataResponse
from kafka_msgs.wire import decode_request, decode_response
from tests.support.recorded_answers import answers
from tests.support.recorded_frames import exchanges, read_frames
from tests.support.recorded_groups import OFFSETS, PARTITIONS, batches
from tests.support.recordings import ANSWERS

_LOGS = {partition.partition: partition for partition in PARTITIONS if partition.topic == OFFSETS}
_NOW = 1_795_000_000_000


def _image() -> TopicsImage:
    """Return the topics of the recorded cluster, whose broker has no rack."""
    [metadata] = answers(MetadataResponse)
    topics = [
        CoordinatorTopicImage(name=str(topic.name), id=topic.topic_id, racks=((),) * len(topic.partitions))
        for topic in metadata.topics
    ]
    return EMPTY_IMAGE.changed(put=topics)


@pytest.fixture(scope="module")
def coordinator() -> GroupCoordinator:
    config = CoordinatorConfig(offsets_topic_num_partitions=len(_LOGS))
    made = GroupCoordinator(MemoryLog().append, config=config)
    made.set_image(_image(), now=_NOW)
    for number, log in _LOGS.items():
        made.elect(number, 1, now=_NOW)
        made.load(number, decode_batches(OFFSETS, batches(log)))
        made.loaded(number, now=_NOW)
    return made


def _questions() -> Iterator[tuple[Request[Any], int, Message]]:
    for pair in exchanges(read_frames(ANSWERS)):
        request = decode_request(pair.request.payload).message
        answer = decode_response(pair.response.payload, pair.api_key, pair.api_version).message
        if request.INFO.name.removesuffix("Request") in _APIS:
            yield request, pair.api_version, answer


_APIS = (
    "ListGroups",
    "DescribeGroups",
    "ConsumerGroupDescribe",
    "ShareGroupDescribe",
    "StreamsGroupDescribe",
    "OffsetFetch",
)
_QUESTIONS = {type(request).__name__: (request, version, answer) for request, version, answer in _questions()}


@pytest.mark.parametrize("name", _QUESTIONS)
def test_a_recorded_log_answers_as_its_broker_did(coordinator: GroupCoordinator, name: str) -> None:
    request, version, recorded = _QUESTIONS[name]
    context = RequestContext(version=version, client_id="recorder")

    [answer] = coordinator.handle(request, context, now=_NOW, opaque=name).answers

    ours = answer.response.decode(answer.response.encode(version), version)
    assert _by_group(ours) == _by_group(recorded)


def _by_group(response: Any) -> Any:
    """Return a response with its groups sorted by name, because brokers differ in the order of partitions."""
    groups = sorted(response.groups, key=lambda group: str(group.group_id))
    return evolve(response, groups=tuple(groups))


def test_the_recording_has_groups_of_every_kind(coordinator: GroupCoordinator) -> None:
    kinds = {group.kind for shard in coordinator.shards.values() for group in shard.state.groups.values()}
    assert kinds == {"classic", "consumer", "share", "streams"}
    assert len(_QUESTIONS) == len(_APIS)


def test_every_record_type_of_the_offsets_topic_has_an_effect() -> None:
    keys = {
        cls
        for cls in iter_message_classes()
        if cls.INFO.kind == "coordinator-key" and ORIGINS[cls.INFO.name] == internal_topic(OFFSETS).origin
    }
    assert {cls for protocol in PROTOCOLS for cls in protocol.appliers} == keys
