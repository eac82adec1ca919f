"""``kafka-log`` returns the records that ``kafka_msgs.log`` reads, for any work split and any damage."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs.errors import KafkaMsgsError, LogFileError, OptionError, UnknownColumnError
from kafka_msgs.filesystems.path_resolution import log_files
from kafka_msgs.log.file_scan import read_log, walk_log
from kafka_msgs.log.indexes import read_aborted_transactions
from kafka_msgs.log.log_directory import LogDirectory, Partition
from kafka_msgs.messages.end_txn_marker import EndTxnMarker
from kafka_msgs.messages.list_offsets_response import ListOffsetsResponse
from kafka_msgs.records import (
    BatchBuilder,
    BatchHeader,
    CompressionType,
    ControlType,
    MessageSetBuilder,
    ReadOptions,
    RecordBatch,
)
from kafka_msgs.spark.sources.log import KafkaLogSource
from tests.support.recorded_answers import answers
from tests.support.recordings import GROUP_LOGS, LOGS
from tests.support.spark_tables import read, table

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CODECS = LOGS / "codecs-0"
SEGMENT = CODECS / f"{0:020}.log"


def log(path: object, **options: object) -> list[dict[str, Any]]:
    return read(KafkaLogSource, path, **{"columns": "*", **options})


def expected(directory: Path) -> Iterator[dict[str, Any]]:
    """Yield the log readers' result for every record, in the columns of the source."""
    for partition in LogDirectory(directory).partitions:
        for segment in partition.segments:
            for batch in segment.batches():
                assert isinstance(batch, RecordBatch)
                for record in batch:
                    first = batch.base_sequence
                    yield {
                        "topic": partition.topic,
                        "partition": partition.partition,
                        "offset": record.offset,
                        "timestamp": EPOCH + timedelta(milliseconds=record.timestamp),
                        "timestampType": int(batch.timestamp_type),
                        "key": record.key,
                        "value": record.value,
                        "headers": [{"key": name, "value": value} for name, value in record.headers],
                        "leaderEpoch": batch.partition_leader_epoch,
                        "producerId": batch.producer_id,
                        "producerEpoch": batch.producer_epoch,
                        "sequence": -1 if first < 0 else first + record.offset - batch.base_offset,
                        "transactional": batch.is_transactional,
                        "control": batch.is_control,
                        "codec": CompressionType(batch.codec).name.lower(),
                        "magic": batch.magic,
                        "batchOffset": batch.base_offset,
                        "batchPosition": batch.position,
                        "batchSize": batch.size,
                        "file": str(segment.path),
                        "_error": None,
                    }


@pytest.mark.parametrize("directory", [LOGS, GROUP_LOGS], ids=["logs", "groups"])
@pytest.mark.parametrize("split", ["1", "300", "1000", "32m"])
def test_splits_of_any_size_give_every_record_of_a_log_directory(directory: Path, split: str) -> None:
    assert log(directory, control=True, splitBytes=split) == list(expected(directory))


def test_control_records_are_there_only_if_asked_for() -> None:
    assert log(CODECS) == [row for row in log(CODECS, control=True) if not row["control"]]


@pytest.mark.parametrize(
    "path",
    [
        SEGMENT,
        CODECS,
        LOGS / "codec*",
        LOGS / "*-0" / "000*00.log",
        f"file://{CODECS}",
    ],
    ids=["segment", "partition", "wildcard", "wildcards", "uri"],
)
def test_a_path_is_a_segment_a_partition_or_has_wildcards(path: object) -> None:
    rows = log(path)
    assert {"codecs"} <= {row["topic"] for row in rows}
    assert [row for row in rows if row["file"] == str(SEGMENT)] == [row for row in log(SEGMENT)]


def test_a_segment_in_no_partition_has_no_topic(tmp_path: Path) -> None:
    copy = tmp_path / "copy.log"
    copy.write_bytes(SEGMENT.read_bytes())
    assert {(row["topic"], row["partition"]) for row in log(copy)} == {(None, None)}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"path": "nowhere"}, "there is no segment"),
        ({"path": ""}, "a file or a directory"),
        ({"mode": "LENIENT"}, "it is one of PERMISSIVE"),
        ({"splitBytes": "0"}, "a number of bytes"),
        ({"control": "yes"}, "true or false"),
        ({"valueVersion": "latest"}, "a version is needed"),
        ({"colums": "offset"}, "did you mean columns"),
    ],
)
def test_an_option_that_does_not_hold_is_named(options: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionError, match=reason) as raised:
        table(KafkaLogSource, {"path": str(CODECS)} | options)
    assert raised.value.option in options
    assert raised.value.source == "kafka-log"


