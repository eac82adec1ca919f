"""TCP is found after every link-layer header, in IPv4 and IPv6. Other protocols are skipped, and damage is reported."""

from __future__ import annotations

import socket

import pytest
from dpkt import ip, tcp

from kafka_msgs.capture import CaptureFault, Endpoint
from kafka_msgs.capture.pcap import Packet
from kafka_msgs.capture.tcp_segments import TcpSegment, segment_of
from tests.support.packets import BROKER, CLIENT, LINKS, Sent, datagram

SIX = Endpoint("2001:db8::7", 50_000), Endpoint("2001:db8::1", 9092)


def sent(source: Endpoint = CLIENT, target: Endpoint = BROKER, data: bytes = b"payload", snapped: int = 0) -> Sent:
    flags = tcp.TH_ACK | tcp.TH_PUSH
    return Sent(source=source, target=target, seq=77, flags=flags, ack=99, data=data, snapped=snapped)


def packet(data: bytes, link: str = "raw") -> Packet:
    number, header = LINKS[link]
    return Packet(3, 9, number, header(data))


def expected(each: Sent) -> TcpSegment:
    kept = each.data[: len(each.data) - each.snapped]
    return TcpSegment(each.source, each.target, 77, False, 99, False, kept, each.snapped)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("ends", [(CLIENT, BROKER), SIX], ids=["IPv4", "IPv6"])
def test_every_link_type_carries_either_version_of_ip(link: str, ends: tuple[Endpoint, Endpoint]) -> None:
    assert segment_of(packet(datagram(sent(*ends)), link)) == expected(sent(*ends))


@pytest.mark.parametrize("ends", [(CLIENT, BROKER), SIX], ids=["IPv4", "IPv6"])
def test_bytes_beyond_the_snapshot_length_are_counted(ends: tuple[Endpoint, Endpoint]) -> None:
    each = sent(*ends, snapped=3)
    assert segment_of(packet(datagram(each))) == expected(each)


def test_a_datagram_without_a_length_is_as_long_as_what_was_captured() -> None:
    """With segmentation offload, network cards receive datagrams larger than the length field can express."""
    data = bytearray(datagram(sent()))
    data[2:4] = bytes(2)
    assert segment_of(packet(bytes(data))) == expected(sent())


def test_extension_headers_are_passed_over() -> None:
    data = bytearray(datagram(sent(*SIX)))
    data[4:6] = (len(data) - 40 + 8).to_bytes(2, "big")
    data[6] = 60
    data[40:40] = bytes([socket.IPPROTO_TCP, 0, 1, 4, 0, 0, 0, 0])
    assert segment_of(packet(bytes(data))) == expected(sent(*SIX))


def test_the_flags_of_a_connection_that_starts_and_ends() -> None:
    syn, fin = (
        segment_of(packet(datagram(Sent(source=CLIENT, target=BROKER, seq=1, flags=flags))))
        for flags in (tcp.TH_SYN, tcp.TH_FIN | tcp.TH_ACK)
    )
    assert isinstance(syn, TcpSegment)
    assert isinstance(fin, TcpSegment)
    assert (syn.syn, syn.ack, syn.fin) == (True, None, False)
    assert (fin.syn, fin.ack, fin.fin) == (False, 0, True)


def test_other_protocols_are_ignored() -> None:
    datagrams = bytearray(datagram(sent()))
    datagrams[9] = socket.IPPROTO_UDP
    assert segment_of(packet(bytes(datagrams))) is None
    assert segment_of(Packet(1, 0, 1, bytes(12) + b"\x08\x06" + bytes(28))) is None
    assert segment_of(Packet(1, 0, 1, b"")) is None
    assert segment_of(Packet(1, 0, 101, b"\x00")) is None
    six = bytearray(datagram(sent(*SIX)))
    six[6] = socket.IPPROTO_ICMPV6
    assert segment_of(packet(bytes(six))) is None


def reason(found: TcpSegment | CaptureFault | None) -> str:
    assert isinstance(found, CaptureFault)
    assert (found.packet, found.at) == (3, 9)
    return found.reason


def test_fragments_are_reported() -> None:
    for field in (ip.IP_MF, 5):
        data = bytearray(datagram(sent()))
        data[6:8] = field.to_bytes(2, "big")
        assert reason(segment_of(packet(bytes(data)))) == "a fragment of a datagram"


def test_fragments_of_ipv6_are_reported() -> None:
    data = bytearray(datagram(sent(*SIX)))
    data[6] = 44
    data[40:40] = bytes([socket.IPPROTO_TCP, 0, 0, 1, 0, 0, 0, 5])
    assert reason(segment_of(packet(bytes(data)))) == "a fragment of a datagram"


def test_an_unknown_link_type_is_reported() -> None:
    assert reason(segment_of(Packet(3, 9, 147, b"x"))) == "the link type 147 is unknown"


def test_headers_cut_short_are_reported() -> None:
    data = datagram(sent())
    found = [segment_of(packet(data[:size])) for size in range(1, 40)]
    assert all(isinstance(each, CaptureFault) for each in found)
    assert reason(found[25]) == "a header of TCP that is cut off"
