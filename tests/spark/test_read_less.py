"""``kafka-log`` reads only the bytes it needs, and returns the same rows as a full read."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c
from pyarrow import fs

from kafka_msgs.errors import LogFileError, OptionError
from kafka_msgs.filesystems import path_resolution
from kafka_msgs.filesystems.resolver import OpenedFilesystem
from kafka_msgs.log.file_scan import read_log, walk_log
from kafka_msgs.log.indexes import TIME_LAYOUT
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.writers.segment_writer import SegmentWriter
from kafka_msgs.records import BatchBuilder, BatchHeader, CompressionType, MessageSetBuilder, RecordBatch
from kafka_msgs.spark.sources.log import KafkaLogSource
from kafka_msgs.spark.sources.options import Options
from kafka_msgs.spark.sources.read_plan import ReadPlan
from tests.support.counting_filesystem import CountedFiles, as_bucket
from tests.support.recordings import GROUP_LOGS, LOGS
from tests.support.spark_tables import read

ACTIVE = Path(__file__).parents[1] / "recordings" / "active"
RECORDED = [
    LOGS / "codecs-0",
    LOGS / "prices-0",
    LOGS / "__transaction_state-0",
    GROUP_LOGS / "__consumer_offsets-1",
    GROUP_LOGS / "__consumer_offsets-2",
    ACTIVE / "drafts-0",
]
START_MS = 1_767_225_600_000
PER_BATCH = 20
BATCHES = 400
SEGMENTS = 5
STEP_MS = 7


def log(path: object, **options: object) -> list[dict[str, Any]]:
    return read(KafkaLogSource, path, **{"columns": "*", **options})


def at(partition: Path, offset: int) -> str:
    """Return an option with an offset of a partition."""
    topic, _, number = partition.name.rpartition("-")
    return json.dumps({topic: {number: offset}})


def first_at(partition: Path, timestamp: int) -> int | None:
    """Return the broker's offset for a time, from a full read of the records."""
    stamps = ((record.timestamp, record.offset) for batch in Partition(partition).batches() for record in batch)
    return next((offset for stamp, offset in stamps if stamp >= timestamp), None)


# Rows


@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "bare"])
@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.name)
def test_offsets_choose_the_rows_that_they_choose_of_everything(
    recorded: Path, indexed: bool, tmp_path: Path, place: str
) -> None:
    home = Path(shutil.copytree(recorded, tmp_path / recorded.name))
    for path in home.glob("*index") if not indexed else ():
        path.unlink()
    every = log(f"{place}{home.name}", control=True)
    last = max(row["offset"] for row in every)
    dice = random.Random(recorded.name)
    for _ in range(12):
        start, end = sorted(dice.choices(range(last + 3), k=2))
        options = {"startingOffsets": at(home, start), "endingOffsets": at(home, end), "splitBytes": "300"}
        found = log(f"{place}{home.name}", control=True, **options)
        assert found == [row for row in every if start <= row["offset"] < end]


@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "bare"])
@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.name)
def test_times_choose_what_a_broker_gives_for_them(recorded: Path, indexed: bool, tmp_path: Path, place: str) -> None:
    home = Path(shutil.copytree(recorded, tmp_path / recorded.name))
    for path in home.glob("*index") if not indexed else ():
        path.unlink()
    every = log(f"{place}{home.name}", control=True)
    stamps = sorted({record.timestamp for batch in Partition(home).batches() for record in batch})
    dice = random.Random(recorded.name)
    for _ in range(6):
        one, two = sorted(stamp + dice.randrange(-1, 2) for stamp in dice.choices(stamps, k=2))
        start, end = first_at(home, one), first_at(home, two)
        found = log(f"{place}{home.name}", control=True, startingTimestamp=one, endingTimestamp=two)
        wanted = [row for row in every if start is not None and row["offset"] >= start]
        assert found == [row for row in wanted if end is None or row["offset"] < end]