def test_columns_are_chosen_and_misspelt_ones_named() -> None:
    usual = ["topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers", "_error"]
    assert list(read(KafkaLogSource, CODECS)[0]) == usual
    assert list(log(CODECS, columns="*, timestampMs")[0]) == [*usual[:4], "timestampMs", *list(log(CODECS)[0])[4:]]
    assert list(log(CODECS, columns="value, offset")[0]) == ["offset", "value", "_error"]
    assert list(log(CODECS, columns="topic", mode="FAILFAST")[0]) == ["topic"]
    with pytest.raises(UnknownColumnError, match="offset"):
        log(CODECS, columns="ofset")


# Transactions


def visible(partition: Partition, stable: int) -> list[int]:
    """Return the offsets for a read-committed consumer, by aborted transactions and the last stable offset."""
    aborted = [each for segment in partition.segments for each in segment.aborted_transactions()]
    return [
        record.offset
        for batch in partition.batches()
        if isinstance(batch, RecordBatch) and not batch.is_control
        for record in batch
        if record.offset < stable
        and not any(
            batch.is_transactional
            and each.producer_id == batch.producer_id
            and each.first_offset <= record.offset <= each.last_offset
            for each in aborted
        )
    ]


@pytest.mark.parametrize("split", ["1", "32m"])
def test_committed_records_are_those_that_the_broker_shows_up_to_its_last_stable_offset(split: str) -> None:
    _, stable = answers(ListOffsetsResponse)
    partitions = [
        (Partition(GROUP_LOGS / f"{topic.name}-{each.partition_index}"), each.offset)
        for topic in stable.topics
        for each in topic.partitions
        if topic.name in ("orders", "payments")
    ]
    for partition, offset in partitions:
        rows = log(partition.path, isolation="read_committed", splitBytes=split, columns="offset")
        assert [row["offset"] for row in rows] == visible(partition, offset)
        assert len(log(partition.path)) > len(rows) or partition.topic == "orders"


def test_an_aborted_transaction_is_seen_only_by_who_reads_what_is_not_committed() -> None:
    (aborted,) = read_aborted_transactions(CODECS / f"{35:020}.txnindex")
    hidden = {row["offset"] for row in log(CODECS)} - {row["offset"] for row in log(CODECS, isolation="read_committed")}
    assert hidden == set(range(aborted.first_offset, aborted.last_offset))


def test_a_segment_alone_knows_the_transactions_that_later_segments_end(tmp_path: Path) -> None:
    home = tmp_path / "orders-0"
    home.mkdir()
    begun = BatchBuilder(BatchHeader(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))
    begun.append(None, b"in it", timestamp=1)
    first = home / f"{0:020}.log"
    first.write_bytes(begun.build())
    assert log(first, isolation="read_committed") == []
    for end, seen in ((ControlType.ABORT, []), (ControlType.COMMIT, [b"in it"])):
        (home / f"{1:020}.log").write_bytes(_marker(1, end))
        assert [row["value"] for row in log(first, isolation="read_committed")] == seen


def _marker(offset: int, kind: ControlType) -> bytes:
    builder = BatchBuilder(
        BatchHeader(base_offset=offset, producer_id=7, producer_epoch=0, transactional=True, control=True)
    )
    builder.append_control(kind, EndTxnMarker(), timestamp=2)
    return builder.build()


# Damage


