"""TCP segments in captured packets: link headers, IPv4, IPv6 and TCP.

dpkt parses the IP and TCP headers. A table in this module describes the two relevant positions in each link header.
``tcp_streams`` processes the segments.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from kafka_msgs.capture.connections import Endpoint
from kafka_msgs.capture.dpkt_import import import_dpkt
from kafka_msgs.capture.faults import CaptureFault, FaultKind
from kafka_msgs.capture.pcap import Packet

__all__ = ["TcpSegment", "segment_of"]


class TcpSegment(NamedTuple):
    """The TCP segment in one packet.

    ``missing`` bytes of its content were sent but not captured. ``ack`` is the sequence number of the next byte that
    the sender expects, or None without an acknowledgement.
    """

    source: Endpoint
    target: Endpoint
    seq: int
    syn: bool
    ack: int | None
    fin: bool
    data: bytes
    missing: int


class _Link(NamedTuple):
    """A link header: its size, and the position of the payload type, or None if the payload is always IP."""

    size: int
    type_at: int | None


_LINKS: Final[Mapping[int, _Link]] = {
    0: _Link(4, None),  # BSD loopback
    1: _Link(14, 12),  # Ethernet
    12: _Link(0, None),  # raw IP, with the link type number of some systems
    14: _Link(0, None),
    101: _Link(0, None),  # raw IP
    108: _Link(4, None),  # OpenBSD loopback
    113: _Link(16, 14),  # Linux cooked capture
    228: _Link(0, None),  # raw IPv4
    229: _Link(0, None),  # raw IPv6
    276: _Link(20, 0),  # Linux cooked capture, version 2
}
_VLAN_TAGS: Final = frozenset({0x8100, 0x88A8, 0x9100, 0x9200})
_VLAN_SIZE: Final = 4
_IP_TYPES: Final = frozenset({0x0800, 0x86DD})
_IPV6_HEADER: Final = 40
_TCP: Final = 6
_FRAGMENT: Final = 44
_IPV6_EXTENSIONS: Final = frozenset({0, 43, _FRAGMENT, 51, 60})


def segment_of(packet: Packet) -> TcpSegment | CaptureFault | None:
    """Return the TCP segment in a packet, None for another protocol, and a fault for unreadable TCP.

    Raises ``MissingExtraError`` without the extra ``capture``.
    """
    link = _LINKS.get(packet.link)
    if link is None:
        return _fault(packet, f"the link type {packet.link} is unknown")
    data = _datagram(packet.data, link)
    if not data:
        return None
    version = data[0] >> 4
    try:
        if version == 4:
            return _ipv4(packet, data)
        return _ipv6(packet, data) if version == 6 else None
    except Exception as error:  # The parser is third-party code: any error it raises is a packet fault.
        return _fault(packet, f"a damaged header of IP or TCP ({type(error).__name__})")


def _fault(packet: Packet, reason: str) -> CaptureFault:
    size = len(packet.data)
    return CaptureFault(kind=FaultKind.PACKET, reason=reason, size=size, at=packet.at, packet=packet.number)


def _datagram(data: bytes, link: _Link) -> bytes:
    """Return the bytes after the link header and any VLAN tags, or no bytes if they are not IP."""
    if link.type_at is None:
        return data[link.size :]
    kind, start = int.from_bytes(data[link.type_at : link.type_at + 2], "big"), link.size
    while kind in _VLAN_TAGS and start + _VLAN_SIZE <= len(data):
        kind = int.from_bytes(data[start + 2 : start + _VLAN_SIZE], "big")
        start += _VLAN_SIZE
    return data[start:] if kind in _IP_TYPES else b""


def _ipv4(packet: Packet, data: bytes) -> TcpSegment | CaptureFault | None:
    if len(data) > 9 and data[9] != _TCP:
        return None
    ip = import_dpkt("ip").IP(data)
    if ip.mf or ip.offset:
        return _fault(packet, "a fragment of a datagram")
    return _tcp(packet, ip, max(0, ip.len - len(data)))


def _ipv6(packet: Packet, data: bytes) -> TcpSegment | CaptureFault | None:
    if len(data) > 6 and data[6] != _TCP and data[6] not in _IPV6_EXTENSIONS:
        return None
    ip = import_dpkt("ip6").IP6(data)
    if _FRAGMENT in ip.extension_hdrs:
        return _fault(packet, "a fragment of a datagram")
    return _tcp(packet, ip, max(0, ip.plen + _IPV6_HEADER - len(data))) if ip.p == _TCP else None


def _tcp(packet: Packet, ip: Any, missing: int) -> TcpSegment | CaptureFault:
    tcp = ip.data
    if isinstance(tcp, bytes):
        return _fault(packet, "a header of TCP that is cut off")
    if missing and not tcp.data and len(tcp.opts) < tcp.off * 4 - tcp.__hdr_len__:
        return _fault(packet, "options of TCP that are cut off")
    flags = tcp.flags
    return TcpSegment(
        source=Endpoint(_host(ip.src), tcp.sport),
        target=Endpoint(_host(ip.dst), tcp.dport),
        seq=tcp.seq,
        syn=bool(flags & 0x02),
        ack=tcp.ack if flags & 0x10 else None,
        fin=bool(flags & 0x01),
        data=tcp.data,
        missing=missing,
    )


@lru_cache(maxsize=4096)
def _host(address: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET if len(address) == 4 else socket.AF_INET6, address)
