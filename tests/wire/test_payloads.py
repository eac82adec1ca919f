"""Payloads of frames: a header and its message, both ways."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from attrs import evolve

from kafka_msgs import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    ProduceRequest,
    Request,
    Response,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
    iter_message_classes,
)
from kafka_msgs.codec import CodecOptions
from kafka_msgs.errors import (
    DecodeError,
    EncodeError,
    TrailingDataError,
    TruncatedError,
    UnexpectedNullError,
    UnknownMessageError,
    UnsupportedVersionError,
)
from kafka_msgs.messages.api_versions_response import ApiVersion
from kafka_msgs.messages.produce_request import PartitionProduceData, TopicProduceData
from kafka_msgs.testing.random_values import random_message
from kafka_msgs.wire import (
    RequestFrame,
    ResponseFrame,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)

REQUESTS: list[tuple[Request[Response], int, str | None, str]] = [
    (OffsetFetchRequest(group_id="g", topics=None), 2, "cli", "0009 0002 00000007 0003 636c69 000167 ffffffff"),
    (OffsetFetchRequest(group_id="g", topics=None), 2, None, "0009 0002 00000007 ffff 000167 ffffffff"),
    (OffsetFetchRequest(group_id="g", topics=None), 6, "cli", "0009 0006 00000007 0003 636c69 00 0267 00 00"),
    (ApiVersionsRequest(), 0, "c", "0012 0000 00000007 0001 63"),
    (
        ApiVersionsRequest(client_software_name="a", client_software_version="1"),
        3,
        "c",
        "0012 0003 00000007 0001 63 00 0261 0231 00",
    ),
    (SaslHandshakeRequest(mechanism="PLAIN"), 1, "", "0011 0001 00000007 0000 0005 504c41494e"),
]
RESPONSES: list[tuple[Response, int, str]] = [
    (OffsetFetchResponse(error_code=16), 2, "00000007 00000000 0010"),
    (OffsetFetchResponse(error_code=16), 6, "00000007 00 00000000 01 0010 00"),
    (ApiVersionsResponse(error_code=35), 0, "00000007 0023 00000000"),
    (ApiVersionsResponse(), 3, "00000007 0000 01 00000000 00"),
    (SaslHandshakeResponse(error_code=33, mechanisms=("PLAIN",)), 0, "00000007 0021 00000001 0005 504c41494e"),
]


@pytest.mark.parametrize(("message", "version", "client_id", "data"), REQUESTS)
def test_a_request(message: Request[Response], version: int, client_id: str | None, data: str) -> None:
    payload = bytes.fromhex(data)
    assert encode_request(message, version, correlation_id=7, client_id=client_id) == payload
    for buffer in (payload, bytearray(payload), memoryview(payload)):
        frame = decode_request(buffer)
        header = frame.header
        assert (frame.message, frame.version, frame.trailing) == (message, version, b"")
        assert frame.encode() == evolve(frame).encode() == payload
        assert (header.request_api_key, header.request_api_version) == (message.INFO.api_key, version)
        assert (header.correlation_id, header.client_id) == (7, client_id)


@pytest.mark.parametrize(("message", "version", "data"), RESPONSES)
def test_a_response(message: Response, version: int, data: str) -> None:
    payload, api_key = bytes.fromhex(data), message.INFO.api_key
    assert api_key is not None
    assert encode_response(message, version, correlation_id=7) == payload
    for buffer in (payload, bytearray(payload), memoryview(payload)):
        frame = decode_response(buffer, api_key, version)
        assert (frame.header.correlation_id, frame.message, frame.version, frame.trailing) == (7, message, version, b"")
        assert frame.encode() == evolve(frame).encode() == payload


def test_every_request_and_response_of_the_release() -> None:
    rng = Random(1)
    for cls in iter_message_classes():
        info = cls.INFO
        if info.kind not in ("request", "response") or info.api_key is None:
            continue
        for version in info.versions:
            message = random_message(cls, version, rng)
            if info.kind == "request":
                assert isinstance(message, Request)
                payload = encode_request(message, version, correlation_id=-1, client_id="é")
                request = decode_request(payload)
                assert (request.header.correlation_id, request.header.client_id) == (-1, "é")
                frame: RequestFrame | ResponseFrame = request
            else:
                assert isinstance(message, Response)
                payload = encode_response(message, version, correlation_id=9)
                frame = decode_response(payload, info.api_key, version)
            assert (frame.message, frame.version) == (message, version)
            assert frame.encode() == evolve(frame).encode() == payload


# ApiVersions: a broker without the requested version responds in version 0

FALLBACK = ApiVersionsResponse(error_code=35, api_keys=(ApiVersion(api_key=18, min_version=0, max_version=3),))
FALLBACK_DATA = "00000005 0023 00000001 0012 0000 0003"


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_an_api_versions_response_in_version_0(version: int) -> None:
    response = decode_response(bytes.fromhex(FALLBACK_DATA), 18, version)
    assert (response.message, response.version) == (FALLBACK, 0)
    assert response.header.correlation_id == 5


def test_an_api_versions_response_that_is_broken_in_both_versions() -> None:
    with pytest.raises(DecodeError) as caught:
        decode_response(bytes.fromhex("00000005 0000 05 0012"), 18, 3)
    assert str(caught.value) == (
        "ApiVersionsResponse v3: api_keys at byte 6: array of 4 elements needs at least 28 bytes, 2 left"
    )
    with pytest.raises(DecodeError) as caught:
        decode_response(bytes.fromhex("00000005 0000 0000"), 18, 0)
    assert caught.value.version == 0


def test_no_other_response_is_tried_in_another_version() -> None:
    data = encode_response(OffsetFetchResponse(), 0 + 1, correlation_id=5)
    with pytest.raises(DecodeError) as caught:
        decode_response(data, 9, 6)
    assert (caught.value.message, caught.value.version) == ("OffsetFetchResponse", 6)


def test_an_api_versions_request_of_an_unknown_version_is_named() -> None:
    with pytest.raises(UnsupportedVersionError) as caught:
        decode_request(bytes.fromhex("0012 0063 00000007 0001 63 00"))
    assert (caught.value.message, caught.value.version) == ("ApiVersionsRequest", 99)


# Unreadable and unwritable payloads


@pytest.mark.parametrize(("message", "version", "client_id", "data"), REQUESTS)
def test_a_request_with_bytes_left_over(
    message: Request[Response], version: int, client_id: str | None, data: str
) -> None:
    payload = bytes.fromhex(data)
    frame = decode_request(payload + b"\0\1")
    assert (frame.message, frame.trailing) == (message, b"\0\1")
    assert frame.encode() == evolve(frame).encode() == payload + b"\0\1"
    with pytest.raises(TrailingDataError) as caught:
        decode_request(payload + b"\0\1", refuse_trailing=True)
    assert (caught.value.offset, caught.value.reason) == (len(payload), "2 bytes left over")


def test_a_response_with_bytes_left_over() -> None:
    payload = bytes.fromhex("00000007 00000000 0010 05")
    frame = decode_response(payload, 9, 2)
    assert frame.trailing == b"\5"
    assert frame.encode() == evolve(frame).encode() == payload
    assert evolve(frame, trailing=b"").encode() == payload[:-1]
    with pytest.raises(TrailingDataError, match="OffsetFetchResponse v2: at byte 10: 1 bytes left over"):
        decode_response(payload, 9, 2, refuse_trailing=True)


@pytest.mark.parametrize(("message", "version", "client_id", "data"), REQUESTS)
def test_a_request_cut_off_at_any_byte(
    message: Request[Response], version: int, client_id: str | None, data: str
) -> None:
    payload = bytes.fromhex(data)
    for size in range(len(payload)):
        with pytest.raises(DecodeError) as caught:
            decode_request(payload[:size])
        assert caught.value.offset <= size


@pytest.mark.parametrize("data", ["", "00", "001200", "00120000000000"])
def test_less_than_what_every_request_starts_with(data: str) -> None:
    with pytest.raises(TruncatedError) as caught:
        decode_request(bytes.fromhex(data))
    assert (
        str(caught.value)
        == f"RequestHeader: at byte 0: api key, version and correlation id need 8 bytes, {len(data) // 2} left"
    )


def test_offsets_count_from_the_start_of_the_payload() -> None:
    with pytest.raises(UnexpectedNullError) as caught:
        decode_request(bytes.fromhex("0009 0001 00000007 0003 636c69 000167 ffffffff"))
    assert str(caught.value) == "OffsetFetchRequest v1: topics at byte 16: null, which this version does not allow"
    with pytest.raises(TruncatedError) as cut_off:
        decode_request(bytes.fromhex("0009 0002 00000007 0003 63"))
    assert str(cut_off.value) == "RequestHeader v1: client_id at byte 10: string needs 3 bytes, 1 left"


def test_an_unknown_api_key() -> None:
    with pytest.raises(UnknownMessageError):
        decode_request(bytes.fromhex("03e7 0000 00000007 ffff"))
    with pytest.raises(UnknownMessageError):
        decode_response(bytes(8), 999, 0)


@pytest.mark.parametrize("version", [0, 11, -1])
def test_an_unsupported_version(version: int) -> None:
    payload = b"\0\x09" + version.to_bytes(2, "big", signed=True) + bytes.fromhex("00000007 ffff 00")
    with pytest.raises(UnsupportedVersionError):
        decode_request(payload)
    with pytest.raises(UnsupportedVersionError):
        decode_response(bytes(8), 9, version)
    with pytest.raises(UnsupportedVersionError):
        encode_request(OffsetFetchRequest(), version, correlation_id=0)


def test_a_header_that_does_not_fit() -> None:
    with pytest.raises(EncodeError, match="RequestHeader v1: correlation_id: 2147483648 is out of range for int32"):
        encode_request(OffsetFetchRequest(), 2, correlation_id=2**31)
    with pytest.raises(EncodeError, match="RequestHeader v1: client_id: expected str, got bytes"):
        encode_request(OffsetFetchRequest(), 2, correlation_id=0, client_id=b"c")  # type: ignore[arg-type]


def test_options_reach_the_message() -> None:
    parts = (PartitionProduceData(records=b"\xca\xfe"),)
    produce = ProduceRequest(topic_data=(TopicProduceData(name="t", partition_data=parts),))
    payload = encode_request(produce, 9, correlation_id=1)
    decoded: Any = decode_request(payload, options=CodecOptions(memoryview_records=True)).message
    records = decoded.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is payload
