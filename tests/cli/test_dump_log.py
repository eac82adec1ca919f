"""``kafka-msgs dump-log`` on the files of a real broker, intact and damaged."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from crc32c import crc32c

from kafka_msgs.internal_topics.records import TOPICS
from kafka_msgs.records import BatchBuilder, CompressionType, MessageSetBuilder
from tests.support.command_line import Run
from tests.support.recordings import ACTIVE_LOGS, LOGS, TIERED_LOGS

TIERED = TIERED_LOGS
CODECS = LOGS / "codecs-0" / f"{0:020}.log"
TRANSACTIONS = CODECS.with_name(f"{35:020}.log")


def lines(run: Run, *arguments: str | Path, status: int = 0) -> list[dict[str, Any]]:
    result = run("dump-log", *map(str, arguments), "--output", "jsonl")
    assert result.exit_code == status
    return [json.loads(line) for line in result.stdout.splitlines()]


def kinds(found: list[dict[str, Any]]) -> list[str]:
    return [line["kind"] for line in found]


def test_batches_and_a_summary(run: Run) -> None:
    *batches, summary = lines(run, CODECS)
    assert kinds(batches) == ["batch"] * 5
    assert [batch["codec"] for batch in batches] == ["none", "gzip", "snappy", "lz4", "zstd"]
    assert summary == {
        "kind": "summary", "batches": 5, "records": 35, "bytes": CODECS.stat().st_size, "preallocated": 0,
        "codecs": {"gzip": 1, "lz4": 1, "none": 1, "snappy": 1, "zstd": 1},
        "firstTimestamp": 1_700_000_000_000, "firstTime": "2023-11-14T22:13:20.000Z",
        "lastTimestamp": 1_700_000_009_000, "lastTime": "2023-11-14T22:13:29.000Z",
        "producers": 2, "errors": 0, "crcFailures": 0,
    }  # fmt: skip


def test_records(run: Run) -> None:
    batch, first, second, *_ = lines(run, CODECS, "--deep")
    assert batch["count"] == 7
    assert (first["kind"], first["key"], first["value"], first["headers"]) == ("record", "none-0", None, [])
    assert second["headers"] == [["source", "shop"], ["source", None], ["trace", "0001"]]
    assert second["file"] == str(CODECS)


def test_markers_of_transactions(run: Run) -> None:
    records = [line for line in lines(run, TRANSACTIONS, "--deep") if line["kind"] == "record"]
    control = [record for record in records if "control" in record]
    assert [line["control"] for line in control] == ["COMMIT", "ABORT", "COMMIT"]
    assert control[0]["value"] == {"coordinatorEpoch": 0}


def test_reading_from_an_offset(run: Run) -> None:
    found = lines(run, CODECS, "--deep", "--from-offset", "33")
    assert kinds(found) == ["batch", "record", "record", "summary"]
    assert [line["offset"] for line in found if line["kind"] == "record"] == [33, 34]


def test_records_of_the_metadata_log(run: Run) -> None:
    (snapshot,) = (LOGS / "__cluster_metadata-0").glob("*.checkpoint")
    found = lines(run, "--cluster-metadata", snapshot)
    records = [line for line in found if line["kind"] == "record"]
    assert records[0]["control"] == "SNAPSHOT_HEADER"
    assert records[-1]["control"] == "SNAPSHOT_FOOTER"
    assert {"FeatureLevelRecord", "TopicRecord"} <= {line.get("type") for line in records}


def test_records_of_transactions(run: Run) -> None:
    _, record, *_ = lines(run, "--transactions", LOGS / "__transaction_state-0" / f"{0:020}.log")
    assert (record["type"], record["key"]) == ("TransactionLogKey", {"transactionalId": "writer"})
    assert record["value"]["producerId"] == 2


def test_records_of_remote_storage(run: Run) -> None:
    found = lines(run, "--remote-log-metadata", TIERED / "__remote_log_metadata-0" / f"{0:020}.log")
    copied, finished = [line for line in found if line["kind"] == "record"][:2]
    assert copied["type"] == "RemoteLogSegmentMetadataRecord"
    assert copied["value"]["remoteLogSegmentId"]["topicIdPartition"]["name"] == "invoices"
    assert (finished["type"], finished["value"]["remoteLogSegmentState"]) == ("RemoteLogSegmentMetadataUpdateRecord", 1)


def test_every_internal_topic_has_a_flag(run: Run) -> None:
    text = run("dump-log", "--help").stdout
    assert all(topic in text for topic in TOPICS)


def test_a_summary_alone(run: Run, tmp_path: Path) -> None:
    *_, full = lines(run, CODECS)
    assert lines(run, CODECS, "--summary") == [full]
    path = tmp_path / CODECS.name
    path.write_bytes(CODECS.read_bytes()[:-1])
    error, summary = lines(run, path, CODECS.with_suffix(".index"), "--summary", status=1)
    assert (error["kind"], error["reason"].endswith(" left")) == ("error", True)
    assert (summary["batches"], summary["errors"]) == (4, 1)


def test_files_that_a_broker_is_writing_are_whole(run: Run) -> None:
    paths = sorted(path for path in (ACTIVE_LOGS / "drafts-0").iterdir() if path.suffix != ".txt")
    *_, summary = lines(run, *paths, "--deep")
    assert (summary["records"], summary["errors"]) == (48, 0)
    assert summary["preallocated"] > 0


@pytest.mark.parametrize("options", [(), ("--deep",), ("--summary",)])
def test_space_that_was_allocated_in_advance_is_not_damage(run: Run, tmp_path: Path, options: tuple[str, ...]) -> None:
    path = tmp_path / CODECS.name
    path.write_bytes(CODECS.read_bytes() + bytes(4000))
    *_, summary = lines(run, path, *options)
    assert (summary["batches"], summary["preallocated"], summary["errors"]) == (5, 4000, 0)


@pytest.mark.parametrize("options", [(), ("--summary",)])
def test_zeros_at_the_end_of_a_segment_with_another_behind_it_are_damage(
    run: Run, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = tmp_path / CODECS.name
    path.write_bytes(CODECS.read_bytes() + bytes(4000))
    (tmp_path / TRANSACTIONS.name).write_bytes(TRANSACTIONS.read_bytes())
    *_, error, summary = lines(run, path, *options, status=1)
    assert (error["reason"], summary["preallocated"]) == ("4000 bytes that are all zero", 0)


def test_reading_no_further_than_some_bytes(run: Run) -> None:
    """Like Kafka's tool, it prints only batches that end within the limit."""
    *_, last, summary = lines(run, TRANSACTIONS, "--max-bytes", "600")
    assert (last["baseOffset"], summary["batches"]) == (41, 5)
    assert lines(run, TRANSACTIONS, "--max-bytes", "0")[-1]["batches"] == 0
    assert lines(run, TRANSACTIONS, "--max-bytes", "601", "--summary")[-1]["batches"] == 6


