"""Conversations between a client and a broker, built packet by packet."""

from __future__ import annotations

from itertools import chain

from kafka_msgs import (
    MetadataRequest,
    MetadataResponse,
)
from kafka_msgs.wire import encode_request, encode_response
from tests.support.packets import (
    Chunk,
    framed,
)


def ask(number: int, *, client_id: str = "me") -> bytes:
    return framed(encode_request(MetadataRequest(topics=()), 9, correlation_id=number, client_id=client_id))


def reply(number: int) -> bytes:
    return framed(encode_response(MetadataResponse(cluster_id="c" * number), 9, correlation_id=number))


def talk(count: int) -> list[Chunk]:
    return list(chain.from_iterable((("request", ask(n)), ("response", reply(n))) for n in range(1, count + 1)))
