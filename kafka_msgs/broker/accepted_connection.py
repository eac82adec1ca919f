"""One connection to a broker: bytes in, calls to the cluster; answers out, in order.

A connection has one request in work at a time, as in Kafka: the next one begins when the answer is written. So answers
keep the order of the requests. While a request is in work, at most ``_HELD`` bytes of the next ones are read.

An answer may come in the middle of a request of another connection. So it never begins the next request itself: that is
put off until the present step is over. A client with many requests gets ``_TURN`` of them at a time.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.broker.clock import Clock
from kafka_msgs.broker.handlers.api_versions import unsupported_version_response
from kafka_msgs.broker.handlers.sasl import failure_delay, handle_sasl_token
from kafka_msgs.broker.security.certificates import subject_name
from kafka_msgs.broker.server_call import ClientSession, MangledResponse, Principal, ServerCall
from kafka_msgs.codec import CodecOptions
from kafka_msgs.errors import KafkaMsgsError, ProtocolError, RequestRefusedError
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
    from kafka_msgs.broker.cluster import Cluster
    from kafka_msgs.broker.config import ListenerConfig

__all__ = ["AcceptedConnection", "Server", "java_address"]

_HELD: Final = 2**20
_TURN: Final = 16
_READING: Final = CodecOptions(memoryview_records=True, utf8_errors="replace")
_RESET: Final = struct.pack("ii", 1, 0)


def java_address(host: str) -> str:
    """Return an address as Java's ``InetAddress.getHostAddress`` shows it, which is the form of hosts in ACLs.

    IPv6 has all its eight groups there, and IPv4 inside of IPv6 is IPv4.
    """
    if ":" not in host:
        return host
    text, sign, zone = host.partition("%")
    address = IPv6Address(text)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":")) + sign + zone


class Server(Protocol):
    """What a connection needs of the one who accepted it. ``closing`` tells whether it takes no more connections."""

    cluster: Cluster
    clock: Clock
    closing: bool
    connections: set[AcceptedConnection]

    def schedule_tick(self) -> None:
        """Wake up when the next timer of the cluster is due."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` when the present step is over."""

    def connection_closed(self, connection: AcceptedConnection) -> None:
        """Forget a connection."""

    def loop_time(self) -> float:
        """Return the real time in seconds, from any moment on."""


