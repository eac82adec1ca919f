"""Requests with APIs and versions missing in the library: their headers are decoded, so a server can respond."""

from __future__ import annotations

import pytest
from attrs import evolve

from kafka_msgs import ApiVersionsResponse
from kafka_msgs.catalog import MessageCatalog
from kafka_msgs.codec import CodecOptions
from kafka_msgs.errors import DecodeError, TruncatedError, UnsupportedVersionError
from kafka_msgs.messages.api_versions_response import ApiVersion
from kafka_msgs.wire import (
    RequestPrefix,
    decode_request,
    decode_response,
    encode_response,
    read_correlation_id,
    read_request_header,
    read_request_prefix,
)

NEWER = "0012 0063 00000007 0001 63 01 05 01 aa"
"""ApiVersions version 99, of client ``c``, with a tag in its header."""


def test_the_header_of_a_newer_version() -> None:
    payload = bytes.fromhex(NEWER + "cafe")
    with pytest.raises(UnsupportedVersionError) as caught:
        decode_request(payload)
    assert (caught.value.message, caught.value.version) == ("ApiVersionsRequest", 99)
    for buffer in (payload, bytearray(payload), memoryview(payload)):
        header = read_request_header(buffer)
        assert (header.request_api_key, header.request_api_version, header.correlation_id) == (18, 99, 7)
        assert (header.client_id, header.unknown_tagged_fields) == ("c", ((5, b"\xaa"),))


@pytest.mark.parametrize(
    ("data", "client_id"),
    [
        ("0012 0063 00000007 0001 63 05", "c"),
        ("03e7 0000 00000007 0001 63 ffff", "c"),
        ("03e7 0000 00000007 ffff", None),
        ("0000 0001 00000007 0001 63 0001 00000001 00000000", "c"),
        ("0007 0000 00000007 00000001", None),
        ("0009 ffff 00000007 ffff", None),
    ],
    ids=["tags of another form", "an unknown api", "no client id", "an old Produce", "ControlledShutdown 0", "below 0"],
)
def test_a_header_is_read_as_far_as_it_never_changes(data: str, client_id: str | None) -> None:
    header = read_request_header(bytes.fromhex(data))
    assert (header.correlation_id, header.client_id) == (7, client_id)
    assert header.unknown_tagged_fields == ()


def test_a_damaged_header_of_a_known_version_is_refused() -> None:
    with pytest.raises(DecodeError, match="RequestHeader v2"):
        read_request_header(bytes.fromhex("0012 0003 00000007 0001 63 05"))
    with pytest.raises(TruncatedError, match="RequestHeader v1: client_id at byte 10"):
        read_request_header(bytes.fromhex("03e7 0000 00000007 0005 63"))
    with pytest.raises(TruncatedError, match="need 8 bytes, 7 left"):
        read_request_header(bytes(7))


def test_options_and_catalog_reach_the_header() -> None:
    escape = CodecOptions(utf8_errors="surrogateescape")
    payload = bytes.fromhex("03e7 0000 00000007 0001 e9")
    assert read_request_header(payload, options=escape).client_id == "\udce9"
    nothing = MessageCatalog.of([])
    assert read_request_header(bytes.fromhex(NEWER), catalog=nothing).unknown_tagged_fields == ()


def test_what_every_request_and_response_starts_with() -> None:
    assert read_request_prefix(bytes.fromhex("03e7 fffe 80000000 ff")) == RequestPrefix(999, -2, -(2**31))
    assert read_correlation_id(bytes.fromhex("fffffffe 00")) == -2
    with pytest.raises(TruncatedError, match="ResponseHeader: at byte 0: the correlation id needs 4 bytes, 3 left"):
        read_correlation_id(bytes(3))


# KIP-511


ANSWER = ApiVersionsResponse(error_code=35, api_keys=(ApiVersion(api_key=18, min_version=0, max_version=4),))


@pytest.mark.parametrize("version", [5, 6, 99, 32767])
def test_an_api_versions_response_to_a_version_that_nobody_here_knows(version: int) -> None:
    payload = encode_response(ANSWER, 0, correlation_id=7)
    frame = decode_response(payload, 18, version)
    assert (frame.message, frame.version) == (ANSWER, 0)
    assert frame.encode() == evolve(frame).encode() == payload


def test_an_api_versions_response_in_a_version_that_nobody_here_knows() -> None:
    payload = encode_response(ANSWER, 4, correlation_id=7)
    with pytest.raises(UnsupportedVersionError) as caught:
        decode_response(payload, 18, 99)
    assert caught.value.version == 99


def test_no_other_response_has_a_fallback() -> None:
    with pytest.raises(UnsupportedVersionError):
        decode_response(bytes.fromhex("00000007 00000000"), 9, 99)
