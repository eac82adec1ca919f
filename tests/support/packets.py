"""Builds captures: conversations split into TCP segments, in datagrams with link headers, in files of every format.

Recordings by real tools are in ``tests/recordings/packets``; this module builds the cases that they rarely produce. The
writers here share no code with the readers under test.
"""

from __future__ import annotations

import io
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple

import attrs
from dpkt import ethernet, ip, ip6, tcp

from kafka_msgs.capture import CaptureFault, CaptureLimits, Endpoint, Exchange, read_exchanges

__all__ = [
    "BROKER",
    "CLIENT",
    "LINKS",
    "Chunk",
    "Sent",
    "client",
    "cut",
    "datagram",
    "everything",
    "exchanges",
    "faults",
    "framed",
    "pcap",
    "pcapng",
    "segments",
]

CLIENT: Final = Endpoint("192.0.2.7", 50_000)
BROKER: Final = Endpoint("192.0.2.1", 9092)
START: Final = 1_700_000_000_000_000
"""Time of the first packet in microseconds since the epoch; packets follow one millisecond apart."""
STEP: Final = 1000

Chunk = tuple[str, bytes]
"""A direction (``request`` or ``response``) and bytes of the stream."""


@attrs.frozen(kw_only=True)
class Sent:
    """A TCP segment as sent; the last ``snapped`` bytes of its content are not captured."""

    source: Endpoint
    target: Endpoint
    seq: int
    flags: int
    ack: int = 0
    data: bytes = b""
    snapped: int = 0


def client(number: int) -> Endpoint:
    """Return a client endpoint by number."""
    return Endpoint(CLIENT.host, 40_000 + number)


def framed(payload: bytes) -> bytes:
    """Return a frame: the payload with its size prefix."""
    return len(payload).to_bytes(4, "big") + payload


def cut(chunks: Iterable[Chunk], sizes: Iterator[int]) -> Iterator[Chunk]:
    """Split chunks into these sizes."""
    for direction, data in chunks:
        while data:
            size = next(sizes)
            yield direction, data[:size]
            data = data[size:]


def segments(
    chunks: Iterable[Chunk],
    *,
    client: Endpoint = CLIENT,
    server: Endpoint = BROKER,
    first: tuple[int, int] = (1000, 2**32 - 7),
    syn: bool = True,
    fin: bool = True,
) -> list[Sent]:
    """Return the segments of a conversation, from SYN to FIN; ``first`` are the sequence numbers of the SYNs."""
    ends = {"request": (client, server), "response": (server, client)}
    at = {"request": first[0], "response": first[1]}
    made = []

    def send(direction: str, flags: int, data: bytes = b"") -> None:
        source, target = ends[direction]
        back = at["response" if direction == "request" else "request"]
        made.append(
            Sent(source=source, target=target, seq=at[direction] % 2**32, flags=flags, ack=back % 2**32, data=data)
        )
        at[direction] += len(data) + bool(flags & (tcp.TH_SYN | tcp.TH_FIN))

    if syn:
        send("request", tcp.TH_SYN)
        send("response", tcp.TH_SYN | tcp.TH_ACK)
    else:
        at = {direction: number + 1 for direction, number in at.items()}
    for direction, data in chunks:
        send(direction, tcp.TH_ACK | tcp.TH_PUSH, data)
    if fin:
        send("request", tcp.TH_FIN | tcp.TH_ACK)
        send("response", tcp.TH_FIN | tcp.TH_ACK)
    return made


def datagram(sent: Sent) -> bytes:
    """Return the captured part of a segment's IP datagram; IPv6 for IPv6 addresses."""
    content = tcp.TCP(
        sport=sent.source.port,
        dport=sent.target.port,
        seq=sent.seq,
        flags=sent.flags,
        ack=sent.ack,
        data=sent.data,
        win=4096,
    )
    if ":" in sent.source.host:
        ends = (socket.inet_pton(socket.AF_INET6, end.host) for end in (sent.source, sent.target))
        made = ip6.IP6(src=next(ends), dst=next(ends), nxt=socket.IPPROTO_TCP, hlim=64, plen=len(content), data=content)
        made.extension_hdrs = {}
        data = bytes(made)
    else:
        ends = (socket.inet_aton(end.host) for end in (sent.source, sent.target))
        data = bytes(ip.IP(src=next(ends), dst=next(ends), p=socket.IPPROTO_TCP, data=content, len=20 + len(content)))
    return data[: len(data) - sent.snapped]


def _ether_type(data: bytes) -> int:
    return int(ethernet.ETH_TYPE_IP6 if data[0] >> 4 == 6 else ethernet.ETH_TYPE_IP)


