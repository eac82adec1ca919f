"""A small HTTP/1.1 server on asyncio. The package ``h11`` implements the protocol.

A web page must not control a broker on the machine of its reader. The server therefore refuses requests whose
``Origin`` header is not a loopback address, and bodies that are not JSON. If it listens on a loopback address, it also
refuses requests whose ``Host`` header is not one.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any, Final, cast
from urllib.parse import urlsplit

from kafka_msgs.broker.config import WILDCARDS
from kafka_msgs.broker.endpoints.routes import HttpRequest, HttpResponse
from kafka_msgs.errors import BrokerStartError, MissingExtraError

__all__ = ["HttpServer"]

_MAX_HEAD: Final = 2**16
_MAX_BODY: Final = 2**22
"""The limits of a request in bytes."""
_MAX_CONNECTIONS: Final = 100
_IDLE_S: Final = 60
_LINGER_S: Final = 2
_BACKLOG: Final = 128
_CHANGES: Final = frozenset({"POST", "PUT", "PATCH"})

Respond = Callable[[HttpRequest], HttpResponse]


class HttpServer:
    """An HTTP server on one address. ``respond`` returns the response to each request. Port 0 selects a free port.

    Raises ``MissingExtraError`` without the package ``h11``, and ``BrokerStartError`` if the address is unavailable.
    """

    def __init__(self, host: str, port: int, respond: Respond) -> None:
        try:
            import h11
        except ImportError as error:
            raise MissingExtraError(package="h11", feature="an HTTP endpoint", extra="broker") from error
        self.http = h11
        self.respond = respond
        self.local = _is_loopback(_url(host))
        self.connections: set[_Connection] = set()
        try:
            self._socket = socket.create_server(
                (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=_BACKLOG
            )
        except OSError as error:
            raise BrokerStartError(address=f"{host}:{port}", reason=error.strerror or str(error)) from None
        self.url = f"{_url(WILDCARDS.get(host, host))}:{self._socket.getsockname()[1]}"
        loop = asyncio.get_running_loop()
        self._server = loop.create_task(loop.create_server(lambda: _Connection(self), sock=self._socket))

    def stop(self) -> None:
        """Stop before the first connection."""
        self._server.cancel()
        self._socket.close()

    async def close(self) -> None:
        """Close the server and its connections."""
        (await self._server).close()
        for connection in tuple(self.connections):
            connection.abort()
        while self.connections:
            await asyncio.sleep(0)


class _Connection(asyncio.Protocol):
    """A connection: it responds to one request at a time, and reads no more while the client does not read."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._h11 = server.http
        self._wire = self._h11.Connection(self._h11.SERVER, max_incomplete_event_size=_MAX_HEAD)
        self._request: Any = None
        self._body = bytearray()
        self._full = self._refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._server.connections.add(self)
        self._expiry = asyncio.get_running_loop().call_later(_IDLE_S, self.abort)
        if len(self._server.connections) > _MAX_CONNECTIONS:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expiry.cancel()
        self._server.connections.discard(self)

    def abort(self) -> None:
        """Close the connection immediately."""
        self._transport.abort()

    def pause_writing(self) -> None:
        self._full = True
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._full = False
        self._pump()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._expiry.cancel()
        self._expiry = asyncio.get_running_loop().call_later(_IDLE_S, self.abort)
        self._wire.receive_data(data)
        self._pump()

    def eof_received(self) -> bool:
        return False

    def _pump(self) -> None:
        """Handle the complete requests one by one, in turn with other connections.

        No more is read while requests wait, because the client does not read its responses or sends many requests.
        """
        try:
            while not (self._full or self._refused or self._transport.is_closing()):
                event = self._wire.next_event()
                if event in (self._h11.NEED_DATA, self._h11.PAUSED):
                    self._transport.resume_reading()
                    return
                self._handle(event)
                if isinstance(event, self._h11.EndOfMessage):
                    self._transport.pause_reading()
                    asyncio.get_running_loop().call_soon(self._pump)
                    return
        except self._h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint)

    def _handle(self, event: object) -> None:
        if isinstance(event, self._h11.Request):
            self._request, self._body = event, bytearray()
            if self._wire.they_are_waiting_for_100_continue:
                more = self._h11.InformationalResponse(status_code=HTTPStatus.CONTINUE.value, headers=[])
                self._transport.write(self._wire.send(more))
        elif isinstance(event, self._h11.Data):
            self._body += event.data
            if len(self._body) > _MAX_BODY:
                self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        elif isinstance(event, self._h11.EndOfMessage):
            self._respond()

    def _respond(self) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self._request.headers}
        request = HttpRequest(
            method=self._request.method.decode("ascii"),
            target=self._request.target.decode("latin-1"),
            headers=headers,
            body=bytes(self._body),
        )
        reason = self._objection(request)
        response = self._server.respond(request) if reason is None else HttpResponse({"error": reason[1]}, reason[0])
        self._send(response)
        if self._wire.our_state is self._h11.MUST_CLOSE:
            self._transport.close()
        else:
            self._wire.start_next_cycle()

    def _objection(self, request: HttpRequest) -> tuple[int, str] | None:
        """Return the status and the reason to refuse a request of a web page, or None."""
        if self._server.local and not _is_loopback(f"//{request.headers.get('host', '')}"):
            return HTTPStatus.FORBIDDEN, "the Host header is not a loopback address"
        if "origin" in request.headers and not _is_loopback(request.headers["origin"]):
            return HTTPStatus.FORBIDDEN, "the Origin header is not a loopback address"
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if request.method in _CHANGES and request.body and not (kind.endswith("json") and kind.startswith("app")):
            return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the Content-Type header is not application/json"
        return None

    def _refuse(self, status: int) -> None:
        """Send an error response if possible, and end the connection.

        Closing a connection with unread bytes would reset it, so that the client might not receive the response. For a
        moment, the bytes of the client are therefore read and dropped.
        """
        if self._wire.our_state in (self._h11.IDLE, self._h11.SEND_RESPONSE):
            self._send(HttpResponse({"error": HTTPStatus(status).phrase}, status))
        self._refused = True
        self._transport.resume_reading()
        self._transport.write_eof()
        self._expiry.cancel()
        self._expiry = asyncio.get_running_loop().call_later(_LINGER_S, self.abort)

    def _send(self, response: HttpResponse) -> None:
        body = response.body
        headers = [("content-type", response.content_type), ("content-length", str(len(body)))]
        if response.status == HTTPStatus.NO_CONTENT:
            headers = []
        head = self._h11.Response(status_code=int(response.status), headers=headers)
        data = [self._wire.send(head)]
        if body and (self._request is None or self._request.method != b"HEAD"):
            data.append(self._wire.send(self._h11.Data(data=body)))
        data.append(self._wire.send(self._h11.EndOfMessage()))
        self._transport.write(b"".join(data))


def _url(host: str) -> str:
    return f"http://[{host}]" if ":" in host else f"http://{host}"


def _is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
