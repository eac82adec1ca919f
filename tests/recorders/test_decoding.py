"""Messages from a real broker and real clients decode and re-encode to the original bytes in every executor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from attrs import evolve

from kafka_msgs import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    GroupMetadataValue,
    JoinGroupRequest,
    Message,
    OffsetCommitKey,
    OffsetCommitValue,
    OffsetFetchRequest,
    OffsetFetchResponse,
    RequestHeader,
    ResponseHeader,
    SyncGroupRequest,
    Versioned,
    decode_versioned,
    encode_versioned,
    message_class,
)
from kafka_msgs.codec.codec import Codec
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.wire import (
    RequestFrame,
    ResponseFrame,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    request_header_version,
    response_header_version,
)
from tests.support.codecs import codec
from tests.support.recorded_frames import Exchange, exchanges, read_frames
from tests.support.recorded_records import Record, read_records
from tests.support.recordings import KIP88, OFFSETS, TRAFFIC

ORIGIN = "group-coordinator"

EXCHANGES = [pair for path in (TRAFFIC, KIP88) for pair in exchanges(read_frames(path))]
RECORDS = list(read_records(OFFSETS))


@pytest.fixture(params=sorted(EXECUTORS))
def executor(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def describe(pair: Exchange) -> str:
    return f"{message_class(pair.api_key, 'request').INFO.name} v{pair.api_version} at {pair.request.ms} ms"


def reencode(payload: bytes, header: Codec[Any], body: Codec[Any]) -> bytes:
    head, start = header.read(payload)
    return header.encode(head) + body.encode(body.decode(payload[start:]))


def test_every_request_encodes_to_the_bytes_it_was_decoded_from(executor: str) -> None:
    for pair in EXCHANGES:
        header = codec(executor, RequestHeader, request_header_version(pair.api_key, pair.api_version))
        body = codec(executor, message_class(pair.api_key, "request"), pair.api_version)
        assert reencode(pair.request.payload, header, body) == pair.request.payload, describe(pair)


def test_every_response_encodes_to_the_bytes_it_was_decoded_from(executor: str) -> None:
    for pair in EXCHANGES:
        header = codec(executor, ResponseHeader, response_header_version(pair.api_key, pair.api_version))
        body = codec(executor, message_class(pair.api_key, "response"), pair.api_version)
        assert reencode(pair.response.payload, header, body) == pair.response.payload, describe(pair)


def decoded() -> Iterator[tuple[Exchange, RequestFrame, ResponseFrame]]:
    for pair in EXCHANGES:
        response = decode_response(pair.response.payload, pair.api_key, pair.api_version)
        yield pair, decode_request(pair.request.payload), response


def test_payloads_are_written_with_the_headers_that_real_clients_use() -> None:
    for pair, asked, answer in decoded():
        number, client = asked.header.correlation_id, asked.header.client_id
        request = encode_request(asked.message, pair.api_version, correlation_id=number, client_id=client)
        assert request == pair.request.payload, describe(pair)
        response = encode_response(answer.message, answer.version, correlation_id=number)
        assert response == pair.response.payload, describe(pair)


def test_every_frame_encodes_to_itself_from_its_bytes_and_from_its_values() -> None:
    for pair, asked, answer in decoded():
        frames: tuple[RequestFrame | ResponseFrame, ...] = (asked, answer)
        for frame, seen in zip(frames, (pair.request, pair.response), strict=True):
            assert frame.encode() == seen.payload, describe(pair)
            assert evolve(frame).encode() == seen.payload, describe(pair)


def test_headers_carry_the_clients_names_and_the_broker_repeats_their_numbers() -> None:
    clients = set()
    for pair, request, response in decoded():
        assert request.header.request_api_key == request.message.INFO.api_key == response.message.INFO.api_key
        assert request.header.correlation_id == response.header.correlation_id == pair.response.correlation_id
        clients.add(request.header.client_id)
    assert clients >= {"billing-console", "audit-client", "payments-zstd", "offsets-reader", "kip88"}


def test_traffic_covers_flexible_and_classic_messages_of_many_apis() -> None:
    forms = {(pair.api_key, pair.api_version in request.message.INFO.flexible) for pair, request, _ in decoded()}
    assert {flexible for _, flexible in forms} == {True, False}
    assert len({key for key, _ in forms}) > 30


def classes(record: Record) -> tuple[type[Message], type[Message]]:
    kind = int.from_bytes(record.key[:2], "big")
    return message_class(kind, "coordinator-key", ORIGIN), message_class(kind, "coordinator-value", ORIGIN)


def key_and_value(record: Record) -> tuple[Versioned[Message], Versioned[Message] | None]:
    key_class, value_class = classes(record)
    value = None if record.value is None else decode_versioned(value_class, record.value)
    return decode_versioned(key_class, record.key), value


def test_every_offsets_record_encodes_to_the_bytes_it_was_decoded_from() -> None:
    for record in RECORDS:
        key, value = key_and_value(record)
        assert encode_versioned(key.message, key.version) == record.key, record
        assert (value and encode_versioned(value.message, value.version)) == record.value, record


def test_every_offsets_record_reads_alike_in_every_executor(executor: str) -> None:
    for record in RECORDS:
        for cls, found, data in zip(classes(record), key_and_value(record), (record.key, record.value), strict=True):
            if data is not None and found is not None:
                mine = codec(executor, cls, found.version)
                assert mine.decode(data[2:]) == found.message, record
                assert mine.encode(found.message) == data[2:], record


def test_deleted_group_leaves_nothing_but_tombstones() -> None:
    last = {record.key: record for record in RECORDS}
    shipping = [record for record in last.values() if _group_of(record) == "shipping"]
    assert len(shipping) > 5
    assert {record.value for record in shipping} == {None}
    assert any(record.value is not None for record in last.values() if _group_of(record) == "billing")


def _group_of(record: Record) -> str:
    key = key_and_value(record)[0].message
    group: str = key.group if hasattr(key, "group") else key.group_id  # type: ignore[attr-defined]
    return group


def test_kip88_answer_is_what_the_offsets_topic_holds_for_the_group() -> None:
    committed = {}
    for record in RECORDS:
        key, value = key_and_value(record)
        if isinstance(key.message, OffsetCommitKey) and key.message.group == "billing":
            assert value is not None
            assert isinstance(value.message, OffsetCommitValue)
            committed[key.message.topic, key.message.partition] = (value.message.offset, value.message.metadata)
    (answer,) = (each.message for pair, _, each in decoded() if (pair.api_key, pair.api_version) == (9, 2))
    assert isinstance(answer, OffsetFetchResponse)
    assert answer.error_code == 0
    assert committed == {("orders", 0): (4, ""), ("orders", 1): (0, "")}
    assert committed == {
        (topic.name, partition.partition_index): (partition.committed_offset, partition.metadata)
        for topic in answer.topics
        for partition in topic.partitions
    }


def test_kip88_request_asks_for_all_topics_with_none() -> None:
    (request,) = (request for pair, request, _ in decoded() if (pair.api_key, pair.api_version) == (9, 2))
    assert request.message == OffsetFetchRequest(group_id="billing", topics=None)


def subscriptions_and_assignments() -> Iterator[tuple[type[Message], bytes]]:
    """Yield the data that members of classic groups exchange; the broker does not parse it."""
    for record in RECORDS:
        value = key_and_value(record)[1]
        if value is not None and isinstance(value.message, GroupMetadataValue):
            for member in value.message.members:
                yield ConsumerProtocolSubscription, member.subscription
                yield ConsumerProtocolAssignment, member.assignment
    for _, request, _ in decoded():
        message = request.message
        if isinstance(message, JoinGroupRequest):
            yield from ((ConsumerProtocolSubscription, protocol.metadata) for protocol in message.protocols)
        if isinstance(message, SyncGroupRequest):
            yield from ((ConsumerProtocolAssignment, each.assignment) for each in message.assignments)


def test_consumer_protocol_of_every_client_encodes_to_the_bytes_it_was_decoded_from() -> None:
    topics = set()
    versions = set()
    for cls, data in subscriptions_and_assignments():
        if data:
            version, message = decode_versioned(cls, data)
            assert encode_versioned(message, version) == data
            versions.add((cls, version))
            if isinstance(message, ConsumerProtocolSubscription):
                topics |= set(message.topics)
    assert topics == {"orders"}
    assert len({version for cls, version in versions if cls is ConsumerProtocolSubscription}) > 1
