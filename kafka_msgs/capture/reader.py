"""Reading exchanges from a capture file: packets are assigned to connections, within memory limits.

This module decides which connections are read and how many are tracked at a time, and reports skipped connections.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

from kafka_msgs.capture.connections import Endpoint
from kafka_msgs.capture.conversations import CaptureLimits, Conversation
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.faults import CaptureFault, FaultKind
from kafka_msgs.capture.pcap import Packet, open_capture, read_packets
from kafka_msgs.capture.tcp_segments import TcpSegment, segment_of
from kafka_msgs.catalog import MessageCatalog
from kafka_msgs.validators import check_int

__all__ = ["DEFAULT_PORTS", "Conversations", "read_exchanges"]

DEFAULT_PORTS: Final = (9092,)
"""The default TCP ports of brokers."""
_HIGHEST_PORT: Final = 2**16 - 1
_PORTS_NAMED: Final = 3
_ALIKE_REPORTED: Final = 20
"""The number of packets with the same fault that are reported individually."""
_REASONS_COUNTED: Final = 1000
"""The number of distinct reasons or ports that are counted separately. All others are counted together."""
_OTHER_PORTS: Final = -1
_PACKET_HEADER: Final = 16
"""The size in bytes of the smallest packet in a file, without its content."""

_Ends: TypeAlias = tuple[Endpoint, Endpoint]


def read_exchanges(
    source: str | Path | BinaryIO,
    *,
    ports: Collection[int] | None = DEFAULT_PORTS,
    limits: CaptureLimits | None = None,
    catalog: MessageCatalog | None = None,
) -> Iterator[Item]:
    """Yield the exchanges in a capture file, pcap or pcapng, as they are completed, and its faults.

    ``ports`` are the ports of the brokers. With None every connection is examined, and connections that start with a
    Kafka request are read. Exchanges and faults account for every byte of these connections. ``source`` is the path of
    a regular file, or a seekable binary file. ``catalog`` contains the message classes, by default the release's.
    Raises ``MissingExtraError`` without the extra ``capture``, ``OptionError`` for a number that is not a port,
    ``CaptureError`` for a path that is not a regular file, and ``OSError``. All damage is yielded as faults, not
    raised.
    """
    for port in ports or ():
        check_int("read_exchanges", "ports", port, 0, _HIGHEST_PORT)
    conversations = Conversations(ports, limits or CaptureLimits(), catalog)
    if isinstance(source, str | Path):
        with open_capture(source) as file:
            yield from _read(file, conversations)
    else:
        yield from _read(source, conversations)


def _read(file: BinaryIO, conversations: Conversations) -> Iterator[Item]:
    faults = _Faults()
    for packet in read_packets(file):
        found = packet if isinstance(packet, CaptureFault) else segment_of(packet)
        if isinstance(found, CaptureFault):
            yield from faults.report(found)
        elif found is not None and isinstance(packet, Packet):
            if found.source == found.target and conversations.selects(found):
                yield from faults.report(_to_itself(found, packet))
            else:
                yield from conversations.receive(found, packet)
    yield from conversations.close()
    yield from faults.close()


def _to_itself(segment: TcpSegment, packet: Packet) -> CaptureFault:
    """Return the fault for a packet whose two ends are one: its directions cannot be distinguished."""
    reason, size = "a packet from an endpoint to itself", len(segment.data)
    return CaptureFault(kind=FaultKind.PACKET, reason=reason, size=size, at=packet.at, packet=packet.number)


class _Faults:
    """A reporter of packet faults. If many packets have the same fault, it reports only their number."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._sizes: Counter[str] = Counter()

    def report(self, fault: CaptureFault) -> Iterator[CaptureFault]:
        known = fault.reason in self._seen or len(self._seen) < _REASONS_COUNTED
        reason = fault.reason if known else "other reasons"
        self._seen[reason] += 1
        if self._seen[reason] <= _ALIKE_REPORTED:
            yield fault
        else:
            self._sizes[reason] += fault.size

    def close(self) -> Iterator[CaptureFault]:
        for reason, size in self._sizes.items():
            more = self._seen[reason] - _ALIKE_REPORTED
            yield CaptureFault(kind=FaultKind.PACKET, reason=f"{more} more packets: {reason}", size=size)


class Conversations:
    """The connections of a capture. Segments may be added in any order; no input or output."""

    def __init__(
        self, ports: Collection[int] | None, limits: CaptureLimits, catalog: MessageCatalog | None = None
    ) -> None:
        self._ports = None if ports is None else frozenset(ports)
        self._limits = limits
        self._catalog = catalog
        self._read = 0
        self._known: OrderedDict[_Ends, Conversation] = OrderedDict()
        self._held = 0
        self._held_by: dict[_Ends, int] = {}
        self._count = 0
        self._left_out: Counter[int] = Counter()

    def selects(self, segment: TcpSegment) -> bool:
        """Return whether a segment belongs to a broker port, or to any port if all are examined."""
        return self._ports is None or not self._ports.isdisjoint((segment.source.port, segment.target.port))

    def receive(self, segment: TcpSegment, packet: Packet) -> Iterator[Item]:
        """Add a segment and its packet; yield the completed items, and data dropped because of memory limits."""
        self._read += _PACKET_HEADER + len(packet.data)
        ends = min(segment.source, segment.target), max(segment.source, segment.target)
        if not self.selects(segment):
            self._leave_out(min(end.port for end in ends), len(segment.data))
            return
        conversation = self._known.get(ends) or self._begin(ends)
        if conversation.starts_anew(segment):
            yield from self._close(ends)
            conversation = self._begin(ends)
            conversation.starts_anew(segment)
        self._known.move_to_end(ends)
        yield from conversation.receive(segment, packet.at, packet.number)
        self._count_held(ends, conversation.held)
        while len(self._known) > 1 and self._too_much():
            yield from self._close(next(iter(self._known)))

    def close(self) -> Iterator[Item]:
        """Yield the remaining items of all connections, and a fault for skipped connections."""
        while self._known:
            yield from self._close(next(iter(self._known)))
        size = self._left_out.total()
        if size:
            named = [port for port, _ in self._left_out.most_common(_PORTS_NAMED + 1) if port != _OTHER_PORTS]
            ports = ", ".join(map(str, named[:_PORTS_NAMED]))
            reason = f"{size} bytes of connections on other ports ({ports}) were not looked at"
            self._left_out.clear()
            yield CaptureFault(kind=FaultKind.LEFT_OUT, reason=reason, size=size)

    def _too_much(self) -> bool:
        return self._held > self._limits.allowed(self._read) or len(self._known) > self._limits.connections

    def _leave_out(self, port: int, size: int) -> None:
        known = port in self._left_out or len(self._left_out) < _REASONS_COUNTED
        self._left_out[port if known else _OTHER_PORTS] += size

    def _begin(self, ends: _Ends) -> Conversation:
        self._count += 1
        ports = self._ports or frozenset()
        servers = [end for end in ends if end.port in ports]
        server = servers[0] if len(servers) == 1 else None
        certain = self._ports is not None
        made = Conversation(self._count, ends, server, self._limits, certain=certain, catalog=self._catalog)
        self._known[ends] = made
        return made

    def _count_held(self, ends: _Ends, size: int) -> None:
        self._held += size - self._held_by.get(ends, 0)
        self._held_by[ends] = size

    def _close(self, ends: _Ends) -> Iterator[Item]:
        self._held -= self._held_by.pop(ends, 0)
        yield from self._known.pop(ends).close()
