"""Connections of the HTTP server take turns, whatever number of requests one of them sends."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from kafka_msgs.broker.endpoints.http_server import HttpServer
from kafka_msgs.broker.endpoints.routes import HttpRequest, HttpResponse

pytest.importorskip("h11")

MANY = 500


def test_a_client_that_sends_many_requests_does_not_delay_others() -> None:
    assert asyncio.run(order_of_requests()).index("/other") < MANY


async def order_of_requests() -> list[str]:
    """Return the targets in the order of the responses to one client with many requests and one with one."""
    found: list[str] = []

    def respond(request: HttpRequest) -> HttpResponse:
        found.append(request.target)
        return HttpResponse({})

    server = HttpServer("127.0.0.1", 0, respond)
    (eager, to_eager), (other, to_other) = [await connected(server.url) for _ in range(2)]
    to_eager.write(b"".join(request(f"/{number}") for number in range(MANY)))
    to_other.write(request("/other"))
    for reader, count in ((eager, MANY), (other, 1)):
        for _ in range(count):
            await reader.readuntil(b"{}")
    for writer in (to_eager, to_other):
        writer.close()
        await writer.wait_closed()
    await server.close()
    numbers = [int(target[1:]) for target in found if target != "/other"]
    assert all(one + 1 == later for one, later in pairwise(numbers))
    return found


async def connected(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))


def request(target: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
