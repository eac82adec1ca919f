"""``kafka-msgs capture`` on captures of real clients and a real broker, and on files that are not captures."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs.analysis.capture_stats import quantile
from kafka_msgs.capture import Exchange, read_exchanges
from tests.support.command_line import Run
from tests.support.packets import BROKER, CLIENT, pcap, segments
from tests.support.recordings import PACKETS, port_of

SHOP = PACKETS / "shop.pcapng"
PORT = str(port_of("shop.pcapng"))


def lines(run: Run, *arguments: str | Path, status: int = 0) -> list[dict[str, Any]]:
    result = run("capture", *map(str, arguments), "--output", "jsonl")
    assert result.exit_code == status
    return [json.loads(line) for line in result.stdout.splitlines()]


def of(kind: str, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in found if line["kind"] == kind]


def exchanges() -> list[Exchange]:
    return [each for each in read_exchanges(SHOP, ports=[int(PORT)]) if isinstance(each, Exchange)]


def test_exchanges_and_a_summary(run: Run) -> None:
    found = lines(run, SHOP, "--port", PORT)
    mine = exchanges()
    assert [line["latencyUs"] for line in of("exchange", found)] == [each.latency_us for each in mine]
    assert found[-1] == {
        "kind": "summary", "exchanges": len(mine), "answered": len(mine) - 1, "problems": 0, "faults": {},
        "faultBytes": {},
    }  # fmt: skip
    (created,) = (line for line in of("exchange", found) if "TOPIC_ALREADY_EXISTS" in line["errors"].values())
    assert (created["api"], created["clientId"], created["server"]) == ("CreateTopics", "owner", f"127.0.0.1:{PORT}")


def test_figures_of_an_api(run: Run) -> None:
    found = lines(run, SHOP, "--any-port", "--summary")
    assert of("exchange", found) == []
    (fetch,) = (line for line in of("api", found) if line["clients"] == ["billing-1"] and line["api"] == "Fetch")
    mine = [each for each in exchanges() if (each.api, each.version) == ("Fetch", fetch["version"])]
    times = sorted(each.latency_us for each in mine if each.latency_us is not None)
    assert fetch["exchanges"] == fetch["answered"] == len(mine)
    expected = [quantile(times, each) for each in (0.5, 0.9, 0.99)]
    assert [fetch[name] for name in ("p50Us", "p90Us", "p99Us")] == [each and round(each) for each in expected]
    assert fetch["maxUs"] == times[-1]
    assert fetch["requestBytes"] == sum(each.request.size for each in mine)


def test_bodies_in_the_form_of_kafkas_tools(run: Run) -> None:
    found = of("exchange", lines(run, SHOP, "--port", PORT, "--bodies"))
    joined = next(line for line in found if line["api"] == "JoinGroup")
    assert joined["request"]["groupId"] == "billing"
    assert joined["response"]["errorCode"] == 79
    (protocol, *_) = joined["request"]["protocols"]
    assert "orders" in protocol["metadataDecoded"]["topics"]
    unanswered = next(line for line in found if line["responseSize"] is None)
    assert unanswered["response"] is None


def test_tokens_are_reported_and_are_not_damage(run: Run) -> None:
    found = lines(run, PACKETS / "sasl.pcap", "--port", str(port_of("sasl.pcap")), "--summary")
    (token,) = of("fault", found)
    assert (token["fault"], token["reason"]) == ("sasl", "a token of 10 bytes, answered with 0 bytes")
    assert found[-1]["problems"] == 0


def test_traffic_on_another_port_is_not_passed_over_in_silence(run: Run) -> None:
    found = lines(run, SHOP)
    assert [line["kind"] for line in found] == ["fault", "summary"]
    assert f"on other ports ({PORT}) were not looked at" in found[0]["reason"]


def test_damage_is_reported_and_the_rest_printed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "cut.pcapng"
    path.write_bytes(SHOP.read_bytes()[:20_000])
    found = lines(run, path, "--port", PORT, status=1)
    assert of("exchange", found)
    assert of("fault", found)[0]["fault"] == "file"


def test_several_files(run: Run) -> None:
    found = lines(run, SHOP, SHOP, "--port", PORT, "--summary")
    assert found[-1]["exchanges"] == 2 * len(exchanges())


def test_tables(run: Run) -> None:
    shown = run("capture", str(SHOP), "--port", PORT).stdout.splitlines()
    assert f"{SHOP}: exchange" in shown
    assert f"{SHOP}: api" in shown
    assert "summary" in shown


def test_a_file_that_is_not_a_capture(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no capture at all, but long enough for a header")
    fault, summary = lines(run, path, status=1)
    assert fault["reason"].startswith("at byte 0: not a capture, neither pcap nor pcapng")
    assert summary["exchanges"] == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
def test_a_fifo_is_refused_and_not_waited_for(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "capture.pcap"
    os.mkfifo(path)
    result = run("capture", str(path))
    assert result.exit_code == 1
    assert "not a regular file" in result.stderr


def test_an_empty_capture_is_sound(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.write_bytes(pcap(segments([], client=CLIENT, server=BROKER)))
    assert lines(run, path)[-1]["faults"] == {}


@pytest.mark.parametrize("port", ["0", "65536", "kafka"])
def test_a_wrong_port_number_is_a_usage_error(run: Run, port: str) -> None:
    assert run("capture", str(SHOP), "--port", port).exit_code == 2