def test_times_that_go_back_begin_at_the_first_record_that_is_late_enough(tmp_path: Path, place: str) -> None:
    home = tmp_path / "events-0"
    home.mkdir()
    stamps = [5, 9, 3, 4, 30, 2, 8, 31, 1, 40]
    for base in range(0, len(stamps), 2):
        with SegmentWriter(home, base, interval=0) as segment:
            for offset in (base, base + 1):
                builder = BatchBuilder(BatchHeader(base_offset=offset))
                builder.append(None, b"%d" % offset, timestamp=stamps[offset])
                segment.append(builder.build())
    for time in range(0, 43, 2):
        begin = next((offset for offset, stamp in enumerate(stamps) if stamp >= time), len(stamps))
        found = log(f"{place}events-0", startingTimestamp=time)
        assert [row["offset"] for row in found] == list(range(begin, len(stamps)))
        found = log(f"{place}events-0", endingTimestamp=time)
        assert [row["offset"] for row in found] == list(range(begin))


def test_partitions_that_offsets_do_not_name_are_read_whole(tmp_path: Path) -> None:
    every = log(LOGS, control=True)
    found = log(LOGS, control=True, startingOffsets='{"codecs": {"0": 36}}')
    assert found == [row for row in every if row["topic"] != "codecs" or row["offset"] >= 36]
    assert log(LOGS, control=True, startingOffsets="earliest", endingOffsets="latest") == every
    assert (
        log(LOGS, control=True, startingOffsets='{"codecs": {"0": -2}}', endingOffsets='{"codecs": {"0": -1}}') == every
    )


def test_compressed_message_sets_are_cut_at_their_records(tmp_path: Path) -> None:
    home = tmp_path / "old-0"
    home.mkdir()
    data = b""
    for base in range(0, 30, 5):
        builder = MessageSetBuilder(magic=1, base_offset=base, codec=CompressionType.GZIP)
        for number in range(base, base + 5):
            builder.append(b"k", b"%d" % number, timestamp=number)
        data += builder.build()
    (home / f"{0:020}.log").write_bytes(data)
    for start in range(0, 31, 4):
        for end in range(start, 31, 6):
            found = log(home, startingOffsets=at(home, start), endingOffsets=at(home, end), splitBytes="50")
            assert [row["offset"] for row in found] == list(range(start, end))
    assert [row["offset"] for row in log(home, startingTimestamp=13)] == list(range(13, 30))


# Damage


def _damaged(home: Path, seed: int) -> list[Path]:
    """Write segments of small batches with indexes, then damage their bytes.

    Batch offsets stay intact: the checksum does not cover them, so damage to them would be undetectable.
    """
    dice = random.Random(seed)
    home.mkdir()
    paths = []
    for base in (0, 30, 60):
        with SegmentWriter(home, base, interval=200) as segment:
            for first in range(base, base + 30, 3):
                segment.append(_batch(first, 3))
        firsts = [batch.position for batch in read_log(segment.path)]
        data = bytearray(segment.path.read_bytes())
        for _ in range(dice.randrange(3)):
            place = dice.choice(firsts) + dice.randrange(8, 90)
            if dice.randrange(2):
                data[place] ^= 1 << dice.randrange(8)
            else:
                data[place : place + dice.randrange(150)] = bytes(dice.randrange(150))
        segment.path.write_bytes(data)
        paths.append(segment.path)
    return paths


def _batch(first: int, count: int, size: int = 8) -> bytes:
    builder = BatchBuilder(BatchHeader(base_offset=first))
    for offset in range(first, first + count):
        builder.append(b"key-%d" % offset, bytes(size), timestamp=START_MS + STEP_MS * offset)
    return builder.build()


def _in_range(paths: list[Path], start: int, end: int) -> Iterator[tuple[str, int]]:
    """Yield the records and faults in a range of segments, from a full walk over their bytes."""
    for path, after in zip(paths, [*paths[1:], None], strict=True):
        if int(path.stem) >= end or (after is not None and int(after.stem) <= start):
            continue
        items = list(walk_log(path))
        firsts = [item.base_offset if isinstance(item, RecordBatch) else None for item in items]
        next_offset = int(path.stem)
        for number, item in enumerate(items):
            if isinstance(item, LogFileError):
                following = next((first for first in firsts[number:] if first is not None), end + start + 1)
                if next_offset < end and following > start:
                    yield path.name, -item.position - 1
                continue
            assert isinstance(item, RecordBatch)
            next_offset = item.last_offset + 1
            yield from ((path.name, offset) for offset in item.offsets() if start <= offset < end)


