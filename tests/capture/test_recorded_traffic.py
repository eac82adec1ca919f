"""Proxy recordings sent as packets and read again: split anywhere, in any order, and as completely as losses allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs.capture import CaptureFault, Exchange, FaultKind
from tests.support.packets import (
    BROKER,
    Sent,
    client,
    cut,
    everything,
    exchanges,
    faults,
    pcap,
    pcapng,
    segments,
    sizes,
)
from tests.support.recorded_frames import Frame, read_frames
from tests.support.recorded_frames import exchanges as recorded_exchanges
from tests.support.recordings import TRAFFIC

SLOW = settings(deadline=None, max_examples=60)
FRAMES = list(read_frames(TRAFFIC))


def conversations() -> dict[int, list[Frame]]:
    """Return the frames of the recording by connection."""
    found: dict[int, list[Frame]] = {}
    for frame in FRAMES:
        found.setdefault(frame.connection, []).append(frame)
    return found


def recorded(frames: Sequence[Frame]) -> Counter[tuple[int, bytes, bytes | None]]:
    """Return the exchanges that the proxy recorded: connection, request, and response (None if missing)."""
    pairs = list(recorded_exchanges(frames))
    answered = {id(pair.request) for pair in pairs}
    lonely = [frame for frame in frames if frame.direction == "request" and id(frame) not in answered]
    return Counter(
        [(pair.request.connection, pair.request.payload, pair.response.payload) for pair in pairs]
        + [(frame.connection, frame.payload, None) for frame in lonely]
    )


def sent(frames: Sequence[Frame], piece: Iterator[int]) -> list[Sent]:
    """Return the segments of the recording, connection by connection."""
    made = []
    for connection, each in conversations().items():
        chunks = [(frame.direction, frame.data) for frame in each if frame in frames]
        made += segments(cut(chunks, piece), client=client(connection))
    return made


def seen(found: Sequence[Exchange | CaptureFault]) -> Counter[tuple[int, bytes, bytes | None]]:
    """Return the exchanges that were read, in the same form, without damaged ones."""
    assert not faults(found)
    return Counter(
        (
            each.connection.client.port - 40_000,
            each.request.payload,
            None if each.response is None else each.response.payload,
        )
        for each in exchanges(found)
    )


@pytest.mark.parametrize("ports", [(BROKER.port,), None], ids=["by port", "by content"])
@pytest.mark.parametrize("piece", [1460, 65_536])
def test_the_exchanges_of_a_recording(piece: int, ports: tuple[int, ...] | None) -> None:
    data = pcapng(sent(FRAMES, sizes(piece)))
    assert seen(everything(data, ports=ports)) == recorded(FRAMES)


def test_every_exchange_of_the_recording_decodes() -> None:
    for exchange in exchanges(everything(pcap(sent(FRAMES, sizes(1460))))):
        assert exchange.problems == ()
        assert type(exchange.request_message).INFO.api_key == exchange.api_key
        if exchange.response_message is not None:
            assert type(exchange.response_message).INFO.api_key == exchange.api_key


SOME = [frame for frame in FRAMES if frame.connection in {5, 6, 8}][:40]


@SLOW
@given(
    data=st.data(),
    piece=st.lists(st.integers(1, 2000), min_size=1, max_size=8),
    doubled=st.sets(st.integers(0, 200), max_size=20),
)
def test_any_cuts_doubles_and_order_of_packets_give_the_same_exchanges(
    data: st.DataObject, piece: list[int], doubled: set[int]
) -> None:
    made = sent(SOME, sizes(*piece, 300))
    made += [each for number, each in enumerate(made) if number in doubled]
    shuffled = data.draw(st.permutations(made))
    assert seen(everything(pcap(shuffled))) == recorded(SOME)


@SLOW
@given(
    piece=st.lists(st.integers(1, 500), min_size=1, max_size=8),
    lost=st.sets(st.integers(0, 400), max_size=12),
    snapped=st.sets(st.integers(0, 400), max_size=4),
    syn=st.booleans(),
    ports=st.sampled_from([(BROKER.port,), None]),
)
def test_exchanges_and_faults_account_for_every_byte_whatever_is_lost(
    piece: list[int], lost: set[int], snapped: set[int], syn: bool, ports: tuple[int, ...] | None
) -> None:
    frames = conversations()[6]
    made = segments(cut(((each.direction, each.data) for each in frames), sizes(*piece)), syn=syn)
    made = [attrs.evolve(each, snapped=len(each.data) // 2) if n in snapped else each for n, each in enumerate(made)]
    made = [each for number, each in enumerate(made) if number not in lost or not each.data]
    found = everything(pcap(made), ports=ports)
    captured = sum(len(each.data) - each.snapped for each in made)
    sides = [side for each in exchanges(found) for side in (each.request, each.response) if side]
    told = sum(4 + side.size - side.missing for side in sides)
    told += sum(each.size for each in faults(found) if each.kind is not FaultKind.GAP)
    assert told == captured
    real = recorded(frames)
    for each in exchanges(found):
        if not each.request.missing and each.response and not each.response.missing:
            assert (frames[0].connection, each.request.payload, each.response.payload) in real


MAKERS: list[Callable[..., bytes]] = [pcap, pcapng]


@SLOW
@given(
    changes=st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), min_size=1, max_size=12),
    length=st.integers(0, 2**20),
    make=st.sampled_from(MAKERS),
    ports=st.sampled_from([(BROKER.port,), None]),
)
def test_changed_captures_end_in_faults_and_never_in_errors_of_others(
    changes: list[tuple[int, int]], length: int, make: Callable[..., bytes], ports: tuple[int, ...] | None
) -> None:
    data = bytearray(make(sent(SOME, sizes(300))))
    for place, value in changes:
        data[place % len(data)] = value
    for each in everything(bytes(data[: length % (2 * len(data))]), ports=ports):
        if isinstance(each, CaptureFault):
            assert str(each)
        else:
            assert len(each.problems) <= 2
            assert each.errors is not None
            assert each.client_id is None or isinstance(each.client_id, str)