def damaged(seed: int) -> bytes:
    """Return the bytes of a segment with damage."""
    dice = random.Random(seed)
    data = bytearray(SEGMENT.read_bytes() + (CODECS / f"{35:020}.log").read_bytes())
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(data))
        kind = dice.randrange(5)
        if kind == 0:
            data[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            data[at : at + dice.randrange(200)] = bytes(dice.randrange(200))
        elif kind == 2:
            del data[at : at + dice.randrange(80)]
        elif kind == 3:
            del data[max(at, 100) :]
        else:
            data += bytes(dice.randrange(300))
    return bytes(data)


@pytest.mark.parametrize("seed", range(60))
def test_splits_of_any_size_give_every_record_and_every_error_of_a_damaged_segment(seed: int, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(damaged(seed))
    whole = log(path, splitBytes="1g", control=True)
    told = [item for item in walk_log(path) if isinstance(item, LogFileError)]
    assert [row["batchPosition"] for row in whole if row["_error"]] == [error.position for error in told]
    for split in ("1", "500"):
        assert log(path, splitBytes=split, control=True) == whole


def test_a_damaged_batch_is_a_row_with_its_place(tmp_path: Path) -> None:
    path = _with_fault(tmp_path)
    (bad,) = [row for row in log(path) if row["_error"]]
    told = {name: value for name, value in bad.items() if value is not None}
    assert told == {
        "topic": "orders",
        "partition": 0,
        "batchPosition": 0,
        "file": str(path),
        "_error": f"{path} at byte 0: the checksum is {_stored(path)}, the bytes have {_computed(path)}",
    }


def _with_fault(home: Path) -> Path:
    """Write a segment of two batches, with the first changed after writing."""
    path = home / "orders-0" / f"{0:020}.log"
    path.parent.mkdir()
    data = bytearray(SEGMENT.read_bytes())
    first = next(iter(read_log(SEGMENT)))
    data[first.size - 1] ^= 1
    path.write_bytes(data)
    return path


def _stored(path: Path) -> str:
    return path.read_bytes()[17:21].hex()


def _computed(path: Path) -> str:
    batch = next(iter(read_log(path, ReadOptions(check_crc=False))))
    assert isinstance(batch, RecordBatch)
    return f"{batch.computed_crc():08x}"


def test_unreadable_data_ends_the_job_or_is_left_out_by_the_mode(tmp_path: Path) -> None:
    path = _with_fault(tmp_path)
    with pytest.raises(LogFileError, match="the checksum is"):
        log(path, mode="FAILFAST")
    dropped = log(path, mode="DROPMALFORMED")
    assert dropped == [{k: v for k, v in row.items() if k != "_error"} for row in log(path) if not row["_error"]]
    assert dropped
    assert len(log(path, checkCrc=False)) > len(dropped)


def test_a_cut_tail_is_reported_in_every_mode_and_allocated_space_in_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(SEGMENT.read_bytes()[:-3])
    (told,) = [row["_error"] for row in log(path) if row["_error"]]
    assert "left" in told
    assert not caplog.messages
    for mode in ("FAILFAST", "DROPMALFORMED"):
        log(path, mode=mode)
        assert caplog.messages == [told]
        caplog.clear()
    path.write_bytes(SEGMENT.read_bytes() + bytes(4096))
    assert log(path, mode="FAILFAST")
    assert not [row for row in log(path) if row["_error"]]
    assert not caplog.messages


def test_a_cut_segment_that_others_follow_is_damage(tmp_path: Path) -> None:
    for path in CODECS.glob("*.log"):
        (tmp_path / path.name).write_bytes(path.read_bytes()[:-3] if path == SEGMENT else path.read_bytes())
    with pytest.raises(LogFileError, match="left"):
        log(tmp_path, mode="FAILFAST")


def test_records_that_grow_beyond_the_limit_are_refused() -> None:
    errors = [row["_error"] for row in log(CODECS, maxDecompressed=16) if row["_error"]]
    assert errors
    assert all("more than the limit of 16" in error for error in errors)


def test_message_sets_are_read_as_well(tmp_path: Path) -> None:
    builder = MessageSetBuilder(magic=1, base_offset=5, codec=CompressionType.GZIP)
    for number in range(3):
        builder.append(b"k", b"%d" % number, timestamp=number)
    path = tmp_path / f"{5:020}.log"
    path.write_bytes(builder.build())
    rows = log(path)
    assert [(row["offset"], row["value"], row["magic"], row["codec"]) for row in rows] == [
        (5, b"0", 1, "gzip"),
        (6, b"1", 1, "gzip"),
        (7, b"2", 1, "gzip"),
    ]


def test_a_time_that_is_not_there_or_that_spark_cannot_hold_is_null_and_its_number_is_kept(tmp_path: Path) -> None:
    most = (2**63 - 1) // 1000
    path = tmp_path / f"{0:020}.log"
    for number, held in ((-1, None), (0, EPOCH), (1, EPOCH + timedelta(milliseconds=1)), (most + 1, None)):
        builder = BatchBuilder(BatchHeader(base_offset=0))
        builder.append(b"k", b"v", timestamp=number)
        path.write_bytes(builder.build())
        (row,) = log(path, columns="timestamp,timestampMs")
        assert row == {"timestamp": held, "timestampMs": number, "_error": None}


# Decoding in the source


def test_keys_and_values_are_decoded_in_the_source() -> None:
    options = {"keyMessage": "TransactionLogKey", "valueMessage": "TransactionLogValue"}
    rows = log(LOGS / "__transaction_state-0", **options)
    assert {row["decodedKey"]["transactional_id"] for row in rows} == {"writer"}
    assert {row["decodedValue"]["producer_id"] for row in rows} == {2}
    (first, *_) = log(LOGS / "__transaction_state-0", columns="offset,decodedValue.producer_id", **options)
    assert first == {"offset": 0, "decodedValue": {"producer_id": 2}, "_error": None}


def test_bytes_that_are_not_the_message_leave_the_rest_of_the_row() -> None:
    rows = log(CODECS, valueMessage="TransactionLogValue", columns="offset,decodedValue")
    assert {row["decodedValue"] for row in rows} == {None}
    told = [row["_error"] for row in rows if row["_error"]]
    assert all(error.startswith("decodedValue: TransactionLogValue") for error in told)
    assert len(told) == len([row for row in log(CODECS) if row["value"] is not None])
    assert len(log(CODECS, valueMessage="TransactionLogValue", mode="DROPMALFORMED")) < len(rows)
    with pytest.raises(KafkaMsgsError, match="TransactionLogValue"):
        log(CODECS, valueMessage="TransactionLogValue", mode="FAILFAST")


# Selection of data in a path


def test_only_the_topics_and_partitions_asked_for_are_read() -> None:
    every = log(LOGS, control=True)
    assert log(LOGS, control=True, topics="prices") == [row for row in every if row["topic"] == "prices"]
    two = log(GROUP_LOGS, topics="orders, payments", partitions="0")
    assert {(row["topic"], row["partition"]) for row in two} == {("orders", 0), ("payments", 0)}
    assert two == [row for row in log(GROUP_LOGS) if row["topic"] in ("orders", "payments") and row["partition"] == 0]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"topics": "prices,price"}, "there is no topic price"),
        ({"partitions": "0,7"}, "there is no partition 7"),
        ({"partitions": "first"}, "numbers with commas between them are needed"),
        ({"topics": ""}, "at least one name is needed"),
        ({"pushdown": "true"}, "there is no such option"),
    ],
)
def test_what_is_not_there_is_named(options: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        log(LOGS, **options)


@pytest.mark.parametrize("split", ["1", "32m"])
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_segment_deleted_before_it_is_read_is_a_row(tmp_path: Path, split: str, isolation: str) -> None:
    home = Path(shutil.copytree(CODECS, tmp_path / CODECS.name))
    first, *others = Partition(home).segments
    left = [row["offset"] for segment in others for row in log(segment.path, isolation=isolation)]
    options = {"path": str(home), "splitBytes": split, "isolation": isolation, "columns": "*"}
    readers: dict[str, Any] = {}
    for mode in ("PERMISSIVE", "DROPMALFORMED", "FAILFAST"):
        source = KafkaLogSource({**options, "mode": mode})
        reader = source.reader(source.schema())
        readers[mode] = reader, reader.partitions()
    first.path.unlink()

    def rows(mode: str) -> list[dict[str, Any]]:
        reader, parts = readers[mode]
        return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]

    found = rows("PERMISSIVE")
    assert {row["_error"].split(": ", 1)[1] for row in found if row["_error"]} == {
        "the file was deleted after the read was planned"
    }
    assert {row["file"] for row in found if row["_error"]} == {str(first.path)}
    assert [row["offset"] for row in found if not row["_error"]] == left
    assert [row["offset"] for row in rows("DROPMALFORMED")] == left
    with pytest.raises(LogFileError, match="the file was deleted after the read was planned"):
        rows("FAILFAST")