@pytest.mark.parametrize("seed", range(12))
def test_damage_is_in_a_range_unless_the_batches_around_it_show_that_it_is_not(seed: int, tmp_path: Path) -> None:
    paths = _damaged(tmp_path / "events-0", seed)
    home, dice = paths[0].parent, random.Random(seed)
    for attempt in range(6):
        if attempt == 3:
            for path in home.glob("*index"):
                path.unlink()
        start, end = sorted(dice.sample(range(92), 2))
        options = {"startingOffsets": at(home, start), "endingOffsets": at(home, end)}
        expected = list(_in_range(paths, start, end))
        for split in ("1", "32m"):
            rows = log(home, **options, splitBytes=split)
            found = [
                (Path(row["file"]).name, -row["batchPosition"] - 1 if row["_error"] else row["offset"]) for row in rows
            ]
            assert found == expected


@pytest.mark.parametrize("seed", range(10))
def test_an_offset_index_that_is_wrong_loses_no_row(seed: int, tmp_path: Path) -> None:
    home, dice = tmp_path / "events-0", random.Random(seed)
    home.mkdir()
    with SegmentWriter(home, 0, interval=100) as segment:
        for first in range(0, 60, 3):
            segment.append(_batch(first, 3))
    index = home / f"{0:020}.index"
    data = bytearray(index.read_bytes())
    for _ in range(dice.randrange(1, 6)):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    index.write_bytes(data[: len(data) - dice.randrange(12)])
    for _ in range(6):
        start, end = sorted(dice.choices(range(61), k=2))
        rows = log(home, startingOffsets=at(home, start), endingOffsets=at(home, end), splitBytes="100")
        assert [row["offset"] for row in rows] == list(range(start, end))


@pytest.mark.parametrize("content", [b"", b"\xff" * 25, bytes(48)], ids=["empty", "noise", "zeros"])
def test_a_time_index_that_says_nothing_is_passed_over(content: bytes, tmp_path: Path, place: str) -> None:
    home = tmp_path / "events-0"
    home.mkdir()
    for base in (0, 30):
        with SegmentWriter(home, base) as segment:
            segment.append(_batch(base, 30))
        segment.path.with_suffix(".timeindex").write_bytes(content)
    rows = log(f"{place}events-0", startingTimestamp=START_MS + STEP_MS * 40 - 1)
    assert [row["offset"] for row in rows] == list(range(40, 60))


def test_a_time_index_that_its_batches_contradict_is_not_used(tmp_path: Path, place: str) -> None:
    home = tmp_path / "events-0"
    home.mkdir()
    with SegmentWriter(home, 0, interval=100) as segment:
        for first in range(0, 60, 3):
            segment.append(_batch(first, 3))
    segment.path.with_suffix(".timeindex").write_bytes(TIME_LAYOUT.pack(START_MS + STEP_MS * 10, 50))
    rows = log(f"{place}events-0", startingTimestamp=START_MS + STEP_MS * 20)
    assert [row["offset"] for row in rows] == list(range(20, 60))


def test_a_transaction_that_began_before_the_range_and_is_open_hides_what_follows(tmp_path: Path) -> None:
    home = tmp_path / "events-0"
    home.mkdir()
    begun = BatchBuilder(BatchHeader(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))
    begun.append(None, b"open", timestamp=1)
    (home / f"{0:020}.log").write_bytes(begun.build())
    (home / f"{1:020}.log").write_bytes(_batch(1, 3))
    assert [row["offset"] for row in log(home, startingOffsets=at(home, 2))] == [2, 3]
    assert log(home, startingOffsets=at(home, 2), isolation="read_committed") == []
    assert log(home / f"{1:020}.log", isolation="read_committed") == []


