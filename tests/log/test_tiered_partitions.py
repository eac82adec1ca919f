"""Partitions with part of their log in remote storage: their batches equal those a consumer receives."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final, Literal
from uuid import UUID

import pyarrow as pa
import pytest

from kafka_msgs.columns.tiered_table import TieredTable
from kafka_msgs.errors import JobPathError, LogFileError, OptionError, RemoteFormatError
from kafka_msgs.internal_topics.remote_log import TopicIdPartition
from kafka_msgs.log.remote_naming import SegmentName, parse_remote_naming
from kafka_msgs.log.remote_ranges import LocalLogBounds, ranges_by_metadata, ranges_by_names, read_remote_log
from kafka_msgs.log.tiered_partitions import TieredPartition, tiered_partitions
from kafka_msgs.records import RecordBatch
from tests.support.recordings import REMOTE_TIER
from tests.support.tiers import as_aiven, finished, write_metadata
from tests.support.unreadable import forbid_listing

TIER, LOG = REMOTE_TIER / "tier", REMOTE_TIER / "log"
METADATA_LOG: Final = LOG / "__remote_log_metadata-0" / f"{0:020}.log"

Isolation = Literal["read_uncommitted", "read_committed"]
Row = tuple[int, int, bytes]


def rows(partitions: tuple[TieredPartition, ...], isolation: Isolation, log_start: int = 20) -> list[Row]:
    return [
        (each.number, record.offset, bytes(record.value or b""))
        for each in partitions
        if each.topic == "orders"
        for batch in each.batches(isolation=isolation)
        if not (isinstance(batch, RecordBatch) and batch.is_control)
        for record in batch
        if record.offset >= (log_start if each.number else 0)
    ]


def consumed(isolation: str) -> list[Row]:
    lines = map(json.loads, (REMOTE_TIER / "consumed.jsonl").read_text().splitlines())
    found = [line for line in lines if line["isolation"] == isolation]
    return sorted((line["partition"], line["offset"], line["value"].encode()) for line in found)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_tier_and_log_directory_give_what_consumers_get(isolation: Isolation, tmp_path: Path) -> None:
    assert rows(tiered_partitions(TIER, metadata=LOG, log=LOG), isolation) == consumed(isolation)
    assert rows(tiered_partitions(TIER, log=LOG), isolation) == consumed(isolation)
    aiven = as_aiven(TIER, tmp_path)
    assert rows(tiered_partitions(aiven, layout="aiven", log=LOG), isolation) == consumed(isolation)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_table_has_the_rows_that_consumers_get(isolation: Isolation, tmp_path: Path) -> None:
    partitions = [each for each in tiered_partitions(TIER, metadata=LOG, log=LOG) if each.topic == "orders"]
    rows = pa.table(TieredTable(partitions, columns=["partition", "offset", "value"], isolation=isolation)).to_pylist()
    assert [(row["partition"], row["offset"], row["value"]) for row in rows] == consumed(isolation)
    counted = pa.table(TieredTable(partitions, columns=["topic"], isolation=isolation)).to_pylist()
    assert counted == [{"topic": "orders", "_error": None}] * len(rows)
    tier = Path(shutil.copytree(TIER, tmp_path / "tier"))
    gone = next(tier.rglob(f"{13:020}-*.log"))
    gone.unlink()
    table = TieredTable(tiered_partitions(tier, metadata=LOG), columns=["file"])
    told = [row for row in pa.table(table).to_pylist() if row["_error"]]
    assert [(row["file"], row["_error"]) for row in told] == [(str(gone), f"{gone} at byte 0: the file is not there")]


def test_a_directory_of_the_tier_that_cannot_be_listed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_listing(monkeypatch, next(path for path in TIER.iterdir() if path.is_dir()))
    with pytest.raises(PermissionError):
        tiered_partitions(TIER, log=LOG)


def test_batches_are_read_from_an_offset_on() -> None:
    partition = next(each for each in tiered_partitions(TIER, metadata=LOG, log=LOG) if each.topic == "orders")
    everything = [batch.last_offset for batch in partition.batches()]
    assert [batch.last_offset for batch in partition.batches(from_offset=70)] == [n for n in everything if n >= 70]
    assert [each.path.parent.parent.name for each in partition.segments] == ["tier"] * 8 + ["log"] * 4
    with pytest.raises(OptionError, match="isolation"):
        next(partition.batches(isolation="committed"))  # type: ignore[arg-type]


def test_segments_that_are_stored_in_another_form_are_refused(tmp_path: Path) -> None:
    aiven = as_aiven(TIER, tmp_path / "aiven", compression=True)
    with pytest.raises(RemoteFormatError, match="compressed"):
        tiered_partitions(aiven, layout="aiven")
    tier = Path(shutil.copytree(TIER, tmp_path / "tier"))
    next(tier.rglob(f"{0:020}-*.log")).write_bytes(b"short")
    with pytest.raises(RemoteFormatError, match="the object has 5 bytes"):
        tiered_partitions(tier, metadata=LOG)


def test_directories_without_what_is_needed_are_errors(tmp_path: Path) -> None:
    with pytest.raises(JobPathError, match="there is no segment in the tier"):
        tiered_partitions(tmp_path)
    with pytest.raises(JobPathError, match="there is no segment of __remote_log_metadata"):
        tiered_partitions(TIER, metadata=tmp_path)
    with pytest.raises(OptionError, match="layout"):
        tiered_partitions(TIER, layout="{topic}")


def test_a_torn_end_of_the_metadata_is_left_out_and_other_damage_is_an_error(tmp_path: Path) -> None:
    whole = read_remote_log([METADATA_LOG])
    data = METADATA_LOG.read_bytes()
    torn = tmp_path / METADATA_LOG.name
    torn.write_bytes(data + data[:70])
    assert read_remote_log([torn]) == whole
    torn.write_bytes(data[:90] + bytes([data[90] ^ 1]) + data[91:])
    with pytest.raises(LogFileError, match="checksum"):
        read_remote_log([torn])


def test_of_two_topics_of_one_name_the_local_log_names_the_one_that_is_there(tmp_path: Path) -> None:
    old, new = TopicIdPartition("orders", UUID(int=1), 0), TopicIdPartition("orders", UUID(int=2), 0)
    segments = [(old, UUID(int=3), (0, 9)), (new, UUID(int=4), (0, 4))]
    messages = [each for place, number, span in segments for each in finished(place, number, span, {0: 0}, 100)]
    (tmp_path / "__remote_log_metadata-0").mkdir()
    write_metadata(tmp_path, messages)
    log = read_remote_log([tmp_path / "__remote_log_metadata-0" / f"{0:020}.log"])
    for place, _, span in segments:
        found = ranges_by_metadata(log, {("orders", 0): LocalLogBounds(first=50, topic_id=place.topic_id)})
        assert [(each.name.topic_id, each.end) for each in found["orders", 0]] == [(place.topic_id, span[1] + 1)]
    names = {SegmentName(*place[:3], span[0], number): 100 for place, number, span in segments}
    with pytest.raises(JobPathError, match="topics with two ids have this name"):
        ranges_by_names(names, {})
    found = ranges_by_names(names, {("orders", 0): LocalLogBounds(first=50, topic_id=old.topic_id)})
    assert [each.name.topic_id for each in found["orders", 0]] == [old.topic_id]


def test_by_names_the_largest_of_segments_that_begin_alike_is_read_up_to_the_next() -> None:
    sizes = {(0, 1): 10, (0, 2): 30, (0, 3): 20, (8, 4): 10}
    names = {SegmentName("orders", None, 0, start, UUID(int=n)): size for (start, n), size in sizes.items()}
    (found,) = ranges_by_names(names, {("orders", 0): LocalLogBounds(first=12, log_start=3)}).values()
    assert [(each.name.segment_id.int, each.start, each.end) for each in found] == [(2, 3, 8), (4, 8, 12)]


@pytest.mark.parametrize(
    "layout",
    [
        "kafka",
        "aiven",
        "{partition}-{topic}/{offset}/{segment_id}",
        "a.{topic}x{partition}.{offset:020}.{segment_id}.{topic_id}.log",
    ],
)
def test_a_path_tells_what_it_was_made_of(layout: str) -> None:
    known = parse_remote_naming(layout)
    for topic in ("orders", "a-1-b.c_d", "0"):
        topic_id = UUID(int=9) if "{topic_id}" in known.segment else None
        name = SegmentName(topic, topic_id, 12, 2**63 - 1, UUID(int=2**128 - 1))
        assert known.name_of(known.path(name)) == name
    assert known.name_of("orders-0/leader-epoch-checkpoint") is None
    for wrong in ("..", "a/b", "", "a" * 250):
        with pytest.raises(RemoteFormatError, match="is not the name of a topic"):
            known.path(SegmentName(wrong, None, 0, 0, UUID(int=1)))


@pytest.mark.parametrize(
    "template",
    ["", "{topic}-{partition}-{offset}", "{0}", "{topic", "{topic!r}{partition}{offset}{segment_id}",
     "{topic}{topic}{partition}{offset}{segment_id}", "{topic:>9999999}{partition}{offset}{segment_id}",
     "{topic}{partition}{offset:0999}{segment_id}", "{topic}{partition}{offset}{segment_id}" + "x" * 1000],
)  # fmt: skip
def test_templates_with_anything_else_are_refused(template: str) -> None:
    with pytest.raises(OptionError, match="a tier: option layout"):
        parse_remote_naming(template)
