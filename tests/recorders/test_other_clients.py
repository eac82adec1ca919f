"""What clients in other languages said to a broker: every frame is read, and written back byte for byte."""

from __future__ import annotations

import pytest

from kafka_msgs import ApiVersionsRequest
from kafka_msgs.wire import decode_request, decode_response
from tests.recorders.other_clients import versions
from tests.support.recorded_frames import Exchange, exchanges, read_frames, read_header
from tests.support.recordings import OTHER_CLIENTS

EXCHANGES = list(exchanges(read_frames(OTHER_CLIENTS)))


def test_the_header_names_the_clients_that_the_recorder_pins() -> None:
    header = read_header(OTHER_CLIENTS)
    assert header["clients"] == versions()
    assert set(versions()) == {"franz-go", "sarama", "kafka-go", "kafkajs"}


@pytest.mark.parametrize(
    "exchange", EXCHANGES, ids=lambda each: f"{each.request.connection}-{each.request.correlation_id}"
)
def test_a_request_and_its_response_are_written_back_as_they_came(exchange: Exchange) -> None:
    request, response = exchange.request.payload, exchange.response.payload
    asked = decode_request(request)
    assert asked.encode() == request
    assert decode_response(response, exchange.api_key, exchange.api_version).encode() == response


def test_the_clients_speak_many_versions_of_many_apis() -> None:
    spoken = {(each.api_key, each.api_version) for each in EXCHANGES}
    assert len(spoken) > 50
    assert len({key for key, _ in spoken}) >= 18
    newest = ApiVersionsRequest.INFO.api_key, ApiVersionsRequest.INFO.versions.highest
    assert newest in spoken
