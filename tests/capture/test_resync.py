"""Splitting of streams into frames. Missing bytes damage only the frames that contain them."""

from __future__ import annotations

from itertools import count, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs import MetadataRequest
from kafka_msgs.capture.frame_finders import RequestFinder
from kafka_msgs.capture.resync import Found, Frame, ResyncSplitter, Skipped
from kafka_msgs.capture.tcp_streams import StreamChunk
from kafka_msgs.wire import encode_request
from tests.support.packets import framed

MOST = 2**20
PAYLOADS = [
    encode_request(MetadataRequest(topics=None), 9, correlation_id=number, client_id="c") for number in range(6)
]
SIZE = len(framed(PAYLOADS[0]))
STREAM = b"".join(map(framed, PAYLOADS))


def framer(*, synchronised: bool = True, least: int = 8) -> ResyncSplitter:
    made = ResyncSplitter(RequestFinder(), least=least, most=MOST)
    made.synchronized = synchronised
    return made


def fed(made: ResyncSplitter, *parts: bytes | int) -> list[Found]:
    """Feed bytes, and numbers for missing bytes; close the stream."""
    numbers = count(1)
    found: list[Found] = []
    for part in parts:
        number = next(numbers)
        piece = (
            StreamChunk(part, None, number, number)
            if isinstance(part, int)
            else StreamChunk(len(part), part, number, number)
        )
        found += made.feed(piece)
    return found + list(made.close())


def payloads(found: list[Found]) -> list[bytes]:
    return [each.data for each in found if isinstance(each, Frame) and not each.missing]


def test_a_frame_is_of_the_time_at_which_it_is_whole() -> None:
    (frame,) = fed(framer(), STREAM[:3], STREAM[3:9], STREAM[9:SIZE])
    assert frame == Frame(SIZE - 4, PAYLOADS[0], 0, at=3, packet=3)


def test_a_loss_inside_a_frame_costs_that_frame_alone() -> None:
    found = fed(framer(), STREAM[: SIZE + 9], 5, STREAM[SIZE + 14 :])
    assert payloads(found) == [PAYLOADS[0], *PAYLOADS[2:]]
    assert found[1] == Frame(SIZE - 4, PAYLOADS[1][:5], 5, at=3, packet=3)


def test_several_losses_in_one_frame_are_added_up() -> None:
    found = fed(framer(), STREAM[:6], 2, STREAM[8:10], 3, STREAM[13:])
    assert found[0] == Frame(SIZE - 4, PAYLOADS[0][:2], 5, at=5, packet=5)
    assert payloads(found) == PAYLOADS[1:]


def test_a_loss_up_to_the_end_of_a_frame() -> None:
    found = fed(framer(), STREAM[:9], SIZE - 9, STREAM[SIZE:])
    assert payloads(found) == PAYLOADS[1:]


def test_a_loss_of_the_next_size_is_followed_by_a_search() -> None:
    found = fed(framer(), STREAM[: SIZE - 2], 10, STREAM[SIZE + 8 :])
    assert payloads(found) == PAYLOADS[2:]
    assert Skipped(SIZE - 8, 3, 3) in found


def test_a_stream_that_starts_within_a_frame() -> None:
    found = fed(framer(synchronised=False), STREAM[10:])
    assert found[0] == Skipped(SIZE - 10, 1, 1)
    assert payloads(found) == PAYLOADS[1:]


def test_a_candidate_that_cannot_be_decoded_is_not_a_frame() -> None:
    lure = framed(PAYLOADS[0][:-3] + b"\xff\xff\xff")
    found = fed(framer(synchronised=False), lure + STREAM)
    assert found[0] == Skipped(len(lure), 1, 1)
    assert payloads(found) == PAYLOADS


def test_a_candidate_that_never_becomes_whole_hides_nothing() -> None:
    lure = (500_000).to_bytes(4, "big") + PAYLOADS[0]
    found = fed(framer(synchronised=False), lure + STREAM)
    assert payloads(found) == PAYLOADS
    assert payloads(fed(framer(synchronised=False), lure + STREAM, 3, STREAM)) == [*PAYLOADS, *PAYLOADS]


def test_a_size_that_cannot_be_is_followed_by_a_search() -> None:
    for size in (7, MOST + 1, 2**32 - 1):
        found = fed(framer(), STREAM[:SIZE] + size.to_bytes(4, "big") + STREAM)
        assert payloads(found) == [PAYLOADS[0], *PAYLOADS]
        assert Skipped(4, 1, 1) in found


def test_the_beginning_of_a_frame_at_the_end() -> None:
    assert fed(framer(), STREAM[:9]) == [Frame(SIZE - 4, PAYLOADS[0][:5], SIZE - 9, 1, 1)]
    assert fed(framer(), STREAM[:3]) == [Skipped(3, 1, 1)]


def test_what_is_tried_is_bounded_by_what_was_received() -> None:
    """The input contains candidates of the maximum size every few bytes. Each would be decoded up to its end."""
    lure = (400_000).to_bytes(4, "big") + PAYLOADS[0]
    tried = 0

    class Counting(RequestFinder):
        def confirms(self, payload: bytes) -> bool:
            nonlocal tried
            tried += len(payload)
            return super().confirms(payload)

    made = ResyncSplitter(Counting(), least=8, most=MOST)
    data = lure * 40_000
    found = fed(made, data)
    assert sum(each.size for each in found if isinstance(each, Skipped)) == len(data)
    assert tried <= 4 * len(data) + 2**20


@settings(deadline=None)
@given(cuts=st.sets(st.integers(1, len(STREAM) - 1)))
def test_any_cuts_give_the_same_frames(cuts: set[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    assert payloads(fed(framer(), *(STREAM[a:b] for a, b in pairwise(places)))) == PAYLOADS


@settings(deadline=None)
@given(
    synchronised=st.booleans(),
    parts=st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=12),
    flipped=st.lists(st.tuples(st.integers(0, len(STREAM) - 1), st.integers(1, 255)), max_size=3),
)
def test_frames_and_bytes_passed_over_account_for_all(
    synchronised: bool, parts: list[tuple[int, bool]], flipped: list[tuple[int, int]]
) -> None:
    data = bytearray(STREAM)
    for place, change in flipped:
        data[place] ^= change
    fields: list[bytes | int] = []
    for size, lost in parts:
        part, data = bytes(data[:size]), data[size:]
        fields += [len(part) if lost else part] if part else []
    found = fed(framer(synchronised=synchronised), *fields)
    seen = sum(each.size + 4 - each.missing if isinstance(each, Frame) else each.size for each in found)
    assert seen == sum(len(part) for part in fields if isinstance(part, bytes))
