"""``kafka-offsets`` and ``kafka-cluster-metadata`` return the results of ``decode_record``, one row per record."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs import OffsetCommitKey, OffsetCommitValue
from kafka_msgs.errors import LogFileError, OptionError, UnknownColumnError
from kafka_msgs.internal_topics.records import TopicRecord, decode_record, encode_record
from kafka_msgs.log.log_directory import LogDirectory, Partition
from kafka_msgs.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kafka_msgs.messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from kafka_msgs.records import BatchBuilder, BatchHeader, RecordBatch
from kafka_msgs.spark.sources.cluster_metadata import KafkaClusterMetadataSource
from kafka_msgs.spark.sources.offsets import KafkaOffsetsSource
from tests.support.kafka_dump import sections
from tests.support.recordings import GROUP_LOGS, LOGS
from tests.support.spark_tables import read

OFFSETS = GROUP_LOGS / "__consumer_offsets-*"
METADATA = LOGS / "__cluster_metadata-0"


def offsets(path: object = OFFSETS, **options: object) -> list[dict[str, Any]]:
    return read(KafkaOffsetsSource, path, **options)


def metadata(path: object = METADATA, **options: object) -> list[dict[str, Any]]:
    return read(KafkaClusterMetadataSource, path, **options)


def recorded() -> Iterator[tuple[Partition, RecordBatch, int, TopicRecord]]:
    """Return the records of the group coordinator, decoded one by one."""
    for partition in LogDirectory(GROUP_LOGS).partitions:
        for batch in partition.batches() if partition.topic == "__consumer_offsets" else ():
            assert isinstance(batch, RecordBatch)
            for record in batch if not batch.is_control else ():
                typed = decode_record("__consumer_offsets", record.key, record.value)
                assert isinstance(typed, TopicRecord)
                yield partition, batch, record.offset, typed


def test_every_record_of_the_group_coordinator_is_a_row() -> None:
    rows = offsets()
    assert [(row["logPartition"], row["logOffset"]) for row in rows] == [
        (partition.partition, offset) for partition, _, offset, _ in recorded()
    ]
    for row, (_, batch, _, record) in zip(rows, recorded(), strict=True):
        assert record.key is not None
        assert f"{row['recordType']}Key" == record.key.INFO.name
        assert row["version"] == record.version
        assert row["tombstone"] is (record.value is None)
        assert (row["transactional"], row["producerId"]) == (batch.is_transactional, batch.producer_id)
        assert row["group"] == getattr(record.key, "group", None) or record.key.group_id  # type: ignore[attr-defined]
        assert row["_error"] is None


def moment(milliseconds: int) -> datetime | None:
    """Return the time for a Kafka timestamp in milliseconds, or None for -1."""
    return None if milliseconds == -1 else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


def test_commits_say_what_was_committed() -> None:
    committed = 0
    for row, (_, _, _, record) in zip(offsets(), recorded(), strict=True):
        if not isinstance(record.key, OffsetCommitKey):
            assert row["topic"] is row["topicPartition"] is row["committedOffset"] is None
            continue
        assert (row["topic"], row["topicPartition"]) == (record.key.topic, record.key.partition)
        if record.value is None:
            assert row["committedOffset"] is row["metadata"] is row["commitTimestamp"] is None
            continue
        committed += 1
        assert isinstance(record.value, OffsetCommitValue)
        assert (row["committedOffset"], row["metadata"]) == (record.value.offset, record.value.metadata)
        assert (row["leaderEpoch"], row["topicId"]) == (record.value.leader_epoch, str(record.value.topic_id))
        times = record.value.commit_timestamp, record.value.expire_timestamp
        assert (row["commitTimestamp"], row["expireTimestamp"]) == tuple(map(moment, times))
    assert committed > 10


def test_commits_of_the_oldest_form_are_commits() -> None:
    key = LegacyOffsetCommitKey(group="old", topic="orders", partition=3)
    value = LegacyOffsetCommitValue(offset=7, metadata="m", commit_timestamp=11)
    said = encode_record(TopicRecord(topic="__consumer_offsets", key=key, value=value, version=0))
    assert said.value is not None
    (row,) = _rows_of([(said.key, said.value)])
    assert row["recordType"] == "LegacyOffsetCommit"
    assert (row["group"], row["topic"], row["topicPartition"]) == ("old", "orders", 3)
    assert (row["committedOffset"], row["metadata"], row["commitTimestamp"]) == (7, "m", moment(11))
    assert row["leaderEpoch"] is row["topicId"] is None


def test_times_that_are_not_there_or_that_spark_cannot_hold_are_null() -> None:
    most = (2**63 - 1) // 1000
    for time, is_held in ((-1, False), (0, True), (1_767_225_600_123, True), (most + 1, False), (-(2**63), False)):
        value = LegacyOffsetCommitValue(offset=7, metadata="m", commit_timestamp=time)
        key = LegacyOffsetCommitKey(group="old", topic="orders", partition=3)
        said = encode_record(TopicRecord(topic="__consumer_offsets", key=key, value=value, version=0))
        (row,) = _rows_of([(said.key, said.value)])
        assert (row["commitTimestamp"], row["_error"]) == (moment(time) if is_held else None, None)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _rows_of(records: Sequence[tuple[bytes | None, bytes | None]], **options: object) -> list[dict[str, Any]]:
    builder = BatchBuilder(BatchHeader(base_offset=0))
    for key, value in records:
        builder.append(key, value, timestamp=1)
    path = Path("__consumer_offsets-0") / f"{0:020}.log"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(builder.build())
    return offsets(path.parent, **options)


def test_types_that_are_not_known_keep_their_number_and_their_bytes() -> None:
    records = [(b"\x7f\xffkey", b"\x00\x00value")]
    (row,) = _rows_of(records)
    assert (row["recordType"], row["key"], row["value"]) == ("32767", *records[0])
    assert row["group"] is row["_error"] is None
    (row,) = _rows_of(records, form="json")
    assert (row["key"], row["value"]) == ('"7fff6b6579"', '"000076616c7565"')


def test_records_that_cannot_be_read_say_why() -> None:
    good = encode_record(
        TopicRecord(topic="__consumer_offsets", key=OffsetCommitKey(group="g", topic="t", partition=1))
    )
    records = [(None, b"x"), (b"\x00", None), (good.key, b"\x00\x04\x00"), (b"\x00\x01\x00", None), (good.key, None)]
    rows = _rows_of(records)
    assert [row["_error"] for row in rows[:2]] == ["the key has no record type"] * 2
    assert rows[2]["_error"].startswith("value: OffsetCommitValue: offset at byte 2")
    assert rows[3]["_error"].startswith("key: OffsetCommitKey: group at byte 2")
    assert (rows[4]["_error"], rows[4]["group"], rows[4]["tombstone"]) == (None, "g", True)
    assert [row["logOffset"] for row in _rows_of(records, mode="DROPMALFORMED")] == [4]
    with pytest.raises(LogFileError, match="the key has no record type"):
        _rows_of(records, mode="FAILFAST")
    # Records without a type appear for every requested type.
    assert [row["logOffset"] for row in _rows_of(records, recordType="GroupMetadata")] == [0, 1]


def test_markers_say_how_a_transaction_ended() -> None:
    ends = [row for row in offsets(control=True) if row["recordType"] in ("COMMIT", "ABORT")]
    assert {row["recordType"] for row in ends} == {"COMMIT", "ABORT"}
    assert {row["group"] for row in ends} == {None}
    assert not [row for row in ends if row["tombstone"]]


def test_keys_and_values_are_typed_if_one_type_is_asked_for() -> None:
    rows = offsets(recordType="StreamsGroupTopology", columns="group,key,value")
    typed = [
        record for _, _, _, record in recorded() if record.key and record.key.INFO.name == "StreamsGroupTopologyKey"
    ]
    assert len(rows) == len(typed) == 1
    assert rows[0]["key"] == {"group_id": "totals"}
    value: Any = typed[0].value
    assert [each["subtopology_id"] for each in rows[0]["value"]["subtopologies"]] == [
        each.subtopology_id for each in value.subtopologies
    ]


def test_keys_and_values_as_json_are_those_of_kafkas_own_tool() -> None:
    said = [line for name in ("0", "1", "2") for line in _dumped(GROUP_LOGS / f"__consumer_offsets-{name}")]
    ours = [(json.loads(row["key"]), row["value"] and json.loads(row["value"])) for row in offsets(form="json")]
    assert [key for key, _ in ours] == [key for key, _ in said]
    # The tool also decodes the bytes of subscriptions and assignments, which are nested messages.
    assert [value for _, value in ours if "members" not in (value or "")] == [
        value for _, value in said if "members" not in (value or "")
    ]


def _dumped(directory: Path) -> Iterator[tuple[Any, Any]]:
    for name, lines in sections(directory).items():
        for line in lines if name.endswith(".log") else ():
            match = re.search(r" key: (\{.*\}) payload:\s*(.*)$", line)
            if match:
                value = match[2].strip()
                data = None if value in ("", "null", "<DELETE>") else json.loads(value)["data"]
                yield json.loads(match[1])["data"], data


def test_metadata_records_are_rows_with_the_json_of_kafkas_own_tool() -> None:
    said = [json.loads(match[1]) for match in _payloads(METADATA)]
    rows = metadata()
    assert [(row["version"], json.loads(row["value"])) for row in rows] == [
        (each["version"], each["data"]) for each in said
    ]
    assert [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", row["recordType"]).upper() for row in rows] == [
        each["type"] for each in said
    ]


def _payloads(directory: Path) -> Iterator[re.Match[str]]:
    for name, lines in sections(directory).items():
        for line in lines if name.endswith(".log") else ():
            match = re.search(r" payload: (\{.*\})$", line)
            if match:
                yield match


def test_control_records_of_the_metadata_log_are_typed() -> None:
    (snapshot,) = METADATA.glob("*.checkpoint")
    types = [row["recordType"] for row in metadata(snapshot, control=True) if row["control"]]
    assert types[0] == "SnapshotHeaderRecord"
    assert types[-1] == "SnapshotFooterRecord"
    (change, *_) = metadata(control=True, recordType="LeaderChangeMessage")
    assert change["value"]["leader_id"] == 1
    assert not [row for row in metadata(control=True) if row["_error"]]


def test_metadata_records_of_one_type_are_structs() -> None:
    assert {row["value"]["name"] for row in metadata(recordType="TopicRecord")} == {
        "codecs",
        "prices",
        "__transaction_state",
    }


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"form": "struct"}, OptionError, "recordType has to say it"),
        ({"recordType": "OffsetComit"}, OptionError, "did you mean OffsetCommit"),
        ({"form": "xml"}, OptionError, "it is one of binary, json, struct"),
        ({"valueMessage": "OffsetCommitValue"}, OptionError, "there is"),
        ({"columns": "grup"}, UnknownColumnError, "group"),
    ],
)
def test_an_option_that_does_not_hold_is_named(options: dict[str, str], error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        offsets(**options)


def test_a_log_directory_means_the_partitions_of_the_topic() -> None:
    assert offsets(GROUP_LOGS) == offsets()
    assert metadata(LOGS) == metadata()
    with pytest.raises(OptionError, match="there is no segment of __cluster_metadata"):
        metadata(LOGS / "codecs-0")


def test_a_topic_that_is_not_the_metadata_log_is_reported(tmp_path: Path) -> None:
    copy = tmp_path / "copy.log"
    copy.write_bytes((LOGS / "codecs-0" / f"{0:020}.log").read_bytes())
    rows = metadata(copy)
    assert all(row["_error"] for row in rows)
    with pytest.raises(LogFileError):
        metadata(copy, mode="FAILFAST")
