"""Frames of clients in other languages: every frame is decoded, and re-encoded byte for byte."""

from __future__ import annotations

import pytest
from attrs import evolve

from kafka_msgs import AlterUserScramCredentialsRequest, ApiVersionsRequest, DescribeAclsRequest
from kafka_msgs.errors import TrailingDataError
from kafka_msgs.wire import decode_request, decode_response
from tests.recorders.other_clients import versions
from tests.support.recorded_frames import Exchange, exchanges, read_frames, read_header
from tests.support.recordings import OTHER_CLIENTS

EXCHANGES = list(exchanges(read_frames(OTHER_CLIENTS)))


def test_the_header_names_the_clients_that_the_recorder_pins() -> None:
    header = read_header(OTHER_CLIENTS)
    assert header["clients"] == versions()
    assert set(versions()) == {"franz-go", "sarama", "kafka-go", "kafkajs", "rskafka", "confluent-kafka"}


@pytest.mark.parametrize(
    "exchange", EXCHANGES, ids=lambda each: f"{each.request.connection}-{each.request.correlation_id}"
)
def test_a_request_and_its_response_are_encoded_again_to_the_same_bytes(exchange: Exchange) -> None:
    """An evolved frame no longer keeps its original bytes: it encodes header, message and surplus again."""
    request, response = exchange.request.payload, exchange.response.payload
    asked, answered = decode_request(request), decode_response(response, exchange.api_key, exchange.api_version)
    assert asked.encode() == evolve(asked).encode() == request
    assert answered.encode() == evolve(answered).encode() == response


def test_surplus_bytes_of_answered_requests_are_kept() -> None:
    """Some requests contain an empty set of tagged fields twice; the broker accepts them."""
    requests = [each.request.payload for each in EXCHANGES]
    surplus = [payload for payload in requests if decode_request(payload).trailing]
    found = {(type(frame.message), frame.version, frame.trailing) for frame in map(decode_request, surplus)}
    assert found == {(AlterUserScramCredentialsRequest, 0, b"\0"), (DescribeAclsRequest, 3, b"\0")}
    for payload in surplus:
        assert evolve(decode_request(payload), trailing=b"").encode() == payload[:-1]
        with pytest.raises(TrailingDataError):
            decode_request(payload, refuse_trailing=True)


def test_the_clients_speak_many_versions_of_many_apis() -> None:
    spoken = {(each.api_key, each.api_version) for each in EXCHANGES}
    assert len(spoken) > 50
    assert len({key for key, _ in spoken}) >= 18
    newest = ApiVersionsRequest.INFO.api_key, ApiVersionsRequest.INFO.versions.highest
    assert newest in spoken