@pytest.mark.parametrize(
    "options", [{}, {"isolation": "read_committed"}, {"mode": "DROPMALFORMED"}, {"splitBytes": "1"}]
)
def test_a_segment_deleted_while_the_read_is_planned_does_not_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    home = Path(shutil.copytree(CODECS, tmp_path / CODECS.name))
    listed = log_files("kafka-log", [str(home)])
    monkeypatch.setattr("kafka_msgs.spark.sources.read_plan.log_files", lambda *_, **__: listed)
    for path in home.glob("*.log"):
        path.unlink()
    rows = log(home, **options)
    assert len([row for row in rows if row.get("_error")]) == (0 if "mode" in options else len(listed))


def test_directories_that_a_broker_set_aside_are_not_read_by_wildcards(tmp_path: Path) -> None:
    shutil.copytree(CODECS, tmp_path / CODECS.name)
    for ending in ("delete", "future", "stray"):
        shutil.copytree(CODECS, tmp_path / f"codecs-1.{'0' * 32}-{ending}")
    assert log(tmp_path / "*") == log(tmp_path) == log(tmp_path / "*" / "*.log") != []
    (aside,) = {row["file"].split("/")[-2] for row in log(tmp_path / "*-delete")}
    assert aside.endswith("-delete")
    assert {row["topic"] for row in log(tmp_path / f"codecs-1.{'0' * 32}-stray")} == {None}


def test_two_copies_of_a_partition_are_refused(tmp_path: Path) -> None:
    for broker in ("1", "2"):
        shutil.copytree(CODECS, tmp_path / broker / CODECS.name)
    copy = rf"{tmp_path}/[12]/codecs-0': another copy of this partition is {tmp_path}/[12]/codecs-0; give one of them"
    with pytest.raises(OptionError, match=copy):
        log(tmp_path / "*")
    (tmp_path / "3").symlink_to(tmp_path / "1")
    assert len(log(tmp_path / "{1,3}")) == len(log(CODECS)) > 0
