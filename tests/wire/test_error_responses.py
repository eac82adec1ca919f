"""The response to a request that failed completely, for every API and version. Kafka's own are in ``tests/oracle``."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from kafka_msgs import (
    ErrorCode,
    FetchRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    ProduceRequest,
    iter_message_classes,
)
from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.messages.fetch_request import FetchPartition, FetchTopic
from kafka_msgs.messages.offset_fetch_request import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafka_msgs.messages.offset_fetch_response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from kafka_msgs.messages.produce_request import PartitionProduceData, TopicProduceData
from kafka_msgs.schema import Struct, fields
from kafka_msgs.testing.random_values import random_message
from kafka_msgs.wire import error_response

REQUESTS: list[Any] = [cls for cls in iter_message_classes() if cls.INFO.kind == "request"]
CODE = ErrorCode.NOT_COORDINATOR


def codes(item: Struct) -> Iterator[int]:
    """Yield every error code in a response."""
    for field in fields(type(item)):
        value = getattr(item, field.attribute)
        if field.name in ("ErrorCode", "PartitionErrorCode"):
            yield value
        for each in value if field.is_array and value else (value,):
            if isinstance(each, Struct):
                yield from codes(each)


@pytest.mark.parametrize("cls", REQUESTS, ids=lambda cls: cls.__name__)
def test_every_request_has_one_at_every_version(cls: Any) -> None:
    rng = Random(cls.__name__)
    for version in cls.INFO.versions:
        for request in (cls(), random_message(cls, version, rng), random_message(cls, version, rng)):
            response = error_response(request, CODE, version, error_message="why", throttle_time_ms=9)
            assert type(response) is cls.response_class()
            read = type(response).decode(response.encode(version), version)
            assert set(codes(read)) <= {0, CODE}
            if "ThrottleTimeMs" in {f.name for f in fields(type(read)) if version in f.versions}:
                assert read.throttle_time_ms == 9
            if "ErrorCode" in {f.name for f in fields(type(read)) if version in f.versions}:
                assert read.error_code == CODE


def test_a_code_at_the_top_is_the_only_code() -> None:
    request = OffsetFetchRequest(group_id="g", topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(1, 2)),))
    assert error_response(request, CODE, 2) == OffsetFetchResponse(error_code=CODE)


def test_elements_carry_it_where_the_top_does_not() -> None:
    request = OffsetFetchRequest(group_id="g", topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(1, 2)),))
    partitions = tuple(
        OffsetFetchResponsePartition(partition_index=number, committed_offset=-1, error_code=CODE) for number in (1, 2)
    )
    assert error_response(request, CODE, 1) == OffsetFetchResponse(
        topics=(OffsetFetchResponseTopic(name="t", partitions=partitions),)
    )


def test_an_element_with_a_code_repeats_nothing_within() -> None:
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(1,)),)
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=topics),))
    assert error_response(request, CODE, 8) == OffsetFetchResponse(
        groups=(OffsetFetchResponseGroup(group_id="g", error_code=CODE),)
    )


def test_partitions_of_a_produce_and_of_a_fetch() -> None:
    parts = (PartitionProduceData(index=3, records=b""),)
    produced: Any = error_response(
        ProduceRequest(acks=1, topic_data=(TopicProduceData(name="t", partition_data=parts),)), CODE, 9
    )
    (topic,) = produced.responses
    (partition,) = topic.partition_responses
    assert (topic.name, partition.index, partition.error_code, partition.base_offset) == ("t", 3, CODE, -1)
    fetch = FetchRequest(session_id=5, topics=(FetchTopic(topic="t", partitions=(FetchPartition(partition=3),)),))
    fetched: Any = error_response(fetch, CODE, 4)
    (part,) = fetched.responses[0].partitions
    assert (part.partition_index, part.error_code, part.high_watermark, part.records) == (3, CODE, -1, b"")
    later: Any = error_response(fetch, CODE, 13)
    assert (later.error_code, later.session_id, later.responses) == (CODE, 5, ())


def test_no_value_is_null_only_where_a_version_allows_it() -> None:
    request = JoinGroupRequest(group_id="g")
    assert error_response(request, CODE, 6).protocol_name == ""
    assert error_response(request, CODE, 7).protocol_name is None


def test_the_class_may_come_from_a_catalog() -> None:
    catalog = MessageCatalog.of([JoinGroupResponse], fallback=release_catalog())
    assert type(error_response(JoinGroupRequest(), CODE, 5, catalog=catalog)) is JoinGroupResponse