def test_records_without_what_is_about_them(run: Run) -> None:
    found = lines(run, TRANSACTIONS, "--deep", "--skip-record-metadata")
    records = [line for line in found if line["kind"] == "record"]
    assert len(records) == 6
    assert records[0] == {"kind": "record", "file": str(TRANSACTIONS), "key": "paid-0", "value": "commit_transaction"}


def test_numbers_in_keys_and_values(run: Run, tmp_path: Path) -> None:
    builder = BatchBuilder()
    for key, value in ((b"\0\0\0\7", b"\xff" * 8), (b"no number", None)):
        builder.append(key, value, timestamp=0)
    path = tmp_path / CODECS.name
    path.write_bytes(builder.build())
    _, first, second, _ = lines(run, path, "--deep", "--key-decoder", "integer", "--value-decoder", "long")
    assert (first["key"], first["value"]) == (7, -1)
    assert (second["key"], second["value"]) == ({"hex": b"no number".hex()}, None)
    _, first, *_ = lines(run, path, "--deep", "--key-decoder", "hex")
    assert first["key"] == {"hex": "00000007"}


def test_records_that_are_not_of_the_topic(run: Run) -> None:
    found = lines(run, "--offsets", CODECS, status=1)
    errors = [line for line in found if line["kind"] == "error"]
    assert errors[-1]["reason"].startswith("record at offset 34: __consumer_offsets: key ")
    assert found[-1]["errors"] == len(errors)
    assert found[-1]["batches"] == 5


