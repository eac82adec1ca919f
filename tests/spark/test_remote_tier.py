"""A partition's complete log, remote and local, equals the records that a consumer of its broker reads."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from kafka_msgs.errors import OptionError, RemoteFormatError
from kafka_msgs.internal_topics.remote_log import TopicIdPartition
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.remote_naming import REMOTE_NAMINGS, SegmentName, parse_remote_naming
from kafka_msgs.log.writers.segment_writer import SegmentWriter
from kafka_msgs.message import Message
from kafka_msgs.records import BatchBuilder, BatchHeader, RecordBatch
from kafka_msgs.spark.sources.counts import KafkaLogCountsSource
from kafka_msgs.spark.sources.log import KafkaLogSource, log_reading
from kafka_msgs.spark.sources.options import Options
from kafka_msgs.spark.sources.read_plan import LogReader, ReadPlan
from tests.support.counting_filesystem import as_bucket
from tests.support.recordings import REMOTE_TIER
from tests.support.spark_tables import read
from tests.support.tiers import as_aiven, finished, renamed, write_metadata

TIER, LOG = REMOTE_TIER / "tier", REMOTE_TIER / "log"
WHOLE: Final = {"remoteMetadata": str(LOG), "localLog": str(LOG), "topics": "orders"}
COMMITTED: Final = {"isolation": "read_committed"}
ROWS: Final = {"columns": "partition,offset,timestampMs,leaderEpoch,key,value,headers"}

Row = tuple[Any, ...]


def rows(options: Mapping[str, str], tier: str | Path = TIER) -> list[Row]:
    """Return the output of the source, split by split, as Spark's tasks read it."""
    found = read(KafkaLogSource, tier, **ROWS, **options)
    assert [row["_error"] for row in found if row["_error"]] == []
    return sorted(map(row_of, found))


def row_of(row: dict[str, Any]) -> Row:
    headers = tuple((each["key"], each["value"].decode()) for each in row["headers"] or ())
    facts = (row["partition"], row["offset"], row["timestampMs"], row["leaderEpoch"])
    return *facts, row["key"].decode(), row["value"].decode(), headers


def consumed(isolation: str = "read_uncommitted") -> list[Row]:
    """Return the records that consumers received from the broker."""
    lines = map(json.loads, (REMOTE_TIER / "consumed.jsonl").read_text().splitlines())
    return sorted(
        (
            *(line[name] for name in ("partition", "offset", "timestamp", "leaderEpoch", "key", "value")),
            tuple(map(tuple, line["headers"])),
        )
        for line in lines
        if line["isolation"] == isolation
    )


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("size", ["100", "1500", "32m"])
def test_tier_and_log_directory_give_what_consumers_get(isolation: str, size: str) -> None:
    assert rows(WHOLE | {"isolation": isolation, "splitBytes": size}) == consumed(isolation)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_the_tier_alone_gives_what_was_copied(isolation: str) -> None:
    options = {"remoteMetadata": str(LOG), "isolation": isolation}
    first = {0: 0, 1: 15}
    found = rows(options)
    # Without the log directory, deleted records and an open transaction are undetectable.
    assert [row for row in found if row[:2] >= (1, 20) or not row[0]] == [
        row for row in consumed(isolation) if row[1] < 135
    ]
    assert {number: min(row[1] for row in found if row[0] == number) for number in first} == first


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_names_alone_give_the_same_of_a_tier_without_leftovers(isolation: str) -> None:
    whole = rows({"remoteMetadata": str(LOG), "isolation": isolation})
    assert rows({"remoteLayout": "kafka", "isolation": isolation}) == whole
    local = WHOLE | {"remoteLayout": "kafka", "isolation": isolation}
    del local["remoteMetadata"]
    assert rows(local) == consumed(isolation)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("metadata", [True, False])
def test_segments_of_aivens_plugin_are_read_where_they_are_stored_plainly(
    isolation: str, metadata: bool, tmp_path: Path
) -> None:
    tier = as_aiven(TIER, tmp_path / "prefix")
    options = WHOLE | {"remoteLayout": "aiven", "isolation": isolation, "splitBytes": "300"}
    if not metadata:
        del options["remoteMetadata"]
    assert rows(options, tier) == consumed(isolation)


