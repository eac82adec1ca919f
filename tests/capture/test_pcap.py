"""Capture files in every format contain the same packets. Damage is reported and ends the reading."""

from __future__ import annotations

import io
import struct

import pytest

from kafka_msgs import ApiVersionsRequest
from kafka_msgs.capture import CaptureFault, FaultKind
from kafka_msgs.capture import dpkt_import as library_module
from kafka_msgs.capture.pcap import Packet, read_packets
from kafka_msgs.errors import MissingExtraError
from kafka_msgs.wire import encode_request
from tests.support.packets import (
    LINKS,
    START,
    STEP,
    block,
    datagram,
    enhanced,
    framed,
    interface,
    pcap,
    pcapng,
    section,
    segments,
)

SENT = segments([("request", framed(encode_request(ApiVersionsRequest(), 0, correlation_id=1)))])
RAW = section("<") + interface("<", "raw")


def packets(data: bytes) -> list[Packet | CaptureFault]:
    return list(read_packets(io.BytesIO(data)))


def sound(data: bytes) -> list[Packet]:
    found = packets(data)
    assert all(isinstance(each, Packet) for each in found), found
    return [each for each in found if isinstance(each, Packet)]


def fault(data: bytes) -> CaptureFault:
    *_, last = packets(data)
    assert isinstance(last, CaptureFault)
    return last


def expected(link: str = "Ethernet") -> list[Packet]:
    number, header = LINKS[link]
    return [Packet(place + 1, START + place * STEP, number, header(datagram(each))) for place, each in enumerate(SENT)]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_the_classic_format_of_either_byte_order_and_clock(order: str, nanoseconds: bool) -> None:
    assert sound(pcap(SENT, order=order, nanoseconds=nanoseconds)) == expected()


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("resolution", [6, 9, 0x80 | 30])
def test_the_block_format_of_either_byte_order_and_any_clock(order: str, resolution: int) -> None:
    assert sound(pcapng(SENT, order=order, resolution=resolution)) == expected()


def test_interfaces_of_different_link_types_in_one_file() -> None:
    links = ["Linux cooked 2", "raw"]
    found = sound(pcapng(SENT, links=links))
    assert [each.link for each in found] == [LINKS[links[place % 2]][0] for place in range(len(SENT))]


def test_every_interface_has_its_own_clock() -> None:
    data = section(">") + interface(">", "raw") + interface(">", "raw", 3, offset=100) + interface(">", "raw", 9)
    data += enhanced(">", 0, 5_000_000, b"a") + enhanced(">", 1, 5_000, b"b") + enhanced(">", 2, 5_000_000_999, b"c")
    assert [(each.at, each.data) for each in sound(data)] == [
        (5_000_000, b"a"), (105_000_000, b"b"), (5_000_000, b"c")
    ]  # fmt: skip


def test_sections_of_different_byte_order_in_one_file() -> None:
    parts = [section(order) + interface(order, "raw") + enhanced(order, 0, 7, b"x") for order in "<><"]
    assert sound(b"".join(parts)) == [Packet(number, 7, 101, b"x") for number in (1, 2, 3)]


def test_blocks_of_no_concern_are_passed_over() -> None:
    data = (
        section("<")
        + interface("<", "raw")
        + block("<", 5, bytes(20))
        + block("<", 0xBAD, b"")
        + enhanced("<", 0, 7, b"x")
    )
    assert sound(data) == [Packet(1, 7, 101, b"x")]


def test_the_older_kind_of_packet_block() -> None:
    body = struct.pack("<HHIIII", 0, 0, 0, 7, 1, 1) + b"x"
    assert sound(RAW + block("<", 2, body)) == [Packet(1, 7, 101, b"x")]


def test_a_packet_without_a_time_is_a_fault_and_counted() -> None:
    simple = block("<", 3, struct.pack("<I", 1) + b"x")
    found = packets(RAW + simple + enhanced("<", 0, 7, b"y"))
    assert isinstance(found[0], CaptureFault)
    assert (found[0].kind, found[0].packet) == (FaultKind.PACKET, 1)
    assert found[1] == Packet(2, 7, 101, b"y")


def test_a_time_beyond_64_bits_is_a_fault() -> None:
    found = packets(section("<") + interface("<", "raw", 0) + enhanced("<", 0, 2**64 - 1, b"x"))
    assert [str(each) for each in found] == ["packet 1: a packet at 18446744073709551615000000 microseconds"]


@pytest.mark.parametrize("make", [pcap, pcapng])
def test_a_file_cut_anywhere_ends_in_a_fault_that_counts_the_rest(make: type) -> None:
    data = make(SENT)
    whole = sound(data)
    for size in range(len(data)):
        found = packets(data[:size])
        last = found[-1] if found else None
        if isinstance(last, CaptureFault):
            assert last.kind is FaultKind.FILE
            assert 0 <= last.size <= size
            found.pop()
        assert found == whole[: len(found)]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "at byte 0: the header of the file ends after 0 of 24 bytes, 0 bytes are left"),
        (b"GET / HTTP/1.1\r\nHost: example.org\r\n", "at byte 0: not a capture, neither pcap nor pcapng, 35 bytes"),
        (section("<")[:8] + b"abcd" + bytes(16), "a section of unknown byte order"),
        (section("<") + struct.pack("<II", 6, 13), "a block of 13 bytes"),
        (section("<") + struct.pack("<II", 6, 2**31), "a block of 2147483648 bytes"),
        (section("<") + struct.pack("<IIII", 7, 16, 0, 20), "a block whose two sizes differ, the first is 16"),
        (section("<") + enhanced("<", 0, 1, b"x"), "a packet of interface 0, 0 are described"),
        (RAW + block("<", 6, bytes(12)), "a block of 24 bytes, too small for its kind"),
        (RAW + block("<", 6, struct.pack("<5I", 0, 0, 0, 99, 99)), "a packet of 99 bytes in a block of 32"),
        (pcap([]) + struct.pack("<4I", 1, 1, 2**31, 2**31), "a packet of 2147483648 bytes, at most 262144"),
        (pcap([]) + bytes(5), "a header of a packet that is cut off"),
        (section("<") + bytes(5), "a block that is cut off"),
    ],
)  # fmt: skip
def test_damage_is_reported_with_its_reason(data: bytes, reason: str) -> None:
    found = fault(data)
    assert found.kind is FaultKind.FILE
    assert reason in found.reason


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(library_module, "import_module", missing)
    library_module.import_dpkt.cache_clear()
    with pytest.raises(MissingExtraError, match=r"reading captures needs dpkt: pip install 'kafka-msgs\[capture\]'"):
        packets(pcap(SENT))
