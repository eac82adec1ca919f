"""Redacted exchanges: they decode, keep their lengths, and contain no hidden data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka_msgs import (
    AlterUserScramCredentialsRequest,
    FetchRequest,
    IncrementalAlterConfigsRequest,
    JoinGroupRequest,
    Message,
    MetadataRequest,
    OffsetCommitRequest,
    Request,
    Response,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafka_msgs.capture import CapturedConnection, CapturedPayload, Endpoint, Exchange
from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.messages.alter_user_scram_credentials_request import ScramCredentialUpsertion
from kafka_msgs.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.incremental_alter_configs_request import AlterableConfig, AlterConfigsResource
from kafka_msgs.messages.join_group_request import JoinGroupRequestProtocol
from kafka_msgs.messages.metadata_request import MetadataRequestTopic
from kafka_msgs.messages.offset_commit_request import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from kafka_msgs.messages.request_header import RequestHeader
from kafka_msgs.redaction import RedactKind, Redactor
from kafka_msgs.redaction.field_kinds import is_classified
from kafka_msgs.schema import fields
from kafka_msgs.versioned import decode_versioned, encode_versioned
from kafka_msgs.wire import decode_request, encode_request, encode_response
from tests.support.recorded_frames import exchanges, read_frames
from tests.support.recordings import RECORDINGS

ENDS = CapturedConnection(1, Endpoint("app.internal.example", 50_000), Endpoint("kafka.internal.example", 9092))


def _exchange(
    request: Request[Any], version: int, response: Response | None = None, *, client: str = "app-7"
) -> Exchange:
    asked = encode_request(request, version, correlation_id=3, client_id=client)
    answer = None if response is None else encode_response(response, version, correlation_id=3)
    return _of(request.INFO.api_key, version, asked, answer)


def _of(api_key: int, version: int, asked: bytes, answer: bytes | None) -> Exchange:
    return Exchange(
        connection=ENDS, api_key=api_key, version=version, correlation_id=3,
        request=CapturedPayload(asked, len(asked), 0, 0, 1),
        response=None if answer is None else CapturedPayload(answer, len(answer), 0, 9, 1),
    )  # fmt: skip


def _hidden(exchange: Exchange, *kinds: RedactKind) -> Exchange:
    found = Redactor(kinds or tuple(RedactKind), key=b"a key of the test").redact(exchange)
    assert isinstance(found, Exchange)
    return found


def _request_of(exchange: Exchange) -> Message:
    return decode_request(exchange.request.payload).message


def _texts(cls: type[Any]) -> Iterator[tuple[type[Any], Any]]:
    for field in fields(cls):
        if field.struct is not None:
            yield from _texts(field.struct)
        elif field.element_type in ("string", "bytes", "records"):
            yield cls, field


def test_every_text_of_every_message_is_in_a_table() -> None:
    """A field added by a new release is hidden by default, and must be reviewed."""
    roots: list[type[Message]] = [cls for cls in iter_message_classes() if issubclass(cls, Request | Response)]
    roots += [RequestHeader, ConsumerProtocolSubscription, ConsumerProtocolAssignment]
    unknown = {
        f"{cls.__name__}.{field.attribute}"
        for root in roots
        for cls, field in _texts(root)
        if not is_classified(cls, field)
    }
    assert unknown == set()


@pytest.mark.parametrize("name", ["client_traffic", "other_clients"])
def test_recorded_exchanges_of_real_clients_decode_and_keep_their_lengths(name: str) -> None:
    """Numbers, error codes and arrays keep their values; every topic, group, client and value is masked."""
    secrets = [b"orders", b"billing", b"shipping", b"packing", b"totals", b"green tea", b"order-100", b"console"]
    lengths = 0
    for pair in exchanges(read_frames(RECORDINGS / f"{name}.jsonl")):
        before = _of(pair.api_key, pair.api_version, pair.request.payload, pair.response.payload)
        after = _hidden(before)
        assert after.problems == before.problems == ()
        assert after.errors == before.errors
        assert after.response is not None
        everything = after.request.payload + after.response.payload
        assert [secret for secret in secrets if secret in everything] == []
        lengths += (len(after.request.payload), len(after.response.payload)) != (
            before.request.size,
            len(pair.response.payload),
        )
    assert lengths <= 2


def test_equal_names_have_equal_masks_of_the_same_length() -> None:
    """Masks are equal in requests and in their nested messages, and different names have different masks."""
    subscription = encode_versioned(ConsumerProtocolSubscription(topics=("orders", "grüße"), user_data=b"orders"), 1)
    protocol = JoinGroupRequestProtocol(name="range", metadata=subscription)
    join = _hidden(_exchange(JoinGroupRequest(group_id="billing", protocol_type="consumer", protocols=(protocol,)), 5))
    topics = tuple(MetadataRequestTopic(name=name) for name in ("orders", "grüße", "__consumer_offsets"))
    metadata = _request_of(_hidden(_exchange(MetadataRequest(topics=topics), 5)))
    request = _request_of(join)
    assert isinstance(request, JoinGroupRequest)
    assert isinstance(metadata, MetadataRequest)
    inside = decode_versioned(ConsumerProtocolSubscription, request.protocols[0].metadata).message
    first, second, third = (topic.name or "" for topic in metadata.topics or ())
    assert inside.topics == (first, second)
    assert (len(first), len(second), third) == (6, 7, "__consumer_offsets")
    assert first != second
    assert inside.user_data not in (None, b"orders")
    assert (request.protocol_type, request.protocols[0].name, len(request.group_id)) == ("consumer", "range", 7)
    assert Redactor(key=b"another").message(metadata) != metadata


def test_only_the_kinds_that_are_asked_for_are_hidden() -> None:
    """Each category alone."""
    partition = OffsetCommitRequestPartition(partition_index=1, committed_offset=5, committed_metadata="secret note")
    topic = OffsetCommitRequestTopic(name="orders", partitions=(partition,))
    commit = _exchange(OffsetCommitRequest(group_id="billing", member_id="app-7-uuid", topics=(topic,)), 8)
    words = (b"orders", b"billing", b"app-7-uuid", b"secret note")
    kept = {}
    for kind in (RedactKind.TOPICS, RedactKind.GROUPS, RedactKind.CLIENTS, RedactKind.PAYLOADS):
        payload = _hidden(commit, kind).request.payload
        kept[kind] = [word for word in words if word in payload]
    assert [len(found) for found in kept.values()] == [3, 3, 3, 3]
    assert len({tuple(found) for found in kept.values()}) == 4
    assert _hidden(commit, RedactKind.CLIENTS).client_id != "app-7"
    hosts = _hidden(commit, RedactKind.HOSTS).connection
    assert "example" not in str(hosts)
    assert (len(hosts.client.host), hosts.client.port) == (len(ENDS.client.host), 50_000)
    assert _hidden(commit, RedactKind.SASL).request == commit.request


def test_passwords_and_tokens() -> None:
    """SASL, SCRAM and secret configuration values are hidden; other configurations stay."""
    login = _hidden(
        _exchange(
            SaslAuthenticateRequest(auth_bytes=b"\0alice\0tea-time"), 2, SaslAuthenticateResponse(auth_bytes=b"v=proof")
        ),
        RedactKind.SASL,
    )
    assert b"tea-time" not in login.request.payload
    assert login.response is not None
    assert b"proof" not in login.response.payload
    assert login.problems == ()
    scram = ScramCredentialUpsertion(
        name="alice", mechanism=1, iterations=4096, salt=b"pepper", salted_password=b"tea-time"
    )
    stored = _hidden(_exchange(AlterUserScramCredentialsRequest(upsertions=(scram,)), 0), RedactKind.SASL)
    assert b"alice" in stored.request.payload
    assert b"pepper" not in stored.request.payload
    assert b"tea-time" not in stored.request.payload
    configs = (
        AlterableConfig(name="listener.name.x.sasl.jaas.config", value="tea-time"),
        AlterableConfig(name="retention.ms", value="86400000"),
    )
    resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=configs)
    altered = _hidden(_exchange(IncrementalAlterConfigsRequest(resources=(resource,)), 1), RedactKind.SASL)
    assert b"tea-time" not in altered.request.payload
    assert b"86400000" in altered.request.payload


def test_what_cannot_be_decoded_is_zeros_behind_its_start() -> None:
    """An unknown API, and a damaged request; their lengths stay. If only SASL is hidden, they stay unchanged."""
    unknown = _of(999, 1, bytes.fromhex("03e7 0001 00000003 0005") + b"order", bytes.fromhex("00000003") + b"order")
    hidden = _hidden(unknown)
    assert hidden.request.payload == bytes.fromhex("03e7 0001 00000003") + bytes(7)
    assert hidden.response is not None
    assert hidden.response.payload == bytes.fromhex("00000003") + bytes(5)
    assert _hidden(unknown, RedactKind.SASL).request == unknown.request
    whole = _exchange(FetchRequest(), 12).request.payload
    damaged = _of(1, 12, whole[:-3], None)
    assert _hidden(damaged).request.payload == whole[:8] + bytes(len(whole) - 11)
    trailing = _of(1, 12, whole + b"orders", None)
    assert _hidden(trailing).request.payload.endswith(bytes(6))