@pytest.mark.parametrize(
    ("name", "first"),
    [
        (f"codecs-0/{0:020}.index", {"offset": 13, "position": 508}),
        (f"codecs-0/{0:020}.timeindex", {"timestamp": 1_700_000_009_000, "offset": 6}),
        (f"codecs-0/{35:020}.snapshot", {"producerId": 0, "lastOffset": 6}),
        (f"codecs-0/{35:020}.txnindex", {"producerId": 2, "firstOffset": 38}),
        ("codecs-0/leader-epoch-checkpoint", {"epoch": 0, "startOffset": 0}),
        ("codecs-0/partition.metadata", {"version": 0}),
        ("meta.properties", {"nodeId": 1, "clusterId": "a2Fma2EtbXNncy1jYXB0dQ"}),
        ("__cluster_metadata-0/quorum-state", {"version": 0, "leaderId": 1, "currentVoters": [{"voterId": 1}]}),
        (TIERED / "__cluster_metadata-0/quorum-state", {"version": 1, "leaderId": 1, "leaderEpoch": 1}),
        (TIERED / "log-start-offset-checkpoint", {"topic": "invoices", "partition": 0, "offset": 18}),
        (TIERED / ".kafka_cleanshutdown", {"version": 0}),
    ],
)
def test_other_files(run: Run, name: str | Path, first: dict[str, Any]) -> None:
    entry, *_ = lines(run, LOGS / name)
    assert entry["kind"] == "entry"
    assert first.items() <= entry.items()


def test_damage_is_reported_and_the_rest_printed(run: Run, tmp_path: Path) -> None:
    data = bytearray(CODECS.read_bytes())
    data[600] ^= 1
    path = tmp_path / CODECS.name
    path.write_bytes(data[:-1])
    found = lines(run, path, status=1)
    assert kinds(found) == ["batch", "error", "batch", "batch", "error", "summary"]
    assert (found[1]["position"], found[1]["skipped"]) == (508, 210)
    assert (found[-1]["errors"], found[-1]["crcFailures"]) == (2, 1)


