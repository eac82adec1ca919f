"""The sockets of a cluster, on asyncio: bytes in, calls to the cluster; answers out, in order; and its timers.

A connection has one request in work at a time, as in Kafka: the next one begins when the answer is written. So answers
keep the order of the requests. While a request is in work, at most ``_HELD`` bytes of the next ones are read.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.broker.call import Call, Damage, Session
from kafka_msgs.broker.clock import Clock
from kafka_msgs.broker.handlers.api_versions import unsupported_version
from kafka_msgs.broker.handlers.sasl import take_token
from kafka_msgs.codec import CodecOptions
from kafka_msgs.errors import BrokerStartError, KafkaMsgsError, ProtocolError, RefusedError
from kafka_msgs.message import Response
from kafka_msgs.wire import (
    SIZE_BYTES,
    RequestReceived,
    ServerConnection,
    TokenReceived,
    encode_response,
)
from kafka_msgs.wire.negotiation import FALLBACK

if TYPE_CHECKING:
    from kafka_msgs.broker.cluster import Address, Cluster
    from kafka_msgs.broker.config import ListenerConfig

__all__ = ["BrokerServer"]

_HELD: Final = 2**20
_READING: Final = CodecOptions(memoryview_records=True, utf8_errors="replace")
_RESET: Final = struct.pack("ii", 1, 0)
_BACKLOG: Final = 1024
_ACCEPTED_AT_ONCE: Final = 100


class BrokerServer:
    """The listeners of all brokers of a cluster, and the clock that moves it. All methods belong to one event loop."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self.cluster = cluster
        self.clock = clock
        self.connections: set[_Connection] = set()
        self.closing = False
        self._loop = asyncio.get_running_loop()
        self._listening: dict[int, list[socket.socket]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._armed: int | None = None
        self._empty = asyncio.Event()

    def start(self) -> None:
        """Bind all listeners and start the brokers. Raises ``BrokerStartError`` if a port is not free."""
        config = self.cluster.config
        addresses: dict[int, dict[str, Address]] = {}
        try:
            for number, broker_id in enumerate(self.cluster.broker_ids):
                wanted = {each.name: (config.host, each.port and each.port + number) for each in config.listeners}
                addresses[broker_id] = self._bind(broker_id, wanted)
            self.cluster.network = self
            self.cluster.start(addresses)
        except BaseException:
            for broker_id in tuple(self._listening):
                self._deafen(broker_id)
            raise
        self.arm()

    async def close(self) -> None:
        """Close all listeners and connections, and stop the timer."""
        self.closing = True
        if self._timer is not None:
            self._timer.cancel()
        for broker_id in tuple(self._listening):
            self.close_broker(broker_id, reset=False)
        # A task that never ran would leave its socket open.
        await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        while self.connections:
            self._empty.clear()
            await self._empty.wait()

    # What the cluster asks of its network

    def open_broker(self, broker_id: int, addresses: Mapping[str, Address]) -> None:
        """Listen again at the addresses of a broker that was closed."""
        self._bind(broker_id, addresses)

    def close_broker(self, broker_id: int, *, reset: bool) -> None:
        """Close the listeners and the connections of a broker. ``reset`` breaks the connections off."""
        self._deafen(broker_id)
        for connection in tuple(self.connections):
            if connection.session.broker_id == broker_id:
                connection.end(reset=reset)

    # Time

    def tick(self) -> None:
        """Run what is due now."""
        self._armed = None
        self.cluster.tick(self.clock.now())
        self.arm()

    def arm(self) -> None:
        """Wake up when the next timer is due. A clock that does not move by itself wakes up nobody."""
        due = self.cluster.next_timer
        if due == self._armed or self.closing or not self.clock.real:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed, self._timer = due, None
        if due is not None:
            self._timer = self._loop.call_later(max(0, due - self.clock.now()) / 1000, self.tick)

    def lost(self, connection: _Connection) -> None:
        """Forget a connection."""
        self.connections.discard(connection)
        if not self.connections:
            self._empty.set()

    def _bind(self, broker_id: int, wanted: Mapping[str, Address]) -> dict[str, Address]:
        found: dict[str, Address] = {}
        for listener in self.cluster.config.listeners:
            host, port = wanted[listener.name]
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            try:
                listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
            except OSError as error:
                raise BrokerStartError(address=f"{host}:{port}", reason=error.strerror or str(error)) from None
            self._listening.setdefault(broker_id, []).append(listening)
            listening.setblocking(False)
            self._loop.add_reader(listening, self._accept, listening, broker_id, listener)
            found[listener.name] = host, listening.getsockname()[1]
        return found

    def _deafen(self, broker_id: int) -> None:
        for listening in self._listening.pop(broker_id, ()):
            self._loop.remove_reader(listening)
            listening.close()

    def _accept(self, listening: socket.socket, broker_id: int, listener: ListenerConfig) -> None:
        """Accept the connections that wait, a limited number before other work has its turn."""
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, _ = listening.accept()
            except OSError:
                return
            task = self._loop.create_task(self._connect(accepted, broker_id, listener))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self, accepted: socket.socket, broker_id: int, listener: ListenerConfig) -> None:
        """Make a connection of a socket. One that fails its TLS handshake is closed."""
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await self._loop.connect_accepted_socket(
                lambda: _Connection(self, broker_id, listener), accepted, ssl=listener.tls
            )
        except OSError:
            accepted.close()
        except asyncio.CancelledError:
            accepted.close()
            raise


