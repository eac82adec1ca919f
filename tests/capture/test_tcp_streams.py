"""Segments in any order form one stream. Missing bytes are reported at their position."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs.capture.tcp_streams import StreamChunk, TcpStream

LIMIT = 2**20
CONTENT = bytes(range(200))


def opened(seq: int = 1000, limit: int = LIMIT) -> TcpStream:
    stream = TcpStream(limit)
    stream.open(seq)
    return stream


def added(stream: TcpStream, *parts: tuple[int, bytes]) -> list[StreamChunk]:
    taken: list[StreamChunk] = []
    for number, (seq, data) in enumerate(parts):
        stream.add(seq % 2**32, data, 0, at=number, packet=number + 1)
        taken += stream.take()
    return taken


def content(pieces: Iterable[StreamChunk]) -> list[bytes | int]:
    """Return the joined bytes, with the number of missing bytes between them."""
    joined: list[bytes | int] = []
    for piece in pieces:
        if piece.data is None:
            joined.append(piece.size)
        elif joined and isinstance(joined[-1], bytes):
            joined[-1] += piece.data
        else:
            joined.append(piece.data)
    return joined


def test_segments_in_order() -> None:
    assert content(added(opened(), (1000, b"ab"), (1002, b"cd"))) == [b"abcd"]


def test_a_segment_that_came_too_early_waits() -> None:
    stream = opened()
    assert added(stream, (1002, b"cd")) == []
    assert content(added(stream, (1000, b"ab"))) == [b"abcd"]
    assert stream.held == 0


def test_what_was_sent_again_is_taken_once() -> None:
    assert content(added(opened(), (1000, b"ab"), (1000, b"ab"), (1000, b"abcd"), (999, b"?abcd"))) == [b"abcd"]


def test_numbers_wrap() -> None:
    start = 2**32 - 3
    assert content(added(opened(start), (start, b"ab"), (start + 4, b"ef"), (start + 2, b"cd"))) == [b"abcdef"]


def test_a_probe_of_the_byte_before_is_nothing_new() -> None:
    assert added(opened(), (999, b"\0")) == []


def test_a_hole_is_reported_when_too_much_waits_behind_it() -> None:
    stream = opened(limit=1000)
    assert added(stream, (1010, bytes(500))) == []
    assert content(added(stream, (1510, bytes(500)))) == [10, bytes(1000)]
    assert added(stream, (1000, bytes(10))) == []


def test_a_hole_is_reported_a_while_after_the_receiver_has_acknowledged_it() -> None:
    stream = opened()
    assert added(stream, (1010, b"ab")) == []
    stream.acknowledge(1010)
    waited = [content(stream.take()) for _ in range(600)]
    told = [each for each in waited if each]
    assert told == [[10, b"ab"]]
    assert waited.index(told[0]) > 400


def test_a_hole_that_the_receiver_has_too_is_waited_for() -> None:
    stream = opened()
    added(stream, (1010, b"ab"))
    stream.acknowledge(1009)
    assert not any(list(stream.take()) for _ in range(2000))


def test_holes_are_reported_at_the_end() -> None:
    stream = opened()
    added(stream, (1002, b"cd"), (1006, b"gh"))
    assert content(stream.flush()) == [2, b"cd", 2, b"gh"]


def test_bytes_missing_before_the_end_of_the_stream_are_reported() -> None:
    stream = opened()
    added(stream, (1000, b"ab"))
    stream.end(1005, at=7, packet=8)
    assert not stream.complete
    assert list(stream.flush()) == [StreamChunk(3, None, 7, 8)]
    assert stream.complete


def test_bytes_that_were_not_captured_of_a_segment() -> None:
    stream = opened()
    stream.add(1000, b"ab", 3, at=1, packet=1)
    stream.add(1005, b"fg", 0, at=2, packet=2)
    assert content(stream.take()) == [b"ab", 3, b"fg"]


def test_bytes_that_were_captured_when_they_were_sent_again() -> None:
    stream = opened()
    stream.add(1002, b"c", 3, at=1, packet=1)
    stream.add(1003, b"def", 0, at=2, packet=2)
    stream.add(1000, b"ab", 0, at=3, packet=3)
    assert content(stream.take()) == [b"abcdef"]


def test_a_stream_without_a_start_begins_with_its_lowest_number() -> None:
    stream = TcpStream(LIMIT)
    assert added(stream, (1002, b"cd"), (1000, b"ab")) == []
    assert stream.first_bytes() == b"ab"
    stream.open_here()
    assert not stream.has_start
    assert content(stream.take()) == [b"abcd"]


def test_a_start_that_comes_late() -> None:
    stream = TcpStream(LIMIT)
    added(stream, (1002, b"cd"))
    assert stream.open(1000)
    assert stream.has_start
    assert content(added(stream, (1000, b"ab"))) == [b"abcd"]


def test_the_start_of_another_connection_is_noticed() -> None:
    stream = opened(1000)
    assert stream.open(1000)
    assert not stream.open(5000)


@pytest.mark.parametrize("seq", [1000 + 2**30 + 1, 1000 - 2**30 - 1])
def test_numbers_out_of_reach_are_refused(seq: int) -> None:
    assert not opened().add(seq % 2**32, b"x", 0, at=0, packet=1)


@settings(deadline=None)
@given(
    start=st.integers(0, 2**32 - 1),
    cuts=st.sets(st.integers(1, len(CONTENT) - 1)),
    extra=st.lists(st.tuples(st.integers(0, len(CONTENT)), st.integers(0, len(CONTENT))), max_size=10),
    data=st.data(),
)
def test_any_cuts_overlaps_and_order_make_the_same_stream(
    start: int, cuts: set[int], extra: list[tuple[int, int]], data: st.DataObject
) -> None:
    places = [0, *sorted(cuts), len(CONTENT)]
    spans = [*pairwise(places), *(tuple(sorted(each)) for each in extra)]
    stream = opened(start)
    parts = [(start + low, CONTENT[low:high]) for low, high in data.draw(st.permutations(spans))]
    assert content(added(stream, *parts)) == [CONTENT]
    assert stream.held == 0


@settings(deadline=None)
@given(
    spans=st.lists(st.tuples(st.integers(0, len(CONTENT) - 1), st.integers(1, 60)), min_size=1, max_size=12),
    limit=st.sampled_from([0, 300, LIMIT]),
)
def test_bytes_and_holes_cover_the_stream_whatever_is_lost(spans: list[tuple[int, int]], limit: int) -> None:
    stream = opened(0, limit)
    pieces = added(stream, *((low, CONTENT[low : low + size]) for low, size in spans)) + list(stream.flush())
    at = 0
    for piece in pieces:
        assert piece.data is None or piece.data == CONTENT[at : at + piece.size]
        at += piece.size
    assert at == max(min(low + size, len(CONTENT)) for low, size in spans)
