"""Malicious captures: the work grows linearly with the input, and memory stays bounded.

Work is measured in executed lines of Python, memory with tracemalloc.
"""

from __future__ import annotations

import io
import os
import struct
import tracemalloc
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs import MetadataRequest
from kafka_msgs.capture import CaptureLimits, Endpoint, FaultKind, read_exchanges
from kafka_msgs.errors import CaptureError
from kafka_msgs.wire import encode_request
from tests.support.line_counter import lines_run
from tests.support.packets import (
    CLIENT,
    Sent,
    block,
    client,
    everything,
    exchanges,
    faults,
    framed,
    interface,
    pcap,
    section,
    segments,
)

MARGIN = 8 * 2**20


def consume(data: bytes, **options: Any) -> None:
    """Read a capture and discard the result."""
    deque(read_exchanges(io.BytesIO(data), **options), maxlen=0)


def growth(make: Callable[[int], bytes], size: int) -> float:
    """Return by which factor the work grows when the input doubles."""
    consume(make(10))
    small, large = make(size), make(2 * size)
    return lines_run(lambda: consume(large)) / lines_run(lambda: consume(small))


def peak(data: bytes, **options: Any) -> int:
    """Return the peak memory of reading, without the input."""
    consume(pcap([]), **options)
    tracemalloc.start()
    try:
        consume(data, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def request(number: int) -> bytes:
    return encode_request(MetadataRequest(topics=()), 4, correlation_id=number)


def traffic(many: int, data: bytes = b"x" * 700) -> list[Sent]:
    return segments([("request" if number % 2 else "response", data) for number in range(many)])


def headers_only(many: int) -> bytes:
    """Return a capture of ``tcpdump -s 54``: the headers of every packet without content."""
    made = [Sent(**{**vars_of(each), "snapped": len(each.data)}) for each in traffic(many)]
    return pcap(made)


def vars_of(sent: Sent) -> dict[str, Any]:
    return {name: getattr(sent, name) for name in ("source", "target", "seq", "flags", "ack", "data")}


def first_byte_then_headers(many: int) -> bytes:
    """Return a capture with one byte of content per direction, too few to recognize a request, then headers only."""
    made = [
        Sent(**{**vars_of(each), "snapped": len(each.data) - (number < 4)}) for number, each in enumerate(traffic(many))
    ]
    return pcap(made)


def a_few_bytes_of_each(many: int) -> bytes:
    made = [Sent(**{**vars_of(each), "snapped": max(0, len(each.data) - 6)}) for each in traffic(many)]
    return pcap(made)


def zeros_with_requests_waiting(many: int) -> bytes:
    """Return a capture of a hundred requests, one of them with correlation id 0, and zeros instead of responses."""
    asked = b"".join(framed(request(number)) for number in range(100))
    return pcap(segments([("request", asked), *(("response", bytes(500)) for _ in range(many))]))


def false_answers_with_requests_waiting(many: int) -> bytes:
    """Return a capture with endless small frames that have an expected correlation id but are not responses."""
    asked = b"".join(framed(request(number)) for number in range(100))
    lure = struct.pack(">iiI", 8, 7, 0xFFFFFFFF)
    return pcap(segments([("request", asked), ("response", bytes(3)), *(("response", lure * 40) for _ in range(many))]))


def many_waiting(many: int) -> bytes:
    """Return a capture of tiny requests without responses."""
    tiny = b"".join(framed(request(number)) for number in range(30))
    return pcap(segments([("request", tiny) for _ in range(many)], fin=False))


@pytest.mark.parametrize(
    "make",
    [
        headers_only,
        first_byte_then_headers,
        a_few_bytes_of_each,
        zeros_with_requests_waiting,
        false_answers_with_requests_waiting,
        many_waiting,
    ],
)
def test_twice_the_packets_are_twice_the_work(make: Callable[[int], bytes]) -> None:
    assert 1.5 < growth(make, 300) < 2.2


def test_headers_only_are_gaps() -> None:
    found = everything(headers_only(20))
    assert not exchanges(found)
    gaps = faults(found)
    assert {each.kind for each in gaps} == {FaultKind.GAP}
    assert sum(each.size for each in gaps) == 20 * 700


def test_what_was_missing_at_the_start_does_not_hide_what_follows() -> None:
    """The first packets lack their content, the later ones are complete."""
    made = traffic(40)[:-2]
    made = [Sent(**{**vars_of(each), "snapped": len(each.data)}) for each in made]
    place = next(each.seq for each in reversed(made) if each.source == CLIENT) + 700
    whole = Sent(source=CLIENT, target=made[0].target, seq=place, flags=0x18, data=framed(request(7)))
    found = exchanges(everything(pcap([*made, whole])))
    assert [each.correlation_id for each in found] == [7]


# Memory


def connections(many: int, each: Callable[[Endpoint], list[Sent]]) -> list[Sent]:
    return [sent for number in range(many) for sent in each(client(number))]


def test_tiny_requests_that_wait_on_many_connections() -> None:
    tiny = b"".join(framed(request(number)) for number in range(1000))
    data = pcap(connections(80, lambda end: segments([("request", tiny)], client=end, fin=False)))
    assert peak(data) < 4 * len(data) + MARGIN


def test_connections_of_which_nothing_came_but_their_beginning() -> None:
    data = pcap(connections(12_000, lambda end: segments([], client=end, fin=False)[:1]), link="raw")
    assert peak(data) < 4 * len(data) + MARGIN


def test_tiny_segments_behind_a_byte_that_never_comes() -> None:
    def behind(end: Endpoint) -> list[Sent]:
        start = segments([], client=end, fin=False)
        ours = start[0]
        return [
            *start,
            *(
                Sent(source=end, target=ours.target, seq=ours.seq + 2 + number, flags=0x10, data=b"x")
                for number in range(400)
            ),
        ]

    data = pcap(connections(80, behind), link="raw")
    assert peak(data) < 4 * len(data) + MARGIN


def test_one_large_frame() -> None:
    large = framed(bytes([0, 3, 0, 4]) + bytes(12 * 2**20))
    data = pcap(segments([("request", large[start : start + 60_000]) for start in range(0, len(large), 60_000)]))
    assert peak(data) < 4 * len(data) + MARGIN


def test_reasons_that_all_differ() -> None:
    """The packets are wrong in different ways, with times before the epoch."""
    packets = b"".join(block("<", 6, struct.pack("<5I", 0, 0, number, 4, 4) + b"data") for number in range(20_000))
    early = block("<", 1, struct.pack("<HHI", 1, 0, 0) + struct.pack("<HHq", 14, 8, -(10**6)) + bytes(4))
    data = section("<") + early + packets
    assert peak(data) < 4 * len(data) + MARGIN / 4
    found = faults(everything(data))
    assert {each.kind for each in found} == {FaultKind.PACKET}
    assert sum(each.size for each in found) == 4 * 20_000
    assert 1000 < len(found) < 1100


def test_ports_that_all_differ() -> None:
    made = [
        Sent(
            source=Endpoint("192.0.2.7", 10_000 + number),
            target=Endpoint("192.0.2.1", 65_000),
            seq=1,
            flags=2,
            data=b"x",
        )
        for number in range(20_000)
    ]
    data = pcap(made, link="raw")
    assert peak(data) < 4 * len(data) + MARGIN / 4
    (fault,) = faults(everything(data))
    assert (fault.kind, fault.size) == (FaultKind.LEFT_OUT, 20_000)


def test_interfaces_without_end() -> None:
    data = section("<") + interface("<", "raw") * 10_001
    (fault,) = faults(everything(data))
    assert fault.kind is FaultKind.FILE
    assert "more than 10000 interfaces in a section" in fault.reason
    assert everything(section("<") + interface("<", "raw") * 10_000) == []


@pytest.mark.parametrize("size", [2**20, 2**24 - 4, 2**31])
def test_a_block_that_states_a_size_takes_no_memory_for_it(size: int) -> None:
    for kind in (6, 0x0A0D0D0A, 77):
        data = section("<") + struct.pack("<II", kind, size) + bytes(100)
        assert peak(data) < 2**19
        (fault,) = faults(everything(data))
        assert fault.kind is FaultKind.FILE


def test_a_large_block_of_another_kind_is_passed_over() -> None:
    data = section("<") + block("<", 77, bytes(2**20)) + interface("<", "raw")
    assert everything(data) == []
    assert peak(data) < 2**19


def test_what_connections_may_take_grows_with_what_was_read() -> None:
    limits = CaptureLimits(held=10_000, base=1000, ratio=3)
    assert [limits.allowed(read) for read in (0, 1000, 3000, 10**9)] == [1000, 4000, 10_000, 10_000]


# Special files


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
def test_a_fifo_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcap"
    os.mkfifo(path)
    with pytest.raises(CaptureError, match="not a regular file"):
        list(read_exchanges(path))


def test_a_device_is_refused() -> None:
    with pytest.raises(CaptureError, match=f"{os.devnull}: not a regular file"):
        list(read_exchanges(os.devnull))
