"""Recorded exchanges: written exchanges are read unchanged, and damage is reported line by line."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.capture import CapturedConnection, CapturedPayload, CaptureFault, Endpoint, Exchange, FaultKind
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.recording import (
    is_recording,
    read_recording,
    recording_line,
    recording_pieces,
    recording_start,
)

ENDS = CapturedConnection(3, Endpoint("::1", 50_000), Endpoint("kafka.example", 9092))
SENT = CapturedPayload(
    payload=bytes.fromhex("0012000000000005ffff"), size=10, missing=0, time_us=1_700_000_000_000_000, packet=0
)
EXCHANGE = Exchange(
    connection=ENDS, api_key=18, version=0, correlation_id=5, request=SENT,
    response=SENT._replace(payload=bytes(10), time_us=1_700_000_000_000_250),
)  # fmt: skip
FAULTS: list[Item] = [
    CaptureFault(kind=FaultKind.SASL, reason="a token", size=9, at=5, connection=ENDS, direction="request"),
    CaptureFault(kind=FaultKind.PACKET, reason="bad", size=1),
]


def _file(*lines: str) -> io.BytesIO:
    return io.BytesIO("".join(f"{line}\n" for line in lines).encode())


def _read(*lines: str) -> list[Item]:
    return list(read_recording(_file(*lines)))


def test_exchanges_and_faults_are_read_as_they_were() -> None:
    """The line number replaces the packet number."""
    unanswered = Exchange(
        connection=ENDS,
        api_key=0,
        version=9,
        correlation_id=6,
        request=SENT._replace(missing=4, size=14),
        response=None,
    )
    written: list[Item] = [EXCHANGE, unanswered, *FAULTS]
    lines = [recording_line(item) for item in written]
    first, second, *faults = _read(recording_start({"redacted": ["sasl"]}), *lines)
    assert isinstance(first, Exchange)
    assert isinstance(second, Exchange)
    assert first.response is not None
    assert (first.connection, first.api, first.version, first.correlation_id) == (ENDS, "ApiVersions", 0, 5)
    assert first.request == SENT._replace(packet=2)
    assert first.latency_us == 250
    assert (second.response, second.request.missing, second.request.size) == (None, 4, 14)
    assert [(str(each).partition(": ")[2], each.packet) for each in faults if isinstance(each, CaptureFault)] == [
        ("[::1]:50000 > kafka.example:9092: a token", 4),
        ("bad", 5),
    ]


def test_more_facts_stand_in_the_line_and_are_not_needed() -> None:
    """Additional facts are for people and other programs."""
    line = recording_line(EXCHANGE, {"requestDecoded": {"clientSoftwareName": "tea"}})
    assert json.loads(line)["requestDecoded"] == {"clientSoftwareName": "tea"}
    (read,) = _read(line)
    assert isinstance(read, Exchange)


def _raw(*items: Item) -> bytes:
    return b"".join(piece for item in items for piece in recording_pieces(item, raw=True))


def _sent(payload: bytes) -> CapturedPayload:
    return SENT._replace(payload=payload, size=len(payload))


@given(payloads=st.lists(st.tuples(st.binary(max_size=40), st.none() | st.binary(max_size=40)), max_size=5))
def test_payloads_may_follow_their_lines(payloads: list[tuple[bytes, bytes | None]]) -> None:
    """Payloads contain any bytes, even line endings. The result is the same as for hexadecimal lines."""
    items: list[Item] = [*FAULTS]
    for asked, answered in payloads:
        items.append(evolve(EXCHANGE, request=_sent(asked), response=None if answered is None else _sent(answered)))
    start = recording_start({}).encode() + b"\n"
    assert list(read_recording(io.BytesIO(start + _raw(*items)))) == _read(
        recording_start({}), *map(recording_line, items)
    )


def test_lines_with_and_without_payloads_behind_them_may_be_mixed() -> None:
    mixed = _raw(EXCHANGE) + recording_line(EXCHANGE).encode() + b"\n" + _raw(*FAULTS, EXCHANGE)
    found = list(read_recording(io.BytesIO(mixed)))
    assert [item.request for item in found if isinstance(item, Exchange)] == [
        SENT._replace(packet=n) for n in (1, 2, 5)
    ]


@pytest.mark.parametrize("lost", range(1, 21))
def test_a_payload_that_is_cut_off_is_a_fault(lost: int) -> None:
    """The cut is at the end of the file, so the fault states how many bytes are missing."""
    exchange, fault = list(read_recording(io.BytesIO(_raw(EXCHANGE, EXCHANGE)[:-lost])))
    assert isinstance(exchange, Exchange)
    assert isinstance(fault, CaptureFault)
    assert fault.reason.startswith("line 2: not an exchange: ValueError: the file ends ")


def test_damaged_lines_that_follow_each_other_are_one_fault() -> None:
    """After a damaged line, the following payload bytes are not treated as lines, whatever they contain."""
    line, payloads = _raw(EXCHANGE).split(b"\n", 1)
    damaged = line.replace(b'"apiKey": 18', b'"apiKey": xx') + b"\n" + 100 * b"\n\xff{" + payloads + b"\n"
    fault, exchange = list(read_recording(io.BytesIO(damaged + _raw(EXCHANGE))))
    assert isinstance(fault, CaptureFault)
    assert fault.reason.startswith("line 1: not an exchange: ")
    assert fault.size == len(damaged)
    assert isinstance(exchange, Exchange)


def test_a_size_that_is_not_there_takes_no_memory() -> None:
    """A line may claim any size, but only bytes that the file contains are read."""
    line = _raw(EXCHANGE).split(b"\n")[0].replace(b'"size": 10', b'"size": 9999999999999')
    (fault,) = list(read_recording(io.BytesIO(line + b"\n" + bytes(20))))
    assert isinstance(fault, CaptureFault)
    assert "the file ends 9999999999979 bytes before" in fault.reason


def test_a_recording_is_known_by_its_first_line() -> None:
    """Packet captures start with other bytes. The check restores the position in the file."""
    file = _file(recording_start({}))
    assert is_recording(file)
    assert file.tell() == 0
    assert not is_recording(io.BytesIO(b"\n\r\r\n"))
    assert not is_recording(io.BytesIO())


def _changed(**changes: Any) -> str:
    return json.dumps(json.loads(recording_line(EXCHANGE)) | changes)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "7",
        "[" * 100_000,
        _changed(kind="tea"),
        _changed(apiKey="18"),
        _changed(apiKey=True),
        _changed(client="x"),
        _changed(request=None),
        _changed(request={"at": 1, "size": 2, "bytes": "00"}),
        _changed(request={"at": 1, "size": 1, "bytes": "0g"}),
        _changed(request={"at": 1, "size": 1, "missing": -1, "bytes": "00"}),
        _changed(kind="fault", fault="tea", reason="", size=0, at=None),
    ],
)
def test_damaged_lines_are_faults_and_the_next_is_read(line: str) -> None:
    """Any content of a file leads to faults, never to exceptions."""
    fault, exchange = _read(line, recording_line(EXCHANGE))
    assert isinstance(fault, CaptureFault)
    assert fault.kind is FaultKind.FILE
    assert fault.reason.startswith("line 1: not an exchange: ")
    assert isinstance(exchange, Exchange)


def test_a_line_that_never_ends_is_skipped_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long lines are read in pieces of limited size."""
    monkeypatch.setattr("kafka_msgs.capture.recording._LONGEST_LINE", 2000)
    monkeypatch.setattr("kafka_msgs.capture.recording._SKIPPED_AT_ONCE", 100)
    fault, exchange = _read("x" * 5000, recording_line(EXCHANGE))
    assert isinstance(fault, CaptureFault)
    assert (fault.size, fault.reason) == (5001, "line 1: a line of more than 2000 bytes")
    assert isinstance(exchange, Exchange)
