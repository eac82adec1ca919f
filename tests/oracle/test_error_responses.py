"""Error responses compared with Kafka's own ``AbstractRequest.getErrorResponse``, for every API and version."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest
from attrs import evolve

from kafka_msgs import ApiKey, ErrorCode, iter_message_classes
from kafka_msgs.message import Request, Response
from kafka_msgs.schema import fields
from kafka_msgs.testing.random_values import random_message
from kafka_msgs.wire import error_response, request_needs_response
from tests.oracle.driver import Oracle, OracleReject

pytestmark = pytest.mark.oracle

REQUESTS: Final[list[type[Any]]] = [cls for cls in iter_message_classes() if cls.INFO.kind == "request"]
EACH: Final = 12
THROTTLE_MS: Final = 77

WITHOUT_ELEMENTS: Final = {ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS}
"""Besides the top-level error code, Kafka returns elements without error codes, or without their names."""

UNORDERED: Final = {ApiKey.PRODUCE, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ApiKey.WRITE_TXN_MARKERS}
"""Kafka collects the elements in hash maps: unordered, deduplicated, and without topics that have no partitions."""


PARTITIONS: Final[dict[int, str]] = {ApiKey.PRODUCE: "partition_responses", ApiKey.WRITE_TXN_MARKERS: "partitions"}


def comparable(response: Any, api_key: int) -> Any:
    """Return a response without the parts that Kafka words or orders differently."""
    changes: dict[str, Any] = {}
    for field in fields(type(response)):
        value = getattr(response, field.attribute)
        if field.name == "ErrorMessage":
            changes[field.attribute] = None
        elif field.struct is not None and field.is_array and value is not None:
            found = [comparable(each, api_key) for each in value]
            if api_key in UNORDERED:
                found = [each for each in found if getattr(each, PARTITIONS.get(api_key, ""), True)]
            changes[field.attribute] = tuple(sorted(set(found), key=repr) if api_key in UNORDERED else found)
        elif api_key == ApiKey.METADATA and field.name == "Name" and value is None:
            changes[field.attribute] = ""  # Kafka does not distinguish a topic requested by id only.
    return evolve(response, **changes)


def expected(request: Request[Any], version: int, answer: bytes) -> tuple[Response, Response]:
    """Return this library's response and Kafka's, made comparable."""
    cls: type[Any] = request.response_class()
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    made = error_response(request, code, version, throttle_time_ms=THROTTLE_MS)
    ours, theirs = cls.decode(made.encode(version), version), cls.decode(answer, version)
    if getattr(theirs, "throttle_time_ms", None) == 0:  # Some of Kafka's classes omit the throttle time passed to them.
        ours = evolve(ours, throttle_time_ms=0)
    api_key = request.INFO.api_key
    if api_key in WITHOUT_ELEMENTS:
        theirs = evolve(theirs, **{name: () for name in ("topics", "results") if hasattr(theirs, name)})
    return comparable(ours, api_key), comparable(theirs, api_key)


NAMES: Final = ("ProducerId", "Topic", "Name", "TopicId", "Partition", "PartitionIndex", "Index")


def distinct(item: Any) -> bool:
    """Return whether the elements of each array have distinct names: Kafka's maps merge equal ones."""
    for field in fields(type(item)):
        value = getattr(item, field.attribute)
        if not field.is_array or not value:
            continue
        keys = [named(each) for each in value] if field.struct else list(value)
        if len(set(keys)) < len(keys) or not (field.struct is None or all(map(distinct, value))):
            return False
    return True


def named(element: Any) -> tuple[Any, ...]:
    return tuple(getattr(element, field.attribute) for field in fields(type(element)) if field.name in NAMES) or (
        element,
    )


@pytest.mark.parametrize("cls", REQUESTS, ids=lambda cls: cls.__name__)
def test_an_error_response_is_that_of_kafkas_own_class(oracle: Oracle, cls: type[Request[Any]]) -> None:
    rng = Random(cls.__name__)
    requests = [
        (request, version)
        for version in cls.INFO.versions
        for request in (random_message(cls, version, rng, unknown_tags=False) for _ in range(EACH))
        if distinct(request)
    ]
    key, code = cls.INFO.api_key, ErrorCode.COORDINATOR_NOT_AVAILABLE
    questions = [(key, version, THROTTLE_MS, code, request.encode(version)) for request, version in requests]
    answers = oracle.error_responses_many(questions)
    compared = 0
    for (request, version), answer in zip(requests, answers, strict=True):
        if isinstance(answer, OracleReject):
            continue  # Some of Kafka's classes reject values that no client sends.
        if not answer:
            assert not request_needs_response(request)
            continue
        ours, theirs = expected(request, version, answer)
        assert ours == theirs, (version, request)
        compared += 1
    assert compared >= len(requests) // 4
