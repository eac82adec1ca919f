"""The committed recordings are complete: every frame has its stated length, and every response has its request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.recorded_frames import (
    REQUEST,
    RESPONSE,
    Exchange,
    Frame,
    exchanges,
    read_frames,
    read_header,
    write_lines,
)
from tests.support.recordings import KIP88, OFFSETS, ROOT, TRAFFIC

DEFINITIONS = ROOT / "message_defs" / "kafka" / "clients"

OFFSET_FETCH = 9
TRAFFIC_MUST_SHOW = {
    "Produce",
    "Fetch",
    "Metadata",
    "OffsetCommit",
    "OffsetFetch",
    "FindCoordinator",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "LeaveGroup",
    "DescribeGroups",
    "ListGroups",
    "ApiVersions",
    "CreateTopics",
    "DescribeConfigs",
    "OffsetDelete",
    "ConsumerGroupHeartbeat",
    "StreamsGroupHeartbeat",
    "StreamsGroupDescribe",
}


def api_names() -> dict[int, str]:
    definitions = [json.loads(path.read_text()) for path in DEFINITIONS.glob("*Request.json")]
    return {each["apiKey"]: each["name"].removesuffix("Request") for each in definitions if "apiKey" in each}


def frame(connection: int, direction: str, payload: bytes) -> Frame:
    return Frame(connection, direction, 0.0, len(payload).to_bytes(4, "big") + payload)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", [TRAFFIC, KIP88, OFFSETS], ids=lambda path: path.stem)
def test_header_names_release_clients_date_and_script(path: Path) -> None:
    header = read_header(path)
    assert header["format"].startswith("kafka-msgs ")
    assert header["kafka"] == read_header(TRAFFIC)["kafka"] == header["clients"]["kafka-tools"]
    assert header["clients"].keys() >= {"kafka-tools", "kafka-python", "confluent-kafka"}
    assert (ROOT / header["script"]).is_file()
    assert len(header["date"]) == len("2026-01-01")


@pytest.mark.parametrize("path", [TRAFFIC, KIP88], ids=lambda path: path.stem)
def test_every_frame_has_the_length_of_its_size_field(path: Path) -> None:
    frames = list(read_frames(path))
    assert frames
    assert {len(each.payload) - int.from_bytes(each.data[:4], "big") for each in frames} == {0}


@pytest.mark.parametrize("path", [TRAFFIC, KIP88], ids=lambda path: path.stem)
def test_every_request_has_its_response_and_time_runs_forward(path: Path) -> None:
    frames = list(read_frames(path))
    pairs = list(exchanges(frames))
    assert len(pairs) * 2 == len(frames)
    assert all(pair.request.ms <= pair.response.ms for pair in pairs)
    assert [each.ms for each in frames] == sorted(each.ms for each in frames)


def test_traffic_shows_the_apis_that_clients_live_by() -> None:
    names = api_names()
    seen = {pair.api_key for pair in exchanges(read_frames(TRAFFIC))}
    assert seen <= names.keys()
    assert {names[key] for key in seen} >= TRAFFIC_MUST_SHOW


def test_traffic_stays_small_enough_to_commit() -> None:
    assert TRAFFIC.stat().st_size < 300_000


def test_kip88_exchange_asks_for_all_topics_at_version_2() -> None:
    (pair,) = exchanges(read_frames(KIP88))
    assert (pair.api_key, pair.api_version) == (OFFSET_FETCH, 2)
    assert pair.request.payload.endswith(b"\0\7billing\xff\xff\xff\xff")
    assert b"\0\6orders" in pair.response.payload


def test_offsets_topic_holds_every_kind_of_group_and_tombstones() -> None:
    lines = [json.loads(line) for line in OFFSETS.read_text().splitlines()[1:]]
    kinds = {int(line["key"][:4], 16) for line in lines}
    offset_commit, classic_group, consumer_group, share_group, streams_group = 1, 2, 3, 11, 17
    assert kinds >= {offset_commit, classic_group, consumer_group, share_group, streams_group}
    assert any(line["value"] is None for line in lines)
    assert [line["offset"] for line in lines] == sorted({line["offset"] for line in lines})


def test_pairing_follows_connection_and_correlation_id() -> None:
    first = frame(1, REQUEST, bytes.fromhex("0009000200000007ffff"))
    other = frame(2, REQUEST, bytes.fromhex("0012000000000007ffff"))
    unanswered = frame(1, REQUEST, bytes.fromhex("0012000000000008ffff"))
    answer, answer_other = frame(1, RESPONSE, bytes.fromhex("00000007")), frame(2, RESPONSE, bytes.fromhex("00000007"))
    pairs = list(exchanges([first, other, unanswered, answer_other, answer]))
    assert pairs == [Exchange(other, answer_other), Exchange(first, answer)]
    assert (pairs[0].api_key, pairs[0].api_version) == (18, 0)


def test_response_nobody_asked_for_is_refused() -> None:
    with pytest.raises(KeyError):
        list(exchanges([frame(1, RESPONSE, bytes.fromhex("00000007"))]))


def test_recording_reads_back_as_written(tmp_path: Path) -> None:
    frames = [frame(1, REQUEST, bytes.fromhex("0012000000000000ffff")), frame(1, RESPONSE, bytes.fromhex("00000000"))]
    path = tmp_path / "recording.jsonl"
    write_lines(path, {"format": "x"}, (each.to_json() for each in frames))
    assert read_header(path) == {"format": "x"}
    assert list(read_frames(path)) == frames
