"""Requests are encoded as requests, responses as responses."""

from __future__ import annotations

from typing import assert_type

from kafka_msgs.message import Request, Response
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequest
from kafka_msgs.messages.offset_fetch_response import OffsetFetchResponse
from kafka_msgs.wire import (
    NEED_DATA,
    PAUSED,
    ClientConnection,
    ConnectionClosed,
    NoResponse,
    RequestReceived,
    ResponseReceived,
    ServerConnection,
    TokenReceived,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)

encode_request(OffsetFetchRequest(), 2, correlation_id=1)
encode_request(OffsetFetchResponse(), 2, correlation_id=1)  # refused
encode_request(ConsumerProtocolSubscription(), 2, correlation_id=1)  # refused
encode_response(OffsetFetchResponse(), 2, correlation_id=1)
encode_response(OffsetFetchRequest(), 2, correlation_id=1)  # refused
assert_type(decode_request(b"").message, Request[Response])
assert_type(decode_response(b"", 9, 2).message, Response)

client, server = ClientConnection(), ServerConnection()
client.send(OffsetFetchRequest(), 2)
client.send(OffsetFetchResponse(), 2)  # refused
asked, answered = server.next_event(), client.next_event()
if asked is not NEED_DATA and asked is not PAUSED:
    assert_type(asked, RequestReceived | TokenReceived | ConnectionClosed)
if answered is not NEED_DATA:
    assert_type(answered, ResponseReceived | TokenReceived | NoResponse | ConnectionClosed)
if isinstance(asked, RequestReceived):
    assert_type(asked.message(), Request[Response])
    server.send_response(asked, OffsetFetchResponse())
    server.send_response(asked, OffsetFetchRequest())  # refused
if isinstance(answered, ResponseReceived):
    assert_type(answered.message(), Response)
