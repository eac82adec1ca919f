"""One direction of a connection: frames of any size, in any chunks, are forwarded in order with bounded memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.codec import Buffer
from kafka_msgs.tap.frame_forwarder import HEAD_BYTES, ForwardMode, FrameForwarder, Pause, Piece
from kafka_msgs.wire import join_frames

LIMIT = 200_000
LARGE = 2**17
FRAMES = st.lists(
    st.tuples(
        st.sampled_from(ForwardMode),
        st.integers(0, 3_000),
        st.none() | st.binary(max_size=30),
    ),
    max_size=6,
)
"""Forward modes and sizes of frames, and the replacements of buffered frames."""


def _all_bytes(pieces: list[Piece]) -> list[Buffer]:
    return [piece for piece in pieces if not isinstance(piece, Pause)]


def _receive(inflow: FrameForwarder, data: bytes, sizes: list[int], *, keeps: bool) -> list[Buffer]:
    """Return the forwarded bytes of data received in chunks of these sizes. ``keeps`` defers reading of the chunks."""
    out: list[Buffer] = []
    at = 0
    while at < len(data):
        room = inflow.get_buffer()
        assert len(room) > 0
        count = min(len(room), sizes[len(out) % len(sizes)], len(data) - at)
        room[:count] = data[at : at + count]
        at += count
        pieces = _all_bytes(inflow.buffer_updated(count))
        out += pieces if keeps else map(bytes, pieces)
        if keeps:
            inflow.detach_buffer()
    return out


@given(
    frames=FRAMES,
    sizes=st.lists(st.integers(1, 60) | st.integers(1, 4_000), min_size=1, max_size=6),
    keeps=st.booleans(),
)
def test_any_frames_in_any_pieces(
    frames: list[tuple[ForwardMode, int, bytes | None]], sizes: list[int], *, keeps: bool
) -> None:
    """Copied frames are complete, buffered frames may be replaced, and streamed frames report their head."""
    payloads = [bytes(each % 256 for each in range(size)) for _, size, _ in frames]
    changed = [change if manner is ForwardMode.BUFFER else None for manner, _, change in frames]
    manners, changes = iter([manner for manner, _, _ in frames]), iter(changed)
    seen: list[tuple[bytes, int]] = []

    def ends(payload: bytes, size: int) -> tuple[bytes] | None:
        seen.append((payload, size))
        change = next(changes)
        return None if change is None else (join_frames(change),)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("kafka_msgs.tap.frame_forwarder._FIRST", 16)
        monkeypatch.setattr("kafka_msgs.tap.frame_forwarder._RETAINED", 1_000)
        inflow = FrameForwarder(LIMIT, at_once=256, begins=lambda head: next(manners), ends=ends)
        out = _receive(inflow, join_frames(*payloads), sizes, keeps=keeps)
    went_on = [payload if change is None else change for payload, change in zip(payloads, changed, strict=True)]
    assert b"".join(out) == join_frames(*went_on)
    assert seen == [
        (payload[:HEAD_BYTES] if manner is ForwardMode.STREAM else payload, size)
        for (manner, size, _), payload in zip(frames, payloads, strict=True)
    ]
    assert inflow.incomplete == 0


@pytest.mark.parametrize("manner", ForwardMode)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_an_incomplete_frame_is_counted_and_held_only_if_it_has_to_be(manner: ForwardMode, size: int) -> None:
    inflow = FrameForwarder(LIMIT, begins=lambda head: manner, ends=lambda payload, size: None)
    data = join_frames(bytes(5000))[:4000]
    out = b"".join(_receive(inflow, data, [size], keeps=False))
    assert inflow.incomplete == 4000
    assert out == (b"" if manner is ForwardMode.BUFFER else data)


def test_without_a_choice_no_byte_waits() -> None:
    """Even the first bytes of a size are forwarded immediately."""
    inflow = FrameForwarder(LIMIT, ends=lambda payload, size: None)
    for byte in b"\0\0\0\x02ab\0\0":
        inflow.get_buffer()[0] = byte
        assert b"".join(_all_bytes(inflow.buffer_updated(1))) == bytes((byte,))


@pytest.mark.parametrize("manner", ForwardMode)
def test_memory_is_as_large_as_what_it_keeps(manner: ForwardMode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is allocated for received bytes, not for a stated size, and released after a large frame."""
    monkeypatch.setattr("kafka_msgs.tap.frame_forwarder._RETAINED", LARGE)
    inflow = FrameForwarder(2**30, begins=lambda head: manner, ends=lambda payload, size: None)
    _receive(inflow, (2**30).to_bytes(4, "big") + bytes(1000), [1000], keeps=False)
    assert len(inflow._memory) < 20_000
    inflow = FrameForwarder(2**30, begins=lambda head: manner, ends=lambda payload, size: None)
    _receive(inflow, join_frames(bytes(2**20)) + bytes(3), [2**20], keeps=False)
    assert len(inflow._memory) <= 2 * (2**20 + 4)
    _receive(inflow, b"\x01a" + join_frames(b"b"), [100], keeps=False)
    _receive(inflow, join_frames(b"c"), [100], keeps=False)
    assert len(inflow._memory) <= 2**18


@pytest.mark.parametrize("manner", ForwardMode)
def test_insertions_follow_the_frame_that_ended(manner: ForwardMode) -> None:
    """A response of an addon is sent between two frames, whatever their forward mode."""
    inflow = FrameForwarder(LIMIT, begins=lambda head: manner, ends=lambda payload, size: insert(payload[:1]))

    def insert(name: bytes) -> None:
        inflow.insertions.append(name.upper() * 3)

    out = b"".join(_receive(inflow, join_frames(b"a" * 100, b"b" * 50), [7, 300], keeps=False))
    assert out == join_frames(b"a" * 100) + b"AAA" + join_frames(b"b" * 50) + b"BBB"


def test_what_is_not_a_frame_passes_from_there_on() -> None:
    """Frames before it count; a size above the limit allocates no memory."""
    seen: list[bytes] = []
    inflow = FrameForwarder(
        LIMIT, begins=lambda head: ForwardMode.BUFFER, ends=lambda payload, size: seen.append(payload)
    )
    data = join_frames(b"a") + (LIMIT + 1).to_bytes(4, "big") + bytes(3 * LIMIT)
    assert b"".join(_receive(inflow, data, [7_777], keeps=False)) == data
    assert seen == [b"a"]
    assert str(inflow.error) == f"a frame of {LIMIT + 1} bytes, at most {LIMIT} are allowed"
    assert inflow.incomplete == 0