# Headers

OF_BATCHES = (
    "topic,partition,timestampType,leaderEpoch,producerId,producerEpoch,transactional,control,codec,magic,batchOffset,"
    "batchPosition,batchSize,file"
)


@pytest.mark.parametrize("directory", [LOGS, GROUP_LOGS, ACTIVE], ids=["logs", "groups", "active"])
@pytest.mark.parametrize("options", [{}, {"control": True}, {"isolation": "read_committed"}], ids=str)
def test_columns_of_batches_are_those_that_decoding_gives(directory: Path, options: dict[str, Any]) -> None:
    """The column ``offset`` requires the records, so adding it forces decoding."""
    decoded = log(directory, columns=f"{OF_BATCHES},offset", **options)
    for row in decoded:
        del row["offset"]
    assert log(directory, columns=OF_BATCHES, **options) == decoded
    assert len(log(directory, columns="partition", **options)) == len(decoded)


@pytest.mark.parametrize("seed", range(6))
def test_damage_is_counted_as_rows_by_headers_too(seed: int, tmp_path: Path) -> None:
    home = _damaged(tmp_path / "events-0", seed)[0].parent
    every = log(home, columns="offset,batchPosition,file")
    counted = log(home, columns="batchPosition,file")
    assert counted == [{name: row[name] for name in ("batchPosition", "file", "_error")} for row in every]
    start = at(home, 40)
    assert len(log(home, columns="partition", startingOffsets=start)) == len(log(home, startingOffsets=start))


def test_columns_of_batches_are_made_without_decoding_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(_batch(0, 7) + _batch(7, 5))
    monkeypatch.setattr("kafka_msgs.spark.sources.log_rows.walk_record_table", None)
    monkeypatch.setattr(RecordBatch, "offsets", None)
    assert [row["batchOffset"] for row in log(path, columns="batchOffset")] == [0] * 7 + [7] * 5


@pytest.mark.parametrize("count", [2**31 - 1, 1000, -1])
def test_a_header_that_counts_what_cannot_be_there_is_damage(count: int, tmp_path: Path) -> None:
    data = bytearray(_batch(0, 7))
    data[57:61] = count.to_bytes(4, "big", signed=True)
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(data + _batch(7, 5))
    rows, decoded = log(path, columns="partition,batchPosition"), log(path, columns="batchPosition,offset")
    assert [row["_error"] for row in rows] == [row["_error"] for row in decoded]
    assert [bool(row["_error"]) for row in rows] == [True] + [False] * 5


# Options


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"startingOffsets": "latest"}, "reading cannot begin at the latest offset"),
        ({"startingOffsets": '{"codecs": {"0": -1}}'}, "reading cannot begin at the latest offset"),
        ({"endingOffsets": "earliest"}, "reading cannot end at the earliest offset"),
        ({"endingOffsets": '{"codecs": {"0": -2}}'}, "reading cannot end at the earliest offset"),
        ({"startingOffsets": '{"codecs": {"0": -3}}'}, "an offset is not negative"),
        ({"startingOffsets": '{"codecs": {"7": 1}}'}, "there is no partition codecs-7"),
        ({"endingOffsets": '{"codec": {"0": 1}}'}, "there is no partition codec-0"),
        ({"startingOffsets": '{"codecs": {"0": "1"}}'}, "earliest, latest, or offsets such as"),
        ({"startingOffsets": '{"codecs": {"0": 1.5}}'}, "earliest, latest, or offsets such as"),
        ({"startingOffsets": '{"codecs": 3}'}, "earliest, latest, or offsets such as"),
        ({"startingOffsets": "[" * 100_000}, "earliest, latest, or offsets such as"),
        ({"startingTimestamp": "yesterday"}, "a number of milliseconds"),
        ({"startingTimestamp": "-1"}, "a number of milliseconds"),
        ({"endingTimestamp": "9" * 19}, "a number of milliseconds"),
        ({"endingTimestamp": "9" * 5000}, "a number of milliseconds"),
    ],
)
def test_a_position_that_cannot_be_is_refused(options: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionError, match=reason) as raised:
        log(LOGS, **options)
    assert raised.value.option in options


