"""A relay of one client connection to a broker connection: two asyncio protocols, independent of the proxy.

Each side is read unless it is held. Each hold has a name and is released by its owner:

========= ================ =============================================== =========================================
name      side             from                                            until
========= ================ =============================================== =========================================
connect   client           it was accepted                                 a broker is connected
writing   either           too many bytes await sending to the other side  most of them were sent
in flight client           too many requests await their responses         responses arrived or are not observed
backlog   both             too many items await reporting                  half of them were reported
delay     either           an addon delays the bytes of this side          the delay is over
========= ================ =============================================== =========================================
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from attrs import define, frozen

from kafka_msgs.capture.connections import CapturedConnection, Endpoint
from kafka_msgs.capture.faults import CaptureFault, FaultKind
from kafka_msgs.tap.backlog import Backlog
from kafka_msgs.tap.connection import ForwardResult, TapConfig, TapConnection
from kafka_msgs.tap.frame_forwarder import FrameForwarder, Pause, Piece

__all__ = ["ClientSide", "HeldBytes", "RefusedSide", "Relay", "RelayConfig"]

_WRITE_LIMIT: Final = 2**20
"""The maximum number of bytes waiting to be sent to one side before reading from the other side pauses."""
_CONNECT_SECONDS: Final = 30
_IGNORED: Final = 2**12


@define
class HeldBytes:
    """The memory of all relays of a proxy in bytes, and its limit."""

    limit: int
    total: int = 0


@frozen(kw_only=True)
class RelayConfig:
    """The shared configuration of all relays of a proxy. ``tls`` are the asyncio options for broker connections."""

    tap: TapConfig
    backlog: Backlog
    pairs: set[Relay]
    """The open relays."""
    tls: dict[str, Any]
    held: HeldBytes


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
        self._held = 0

    @property
    def brokers(self) -> tuple[Endpoint, ...]:
        """The addresses of the broker, in order of preference."""
        return self._brokers

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
            self.client = self.broker = None

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
        """Close both connections after sending all pending bytes, and free the buffers."""
        if self._connecting is not None:
            self._connecting.cancel()
        for side in self._open:
            side.leave()
            if not side.transport.is_closing():  # Closing an encrypted transport twice makes abort do nothing.
                side.transport.close()
        if self._tap is not None:
            tap, self._tap = self._tap, None
            self._rules.backlog.add(tap.close(_now()))
        self._hold_bytes(0)

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
            except (OSError, ValueError, OverflowError) as error:  # Timeouts, and addresses that no resolver accepts.
                reasons.append(f"{broker}: {_reason(error)}")
                continue
            self.joined(side, CapturedConnection(self._connection_number, client, broker))
            return
        connection = CapturedConnection(self._connection_number, client, self._brokers[0])
        self._report(FaultKind.GAP, "cannot connect to a broker: " + "; ".join(reasons), connection)
        self.end()

    def _report(self, kind: FaultKind, reason: str, connection: CapturedConnection) -> None:
        self._rules.backlog.add([CaptureFault(kind=kind, reason=reason, size=0, at=_now(), connection=connection)])

    def _from_client(self, count: int) -> None:
        if self._tap is not None and self.client is not None and self.broker is not None:
            self._pass_on(self._tap.client_sent(count, _now()), self.client, self.broker, self._tap.requests)

    def _from_broker(self, count: int) -> None:
        if self._tap is not None and self.client is not None and self.broker is not None:
            self._pass_on(self._tap.broker_sent(count, _now()), self.broker, self.client, self._tap.responses)

    def _pass_on(self, passed: ForwardResult, sender: RelaySide, receiver: RelaySide, memory: FrameForwarder) -> None:
        receiver.send(passed.pieces, sender)
        if receiver.transport.get_write_buffer_size():  # asyncio may retain a view of unsent bytes.
            memory.detach_buffer()
        if passed.answers:
            sender.send(passed.answers, receiver)
        self._rules.backlog.add(passed.items)
        assert self._tap is not None
        assert self.client is not None
        if passed.close != "open":
            self._close(reset=passed.close == "reset")
        elif not self._hold_bytes(self._tap.held + self._unsent()):
            self._report(FaultKind.PROXY, self._too_much(), self._tap.connection)
            self._close(reset=True)
        elif self._tap.full:
            self.client.hold("in flight")
        else:
            self.client.release("in flight")

    def _unsent(self) -> int:
        return sum(side.transport.get_write_buffer_size() for side in self._open)

    def _hold_bytes(self, size: int) -> bool:
        """Record the memory of this relay; return whether the memory of all relays is within the limit."""
        held = self._rules.held
        held.total += size - self._held
        self._held = size
        return held.total <= held.limit

    def _too_much(self) -> str:
        held = self._rules.held
        return f"the connection held {self._held} bytes, and all held {held.total}: the limit is {held.limit}"

    def _close(self, *, reset: bool) -> None:
        """End both connections after delayed pieces, or reset them at once."""
        if reset:
            for side in tuple(self._open):
                side.leave()
                side.transport.abort()
        elif self.client is not None:
            self.client.send_last(self.end)


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
        self._delayed: deque[Piece | Callable[[], None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def peer(self) -> Endpoint:
        """The address of the other end."""
        address = self.transport.get_extra_info("peername") or ("", 0)
        return Endpoint(address[0], address[1])

    def join(self, other: RelaySide, memory: FrameForwarder, received: Callable[[int], None]) -> None:
        """Receive into a forwarder from now on, and report the number of received bytes."""
        self._other, self._memory, self._received = other, memory, received

    def leave(self) -> None:
        """Send delayed pieces, and receive no further bytes; the other side and the buffer are no longer needed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for piece in self._delayed:
            if not callable(piece) and not isinstance(piece, Pause) and not self.transport.is_closing():
                self.transport.write(piece)
        self._delayed.clear()
        self._other = self._memory = self._received = None

    def send(self, pieces: Sequence[Piece], source: RelaySide) -> None:
        """Send pieces to this side in order. A pause delays the pieces after it, and holds ``source`` until then."""
        for piece in pieces:
            if self._delayed or isinstance(piece, Pause):
                self._delayed.append(piece if isinstance(piece, Pause) else bytes(piece))
            else:
                self.transport.write(piece)
        if self._delayed and self._timer is None:
            source.hold("delay")
            self._send_delayed(source)

    def send_last(self, then: Callable[[], None]) -> None:
        """Call a function after all delayed pieces were sent."""
        if self._delayed:
            self._delayed.append(then)
        else:
            then()

    def _send_delayed(self, source: RelaySide) -> None:
        """Send delayed pieces up to the next pause."""
        self._timer = None
        while self._delayed:
            piece = self._delayed.popleft()
            if isinstance(piece, Pause):
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(piece.seconds, self._send_delayed, source)
                return
            if callable(piece):
                piece()
            elif not self.transport.is_closing():
                self.transport.write(piece)
        source.release("delay")

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


class RefusedSide(asyncio.Protocol):
    """A connection above the limit, which ends at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


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


def _reason(error: Exception) -> str:
    """Return why a connection attempt failed. Some asyncio errors have no message."""
    silent = "no answer in time" if isinstance(error, TimeoutError) else "the connection was closed"
    return (isinstance(error, OSError) and error.strerror) or str(error) or silent


def _now() -> int:
    """Return the current time in microseconds since the epoch."""
    return time.time_ns() // 1000
