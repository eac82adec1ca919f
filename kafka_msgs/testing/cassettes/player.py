"""A server that replays a cassette: clients connect to it instead of the recorded brokers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, cast

from kafka_msgs.capture.connections import Endpoint
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import KafkaMsgsError, ProtocolError
from kafka_msgs.message import Response
from kafka_msgs.tap.address_rewriting import address_fields, rewrite_addresses
from kafka_msgs.tap.listeners import Listeners
from kafka_msgs.testing.cassettes.recorded_exchanges import Miss, RecordedExchanges, RecordedReply
from kafka_msgs.wire import RequestReceived, ServerConnection, encode_response

__all__ = ["Player"]

_LOOPBACK: Final = Endpoint("127.0.0.1", 0)
_IDLE_SECONDS: Final = 0.05
"""The wait of a fetch without records in seconds, unless it requests less. It prevents busy polling by clients."""


class Player:
    """A server that responds to clients from recorded exchanges, inside an ``async with`` block.

    ``missed`` is called with requests that were not recorded. With ``recorded_pace`` responses take as long as in the
    recording; otherwise they are immediate.
    """

    def __init__(self, tape: RecordedExchanges, *, missed: Callable[[str], None], recorded_pace: bool) -> None:
        self.tape = tape
        self.missed = missed
        self.recorded_pace = recorded_pace
        self.connections: set[_PlayerConnection] = set()
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[asyncio.Server]] = []

    @property
    def address(self) -> Endpoint:
        """The address for clients."""
        return self._listeners.bootstrap

    async def __aenter__(self) -> Player:
        self._listeners = Listeners(_LOOPBACK, advertised=None, opened=self._listen, on_fault=self.missed)
        return self

    async def __aexit__(self, *error: object) -> None:
        for task in self._accepting:
            (await task).close()
        for connection in tuple(self.connections):
            connection.end()
        await asyncio.sleep(0)

    def translate(self, response: Response, version: int) -> Response:
        """Return a response in which this server's address replaces the brokers' addresses."""
        return rewrite_addresses(response, address_fields(type(response), version), self._listeners.translate)

    def _listen(self, listening: socket.socket, broker: Endpoint | None) -> None:
        loop = asyncio.get_running_loop()
        self._accepting.append(loop.create_task(loop.create_server(lambda: _PlayerConnection(self), sock=listening)))


class _PlayerConnection(asyncio.Protocol):
    """A client connection, which handles one request at a time."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._wire = ServerConnection()
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._player.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._wire.close()
        self._player.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        self._wire.receive_data(data)
        self._pump()

    def end(self) -> None:
        """Close the connection."""
        self._transport.close()

    def _pump(self) -> None:
        try:
            while self._timer is None and not self._transport.is_closing():
                event = self._wire.next_event()
                if not isinstance(event, RequestReceived):
                    return
                self._take(event)
        except ProtocolError as error:
            self._player.missed(str(error))
            self.end()

    def _take(self, event: RequestReceived) -> None:
        try:
            frame = event.frame()
        except KafkaMsgsError as error:
            self._player.missed(str(error))
            self.end()
            return
        reply = self._player.tape.find_response(frame.message, event.version, frame.header.client_id)
        if isinstance(reply, Miss):
            self._player.missed(reply.reason)
            self._refuse(event, reply)
            return
        pause = self._pause(reply, getattr(frame.message, "max_wait_ms", 0))
        if pause:
            self._timer = asyncio.get_running_loop().call_later(pause, self._late, event, reply)
        else:
            self._answer(event, reply)

    def _pause(self, reply: RecordedReply, max_wait_ms: int) -> float:
        """Return the delay of a response in seconds."""
        if reply.idle:
            longest = max_wait_ms / 1000
            return longest if self._player.recorded_pace else min(longest, _IDLE_SECONDS)
        return reply.latency_ms / 1000 if self._player.recorded_pace else 0.0

    def _late(self, event: RequestReceived, reply: RecordedReply) -> None:
        self._timer = None
        self._answer(event, reply)
        self._pump()

    def _answer(self, event: RequestReceived, reply: RecordedReply) -> None:
        if reply.response is None or not event.needs_response:
            return
        version = event.version if reply.version is None else reply.version
        response = self._player.translate(cast("Response", reply.response), version)
        try:
            payload = encode_response(response, version, correlation_id=event.correlation_id)
        except KafkaMsgsError as error:
            self._player.missed(f"the nearest answer cannot be given in version {version}: {error}")
            self.end()
            return
        self._transport.write(self._wire.send_payload(payload))

    def _refuse(self, event: RequestReceived, miss: Miss) -> None:
        """Report that a request failed. If no error response is possible, close the connection."""
        if event.needs_response:
            self._transport.write(self._wire.send_error(event, ErrorCode.INVALID_REQUEST, error_message=miss.reason))
        else:
            self.end()