def test_a_damaged_index(run: Run, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.index"
    path.write_bytes(bytes.fromhex("00000007 00000100 0000"))
    entry, error, summary = lines(run, path, status=1)
    assert (entry["offset"], error["position"], summary["errors"]) == (7, 8, 1)


def beside(tmp_path: Path, suffix: str, content: bytes) -> Path:
    """Write an index next to a copy of a recorded segment."""
    (tmp_path / CODECS.name).write_bytes(CODECS.read_bytes())
    path = (tmp_path / CODECS.name).with_suffix(suffix)
    path.write_bytes(content)
    return path


OFFSETS = pack(">iiii", 13, 508, 21, 700)


def test_an_index_that_leads_elsewhere(run: Run, tmp_path: Path) -> None:
    path = beside(tmp_path, ".index", OFFSETS)
    right, wrong, error, _ = lines(run, path, status=1)
    assert (right["offset"], wrong["offset"]) == (13, 21)
    assert (error["position"], error["skipped"]) == (8, 8)
    assert error["reason"] == "OffsetEntry(offset=21, position=700): there is no batch"


def test_only_what_is_wrong_with_an_index(run: Run, tmp_path: Path) -> None:
    path = beside(tmp_path, ".index", OFFSETS)
    assert kinds(lines(run, path, "--verify-index-only", status=1)) == ["error", "summary"]
    assert kinds(lines(run, path, "--index-sanity-check")) == ["summary"]
    path.write_bytes(OFFSETS[:-1])
    assert kinds(lines(run, path, "--index-sanity-check", status=1)) == ["error", "summary"]


def test_a_damaged_small_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_bytes(b"0\n3\n")
    error, _ = lines(run, path, status=1)
    assert (error["kind"], error["position"], error["reason"]) == ("error", 2, "'3': there are 0 entries")


def test_records_that_do_not_decompress(run: Run, tmp_path: Path) -> None:
    """The checksum is right because the producer wrote the batch this way."""
    builder = BatchBuilder()
    builder.append(None, b"not compressed", timestamp=0)
    data = bytearray(builder.build())
    data[22] |= CompressionType.GZIP
    data[17:21] = crc32c(data[21:]).to_bytes(4, "big")
    path = tmp_path / CODECS.name
    path.write_bytes(data + TRANSACTIONS.read_bytes())
    assert "error" not in kinds(lines(run, path))
    _, error, after, *_ = lines(run, path, "--deep", status=1)
    assert (error["kind"], error["position"], error["skipped"]) == ("error", 0, len(data))
    assert "gzip" in error["reason"]
    assert after["position"] == len(data)


def test_message_sets_are_counted(run: Run, tmp_path: Path) -> None:
    plain, packed = MessageSetBuilder(magic=1), MessageSetBuilder(magic=1, codec=CompressionType.GZIP, base_offset=1)
    plain.append(b"k", b"v", timestamp=0)
    packed.append(b"k", b"v", timestamp=7)
    packed.append(b"k", b"\xff", timestamp=9)
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(plain.build() + packed.build())
    *found, summary = lines(run, path, "--deep")
    assert kinds(found) == ["batch", "record", "batch", "record", "record"]
    assert found[-1]["value"] == {"hex": "ff"}
    assert (summary["records"], summary["firstTimestamp"], summary["lastTimestamp"]) == (3, 0, 9)


def test_names_of_headers_that_are_not_text(run: Run, tmp_path: Path) -> None:
    builder = BatchBuilder()
    builder.append(b"k", "お茶".encode(), timestamp=0, headers=[("\udcff", b"\xfe"), ("お", b"")])
    path = tmp_path / CODECS.name
    path.write_bytes(builder.build())
    _, record, _ = lines(run, path, "--deep")
    assert record["value"] == "お茶"
    assert record["headers"] == [[{"hex": "ff"}, {"hex": "fe"}], ["お", ""]]


def test_one_json_document(run: Run) -> None:
    result = run("dump-log", str(CODECS), "--output", "json")
    document = json.loads(result.stdout)
    assert len(document["rows"]) == document["summary"]["batches"] == 5


def test_tables(run: Run) -> None:
    result = run("dump-log", str(CODECS), "--deep")
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert [f"{CODECS}:", "batch"] in rows
    assert ["offset", "timestamp", "time", "key", "value", "headers"] in rows
    assert ["27", "1700000009000", "2023-11-14T22:13:29.000Z", "null", "lz4", "without", "a", "key", "[]"] in rows
    assert ["firstTimestamp", "1700000000000"] in rows


def test_tables_on_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    result = run("dump-log", str(CODECS.with_suffix(".index")))
    assert result.exit_code == 0
    assert "position" in result.stdout
    assert "1163" in result.stdout
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", result.stdout).splitlines())) <= 60


def test_a_table_shows_no_commands_to_the_terminal(run: Run, tmp_path: Path) -> None:
    builder = BatchBuilder()
    builder.append(b"\x1b[31mkey", b"[bold]value", timestamp=0)
    path = tmp_path / CODECS.name
    path.write_bytes(builder.build())
    shown = run("dump-log", str(path), "--deep").stdout
    assert "\x1b" not in shown
    assert r"\u001b[31mkey" in shown
    assert "[bold]value" in shown


IMPATIENT = (
    "from kafka_msgs.cli import main; from kafka_msgs.cli.render import progress;"
    "progress.PATIENCE_SECONDS = {seconds}; main()"
)


def shown_on_a_terminal(seconds: float) -> bytes:
    """Return the progress that ``dump-log`` draws on standard error, a terminal, after ``seconds`` of waiting."""
    code = IMPATIENT.format(seconds=seconds)
    command = [sys.executable, "-c", code, "dump-log", str(CODECS), "--output", "jsonl"]
    master, slave = pty.openpty()
    try:
        os.write(slave, b"|")
        environment = {**os.environ, "TERM": "xterm"}
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=slave, check=True, timeout=60, env=environment)
        return os.read(master, 100_000)
    finally:
        os.close(slave)
        os.close(master)


def test_progress_is_shown_on_a_terminal_when_reading_takes_its_time() -> None:
    assert CODECS.name.encode() in shown_on_a_terminal(seconds=-1)
    assert shown_on_a_terminal(seconds=3600) == b"|"


def test_a_missing_file_is_a_wrong_call(run: Run, tmp_path: Path) -> None:
    assert run("dump-log", str(tmp_path / "absent.log")).exit_code == 2
