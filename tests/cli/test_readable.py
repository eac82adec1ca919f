"""Readable output next to raw values: decoded subscriptions and assignments, and times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    JoinGroupRequest,
    OffsetCommitValue,
    SyncGroupResponse,
    encode_versioned,
)
from kafka_msgs.cli.render.nested_messages import readable_json
from kafka_msgs.cli.render.timestamps import iso_of_ms, iso_of_us, time_name
from kafka_msgs.messages.consumer_protocol_assignment import TopicPartition
from kafka_msgs.messages.join_group_request import JoinGroupRequestProtocol
from tests.support.command_line import Run
from tests.support.recordings import GROUP_LOGS

SUBSCRIPTION = encode_versioned(ConsumerProtocolSubscription(topics=("orders", "payments"), rack_id="r1"), 3)
ASSIGNMENT = encode_versioned(
    ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="orders", partitions=(0, 1)),)), 1
)


def join(metadata: bytes, protocol_type: str = "consumer") -> JoinGroupRequest:
    protocols = (JoinGroupRequestProtocol(name="range", metadata=metadata),)
    return JoinGroupRequest(group_id="billing", protocol_type=protocol_type, protocols=protocols)


def test_a_subscription_in_a_join_is_opened(run: Run) -> None:
    shown = run("decode", "JoinGroupRequest", "5", join(SUBSCRIPTION).encode(5).hex()).stdout
    assert f"metadata: {len(SUBSCRIPTION)} bytes, ConsumerProtocolSubscription v3" in shown
    assert "topics: ['orders', 'payments']" in shown
    assert "rack_id: 'r1'" in shown


@pytest.mark.parametrize("version", [3, 5], ids=["no protocol type", "with protocol type"])
def test_an_assignment_in_a_sync_is_opened(run: Run, version: int) -> None:
    response = SyncGroupResponse(protocol_type="consumer", assignment=ASSIGNMENT)
    shown = run("decode", "SyncGroupResponse", str(version), response.encode(version).hex()).stdout
    assert f"assignment: {len(ASSIGNMENT)} bytes, ConsumerProtocolAssignment v1" in shown
    assert "partitions: [0, 1]" in shown


def test_bytes_of_another_protocol_stay_bytes(run: Run) -> None:
    shown = run("decode", "JoinGroupRequest", "5", join(SUBSCRIPTION, "connect").encode(5).hex()).stdout
    assert "ConsumerProtocol" not in shown
    assert SUBSCRIPTION.hex() in shown


def test_bytes_without_a_protocol_type_that_hold_no_message_stay_bytes(run: Run) -> None:
    shown = run("decode", "SyncGroupResponse", "3", SyncGroupResponse(assignment=b"\xff" * 3).encode(3).hex()).stdout
    assert "assignment: ffffff" in shown
    assert "version" not in shown


def test_a_malformed_subscription_is_shown_with_its_fault(run: Run) -> None:
    short = encode_versioned(ConsumerProtocolSubscription(topics=("orders",)), 0)
    cut = b"\x00\x01" + short[2:]  # Version 1 without its owned partitions, as some clients send it.
    message = join(cut)
    shown = run("decode", "JoinGroupRequest", "5", message.encode(5).hex()).stdout
    assert "topics: ['orders']" in shown
    assert "ConsumerProtocolSubscription v1: owned_partitions at byte" in shown
    (protocol,) = readable_json(message, 5)["protocols"]
    assert protocol["metadataDecoded"]["topics"] == ["orders"]
    assert "owned_partitions" in protocol["metadataProblem"]


def test_the_json_form_keeps_the_bytes_and_can_be_read_back() -> None:
    message = join(SUBSCRIPTION)
    shown = readable_json(message, 5)
    decoded = shown["protocols"][0].pop("metadataDecoded")
    assert (decoded["version"], decoded["topics"], decoded["rackId"]) == (3, ["orders", "payments"], "r1")
    assert shown == message.to_json(5)
    assert JoinGroupRequest.from_json(readable_json(message, 5), 5) == message


def test_members_of_recorded_groups_are_opened_in_a_dump(run: Run) -> None:
    result = run("dump-log", str(GROUP_LOGS), "--offsets", "--output", "jsonl")
    records = [json.loads(line) for line in result.stdout.splitlines() if '"kind": "record"' in line]
    members: list[dict[str, Any]] = [
        member
        for record in records
        if record.get("type") == "GroupMetadataKey" and record["value"]
        for member in record["value"]["members"]
    ]
    assert members
    assert {topic for member in members for topic in member["subscriptionDecoded"]["topics"]} <= {"orders", "payments"}
    assigned = [member["assignmentDecoded"] for member in members if member["assignment"]]
    assert {place["topic"] for each in assigned for place in each["assignedPartitions"]} <= {"orders", "payments"}
    assert assigned


def test_times_in_a_tree_and_in_a_dump(run: Run) -> None:
    value = OffsetCommitValue(offset=5, metadata="", commit_timestamp=1_700_000_009_001)
    shown = run("decode", "OffsetCommitValue", "3", value.encode(3).hex()).stdout
    assert "commit_timestamp: 1700000009001 (2023-11-14T22:13:29.001Z)" in shown
    dumped = readable_json(value, 1)
    assert (dumped["commitTimestamp"], dumped["commitTime"]) == (1_700_000_009_001, "2023-11-14T22:13:29.001Z")
    assert dumped["expireTime"] is None


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_795_286_969_249, "2026-11-21T18:49:29.249Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, None),
        (2**63 - 1, None),
        (-1, None),
        (None, None),
    ],
)
def test_milliseconds_as_text(number: int | None, text: str | None) -> None:
    assert iso_of_ms(number) == text


def test_microseconds_keep_all_digits() -> None:
    assert iso_of_us(1_795_286_969_249_001) == "2026-11-21T18:49:29.249001Z"


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("timestamp", "time"),
        ("maxTimestamp", "maxTime"),
        ("eventTimestampMs", "eventTime"),
        ("logAppendTimeMs", "logAppendTime"),
        ("transactionStartTimeMs", "transactionStartTime"),
    ],
)
def test_names_of_times(name: str, readable: str) -> None:
    assert time_name(name) == readable


def test_a_dump_of_a_partition_takes_the_files_that_a_broker_keeps_there(run: Run) -> None:
    result = run("dump-log", str(GROUP_LOGS / "orders-0"), "--output", "jsonl")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    files = {Path(row["file"]).name for row in rows if "file" in row}
    assert f"{0:020}.log" in files
    assert {"leader-epoch-checkpoint", "partition.metadata"} < files
    assert "dump.txt" not in files
    assert rows[-1]["records"] == 10


def test_a_dump_of_a_log_directory_decodes_each_internal_topic_as_itself(run: Run) -> None:
    result = run("dump-log", str(GROUP_LOGS), "--deep", "--output", "jsonl")
    assert result.exit_code == 0
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    records = [row for row in rows if row["kind"] == "record" and "control" not in row]
    by_directory: dict[str, set[bool]] = {}
    for row in records:
        by_directory.setdefault(Path(row["file"]).parent.name, set()).add("type" in row)
    assert by_directory["__consumer_offsets-0"] == by_directory["__cluster_metadata-0"] == {True}
    assert by_directory["orders-0"] == by_directory["payments-1"] == {False}
    assert any(Path(row["file"]).name == "meta.properties" for row in rows if "file" in row)


def test_a_topic_that_is_asked_for_is_taken_out_of_a_log_directory(run: Run) -> None:
    result = run("dump-log", str(GROUP_LOGS), "--transactions", "--output", "jsonl")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {Path(row["file"]).parent.name for row in rows if "file" in row} == {"__transaction_state-0"}


def test_a_decoder_that_is_asked_for_goes_before_the_name_of_the_directory(run: Run) -> None:
    path = GROUP_LOGS / "__consumer_offsets-0"
    result = run("dump-log", str(path), "--deep", "--key-decoder", "hex", "--output", "jsonl")
    records = [json.loads(line) for line in result.stdout.splitlines() if '"kind": "record"' in line]
    assert all("hex" in record["key"] for record in records if "key" in record)


def test_a_directory_without_log_files_is_refused(run: Run, tmp_path: Path) -> None:
    result = run("dump-log", str(tmp_path))
    assert result.exit_code == 1
    assert result.stderr == f"Error: {tmp_path}: there is no file of a log directory in it\n"


def test_rows_that_a_terminal_is_too_narrow_for_become_paragraphs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("dump-log", str(GROUP_LOGS / "orders-0"), "--deep").stdout
    assert "offset=0 timestamp=1795286969249 time=2026-11-21T18:49:29.249Z key=order-1000\n" in shown
    assert "baseOffset=4 count=2 position=0 size=156 magic=2" in shown