class _Connection(asyncio.Protocol):
    """One connection: it carries the calls of its client to the cluster, and the answers back."""

    session: Session

    def __init__(self, server: BrokerServer, broker_id: int, listener: ListenerConfig) -> None:
        self._server = server
        self._cluster = server.cluster
        self._broker_id = broker_id
        self._listener = listener
        self._wire = ServerConnection(max_frame_size=self._cluster.config.max_request_size, options=_READING)
        self._request: RequestReceived | None = None
        self._held = 0
        self._paused = self._full = self._pumping = False

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        host = (transport.get_extra_info("peername") or ("127.0.0.1",))[0]
        self.session = self._cluster.open_session(self._broker_id, listener=self._listener, client_host=f"/{host}")
        self._server.connections.add(self)
        broker = self._cluster.brokers[self._broker_id]
        if self._server.closing or not broker.running or len(broker.sessions) > self._cluster.config.max_connections:
            self.end(reset=True)

    def data_received(self, data: bytes) -> None:
        self._held += len(data)
        self._wire.receive_data(data)
        self._pump()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wire.close()
        self.session.end()
        self._server.lost(self)
        self._server.arm()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._pump()

    # What calls ask for

    def reply(self, call: Call[Any], response: Response | None) -> None:
        """Send the response, and go on with the next request."""
        request = self._request
        if self.session.closed or request is None:
            return
        if response is not None:
            try:
                frame = self._wire.send_response(request, response)
            except KafkaMsgsError as error:
                self._cluster.note_problem(error)
                self.end(reset=False)
                return
            if call.damage is not None:
                self._send_pieces(call.damage(frame), 0)
                return
            self._transport.write(frame)
        self._go_on()

    def _go_on(self) -> None:
        self._request = None
        self._pump()

    def _send_pieces(self, damage: Damage, index: int) -> None:
        """Send the pieces of a damaged answer from one on. The next request waits for the last piece."""
        if self.session.closed:
            return
        if index < len(damage.pieces):
            self._transport.write(damage.pieces[index])
            self._cluster.after(damage.every_ms, lambda: self._send_pieces(damage, index + 1))
            self._server.arm()
        elif damage.closes:
            self.end(reset=False)
        else:
            self._go_on()

    def disconnect(self, call: Call[Any], *, reset: bool = False) -> None:
        """Close the connection."""
        self.end(reset=reset)

    def end(self, *, reset: bool) -> None:
        """Close the connection: after what was written, or at once with a reset."""
        self.session.end()
        if not reset:
            self._transport.close()
            return
        with suppress(OSError):
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()

    # Requests

    def _pump(self) -> None:
        """Take requests as long as none is in work and the client reads its answers."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while self._request is None and not self._full and not self.session.closed:
                event = self._wire.next_event()
                if not isinstance(event, RequestReceived | TokenReceived):
                    break
                self._take(event)
        except ProtocolError:
            self.end(reset=False)
        finally:
            self._pumping = False
        self._regulate()
        self._server.arm()

    def _regulate(self) -> None:
        """Stop reading while enough waits here, and go on afterwards."""
        full = self._held > _HELD and (self._request is not None or self._full)
        if full != self._paused and not self._transport.is_closing():
            self._paused = full
            if full:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _take(self, event: RequestReceived | TokenReceived) -> None:
        if isinstance(event, TokenReceived):
            self._held -= len(event.token) + SIZE_BYTES
            self._take_token(event.token)
            return
        self._held -= len(event.payload) + SIZE_BYTES
        if not self._cluster.dispatch.offers(event.api_key, event.version):
            self._refuse_version(event)
            return
        try:
            frame = event.frame()
        except KafkaMsgsError:
            self.end(reset=False)
            return
        self._request = event
        self._cluster.now = now = self._server.clock.now()
        self._cluster.receive(
            Call(
                cluster=self._cluster,
                session=self.session,
                request=frame.message,
                version=event.version,
                transport=self,
                correlation_id=event.correlation_id,
                client_id=frame.header.client_id,
                received_at=now,
            )
        )

    def _take_token(self, token: bytes) -> None:
        """Go on with a login whose tokens have no headers (KIP-43). If it fails, the connection is closed."""
        try:
            answer = take_token(self._cluster, self.session, token)
        except RefusedError:
            self.end(reset=False)
            return
        self._transport.write(self._wire.send_token(answer))
        if self.session.logged_in:
            self._wire.end_tokens()

    def _refuse_version(self, event: RequestReceived) -> None:
        """Answer ApiVersions in version 0, and close the connection for another api, as Kafka does."""
        if event.api_key != ApiKey.API_VERSIONS:
            self.end(reset=False)
            return
        offered = self._cluster.dispatch.offered[ApiKey.API_VERSIONS]
        response = unsupported_version((offered.lowest, offered.highest))
        payload = encode_response(response, FALLBACK, correlation_id=event.correlation_id)
        self._transport.write(self._wire.send_payload(payload))
