"""The header of each message: the rule and all of its exceptions."""

from __future__ import annotations

import pytest

from kafka_msgs import compile_schema, iter_message_classes
from kafka_msgs.errors import UnknownMessageError
from kafka_msgs.message import Response
from kafka_msgs.wire import encode_response, header_version, request_header_version, response_header_version

PRODUCE, METADATA, OFFSET_FETCH, CONTROLLED_SHUTDOWN, SASL_HANDSHAKE, API_VERSIONS = 0, 3, 9, 7, 17, 18
OFFSET_DELETE, STREAMS_GROUP_HEARTBEAT = 47, 88


@pytest.mark.parametrize(
    ("api_key", "version", "request_header", "response_header"),
    [
        (PRODUCE, 3, 1, 0),
        (PRODUCE, 8, 1, 0),
        (PRODUCE, 9, 2, 1),
        (METADATA, 8, 1, 0),
        (METADATA, 9, 2, 1),
        (OFFSET_FETCH, 2, 1, 0),
        (OFFSET_FETCH, 5, 1, 0),
        (OFFSET_FETCH, 6, 2, 1),
        (SASL_HANDSHAKE, 0, 1, 0),
        (SASL_HANDSHAKE, 1, 1, 0),
        (OFFSET_DELETE, 0, 1, 0),
        (STREAMS_GROUP_HEARTBEAT, 0, 2, 1),
    ],
)
def test_flexible_versions_have_flexible_headers(
    api_key: int, version: int, request_header: int, response_header: int
) -> None:
    assert request_header_version(api_key, version) == request_header
    assert response_header_version(api_key, version) == response_header


@pytest.mark.parametrize(("version", "request_header"), [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 2), (99, 2)])
def test_an_api_versions_response_never_has_a_flexible_header(version: int, request_header: int) -> None:
    assert request_header_version(API_VERSIONS, version) == request_header
    assert response_header_version(API_VERSIONS, version) == 0


def test_controlled_shutdown_began_without_a_client_id() -> None:
    assert request_header_version(CONTROLLED_SHUTDOWN, 0) == 0


def test_the_exceptions_are_the_only_ones() -> None:
    for cls in iter_message_classes():
        info = cls.INFO
        if info.kind not in ("request", "response") or info.api_key is None:
            continue
        for version in info.versions:
            flexible = version in info.flexible
            if info.kind == "request":
                assert request_header_version(info.api_key, version) == (2 if flexible else 1)
            elif info.api_key != API_VERSIONS:
                assert response_header_version(info.api_key, version) == (1 if flexible else 0)


@pytest.mark.parametrize("api_key", [-1, 999])
def test_an_unknown_api_key(api_key: int) -> None:
    with pytest.raises(UnknownMessageError) as caught:
        request_header_version(api_key, 0)
    assert (caught.value.api_key, caught.value.kind) == (api_key, "request")
    with pytest.raises(UnknownMessageError, match=f"no response of clients has the api key {api_key}"):
        response_header_version(api_key, 0)


def test_a_definition_that_states_header_versions_counts() -> None:
    text = (
        '{"name": "PingResponse", "type": "response", "apiKey": 500, "validVersions": "0-3", "flexibleVersions": "2+",'
        ' "headerVersions": {"0-2": "0", "3+": "1"}, "fields": []}'
    )
    cls = compile_schema(text)
    assert issubclass(cls, Response)
    assert [header_version(cls, version) for version in (0, 2, 3, 9)] == [0, 0, 1, 1]
    assert encode_response(cls(), 2, correlation_id=7) == bytes.fromhex("0000000700")
