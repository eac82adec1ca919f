"""One connection to a broker: it reads requests, passes calls to the cluster, and writes responses in order.

As in Kafka, a connection handles one request at a time and starts the next one after it has written the response, so
responses keep the order of the requests. While a request is in progress, the connection reads at most ``_HELD`` bytes
of later requests.

A response may be written while another connection's request is being handled, so writing it never starts the next
request directly: the next request starts after the current step. Each client handles at most ``_TURN`` requests before
other clients get their turn.
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
from kafka_msgs.broker.client_session import ClientSession, Principal
from kafka_msgs.broker.clock import Clock
from kafka_msgs.broker.handlers.api_versions import unsupported_version_response
from kafka_msgs.broker.handlers.sasl import failure_delay, handle_sasl_token
from kafka_msgs.broker.security.certificates import subject_name
from kafka_msgs.broker.server_call import MangledResponse, ServerCall
from kafka_msgs.codec import CodecOptions
from kafka_msgs.errors import DecodeError, KafkaMsgsError, ProtocolError, RequestRefusedError
from kafka_msgs.message import Response
from kafka_msgs.wire import (
    SIZE_BYTES,
    RequestReceived,
    ServerConnection,
    TokenReceived,
    encode_response,
    request_header_version,
)
from kafka_msgs.wire.headers import decode_request_header
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
    """Return an address as Java's ``InetAddress.getHostAddress`` formats it, which is the host format in ACLs.

    IPv6 addresses contain all eight groups, and IPv4-mapped IPv6 addresses become IPv4.
    """
    if ":" not in host:
        return host
    text, sign, zone = host.partition("%")
    address = IPv6Address(text)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":")) + sign + zone


def _has_valid_header(event: RequestReceived) -> bool:
    """Return whether a request has the header of its version, which may be unknown. Kafka reads the header first."""
    try:
        decode_request_header(event.payload, request_header_version(event.api_key, event.version), _READING)
    except DecodeError:
        return False
    return True


class Server(Protocol):
    """The interface that a connection needs from its server. ``closing`` is True once it refuses new connections."""

    cluster: Cluster
    clock: Clock
    closing: bool
    connections: set[AcceptedConnection]

    def schedule_tick(self) -> None:
        """Wake up when the next timer of the cluster is due."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` after the current step."""

    def connection_closed(self, connection: AcceptedConnection) -> None:
        """Forget a closed connection."""

    def loop_time(self) -> float:
        """Return the monotonic time in seconds."""


class AcceptedConnection(asyncio.Protocol):
    """A connection on an asyncio transport. It passes client calls to the cluster and writes the responses."""

    session: ClientSession
    active_at: float
    """Event loop time in seconds when the connection last received or sent bytes."""

    def __init__(self, server: Server, broker_id: int, listener: ListenerConfig) -> None:
        self._server = server
        self._cluster = server.cluster
        self._broker_id = broker_id
        self._listener = listener
        self._frame_limit = self._cluster.configs.number("socket.request.max.bytes")
        self._wire = ServerConnection(max_frame_size=self._first_frame_limit(), options=_READING)
        self._request: RequestReceived | None = None
        self._following: Callable[[bytes], MangledResponse] | None = None
        self._held = self._throttle_ms = 0
        self._end_mute: Callable[[], None] | None = None
        self._paused = self._full = self._pumping = self._scheduled = False

    def _first_frame_limit(self) -> int:
        """Return the maximum frame size before authentication."""
        if not self._listener.sasl:
            return self._frame_limit
        return min(self._frame_limit, self._cluster.configs.number("sasl.server.max.receive.size"))

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.active_at = self._server.loop_time()
        host, port = (transport.get_extra_info("peername") or ("127.0.0.1", 0))[:2]
        self.session = self._cluster.open_session(
            self._broker_id, listener=self._listener, client_host=f"/{java_address(host)}", client_port=port
        )
        self._server.connections.add(self)
        if not self._identify(transport.get_extra_info("peercert")):
            self.end(reset=True)
            return
        broker = self._cluster.brokers[self._broker_id]
        most = self._cluster.configs.number("max.connections")
        if self._server.closing or not broker.running or len(broker.sessions) > most:
            self.end(reset=True)
            return
        self._cluster.advance_clock_to(self._server.clock.now())
        delay = broker.meters.connection.open(host, self._cluster.now)
        if delay:
            self._close_after_throttle(delay)

    def _identify(self, certificate: Any) -> bool:
        """Take the client's user from its certificate. Return False if no mapping rule matches the subject."""
        if not certificate or self._listener.sasl:
            return True
        name = self._cluster.certificate_user(subject_name(certificate["subject"]))
        if name is not None:
            self.session.principal = Principal("User", name)
        return name is not None

    def _close_after_throttle(self, delay: int) -> None:
        """Stop reading, and close the connection after ``delay`` ms: its address connects too often (KIP-612)."""
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

    # Called by server calls

    def reply(self, call: ServerCall[Any], response: Response | None) -> None:
        """Send the response and start the next request."""
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
        """Start the next request. The connection of a throttled client is muted for the throttle time (KIP-219)."""
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
        """Send the pieces of a damaged response, starting at ``index``. The next request waits for the last piece."""
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
        """Close the connection after all written bytes are sent, or immediately with a reset."""
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
        """Start requests while none is in progress and the client reads its responses, at most ``_TURN`` of them."""
        self._scheduled = False
        if self._pumping:
            return
        self._pumping = True
        left = _TURN
        try:
            while self._request is None and not self._full and not self.session.closed:
                if left < _TURN and self._held and self._transport.is_closing():
                    break  # a write failed: asyncio will report the end of the connection
                if not left:
                    self._pump_later()
                    break
                left -= 1
                if self.session.authenticated:
                    self._wire.max_frame_size = self._frame_limit
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
        """Pause reading while enough requests are buffered, and resume when the buffer drains."""
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
        """Continue a login whose tokens have no request headers (KIP-43). Close the connection if the login fails."""
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
        """Respond to ApiVersions with version 0. Close the connection for any other API, as Kafka does."""
        if event.api_key != ApiKey.API_VERSIONS or not _has_valid_header(event):
            self.end(reset=False)
            return
        offered = self._cluster.dispatch.offered[ApiKey.API_VERSIONS]
        response = unsupported_version_response((offered.lowest, offered.highest))
        payload = encode_response(response, FALLBACK, correlation_id=event.correlation_id)
        self._transport.write(self._wire.send_payload(payload))
