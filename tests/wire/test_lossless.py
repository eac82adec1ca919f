"""Decoded messages re-encode to the original bytes, including tags, trailing bytes, text and unusual forms."""

from __future__ import annotations

import pickle
from random import Random

import pytest
from attrs import evolve

from kafka_msgs import Message, MetadataRequest, OffsetFetchRequest, Request, Response, iter_message_classes
from kafka_msgs.codec import CodecOptions
from kafka_msgs.errors import EncodeError, InvalidUtf8Error
from kafka_msgs.messages.request_header import RequestHeader
from kafka_msgs.messages.response_header import ResponseHeader
from kafka_msgs.testing.random_values import random_message
from kafka_msgs.wire import (
    RequestFrame,
    ResponseFrame,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    header_version,
)

ESCAPE = CodecOptions(utf8_errors="surrogateescape")
REPLACE = CodecOptions(utf8_errors="replace")
LATIN_1 = b"caf\xe9"
CLASSES = [cls for cls in iter_message_classes() if issubclass(cls, Request | Response)]
HEADER_TAGS = ((3, b"\xca\xfe"), (77, b""))
TRAILING = (b"", b"\0", b"\1\2\3")


def written(cls: type[Request[Response] | Response], version: int, rng: Random, trailing: bytes) -> bytes:
    """Return a payload with every possible header and message field, and trailing bytes."""
    message = random_message(cls, version, rng)
    head = header_version(cls, version)
    if cls.INFO.kind == "response":
        tags = HEADER_TAGS if head == 1 else ()
        header: Message = ResponseHeader(correlation_id=7, unknown_tagged_fields=tags)
    else:
        header = RequestHeader(
            request_api_key=cls.INFO.api_key or 0,
            request_api_version=version,
            correlation_id=7,
            client_id=LATIN_1.decode("utf-8", "surrogateescape"),
            unknown_tagged_fields=HEADER_TAGS if head == 2 else (),
        )
    return header.encode(head, options=ESCAPE) + message.encode(version) + trailing


def decoded(cls: type[Message], version: int, payload: bytes, options: CodecOptions) -> RequestFrame | ResponseFrame:
    if cls.INFO.kind == "request":
        return decode_request(payload, options=options)
    assert cls.INFO.api_key is not None
    return decode_response(payload, cls.INFO.api_key, version, options=options)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_frame_is_encoded_to_the_bytes_it_came_from(cls: type[Request[Response] | Response]) -> None:
    rng = Random(cls.__name__)
    for version in cls.INFO.versions:
        for trailing in TRAILING:
            payload = written(cls, version, rng, trailing)
            frame = decoded(cls, version, payload, ESCAPE)
            assert (frame.version, frame.trailing) == (version, trailing)
            assert frame.encode() == payload
            assert evolve(frame).encode() == payload, "from the values alone"
            assert pickle.loads(pickle.dumps(frame)).encode() == payload
            assert decoded(cls, version, payload, REPLACE).encode() == payload


UNUSUAL = {
    "a varint longer than it needs to be": "0009 0006 00000007 0003 636c69 00 8200 67 00 00",
    "a number of tags longer than it needs to be": "0009 0006 00000007 0003 636c69 8000 0267 00 8000",
    "a bool of 2": "0003 0004 00000007 ffff ffffffff 02",
    "a null struct with another negative marker": "004b 0000 00000007 ffff 00 01 00000001 80 00",
}


@pytest.mark.parametrize("data", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_a_request_in_an_unusual_form(data: str) -> None:
    payload = bytes.fromhex(data)
    frame = decode_request(payload)
    assert frame.encode() == payload
    assert evolve(frame).encode() != payload
    assert decode_request(evolve(frame).encode()) == frame


def test_a_default_that_is_written_as_a_tag() -> None:
    payload = bytes.fromhex("00000007 0000 01 00000000 01 01 08 ffffffffffffffff")
    frame = decode_response(payload, 18, 3)
    assert frame.encode() == payload
    assert evolve(frame).encode() == bytes.fromhex("00000007 0000 01 00000000 00")


def test_a_changed_frame_is_encoded_from_its_values_and_keeps_the_rest() -> None:
    payload = bytes.fromhex("0009 0006 00000007 0003 636c69 01 05 01 aa 0267 00 00 ff")
    frame = decode_request(payload)
    changed = evolve(frame, message=OffsetFetchRequest(group_id="h", topics=None))
    assert changed.encode() == payload.replace(b"\2g", b"\2h")
    header = evolve(frame.header, correlation_id=8)
    assert evolve(frame, header=header).encode() == payload.replace(b"\0\0\0\7", b"\0\0\0\10")


def test_bytes_that_change_after_decoding_do_not_change_the_frame() -> None:
    payload = bytearray(encode_request(MetadataRequest(), 9, correlation_id=7))
    before = bytes(payload)
    frame = decode_request(payload)
    payload[:] = bytes(len(payload))
    assert frame.encode() == before


# Text that is not UTF-8


def test_a_client_id_in_latin_1() -> None:
    payload = bytes.fromhex("0009 0002 00000007 0004 636166e9 000167 ffffffff")
    with pytest.raises(InvalidUtf8Error, match="RequestHeader v1: client_id"):
        decode_request(payload)
    frame = decode_request(payload, options=ESCAPE)
    assert frame.header.client_id == "caf\udce9"
    assert frame.encode() == evolve(frame).encode() == payload
    assert decode_request(payload, options=REPLACE).header.client_id == "caf\ufffd"


def test_options_reach_headers_and_messages_when_encoding() -> None:
    name = LATIN_1.decode("utf-8", "surrogateescape")
    message = OffsetFetchRequest(group_id=name, topics=None)
    payload = encode_request(message, 2, correlation_id=7, client_id=name, options=ESCAPE)
    assert payload.count(LATIN_1) == 2
    with pytest.raises(EncodeError, match="RequestHeader v1: client_id"):
        encode_request(message, 2, correlation_id=7, client_id=name)
    with pytest.raises(EncodeError, match="OffsetFetchRequest v2: group_id"):
        encode_request(message, 2, correlation_id=7)


# Frames that are not requests


def test_only_requests_travel_as_requests() -> None:
    for cls in iter_message_classes():
        version = cls.INFO.versions.highest
        if cls.INFO.kind != "request":
            with pytest.raises(
                EncodeError,
                match=f"{cls.__name__} v{version}: a message of type {cls.INFO.kind} cannot be sent as a request",
            ):
                encode_request(cls(), version, correlation_id=1)  # type: ignore[arg-type]
        if cls.INFO.kind != "response":
            with pytest.raises(EncodeError, match="cannot be sent as a response"):
                encode_response(cls(), version, correlation_id=1)  # type: ignore[arg-type]
