"""Captures of real clients and a real broker, compared with Wireshark's own dissector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest

from kafka_msgs import FetchResponse, ProduceRequest
from kafka_msgs.capture import CaptureFault, Exchange, FaultKind, read_exchanges
from kafka_msgs.capture.exchanges import CapturedPayload
from kafka_msgs.records import read_batches
from tests.support.recordings import PACKETS, port_of
from tests.support.recordings import packets_made_by as about
from tests.support.tshark import dissected, rows, tshark_version

NAMES = ["shop.pcapng", "sasl.pcap"]


@cache
def read(name: str) -> list[Exchange | CaptureFault]:
    return list(read_exchanges(PACKETS / name, ports=[port_of(name)]))


def exchanges(name: str) -> list[Exchange]:
    return [each for each in read(name) if isinstance(each, Exchange)]


def table(name: str) -> list[dict[str, list[str]]]:
    """Return the rows of tshark without SASL tokens, for which tshark shows bytes of the token as field values."""
    kept = rows((PACKETS / name).with_suffix(".tshark.tsv").read_text())
    tokens = {each.packet for each in read(name) if isinstance(each, CaptureFault)}
    return [row for row in kept if int(row["frame.number"][0]) not in tokens and row["kafka.correlation_id"] != [""]]


def frames_of_tshark(name: str) -> Iterator[tuple[int, int, int, bool]]:
    """Yield packet number, size, correlation id, and whether the frame is a request."""
    for row in table(name):
        is_request = row["tcp.dstport"] == [str(port_of(name))]
        for size, number in zip(row["kafka.len"], row["kafka.correlation_id"], strict=True):
            yield int(row["frame.number"][0]), int(size), int(number), is_request


def frame(side: CapturedPayload, number: int, is_request: bool) -> tuple[int, int, int, bool]:
    return side.packet, side.size, number, is_request


@pytest.mark.parametrize("name", NAMES)
def test_every_frame_that_wireshark_finds_and_no_other(name: str) -> None:
    mine = Counter(
        frame(side, each.correlation_id, side is each.request)
        for each in exchanges(name)
        for side in (each.request, each.response)
        if side is not None
    )
    assert mine
    assert mine == Counter(frames_of_tshark(name))


@pytest.mark.parametrize("name", NAMES)
def test_requests_and_responses_that_wireshark_pairs_are_exchanges_of_the_same_latency(name: str) -> None:
    theirs = table(name)
    times = {int(row["frame.number"][0]): row["frame.time_epoch"][0] for row in theirs}
    pairs = [
        (int(request), int(row["frame.number"][0]))
        for row in theirs
        for request in row["kafka.request_frame"]
        if request
    ]
    mine = {(each.request.packet, each.response.packet): each.latency_us for each in exchanges(name) if each.response}
    assert len(pairs) > 4
    assert set(pairs) <= set(mine)
    for pair in pairs:
        asked, answered = (micros(times[packet]) for packet in pair)
        assert mine[pair] == answered - asked


def micros(time: str) -> int:
    seconds, _, rest = time.partition(".")
    return int(seconds) * 10**6 + int(rest[:6])


@pytest.mark.parametrize("name", NAMES)
def test_the_apis_and_versions_that_wireshark_reads(name: str) -> None:
    theirs = Counter(
        call
        for row in table(name)
        if row["kafka.api_version"] != [""]
        for call in zip(map(int, row["kafka.api_key"]), map(int, row["kafka.api_version"]), strict=True)
    )
    assert theirs == Counter((each.api_key, each.version) for each in exchanges(name))


@pytest.mark.skipif(tshark_version() != about()["tshark"], reason="another tshark, or none; the output of one is kept")
@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_of_wireshark_is_what_it_says(name: str) -> None:
    assert dissected(PACKETS / name, port_of(name)) == (PACKETS / name).with_suffix(".tshark.tsv").read_text()


def test_a_session_without_a_fault() -> None:
    assert [each for each in read("shop.pcapng") if isinstance(each, CaptureFault)] == []
    assert [each for each in exchanges("shop.pcapng") if each.problems] == []


def test_the_ports_need_not_be_known() -> None:
    by_content = [each for each in read_exchanges(PACKETS / "shop.pcapng", ports=None) if isinstance(each, Exchange)]
    assert by_content == exchanges("shop.pcapng")


def test_frames_of_many_segments() -> None:
    (large,) = (
        each.request_message
        for each in exchanges("shop.pcapng")
        if each.client_id == "archive" and each.api == "Produce"
    )
    assert isinstance(large, ProduceRequest)
    records = large.topic_data[0].partition_data[0].records
    assert [record.value for batch in read_batches(records or b"") for record in batch] == [b"oolong " * 3000]


def test_a_producer_that_wants_no_acknowledgement_gets_none() -> None:
    unanswered = [each for each in exchanges("shop.pcapng") if each.response is None]
    assert [(each.api, each.client_id) for each in unanswered] == [("Produce", "sensor")]


def test_errors_that_the_broker_answered_with() -> None:
    found = {(each.api, error.path, error.name) for each in exchanges("shop.pcapng") for error in each.errors}
    assert {
        ("CreateTopics", "topics[0].error_code", "TOPIC_ALREADY_EXISTS"),
        ("DeleteTopics", "responses[0].error_code", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("JoinGroup", "error_code", "MEMBER_ID_REQUIRED"),
    } <= found


def test_what_the_consumer_fetched_is_what_was_written() -> None:
    values = [
        record.value
        for each in exchanges("shop.pcapng")
        if isinstance(each.response_message, FetchResponse) and each.client_id == "billing-1"
        for topic in each.response_message.responses
        for partition in topic.partitions
        for batch in read_batches(partition.records or b"")
        for record in batch
    ]
    found = sorted(map(bytes, filter(None, values)), key=len)
    assert found == [
        b"21.5",
        *[b'{"item":"green tea"}'] * 3,
        b"oolong " * 3000,
    ]


def test_tokens_of_a_handshake_of_version_0() -> None:
    (token,) = (each for each in read("sasl.pcap") if isinstance(each, CaptureFault))
    assert (token.kind, token.reason) == (FaultKind.SASL, "a token of 10 bytes, answered with 0 bytes")
    assert [(each.api, each.version) for each in exchanges("sasl.pcap") if each.client_id == "bare"] == [
        ("SaslHandshake", 0),
        ("ApiVersions", 0),
    ]
    assert ("SaslAuthenticate", 1) in {(each.api, each.version) for each in exchanges("sasl.pcap")}
