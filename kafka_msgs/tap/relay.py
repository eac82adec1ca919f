"""A relay of one client connection to a broker connection: two asyncio protocols, independent of the proxy.

Each side is read unless it is held. Each hold has a name and is released by its owner:

========= ================ =============================================== =========================================
name      side             from                                            until
========= ================ =============================================== =========================================
connect   client           it was accepted                                 a broker is connected
writing   either           too many bytes await sending to the other side  most of them were sent
in flight client           too many requests await their responses         responses arrived or are not observed
backlog   both             too many items await reporting                  half of them were reported
========= ================ =============================================== =========================================
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from attrs import frozen

from kafka_msgs.capture.connections import CapturedConnection, Endpoint
from kafka_msgs.capture.faults import CaptureFault, FaultKind
from kafka_msgs.tap.backlog import Backlog
from kafka_msgs.tap.connection import ForwardResult, TapConfig, TapConnection
from kafka_msgs.tap.frame_forwarder import FrameForwarder

__all__ = ["ClientSide", "Relay", "RelayConfig"]

_WRITE_LIMIT: Final = 2**20
"""The maximum number of bytes waiting to be sent to one side before reading from the other side pauses."""
_CONNECT_SECONDS: Final = 30
_IGNORED: Final = 2**12


@frozen(kw_only=True)
class RelayConfig:
    """The shared configuration of all relays of a proxy. ``tls`` are the asyncio options for broker connections."""

    tap: TapConfig
    backlog: Backlog
    pairs: set[Relay]
    """The open relays."""
    tls: dict[str, Any]


class Relay:
    """The two connections. The first broker that accepts a connection is used."""

    def __init__(self, connection_number: int, brokers: tuple[Endpoint, ...], rules: RelayConfig) -> None:
        self.client: RelaySide | None = None
        self.broker: RelaySide | None = None
        self._connection_number = connection_number
        self._brokers = brokers
        self._rules = rules
        self._open: set[RelaySide] = set()
        self._tap: TapConnection | None = None
        self._connecting: asyncio.Task[None] | None = None

    def opened(self, side: RelaySide) -> None:
        """Register an open connection of this relay."""
        self._open.add(side)
        self._rules.pairs.add(self)

    def lost(self, side: RelaySide) -> None:
        """Remove a closed connection of this relay, and end the other one."""
        self._open.discard(side)
        self.end()
        if not self._open:
            self._rules.pairs.discard(self)

    def accepted(self, side: RelaySide) -> None:
        """Connect to a broker. The client is held until then."""
        self.client = side
        side.hold("connect")
        if self._rules.backlog.is_full:
            side.hold("backlog")
        self._connecting = asyncio.get_running_loop().create_task(self._connect(side.peer))

    def joined(self, broker: RelaySide, connection: CapturedConnection) -> None:
        """Start forwarding both directions after the broker connection is open."""
        assert self.client is not None
        self.broker = broker
        self._tap = TapConnection(connection, self._rules.tap)
        self.client.join(broker, self._tap.requests, self._from_client)
        broker.join(self.client, self._tap.responses, self._from_broker)
        for name in self.client.holds - {"connect"}:
            broker.hold(name)
        self.client.release("connect")

    def wait_for_backlog(self) -> None:
        """Hold both sides until ``go_on``."""
        for side in (self.client, self.broker):
            if side is not None:
                side.hold("backlog")

    def go_on(self) -> None:
        """Resume reading."""
        for side in (self.client, self.broker):
            if side is not None:
                side.release("backlog")

    def end(self) -> None:
        """Close both connections after sending all pending bytes."""
        if self._connecting is not None:
            self._connecting.cancel()
        for side in self._open:
            if not side.transport.is_closing():  # Closing an encrypted transport twice makes abort do nothing.
                side.transport.close()
        if self._tap is not None:
            self._rules.backlog.add(self._tap.close(_now()))
            self._tap = None

    def abort(self) -> None:
        """Close all open connections; pending bytes are lost."""
        for side in self._open:
            side.transport.abort()

    async def _connect(self, client: Endpoint) -> None:
        loop = asyncio.get_running_loop()
        reasons = []
        for broker in self._brokers:
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    _, side = await loop.create_connection(
                        lambda: BrokerSide(self), broker.host, broker.port, **self._rules.tls
                    )
            except OSError as error:  # This includes TimeoutError.
                reasons.append(f"{broker}: {_reason(error)}")
                continue
            self.joined(side, CapturedConnection(self._connection_number, client, broker))
            return
        connection = CapturedConnection(self._connection_number, client, self._brokers[0])
        reason = "cannot connect to a broker: " + "; ".join(reasons)
        fault = CaptureFault(kind=FaultKind.GAP, reason=reason, size=0, at=_now(), connection=connection)
        self._rules.backlog.add([fault])
        self.end()

    def _from_client(self, count: int) -> None:
        if self._tap is not None and self.broker is not None:
            self._pass_on(self._tap.client_sent(count, _now()), self.broker, self._tap.requests)

    def _from_broker(self, count: int) -> None:
        if self._tap is not None and self.client is not None:
            self._pass_on(self._tap.broker_sent(count, _now()), self.client, self._tap.responses)

    def _pass_on(self, passed: ForwardResult, receiver: RelaySide, memory: FrameForwarder) -> None:
        for piece in passed.pieces:
            receiver.transport.write(piece)
        if receiver.transport.get_write_buffer_size():  # asyncio may retain a view of unsent bytes.
            memory.detach_buffer()
        self._rules.backlog.add(passed.items)
        assert self._tap is not None
        assert self.client is not None
        if self._tap.full:
            self.client.hold("in flight")
        else:
            self.client.release("in flight")


class RelaySide(asyncio.BufferedProtocol):
    """One of the two connections of a relay. It is read unless it is held.

    TLS connections may deliver remaining bytes after they were closed, and so may a connection that has not been
    joined: such bytes are ignored.
    """

    transport: asyncio.Transport

    def __init__(self, pair: Relay) -> None:
        self.holds: set[str] = set()
        self._pair = pair
        self._other: RelaySide | None = None
        self._memory: FrameForwarder | None = None
        self._received: Callable[[int], None] | None = None

    @property
    def peer(self) -> Endpoint:
        """The address of the other end."""
        address = self.transport.get_extra_info("peername") or ("", 0)
        return Endpoint(address[0], address[1])

    def join(self, other: RelaySide, memory: FrameForwarder, received: Callable[[int], None]) -> None:
        """Receive into a forwarder from now on, and report the number of received bytes."""
        self._other, self._memory, self._received = other, memory, received

    def hold(self, why: str) -> None:
        """Hold reading for a reason."""
        if not self.holds and not self.transport.is_closing():
            self.transport.pause_reading()
        self.holds.add(why)

    def release(self, why: str) -> None:
        """Remove a reason; resume reading if it was the last one."""
        if why in self.holds:
            self.holds.remove(why)
            if not self.holds and not self.transport.is_closing():
                self.transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=_WRITE_LIMIT)
        self._pair.opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(bytearray(_IGNORED)) if self._memory is None else self._memory.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        if self._received is not None:
            self._received(nbytes)

    def pause_writing(self) -> None:
        if self._other is not None:
            self._other.hold("writing")

    def resume_writing(self) -> None:
        if self._other is not None:
            self._other.release("writing")

    def connection_lost(self, exc: Exception | None) -> None:
        self._pair.lost(self)


class ClientSide(RelaySide):
    """The connection from a client."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._pair.accepted(self)

    def eof_received(self) -> bool:
        """Forward the end of the client's bytes; it may still receive. With TLS the end applies to both directions."""
        if self._other is None or self._other.transport.is_closing():
            return False
        if not (self.transport.can_write_eof() and self._other.transport.can_write_eof()):
            return False
        self._other.transport.write_eof()
        return True


class BrokerSide(RelaySide):
    """The connection to a broker."""

    def eof_received(self) -> bool:
        """End both connections after the client has received all bytes, because a broker that stops sending is gone."""
        return False


def _reason(error: OSError) -> str:
    """Return why a connection attempt failed. Some asyncio errors have no message."""
    silent = "no answer in time" if isinstance(error, TimeoutError) else "the connection was closed"
    return error.strerror or str(error) or silent


def _now() -> int:
    """Return the current time in microseconds since the epoch."""
    return time.time_ns() // 1000