class AcceptedConnection(asyncio.Protocol):
    """A connection on a transport of asyncio. It carries the calls of its client to the cluster, and answers back."""

    session: ClientSession
    active_at: float
    """When bytes last came or went, in seconds of the event loop."""

    def __init__(self, server: Server, broker_id: int, listener: ListenerConfig) -> None:
        self._server = server
        self._cluster = server.cluster
        self._broker_id = broker_id
        self._listener = listener
        self._wire = ServerConnection(max_frame_size=self._frame_limit(), options=_READING)
        self._request: RequestReceived | None = None
        self._following: Callable[[bytes], MangledResponse] | None = None
        self._held = self._throttle_ms = 0
        self._end_mute: Callable[[], None] | None = None
        self._paused = self._full = self._pumping = self._scheduled = False

    def _frame_limit(self) -> int:
        """Return how large a frame may be before the client has logged in."""
        largest = self._cluster.config.max_request_size
        if not self._listener.sasl:
            return largest
        return min(largest, self._cluster.configs.number("sasl.server.max.receive.size"))

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.active_at = self._server.loop_time()
        host = (transport.get_extra_info("peername") or ("127.0.0.1",))[0]
        self.session = self._cluster.open_session(
            self._broker_id, listener=self._listener, client_host=f"/{java_address(host)}"
        )
        self._server.connections.add(self)
        if not self._identify(transport.get_extra_info("peercert")):
            self.end(reset=True)
            return
        broker = self._cluster.brokers[self._broker_id]
        if self._server.closing or not broker.running or len(broker.sessions) > self._cluster.config.max_connections:
            self.end(reset=True)
            return
        self._cluster.advance_clock_to(self._server.clock.now())
        delay = broker.meters.connection.open(host, self._cluster.now)
        if delay:
            self._close_after_throttle(delay)

    def _identify(self, certificate: Any) -> bool:
        """Take the user of a client from its certificate. Return False if the rules have no name for its subject."""
        if not certificate or self._listener.sasl:
            return True
        name = self._cluster.certificate_user(subject_name(certificate["subject"]))
        if name is not None:
            self.session.principal = Principal("User", name)
        return name is not None

    def _close_after_throttle(self, delay: int) -> None:
        """Hear nothing, and close the connection after some milliseconds: its address makes too many (KIP-612)."""
        self._transport.pause_reading()
        timer = self._cluster.call_later(delay, lambda: self.end(reset=False))
        self.session.on_close(timer.cancel)
        self._server.schedule_tick()

    def data_received(self, data: bytes) -> None:
        self.active_at = self._server.loop_time()
        self._held += len(data)
        self._wire.receive_data(data)
        self._pump()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wire.close()
        self.session.end()
        self._server.connection_closed(self)
        self._server.schedule_tick()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._pump()

    # What calls ask for

    def reply(self, call: ServerCall[Any], response: Response | None) -> None:
        """Send the response, and go on with the next request."""
        request = self._request
        if self.session.closed or request is None:
            return
        self._throttle_ms = call.throttle_time_ms
        self.active_at = self._server.loop_time()
        if response is not None:
            try:
                frame = self._wire.send_response(request, response)
            except KafkaMsgsError as error:
                self._cluster.record_error(error)
                self.end(reset=False)
                return
            damage = self._following or call.mangle
            if damage is not None:
                damaged = damage(frame)
                self._following = damaged.then
                self._send_pieces(damaged, 0)
                return
            self._transport.write(frame)
        if call.closes:
            self.end(reset=False)
        else:
            self._next_request()

    def _next_request(self) -> None:
        """Go on with the next request. A client that is throttled is not heard for that time (KIP-219)."""
        if not self._throttle_ms:
            self._resume_requests()
            return
        timer = self._cluster.call_later(self._throttle_ms, self._resume_requests)
        self._end_mute = self.session.on_close(timer.cancel)
        self._server.schedule_tick()

    def _resume_requests(self) -> None:
        if self._end_mute is not None:
            self._end_mute()
            self._end_mute = None
        self._request = None
        if self._held and not self._pumping:
            self._pump_later()

    def _send_pieces(self, damage: MangledResponse, index: int) -> None:
        """Send the pieces of a damaged answer from one on. The next request waits for the last piece."""
        if self.session.closed:
            return
        if index < len(damage.pieces):
            self._transport.write(damage.pieces[index])
            self._cluster.call_later(damage.interval_ms, lambda: self._send_pieces(damage, index + 1))
            self._server.schedule_tick()
        elif damage.closes:
            self.end(reset=damage.resets)
        else:
            self._next_request()

    def disconnect(self, call: ServerCall[Any], *, reset: bool = False) -> None:
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

    def _pump_later(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._server.call_soon(self._pump)

    def _pump(self) -> None:
        """Take requests as long as none is in work and the client reads its answers, ``_TURN`` at most."""
        self._scheduled = False
        if self._pumping:
            return
        self._pumping = True
        left = _TURN
        try:
            while self._request is None and not self._full and not self.session.closed:
                if not left:
                    self._pump_later()
                    break
                left -= 1
                if self.session.authenticated:
                    self._wire.max_frame_size = self._cluster.config.max_request_size
                event = self._wire.next_event()
                if not isinstance(event, RequestReceived | TokenReceived):
                    break
                self._handle_event(event)
        except ProtocolError:
            self.end(reset=False)
        finally:
            self._pumping = False
        self._apply_backpressure()
        self._server.schedule_tick()

    def _apply_backpressure(self) -> None:
        """Stop reading while enough waits here, and go on afterwards."""
        full = self._held > _HELD and (self._request is not None or self._full)
        if full != self._paused and not self._transport.is_closing():
            self._paused = full
            if full:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _handle_event(self, event: RequestReceived | TokenReceived) -> None:
        if isinstance(event, TokenReceived):
            self._held -= len(event.token) + SIZE_BYTES
            self._handle_sasl_token(event.token)
            return
        self._held -= len(event.payload) + SIZE_BYTES
        if not self._cluster.dispatch.answers(event.api_key, event.version):
            self._refuse_version(event)
            return
        if not (self.session.authenticated or self._cluster.dispatch.handler(event.api_key).allowed_unauthenticated):
            self.end(reset=False)
            return
        try:
            frame = event.frame()
        except KafkaMsgsError:
            self.end(reset=False)
            return
        self._request = event
        self._cluster.advance_clock_to(self._server.clock.now())
        self._cluster.receive(
            ServerCall(
                cluster=self._cluster,
                session=self.session,
                request=frame.message,
                version=event.version,
                transport=self,
                correlation_id=event.correlation_id,
                client_id=frame.header.client_id,
                received_at=self._cluster.now,
                size=len(event.payload),
            )
        )

    def _handle_sasl_token(self, token: bytes) -> None:
        """Go on with a login whose tokens have no headers (KIP-43). If it fails, the connection is closed."""
        self._cluster.advance_clock_to(self._server.clock.now())
        try:
            answer = handle_sasl_token(self._cluster, self.session, token)
        except RequestRefusedError:
            self._cluster.wait(failure_delay(self._cluster), lambda: self.end(reset=False))
            self._wire.close()
            return
        self._transport.write(self._wire.send_token(answer))
        if self.session.authenticated:
            self._wire.end_tokens()

    def _refuse_version(self, event: RequestReceived) -> None:
        """Answer ApiVersions in version 0, and close the connection for another api, as Kafka does."""
        if event.api_key != ApiKey.API_VERSIONS:
            self.end(reset=False)
            return
        offered = self._cluster.dispatch.offered[ApiKey.API_VERSIONS]
        response = unsupported_version_response((offered.lowest, offered.highest))
        payload = encode_response(response, FALLBACK, correlation_id=event.correlation_id)
        self._transport.write(self._wire.send_payload(payload))