# Bytes


@pytest.fixture(scope="module")
def topic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory with one partition of several MB; its last segment has indexes as in a running broker."""
    home = tmp_path_factory.mktemp("logs") / "events-0"
    home.mkdir()
    per_segment = BATCHES * PER_BATCH
    for base in range(0, SEGMENTS * per_segment, per_segment):
        with SegmentWriter(home, base) as segment:
            for first in range(base, base + per_segment, PER_BATCH):
                segment.append(_batch(first, PER_BATCH, size=100))
    for suffix in (".index", ".timeindex"):
        index = segment.path.with_suffix(suffix)
        index.write_bytes(index.read_bytes() + bytes(1 << 20))
    return home


def _last_percent(topic: Path, by: str) -> tuple[int, dict[str, str]]:
    """Return the offset where the last hundredth of the records begins, and options that select it."""
    count = SEGMENTS * BATCHES * PER_BATCH
    start = count - count // 100
    time = {"startingTimestamp": str(START_MS + STEP_MS * start)}
    return start, {"startingOffsets": at(topic, start)} if by == "offset" else time


@pytest.mark.parametrize("by", ["offset", "time"])
def test_the_last_percent_of_a_remote_topic_costs_three_percent_of_its_bytes(
    by: str, topic: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = as_bucket(topic.parent, monkeypatch)
    start, options = _last_percent(topic, by)
    rows = log("s3://bucket/events-0", **options, columns="offset")
    assert [row["offset"] for row in rows] == list(range(start, SEGMENTS * BATCHES * PER_BATCH))
    assert 0 < counted.total <= 0.03 * sum(path.stat().st_size for path in topic.glob("*.log"))


@pytest.mark.parametrize("by", ["offset", "time"])
def test_the_last_percent_of_a_local_topic_costs_three_percent_of_its_bytes(
    by: str, topic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, options = _last_percent(topic, by)
    home = Path(shutil.copytree(topic, tmp_path / topic.name))
    counted = CountedFiles(fs.LocalFileSystem())
    with monkeypatch.context() as patch:
        patch.setattr(path_resolution, "filesystem_of", lambda *_: OpenedFilesystem(counted, ""))
        plan = ReadPlan.of(Options("kafka-log", {"path": str(home), **options}))
        (part,) = (part for split in plan.splits() for part in split)
    size = sum(path.stat().st_size for path in home.glob("*.log"))
    assert counted.total + part.size <= 0.03 * size
    # The rows need only the bytes of the part: all others are removed here.
    for path in home.glob("*.log"):
        data = bytearray(path.read_bytes())
        data[: part.start if path.name in part.file.path else len(data)] = b""
        kept = bytes(part.start) if path.name in part.file.path else b""
        path.write_bytes(kept + data)
    source = KafkaLogSource({"path": str(topic), "columns": "offset"})
    reader: Any = source.reader(source.schema())
    rows = [row["offset"] for batch in reader.rows(part) for row in batch.to_pylist()]
    assert rows == list(range(start, SEGMENTS * BATCHES * PER_BATCH))


def test_parts_of_a_middle_cover_nothing_beside_it(topic: Path) -> None:
    start, end = 12_345, 23_456
    options = {"startingOffsets": at(topic, start), "endingOffsets": at(topic, end), "splitBytes": "64k"}
    plan = ReadPlan.of(Options("kafka-log", {"path": str(topic), **options}))
    parts = [part for split in plan.splits() for part in split]
    share = (end - start) / (SEGMENTS * BATCHES * PER_BATCH)
    size = sum(path.stat().st_size for path in topic.glob("*.log"))
    assert len(parts) > 10
    assert all(one.end == two.start for one, two in pairwise(parts) if one.file == two.file)
    assert share * size <= sum(part.size for part in parts) <= share * size + 0.02 * size
    rows = log(topic, **options, columns="offset")
    assert [row["offset"] for row in rows] == list(range(start, end))
