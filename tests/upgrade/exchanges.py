"""Exchanges of clients, including versions that this library no longer decodes."""

from __future__ import annotations

from typing import Any, Final

from attrs import evolve

from kafka_msgs import HeartbeatRequest
from kafka_msgs.capture import CapturedConnection, CapturedPayload, Endpoint, Exchange
from kafka_msgs.message import Request, Response
from kafka_msgs.wire import encode_request, encode_response

__all__ = ["START_US", "exchange", "old_version"]

START_US: Final = 1_700_000_000_000_000


def exchange(
    request: Request[Any], version: int, *, client_id: str = "app", number: int = 1, second: int = 0, **parts: Any
) -> Exchange:
    """Return an exchange; ``response`` is a message, and ``payload`` replaces the bytes of the request."""
    payload = parts.get("payload") or encode_request(request, version, correlation_id=1, client_id=client_id)
    response: Response | None = parts.get("response")
    at = START_US + second * 1_000_000
    answered = None if response is None else encode_response(response, version, correlation_id=1)
    return Exchange(
        connection=CapturedConnection(number, Endpoint("192.0.2.7", 50_000 + number), Endpoint("192.0.2.1", 9092)),
        api_key=type(request).INFO.api_key,
        version=version,
        correlation_id=1,
        request=CapturedPayload(payload, len(payload), 0, at, 1),
        response=None if answered is None else CapturedPayload(answered, len(answered), 0, at + 500, 1),
    )


def old_version(api_key: int, version: int, **facts: Any) -> Exchange:
    """Return an exchange of an API whose version this library no longer decodes."""
    return evolve(exchange(HeartbeatRequest(), 0, **facts), api_key=int(api_key), version=version)
