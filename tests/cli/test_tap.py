"""``kafka-msgs tap``: refused options, and its output lines; ``tests/tap`` has tests with real clients."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_msgs import HeartbeatRequest, HeartbeatResponse
from kafka_msgs.capture import CapturedConnection, CapturedPayload, CaptureFault, Endpoint, Exchange, FaultKind
from kafka_msgs.capture.recording import read_recording, recording_line, recording_pieces, recording_start
from kafka_msgs.cli.render.exchanges import item_text
from kafka_msgs.wire import encode_request, encode_response
from tests.support.command_line import Run

ENDS = CapturedConnection(3, Endpoint("192.0.2.7", 50_000), Endpoint("192.0.2.1", 9092))


def _exchange(client_id: str, answer: bytes | None) -> Exchange:
    asked = encode_request(HeartbeatRequest(), 4, correlation_id=1, client_id=client_id)
    response = None if answer is None else CapturedPayload(answer, len(answer), 0, 1_700_000_000_002_500, 0)
    return Exchange(
        connection=ENDS, api_key=12, version=4, correlation_id=1, response=response,
        request=CapturedPayload(asked, len(asked), 0, 1_700_000_000_000_000, 0),
    )  # fmt: skip


def test_a_line_has_who_what_how_long_and_what_was_wrong() -> None:
    """Errors are shown by name, with the reason if a message was not decoded."""
    moved = encode_response(HeartbeatResponse(error_code=16), 4, correlation_id=1)
    assert item_text(_exchange("app", moved)).split() == [
        *("22:13:20.000000", "3", "app", "Heartbeat", "v4", "2.500", "ms", "22", ">", "12", "B"),
        "error_code=NOT_COORDINATOR",
    ]
    assert "no answer  22 > - B" in item_text(_exchange("app", None))
    assert "int32 needs 4 bytes, 3 left" in item_text(_exchange("app", moved[:-4]))
    fault = CaptureFault(
        kind=FaultKind.ORPHAN, reason="a response", size=9, at=5, connection=ENDS, direction="response"
    )
    assert item_text(fault) == "00:00:00.000005  orphan: 192.0.2.1:9092 > 192.0.2.7:50000: a response"


def test_what_clients_say_is_no_command_to_the_terminal() -> None:
    """A client id may contain any characters."""
    text = item_text(_exchange("\x1b[2J\n", None))
    assert text.isprintable()
    assert "\\u001b[2J\\n" in text


def test_an_address_in_use_is_an_error(fails: Callable[..., str]) -> None:
    """The error names the address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert fails("tap", "--bootstrap-server", "b:1", "--listen", address).startswith(f"{address}: ")


def test_a_recording_is_not_overwritten(fails: Callable[..., str], tmp_path: Path) -> None:
    """The file is left unchanged."""
    path = tmp_path / "tap.jsonl"
    path.write_text("before")
    assert fails("tap", "--bootstrap-server", "b:1", "--record", str(path)) == f"{path}: File exists"
    assert path.read_text() == "before"


def test_the_port_of_a_broker_is_9092_if_none_is_given(run: Run) -> None:
    result = run("tap", "-b", "b,c:1", "--listen", "127.0.0.1:0", "--duration", "0.01")
    assert " for b:9092, c:1\n" in result.stderr


@pytest.mark.parametrize("address", ["b:", ":1", "b:99999", "b:x", "b:1,", ""])
def test_addresses_that_are_none(run: Run, address: str) -> None:
    """The usage error quotes the text."""
    result = run("tap", "--bootstrap-server", address)
    assert result.exit_code == 2
    assert "is not HOST:PORT" in result.stderr


def test_raw_needs_a_recording(run: Run) -> None:
    """The usage error names the missing option."""
    result = run("tap", "--bootstrap-server", "b:1", "--raw")
    assert result.exit_code == 2
    assert "--raw needs --record" in result.stderr