def test_names_of_a_users_own_plugin(tmp_path: Path) -> None:
    template = "{partition:05}_{topic}/{segment_id}@{offset}.segment.log"
    tier = renamed(TIER, tmp_path / "own", parse_remote_naming(template))
    assert rows(WHOLE | {"remoteLayout": template, "isolation": "read_committed"}, tier) == consumed("read_committed")
    names = {"remoteLayout": template, "localLog": str(LOG), "topics": "orders"}
    assert rows(names, tier) == consumed()


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"compression": True}, "the segment is compressed by its plugin"),
        ({"encryption": {"dataKey": "k:AA==", "aad": "AA=="}}, "the segment is encrypted by its plugin"),
        ({"version": "2"}, "the version '2' of the manifest is not known"),
        ({"chunkIndex": {}}, "it is not the manifest of a segment"),
    ],
)
def test_segments_that_only_the_plugin_can_read_are_refused(
    members: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    tier = as_aiven(TIER, tmp_path, **members)
    with pytest.raises(RemoteFormatError, match=reason):
        rows({"remoteLayout": "aiven"}, tier)
    for path in tier.rglob("*.log"):
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(RemoteFormatError, match=reason):
        rows(WHOLE | {"remoteLayout": "aiven"}, tier)


def test_an_object_of_another_size_than_its_segment_is_refused(tmp_path: Path) -> None:
    tier = Path(shutil.copytree(TIER, tmp_path / "tier"))
    path = next(tier.rglob(f"{13:020}-*.log"))
    path.write_bytes(path.read_bytes() + b"tag")
    with pytest.raises(RemoteFormatError, match="its plugin stores it in another form"):
        rows(WHOLE, tier)


def test_a_segment_that_is_not_in_the_tier_is_a_row_with_the_reason(tmp_path: Path) -> None:
    tier = Path(shutil.copytree(TIER, tmp_path / "tier"))
    gone = next(tier.rglob(f"{13:020}-*.log"))
    gone.unlink()
    told = [row for row in read(KafkaLogSource, tier, columns="file", **WHOLE) if row["_error"]]
    assert [row["file"] for row in told] == [str(gone)]


def test_a_bucket_without_snapshots_is_followed_where_its_parts_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_aiven(TIER, tmp_path / "aiven")
    shutil.copytree(TIER, tmp_path / "tier", ignore=shutil.ignore_patterns("*.snapshot", "*.txnindex"))
    as_bucket(tmp_path, monkeypatch)
    options = {"path": "s3://bucket/tier", "remoteLayout": "kafka", **COMMITTED}
    plan = ReadPlan.of(Options("kafka-log", options))
    reader = LogReader(plan, log_reading(Options("kafka-log", {"columns": "partition,offset"})))
    splits = pickle.loads(pickle.dumps(plan.splits()))
    found = [row for split in splits for part in split for batch in reader.rows(part) for row in batch.to_pylist()]
    wanted = rows(COMMITTED | {"remoteLayout": "aiven"}, "s3://bucket/aiven")
    assert sorted((row["partition"], row["offset"]) for row in found) == [row[:2] for row in wanted]


@pytest.mark.parametrize("seed", range(12))
def test_offsets_choose_records(seed: int) -> None:
    dice = Random(seed)
    isolation = dice.choice(["read_uncommitted", "read_committed"])
    start, end = sorted(dice.choices(range(145), k=2))
    offsets = {"startingOffsets": at(start), "endingOffsets": at(end)}
    wanted = [row for row in consumed(isolation) if start <= row[1] < end]
    assert rows(WHOLE | offsets | {"isolation": isolation, "splitBytes": dice.choice(["200", "32m"])}) == wanted


def at(offset: int) -> str:
    return json.dumps({"orders": {"0": offset, "1": offset}})


@pytest.mark.parametrize("seed", range(8))
def test_times_choose_records(seed: int) -> None:
    everything = consumed()
    stamp = Random(seed).choice(everything)[2] + seed % 2
    first = {n: min((row[1] for row in everything if row[0] == n and row[2] >= stamp), default=10**6) for n in (0, 1)}
    assert rows(WHOLE | {"startingTimestamp": str(stamp)}) == [row for row in everything if row[1] >= first[row[0]]]
    assert rows(WHOLE | {"endingTimestamp": str(stamp)}) == [row for row in everything if row[1] < first[row[0]]]


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("layout", ["kafka", "aiven"])
def test_a_bucket_is_read_as_far_as_it_is_needed(
    isolation: str, layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (renamed if layout == "kafka" else as_aiven)(TIER, tmp_path / "tier", **KAFKA_NAMES[layout])
    counted = as_bucket(tmp_path, monkeypatch)
    options = WHOLE | {"isolation": isolation, "remoteLayout": layout}
    assert rows(options, "s3://bucket/tier") == consumed(isolation)
    counted.read.clear()
    some = {"partitions": "0", "startingOffsets": json.dumps({"orders": {"0": 62}}), "endingOffsets": at_zero(74)}
    wanted = [row for row in consumed(isolation) if row[0] == 0 and 62 <= row[1] < 74]
    assert rows(options | some, "s3://bucket/tier") == wanted
    assert {path.rpartition("/")[2][:20] for path in counted.read if path.endswith(".log")} == {f"{61:020}"}
    assert not [path for path in counted.read if "orders-1" in path]


KAFKA_NAMES: Final[dict[str, dict[str, Any]]] = {"kafka": {"layout": REMOTE_NAMINGS["kafka"]}, "aiven": {}}


def at_zero(offset: int) -> str:
    return json.dumps({"orders": {"0": offset}})


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("first", [95, 98, 104, 121])
def test_local_segments_of_another_leader_begin_elsewhere(first: int, isolation: str, tmp_path: Path) -> None:
    log = Path(shutil.copytree(LOG, tmp_path / "log"))
    local = Partition(LOG / "orders-0").batches()
    batches = [batch for batch in local if isinstance(batch, RecordBatch) and batch.last_offset >= first]
    for path in (log / "orders-0").glob("0*"):
        path.unlink()
    for part in (batches[:3], batches[3:7], batches[7:]):
        with SegmentWriter(log / "orders-0", part[0].base_offset) as writer:
            for batch in part:
                writer.append(bytes(batch.stored_bytes))
    options = {"remoteMetadata": str(LOG), "localLog": str(log), "topics": "orders", "isolation": isolation}
    assert rows(options) == consumed(isolation)


def test_records_of_a_leader_that_others_replaced_are_not_read(tmp_path: Path) -> None:
    place = TopicIdPartition("orders", UUID(int=1), 0)
    spans = {1: (0, 19, {0: 0}), 2: (10, 39, {0: 10}), 3: (20, 49, {0: 20, 1: 30})}
    messages: list[Message] = []
    (tmp_path / "log" / "__remote_log_metadata-0").mkdir(parents=True)
    for number, (start, end, epochs) in spans.items():
        segment = SegmentName(*place[:3], start, UUID(int=number))
        path = tmp_path / "tier" / REMOTE_NAMINGS["kafka"].path(segment)
        path.parent.mkdir(parents=True, exist_ok=True)
        with SegmentWriter(path.parent, start) as writer:
            for offset in range(start, end + 1, 2):
                writer.append(pair(offset, max(each for each, first in epochs.items() if first <= offset)))
        writer.path.rename(path)
        for ending in (".index", ".timeindex"):
            writer.path.with_suffix(ending).rename(path.with_suffix(ending))
        messages += finished(place, UUID(int=number), (start, end), epochs, path.stat().st_size)
    write_metadata(tmp_path / "log", messages)
    options = {"remoteMetadata": str(tmp_path / "log"), "columns": "offset,value"}
    found = read(KafkaLogSource, tmp_path / "tier", **options)
    assert [(row["offset"], row["value"]) for row in found] == [(n, b"01"[n >= 30 :][:1]) for n in range(50)]
    # Names contain no leader epochs: each segment is read up to the next one.
    by_names = read(KafkaLogSource, tmp_path / "tier", remoteLayout="kafka", columns="offset,value")
    assert [row["offset"] for row in by_names] == list(range(50))


def pair(offset: int, epoch: int) -> bytes:
    """Return a batch of two records written by an epoch's leader."""
    builder = BatchBuilder(BatchHeader(base_offset=offset, partition_leader_epoch=epoch))
    for number in range(2):
        assert builder.append(b"key", str(epoch).encode(), timestamp=1_700_000_000_000 + offset + number)
    return builder.build()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"localLog": str(LOG)}, "localLog .*: it is for remote storage"),
        ({"remoteLayout": "{topic}/{offset}"}, "remoteLayout .*: it is one of kafka, aiven, or a template"),
        ({"remoteLayout": "{topic.__class__}{partition}{offset}{segment_id}"}, "remoteLayout .*: it is one of"),
        ({"remoteMetadata": str(TIER.parent / "log" / "orders-0")}, "there is no segment of __remote_log_metadata"),
        ({"remoteMetadata": str(LOG), "topics": "invoices"}, "there is no segment in the tier"),
    ],
)
def test_wrong_options_are_errors(options: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        read(KafkaLogSource, TIER, **options)


def test_a_stream_does_not_read_remote_storage() -> None:
    source = KafkaLogSource({"path": str(TIER), **WHOLE})
    with pytest.raises(OptionError, match="a stream reads the log directory of a broker"):
        source.streamReader(source.schema())


def test_rows_of_remote_storage_in_spark(spark: SparkSession) -> None:
    table = spark.read.format("kafka-log").options(**WHOLE, isolation="read_committed", splitBytes="2k").load(str(TIER))
    found = table.select("partition", "offset", "value").collect()
    wanted = [(row[0], row[1], row[5].encode()) for row in consumed("read_committed")]
    assert sorted((row.partition, row.offset, bytes(row.value)) for row in found) == wanted


def test_counts_of_remote_storage() -> None:
    counted = read(KafkaLogCountsSource, TIER, **WHOLE, isolation="read_committed")
    assert sum(row["records"] for row in counted) == len(consumed("read_committed"))
