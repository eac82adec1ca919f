"""Frames are split from a connection's bytes: in any chunks, with a limit checked first, in linear time."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.errors import FrameSizeError, TruncatedError
from kafka_msgs.wire import MAX_FRAME_SIZE, FrameSplitter, join_frames, read_frame_size

PAYLOADS = [b"", b"a", b"four", bytes(300), b"", bytes(range(256))]


def split(*chunks: bytes, limit: int = MAX_FRAME_SIZE) -> list[bytes]:
    """Return the payloads in chunks, up to an orderly end."""
    splitter = FrameSplitter(limit=limit)
    found = [payload for chunk in chunks for payload in splitter.feed(chunk)]
    splitter.close()
    assert splitter.held == 0
    return found


def test_frames_are_joined_behind_their_sizes() -> None:
    assert join_frames() == b""
    assert join_frames(b"ab", bytearray(b"c"), memoryview(b"")) == bytes.fromhex("00000002 6162 00000001 63 00000000")
    assert read_frame_size(b"\0\0\0\2ab") == 2
    assert read_frame_size(b"ab\xff\xff\xff\xfe", 2) == -2


def test_a_payload_beyond_the_limit_is_not_joined() -> None:
    assert len(join_frames(bytes(10), limit=10)) == 14
    with pytest.raises(FrameSizeError, match="a frame of 11 bytes, at most 10 are allowed"):
        join_frames(b"", bytes(11), limit=10)


@given(
    payloads=st.lists(st.binary(max_size=40), max_size=12),
    cuts=st.lists(st.integers(0, 400), max_size=30),
)
def test_any_cuts_give_the_same_payloads(payloads: list[bytes], cuts: list[int]) -> None:
    data = join_frames(*payloads)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    assert split(*(data[a:b] for a, b in pairwise(places))) == payloads


def test_byte_by_byte_and_all_at_once() -> None:
    data = join_frames(*PAYLOADS)
    assert split(data) == split(*(bytes([byte]) for byte in data)) == PAYLOADS


def test_payloads_are_copies() -> None:
    data = bytearray(join_frames(b"abc"))
    (payload,) = FrameSplitter().feed(data)
    data[:] = bytes(len(data))
    assert payload == b"abc"


def test_payloads_that_were_not_asked_for_come_with_the_next_call() -> None:
    splitter = FrameSplitter()
    splitter.feed(join_frames(b"a", b"b"))
    assert next(splitter.feed(join_frames(b"c"))) == b"a"
    assert list(splitter.feed(b"")) == [b"b", b"c"]


@pytest.mark.parametrize("size", [-1, -(2**31), 11, 2**31 - 1])
@pytest.mark.parametrize("cut", [0, 1, 3, 4])
def test_a_size_that_cannot_be_ends_the_stream_behind_what_is_whole(size: int, cut: int) -> None:
    splitter = FrameSplitter(limit=10)
    data = join_frames(b"good", limit=10)
    bad = size.to_bytes(4, "big", signed=True) + b"more"
    assert next(splitter.feed(data + bad[:cut])) == b"good"
    with pytest.raises(FrameSizeError) as caught:
        next(splitter.feed(bad[cut:]))
    assert (caught.value.size, caught.value.limit) == (size, 10)
    assert splitter.held == 0
    for _ in range(2):
        with pytest.raises(FrameSizeError):
            list(splitter.feed(data))


def test_a_connection_that_ends_within_a_frame() -> None:
    for part in (b"\0", b"\0\0\0\5", b"\0\0\0\5abcd"):
        splitter = FrameSplitter()
        assert list(splitter.feed(part)) == []
        assert splitter.held == len(part)
        with pytest.raises(TruncatedError, match=f"the connection ended after {len(part)} bytes of a frame"):
            splitter.close()


def peak(chunks: list[bytes]) -> int:
    """Return the peak memory of splitting, excluding the chunks and the immediately dropped payloads."""
    splitter = FrameSplitter()
    tracemalloc.start()
    for chunk in chunks:
        for _ in splitter.feed(chunk):
            pass
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_nothing_is_allocated_for_a_size_that_is_only_stated() -> None:
    assert peak([MAX_FRAME_SIZE.to_bytes(4, "big") + bytes(100)]) < 10_000


def test_a_large_frame_in_small_pieces_takes_little_more_than_twice_its_size() -> None:
    size = 4 * 2**20
    data = join_frames(bytes(size))
    assert peak([data[start : start + 1000] for start in range(0, len(data), 1000)]) < 2.3 * size


def test_a_frame_in_small_pieces_is_one_buffer_until_it_is_whole() -> None:
    """The cost of a call is independent of the buffered bytes: the buffer only grows, and is joined once."""
    splitter = FrameSplitter()
    splitter.receive((2**20).to_bytes(4, "big") + b"a")
    (buffer,) = splitter._parts
    for number in range(1, 1000):
        splitter.receive(bytes(1000))
        assert len(splitter._parts) == 1
        assert splitter._parts[0] is buffer
        assert splitter.held == 5 + 1000 * number
        assert splitter.missing == 2**20 - 1 - 1000 * number


def test_a_frame_in_large_pieces_keeps_the_pieces_themselves() -> None:
    splitter = FrameSplitter()
    pieces = [bytes([number]) * 10_000 for number in range(10)]
    splitter.receive((100_000).to_bytes(4, "big"))
    for piece in pieces[:-1]:
        splitter.receive(piece)
    assert all(kept is piece for kept, piece in zip(splitter._parts, pieces[:-1], strict=True))
    splitter.receive(pieces[-1])
    assert splitter.next_payload() == b"".join(pieces)
    assert (splitter.held, splitter.missing, splitter.next_payload()) == (0, 0, None)
