"""Type checkers distinguish message types: requests and their responses, records, headers and data."""

from __future__ import annotations

from typing import TypeVar, assert_type

from kafka_msgs import message_class
from kafka_msgs.api_keys import ApiKey
from kafka_msgs.catalog import release_catalog
from kafka_msgs.message import CoordinatorKey, CoordinatorValue, Message, Request, Response
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.offset_commit_key import OffsetCommitKey
from kafka_msgs.messages.offset_commit_value import OffsetCommitValue
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequest
from kafka_msgs.messages.offset_fetch_response import OffsetFetchResponse

R = TypeVar("R", bound=Response)
V = TypeVar("V", bound=CoordinatorValue)


def call(request: Request[R]) -> R:
    return type(request).response_class()()


def value_of(key: CoordinatorKey[V]) -> V | None:
    return key.value_class()() if key else None


assert_type(call(OffsetFetchRequest()), OffsetFetchResponse)
assert_type(call(OffsetFetchRequest()).groups[0].group_id, str)
call(OffsetFetchResponse())  # refused
call(ConsumerProtocolSubscription())  # refused
assert_type(OffsetFetchRequest.response_class(), type[OffsetFetchResponse])
assert_type(value_of(OffsetCommitKey()), OffsetCommitValue | None)
value_of(OffsetCommitValue())  # refused

assert_type(message_class(9, "request"), type[Request[Response]])
assert_type(message_class(ApiKey.OFFSET_FETCH, "response"), type[Response])
assert_type(message_class(3, "metadata", "metadata"), type[Message])
assert_type(release_catalog().message_class(9, "request"), type[Request[Response]])
assert_type(release_catalog().find(9, "response", 3), type[Response] | None)
message_class(9, "requst")  # refused

assert_type(OffsetFetchRequest.INFO.api_key, int)
assert_type(ConsumerProtocolSubscription.INFO.api_key, int | None)
