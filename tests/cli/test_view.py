"""``kafka-msgs view`` and ``explain``: pages, refused input, and the live view and faults of ``tap``."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from kafka_msgs import ApiVersionsRequest, HeartbeatResponse, MetadataRequest
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.capture import read_recording
from kafka_msgs.capture.recording import recording_line, recording_start
from kafka_msgs.client import Client
from kafka_msgs.records import BatchBuilder
from kafka_msgs.wire import encode_request, encode_response
from tests.support.command_line import Run
from tests.support.recordings import RECORDINGS
from tests.viewer.traffic import few

REQUEST = encode_request(MetadataRequest(topics=()), 12, correlation_id=1, client_id="till").hex()


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "shop.jsonl"
    path.write_text("\n".join([recording_start({}), *map(recording_line, few())]))
    return path


def _data(page: Path) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert found is not None
    data: dict[str, object] = json.loads(found[1])
    return data


def test_a_recording_becomes_a_page(run: Run, recording: Path, tmp_path: Path) -> None:
    page = tmp_path / "shop.html"
    result = run("view", str(recording), "-o", str(page))
    assert (result.exit_code, result.stderr) == (0, f"{page}: 41 exchanges and faults\n")
    assert _data(page)["title"] == "shop.jsonl"
    assert page.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_a_capture_becomes_a_page_without_names(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    capture = RECORDINGS / "packets" / "shop.pcapng"
    result = run("view", str(capture), "--any-port", "-o", str(page), "--redact", "all", "--max-exchanges", "10")
    assert result.exit_code == 0
    assert "more exceed the limits of the page" in result.stderr
    assert "orders" not in page.read_text(encoding="utf-8").partition('id="data">')[2].partition("</script>")[0]


def test_refused_input_leaves_no_page(fails: Callable[..., str], run: Run, recording: Path, tmp_path: Path) -> None:
    page = tmp_path / "nowhere" / "page.html"
    assert fails("view", str(recording), "-o", str(page)) == f"{page}: No such file or directory"
    assert run("view", str(recording)).exit_code == 2
    assert run("view", str(tmp_path / "none"), "-o", "x.html").exit_code == 2
    page = tmp_path / "explained.html"
    assert "not hexadecimal" in fails("explain", "zz", "--html", str(page))
    assert "8 bytes" in fails("explain", "00", "--html", str(page))
    assert "api key 9999" in fails("explain", "270f0000000000000000", "--html", str(page)).lower()
    for options in (
        ("--as", "Nothing/1"),
        ("--as", "Metadata"),
        ("--topic", "t"),
        ("--records", "--as", "RequestHeader/1"),
    ):
        assert run("explain", REQUEST, "--html", str(page), *options).exit_code == 2
    assert not page.exists()


def test_messages_frames_and_segments_are_explained(run: Run, tmp_path: Path) -> None:
    builder = BatchBuilder()
    assert builder.append(b"k", b"v", timestamp=1)
    (tmp_path / "00.log").write_bytes(builder.build())
    response = encode_response(HeartbeatResponse(), 4, correlation_id=1).hex()
    message = HeartbeatResponse().encode(4).hex()
    page = tmp_path / "page.html"
    for arguments, title in (
        ((REQUEST,), "MetadataRequest v12"),
        ((response, "--response-to", "Heartbeat/4"), "HeartbeatResponse v4"),
        ((message, "--as", "HeartbeatResponse/4"), "HeartbeatResponse v4"),
        ((REQUEST[:-4],), "MetadataRequest v12"),
        ((f"@{tmp_path / '00.log'}", "--records"), "00.log"),
    ):
        assert run("explain", *arguments, "--html", str(page)).exit_code == 0
        assert _data(page)["title"] == title


def test_keys_and_values_are_decoded_with_the_schemas_of_a_file(
    fails: Callable[..., str], run: Run, recording: Path, tmp_path: Path
) -> None:
    schemas, page = tmp_path / "schemas.json", tmp_path / "page.html"
    builder = BatchBuilder()
    assert builder.append(b"k", b"\0\0\0\0\x07\x0a", timestamp=1)
    (tmp_path / "00.log").write_bytes(builder.build())
    explained = ("explain", f"@{tmp_path / '00.log'}", "--records", "--html", str(page), "--registry")
    viewed = ("view", str(recording), "-o", str(page), "--registry")
    for command in (explained, viewed):
        assert fails(*command, str(schemas)) == f"{schemas}: No such file or directory"
        schemas.write_text("{}")
        assert "not a list of schemas" in fails(*command, str(schemas))
        assert "ftp" in fails(*command, "ftp://localhost")
        assert not page.exists()
        schemas.unlink()
    schemas.write_text('[{"id": 7, "schema": "\\"int\\""}]')
    assert run(*explained, str(schemas)).exit_code == 0
    assert _data(page)["decoded"] == {"00000000070a": '["decoded", "5"]'}
    assert run(*viewed, str(schemas)).exit_code == 0
    assert _data(page)["decoded"] == {}
    assert "--registry needs --web" in run("tap", "-b", "localhost:1", "--registry", str(schemas)).stderr
    schemas.write_text("{}")
    assert "not a list" in fails("tap", "-b", "localhost:1", "--web", "--registry", str(schemas))


@contextmanager
def _tap(broker: EmbeddedBroker, tmp_path: Path, *options: str) -> Iterator[tuple[str, IO[str]]]:
    """Run the proxy as users do; yield its address and its standard error."""
    program = [str(Path(sys.executable).with_name("kafka-msgs")), "tap", "-b", broker.bootstrap_servers, *options]
    program += ["--listen", "127.0.0.1:0", "--output", "none", "--duration", "60"]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert process.stderr is not None
    try:
        match = re.match(r"listening on (\S+) for ", process.stderr.readline())
        assert match is not None
        yield match[1], process.stderr
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


@pytest.mark.system
def test_the_live_view_and_a_fault_and_an_addon_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "addon.py").write_text("def request(exchange):\n    exchange.delay(0.01)\n")
    options = (
        "--web",
        "--record",
        "t.jsonl",
        "--fault",
        "fail:INVALID_TOPIC_EXCEPTION,api=Metadata",
        "--addon",
        "addon.py",
    )
    with EmbeddedBroker() as broker, _tap(broker, tmp_path, *options) as (address, stderr):
        view = stderr.readline().removeprefix("traffic at ").strip()
        with Client(address) as client:
            client.call(ApiVersionsRequest(client_software_name="x", client_software_version="1"))
        rows = json.load(urllib.request.urlopen(f"{view}rows/0", timeout=10))["rows"]
        assert rows[0][3] == 18
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(view.rpartition("/")[0][:-1] + "/", timeout=10)
    with (tmp_path / "t.jsonl").open("rb") as file:
        assert len(list(read_recording(file))) >= 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--fault", "nothing"), "'nothing' is not one of fail, delay"),
        (("--fault", "delay:1,times=few"), "'times=few' is not"),
        (("--web-port", "70000"), "70000 is not in the range"),
        (("--max-connections", "0"), "0 is not in the range"),
    ],
)
def test_refused_options_of_the_tap(run: Run, options: tuple[str, ...], reason: str) -> None:
    result = run("tap", "-b", "localhost:1", *options)
    assert result.exit_code == 2
    assert reason in result.stderr


def test_an_addon_that_fails_ends_the_command(fails: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "addon.py"
    path.write_text("x = 1 / 0")
    assert "ZeroDivisionError" in fails("tap", "-b", "localhost:1", "--addon", str(path))


def test_the_bootstrap_servers_of_a_recording_are_redacted(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "t.jsonl"
    options = ("--record", str(path), "--redact", "hosts", "--duration", "0.1s", "--listen", "127.0.0.1:0")
    assert run("tap", "-b", "kafka.internal:9092", *options).exit_code == 0
    assert "internal" not in path.read_text()