def test_a_key_needs_its_certificate(run: Run, fails: Callable[..., str], tmp_path: Path) -> None:
    """Files without a certificate and stores that are not PEM are errors as well, which name the option."""
    path = tmp_path / "file"
    path.write_text("security.protocol=SSL\nssl.truststore.location=/store.jks\n")
    result = run("tap", "--bootstrap-server", "b:1", "--key", str(path))
    assert result.exit_code == 2
    assert "--key needs --certificate" in result.stderr
    assert "certificate" in fails("tap", "--bootstrap-server", "b:1", "--certificate", str(path))
    assert "JKS" in fails("tap", "--bootstrap-server", "b:1", "--command-config", str(path))


def test_it_listens_for_the_time_that_is_given_and_counts(run: Run, tmp_path: Path) -> None:
    """The recording is readable by its owner only, and lists the redacted parts."""
    path = tmp_path / "tap.jsonl"
    result = run(
        "tap", "--bootstrap-server", "b:1,[::1]:2", "--listen", "127.0.0.1:0", "--duration", "0.05",
        "--record", str(path), "--redact", "topics",
    )  # fmt: skip
    assert result.exit_code == 0
    first, last = result.stderr.splitlines()
    assert first.startswith("listening on 127.0.0.1:")
    assert first.endswith(" for b:1, [::1]:2")
    assert last == "0 exchanges, 0 not decoded, 0 faults"
    assert json.loads(path.read_text())["redacted"] == ["sasl", "topics"]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("raw", [False, True])
def test_a_recording_is_redacted_into_a_new_one(
    run: Run, fails: Callable[..., str], tmp_path: Path, *, raw: bool
) -> None:
    """Sizes, numbers, error codes and faults are kept. The first line lists what was redacted before and now.

    The new recording contains only lines, without raw payloads.
    """
    path, new = tmp_path / "tap.jsonl", tmp_path / "hidden.jsonl"
    moved = encode_response(HeartbeatResponse(error_code=16), 4, correlation_id=1)
    start = recording_start({"bootstrap": ["b:1"], "redacted": ["topics"]}).encode()
    more = {"requestDecoded": {"clientId": "a-client"}}
    line = b"".join(recording_pieces(_exchange("a-client", moved), more, raw=raw))
    path.write_bytes(start + b"\n" + line + b"broken\n")
    result = run("redact", str(path), str(new), "--redact", "clients", "--redact", "hosts")
    assert (result.exit_code, result.stderr) == (0, "1 exchanges, 1 faults\n")
    written = new.read_text()
    assert "a-client" not in written
    assert json.loads(written.splitlines()[0]) == {
        "format": "kafka-msgs exchanges 1", "redacted": ["clients", "hosts", "sasl", "topics"]
    }  # fmt: skip
    with path.open("rb") as before, new.open("rb") as after:
        (old, _), (hidden, fault) = list(read_recording(before)), list(read_recording(after))
    assert isinstance(old, Exchange)
    assert isinstance(hidden, Exchange)
    assert isinstance(fault, CaptureFault)
    assert (hidden.request.size, hidden.problems) == (old.request.size, ())
    assert hidden.response is not None
    assert hidden.response.payload == moved
    assert new.stat().st_mode & 0o777 == 0o600
    assert fails("redact", str(path), str(new)) == f"{new}: File exists"
    assert fails("redact", __file__, str(tmp_path / "x")) == f"{__file__}: not a recording of kafka-msgs tap"


def test_captures_and_recordings_are_read_by_one_command(run: Run, tmp_path: Path) -> None:
    """The rows have the same format as for packets. ``packet`` is the line number."""
    path = tmp_path / "tap.jsonl"
    answer = encode_response(HeartbeatResponse(), 4, correlation_id=1)
    path.write_text("\n".join((recording_start({}), recording_line(_exchange("app", answer)), "")))
    result = run("capture", str(path), "--bodies", "--output", "jsonl")
    assert result.exit_code == 0
    exchange = json.loads(result.stdout.splitlines()[0])
    assert (exchange["packet"], exchange["api"], exchange["clientId"], exchange["latencyUs"]) == (
        2,
        "Heartbeat",
        "app",
        2500,
    )
    assert exchange["response"] == {"throttleTimeMs": 0, "errorCode": 0}
    path.write_text(recording_start({}) + "\nbroken\n")
    assert run("capture", str(path), "--output", "jsonl").exit_code == 1