def _ethernet(data: bytes) -> bytes:
    return bytes(12) + _ether_type(data).to_bytes(2, "big") + data


def _tagged(data: bytes) -> bytes:
    return bytes(12) + struct.pack(">HHHHH", 0x88A8, 5, 0x8100, 6, _ether_type(data)) + data


def _cooked(data: bytes) -> bytes:
    return struct.pack(">HHH8sH", 0, 772, 6, bytes(8), _ether_type(data)) + data


def _cooked2(data: bytes) -> bytes:
    return struct.pack(">HHiHBB8s", _ether_type(data), 0, 1, 772, 0, 6, bytes(8)) + data


def _loopback(data: bytes) -> bytes:
    family = 30 if data[0] >> 4 == 6 else 2
    return struct.pack("<I", family) + data


LINKS: Final[Mapping[str, tuple[int, Callable[[bytes], bytes]]]] = {
    "Ethernet": (1, _ethernet),
    "Ethernet with padding": (1, lambda data: _ethernet(data).ljust(60, b"\0")),
    "two VLAN tags": (1, _tagged),
    "Linux cooked": (113, _cooked),
    "Linux cooked 2": (276, _cooked2),
    "BSD loopback": (0, _loopback),
    "OpenBSD loopback": (108, _loopback),
    "raw": (101, bytes),
    "raw of OpenBSD": (14, bytes),
}
"""Link types by name: the number, and a function that adds the link header to a datagram."""


class Stamped(NamedTuple):
    """A packet as stored in a file, with its time in microseconds since the epoch."""

    at: int
    data: bytes


def _stamped(sent: Iterable[Sent], link: str) -> Iterator[Stamped]:
    for number, each in enumerate(sent):
        yield Stamped(START + number * STEP, LINKS[link][1](datagram(each)))


def pcap(sent: Iterable[Sent], *, link: str = "Ethernet", order: str = "<", nanoseconds: bool = False) -> bytes:
    """Return a file in the classic format."""
    magic, share = (0xA1B23C4D, 1000) if nanoseconds else (0xA1B2C3D4, 1)
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 2**18, LINKS[link][0])]
    for at, data in _stamped(sent, link):
        seconds, rest = divmod(at, 10**6)
        parts += [struct.pack(order + "IIII", seconds, rest * share, len(data), len(data)), data]
    return b"".join(parts)


def block(order: str, kind: int, body: bytes) -> bytes:
    """Return a pcapng block."""
    body = body.ljust((len(body) + 3) // 4 * 4, b"\0")
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def section(order: str) -> bytes:
    """Return a pcapng section header."""
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(order: str, link: str, resolution: int | None = None, offset: int = 0) -> bytes:
    """Return an interface description, with the resolution and offset of its clock."""
    options = b"" if resolution is None else struct.pack(order + "HHB3x", 9, 1, resolution)
    options += struct.pack(order + "HHq", 14, 8, offset) if offset else b""
    options = struct.pack(order + "HH4s", 1, 3, b"a b") + options + bytes(4) if options else b""
    return block(order, 1, struct.pack(order + "HHI", LINKS[link][0], 0, 0) + options)


def enhanced(order: str, number: int, ticks: int, data: bytes) -> bytes:
    """Return an enhanced packet block; ``ticks`` is its time in units of the interface's clock."""
    head = struct.pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
    return block(order, 6, head + data)


def pcapng(
    sent: Sequence[Sent], *, links: Sequence[str] = ("Ethernet",), order: str = "<", resolution: int = 6
) -> bytes:
    """Return a pcapng file whose packets are spread over interfaces with these link types."""
    ticks = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    parts = [section(order), *(interface(order, link, resolution) for link in links)]
    for number, each in enumerate(sent):
        place = number % len(links)
        at = START + number * STEP
        data = LINKS[links[place]][1](datagram(each))
        parts.append(enhanced(order, place, -(-at * ticks // 10**6), data))
    return b"".join(parts)


def everything(
    data: bytes, *, ports: Sequence[int] | None = (BROKER.port,), limits: CaptureLimits | None = None
) -> list[Exchange | CaptureFault]:
    """Return all items read from the bytes of a capture file."""
    return list(read_exchanges(io.BytesIO(data), ports=ports, limits=limits))


def exchanges(found: Iterable[Exchange | CaptureFault]) -> list[Exchange]:
    """Return only the exchanges."""
    return [each for each in found if isinstance(each, Exchange)]


def faults(found: Iterable[Exchange | CaptureFault]) -> list[CaptureFault]:
    """Return only the faults."""
    return [each for each in found if isinstance(each, CaptureFault)]


def sizes(*given: int) -> Iterator[int]:
    """Yield these sizes in an endless cycle."""
    return (given[number % len(given)] for number in count())
