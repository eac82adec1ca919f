"""``readStream`` of log files: however a log is split into writes and reads, a stream returns the rows of the table."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kafka_msgs import EndTxnMarker
from kafka_msgs.errors import LogFileError, OffsetPositionError, OptionError
from kafka_msgs.log.writers.index_writer import SegmentIndexes
from kafka_msgs.log.writers.small_files import format_partition_metadata
from kafka_msgs.records import BatchBuilder, BatchHeader, CompressionType, ControlType
from kafka_msgs.spark.sources.log import KafkaLogSource
from kafka_msgs.spark.sources.offset_options import limit_offsets
from kafka_msgs.spark.sources.offsets import KafkaOffsetsSource
from tests.support.log_streams import LogStream
from tests.support.recordings import GROUP_LOGS, LOGS
from tests.support.spark_tables import read

START_MS = 1_767_225_600_000
COLUMNS = "topic,partition,offset,timestampMs,key,value,file,batchPosition"


class Writer:
    """A partition that a broker writes: batches, transactions, damage, and incomplete tails."""

    def __init__(self, home: Path, dice: random.Random, base: int = 0) -> None:
        home.mkdir(parents=True)
        self.home, self.dice, self.next = home, dice, base
        self.open: set[int] = set()
        self.tail = b""
        self._begin()

    def _begin(self) -> None:
        self.path = self.home / f"{self.next:020}.log"
        self.path.write_bytes(b"")
        self.indexes = SegmentIndexes(self.next, interval=200)

    def roll(self) -> None:
        """Begin another segment. The previous segment gets its index."""
        self.finish()
        self.path.with_suffix(".index").write_bytes(self.indexes.offset_index())
        self._begin()

    def finish(self) -> None:
        """Write the rest of an incomplete batch."""
        if self.tail:
            with self.path.open("ab") as file:
                file.write(self.tail)
        self.tail = b""

    def step(self) -> None:
        """Write a random item."""
        self.finish()
        what = self.dice.randrange(12)
        if what == 0:
            self.roll()
        elif what == 1:
            self.add(damaged=True)
        elif what < 4 and self.open:
            self.end_transaction(self.dice.choice(sorted(self.open)), self.dice.choice(["COMMIT", "ABORT"]))
        elif what < 6:
            self.add(producer=self.dice.randrange(3))
        else:
            self.add(torn=what == 6)

    def add(self, *, producer: int | None = None, damaged: bool = False, torn: bool = False) -> None:
        """Write a batch of several records, optionally in a transaction, with a wrong byte, or incomplete."""
        facts: dict[str, Any] = {}
        if producer is not None:
            facts = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
            self.open.add(producer)
        codec = self.dice.choice([CompressionType.NONE, CompressionType.GZIP])
        builder = BatchBuilder(BatchHeader(base_offset=self.next, **facts), codec=codec)
        for _ in range(self.dice.randrange(1, 6)):
            builder.append(b"key", b"%d" % builder.next_offset, timestamp=START_MS + builder.next_offset)
        data = bytearray(builder.build())
        if damaged:
            data[-1] ^= 1
        self._write(bytes(data), builder.next_offset - 1, torn=torn)
        # Compaction and aborted batches leave gaps.
        self.next += self.dice.choice([0, 0, 0, 3])

    def end_transaction(self, producer: int, kind: str) -> None:
        """Write a transaction's end marker."""
        header = BatchHeader(
            base_offset=self.next, producer_id=producer, producer_epoch=0, transactional=True, control=True
        )
        builder = BatchBuilder(header)
        builder.append_control(ControlType[kind], EndTxnMarker(coordinator_epoch=0), timestamp=START_MS)
        self._write(builder.build(), self.next)
        self.open.discard(producer)

    def _write(self, data: bytes, last: int, *, torn: bool = False) -> None:
        self.indexes.add(self.path.stat().st_size, len(data), last, START_MS + last)
        cut = self.dice.randrange(1, len(data)) if torn else len(data)
        with self.path.open("ab") as file:
            file.write(data[:cut])
        self.tail, self.next = data[cut:], last + 1


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["partition"], row["file"], row["batchPosition"], row["offset"] or -1))


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("seed", range(3))
def test_a_log_read_in_any_pieces_gives_the_rows_of_the_table(
    seed: int, isolation: str, place: str, tmp_path: Path
) -> None:
    dice = random.Random(seed)
    writers = [Writer(tmp_path / "logs" / "events-0", dice)]
    options = {"isolation": isolation, "columns": COLUMNS, "splitBytes": dice.choice(["300", "32m"])}
    logs = f"{place}logs"
    stream, found = LogStream(KafkaLogSource, logs, **options), []
    writers[0].add(damaged=True)
    for _ in range(25):
        for writer in dice.choices(writers, k=dice.randrange(6)):
            writer.step()
        if len(writers) < 3 and not dice.randrange(8):
            writers.append(Writer(tmp_path / "logs" / f"events-{len(writers)}", dice, base=dice.choice([0, 17])))
        if not dice.randrange(4):
            stream.restart()
        found += stream.batch(dice.choice([None, 1, 7]))
    for writer in writers:
        for producer in sorted(writer.open):
            writer.finish()
            writer.end_transaction(producer, "COMMIT")
        writer.finish()
        writer.add()
    found += stream.batch()
    assert stream.batch() == []
    assert any(row["_error"] for row in found)
    assert in_order(found) == in_order(read(KafkaLogSource, logs, **options))


def test_a_batch_that_spark_repeats_has_the_same_rows_although_the_log_has_grown(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "logs" / "events-0", random.Random(1))
    stream = LogStream(KafkaLogSource, tmp_path / "logs")
    start = json.loads(stream.position)
    for _ in range(20):
        writer.add()
    rows = stream.batch(30)
    writer.roll()
    writer.add()
    stream.restart()
    splits = stream.reader.partitions(start, json.loads(stream.position))
    again = [row for split in splits for batch in stream.reader.read(split) for row in batch.to_pylist()]
    assert stream.offsets["events"]["0"] >= 30
    assert again == rows
    assert rows


def test_limits_are_shared_and_batches_of_records_stay_whole() -> None:
    partitions = ["codecs", "prices"]
    stream = LogStream(KafkaLogSource, LOGS, topics=",".join(partitions), maxOffsetsPerTrigger=10, control=True)
    sizes, rows = [], []
    while batch := stream.batch():
        ends = stream.offsets
        assert all(row["offset"] < ends[row["topic"]][str(row["partition"])] for row in batch)
        sizes.append(len(batch))
        rows += batch
    assert len(sizes) > 2
    table = read(KafkaLogSource, LOGS, topics="codecs,prices", control=True)
    assert sorted(rows, key=str) == sorted(table, key=str)


def test_a_stream_begins_where_the_options_say(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "events-0", random.Random(3), base=100)
    for _ in range(30):
        writer.add()
    every = [row["offset"] for row in read(KafkaLogSource, tmp_path)]

    def offsets(**options: object) -> list[int]:
        stream = LogStream(KafkaLogSource, tmp_path, **options)
        return [row["offset"] for row in stream.batch()]

    assert offsets() == offsets(startingOffsets="earliest") == offsets(startingOffsets='{"events": {"0": 3}}') == every
    assert offsets(startingOffsets='{"events": {"0": 120}}') == [each for each in every if each >= 120]
    assert offsets(startingTimestamp=START_MS + 130) == [each for each in every if each >= 130]
    assert offsets(startingOffsets='{"events": {"0": -1}}') == offsets(startingTimestamp=START_MS + 10**6) == []
    latest = LogStream(KafkaLogSource, tmp_path, startingOffsets="latest")
    writer.add()
    new = [row["offset"] for row in read(KafkaLogSource, tmp_path)][len(every) :]
    assert [row["offset"] for row in latest.batch()] == new


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"endingOffsets": '{"events": {"0": 5}}'}, "a stream does not end"),
        ({"endingTimestamp": 5}, "a stream does not end"),
        ({"startingOffsets": '{"events": {"7": 5}}'}, "there is no partition events-7"),
        ({"maxOffsetsPerTrigger": "few"}, "a number from 1"),
        ({"failOnDataLoss": "maybe"}, "true or false"),
        ({"path": "{file}"}, "directories of partitions"),
    ],
)
def test_an_option_that_a_stream_cannot_have_is_named(options: dict[str, Any], reason: str, tmp_path: Path) -> None:
    Writer(tmp_path / "events-0", random.Random(0)).add()
    alone = shutil.copy(tmp_path / "events-0" / f"{0:020}.log", tmp_path / "alone.log")
    path = options.pop("path", str(tmp_path)).format(file=alone)
    with pytest.raises(OptionError, match=reason):
        LogStream(KafkaLogSource, path, **options)


@pytest.mark.parametrize("position", ["{}", '{"offsets": {"events": 3}, "topicIds": {}}', "[]"])
def test_a_checkpoint_of_another_source_is_refused(position: str, tmp_path: Path) -> None:
    Writer(tmp_path / "events-0", random.Random(0)).add()
    stream = LogStream(KafkaLogSource, tmp_path)
    stream.position = position
    with pytest.raises(OptionError, match="position of a stream"):
        stream.batch()


def test_available_now_ends_where_the_log_ended(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "events-0", random.Random(4))
    for _ in range(10):
        writer.add()
    before = [row["offset"] for row in read(KafkaLogSource, tmp_path)]
    stream = LogStream(KafkaLogSource, tmp_path, maxOffsetsPerTrigger=8)
    stream.reader.prepareForTriggerAvailableNow()
    found: list[int] = []
    while rows := stream.batch():
        found += [row["offset"] for row in rows]
        writer.add()
        Writer(tmp_path / f"events-{len(list(tmp_path.iterdir()))}", random.Random(0)).add()
    assert found == before
    assert stream.reader.reportLatestOffset() == json.loads(stream.position)
    stream.restart()
    while rows := stream.batch():
        found += [row["offset"] for row in rows]
    assert sorted(found) == sorted(row["offset"] for row in read(KafkaLogSource, tmp_path))


# Changes to a log


def _of_segments(home: Path) -> Writer:
    """Write a partition of three segments, with its topic id."""
    writer = Writer(home, random.Random(5))
    for _ in range(3):
        for _ in range(4):
            writer.add()
        writer.roll()
    _name(home, 1)
    return writer


def _name(home: Path, number: int) -> None:
    (home / "partition.metadata").write_bytes(format_partition_metadata(UUID(int=number)))


def _first_segment_goes(home: Path) -> None:
    min(home.glob("*.log")).unlink()


def _shrinks(home: Path) -> None:
    for path in sorted(home.glob("*.log"))[1:]:
        path.unlink()


def _is_deleted(home: Path) -> None:
    shutil.rmtree(home)


def _is_created_again(home: Path) -> None:
    _name(home, 2)


@pytest.mark.parametrize(
    ("happens", "read_before", "reason", "left"),
    [
        (_first_segment_goes, 0, "it begins at offset", lambda every, kept: kept),
        (_shrinks, None, "it ends at offset", lambda every, kept: []),
        (_is_deleted, 0, "it is not there any more", lambda every, kept: []),
        (_is_created_again, None, "the topic was created again", lambda every, kept: every),
    ],
)
def test_lost_records_end_a_stream_or_it_goes_on_with_what_is_left(
    happens: Any, read_before: int | None, reason: str, left: Any, tmp_path: Path
) -> None:
    Writer(tmp_path / "other-0", random.Random(0)).add()
    home = tmp_path / "events-0"
    _of_segments(home)
    every = [row["offset"] for row in read(KafkaLogSource, home)]
    strict = LogStream(KafkaLogSource, tmp_path)
    lenient = LogStream(KafkaLogSource, tmp_path, failOnDataLoss=False)
    if read_before is None:
        assert len(strict.batch()) == len(lenient.batch())
    happens(home)
    kept = [row["offset"] for row in read(KafkaLogSource, home)] if home.exists() else []
    with pytest.raises(OffsetPositionError, match=rf"events-0: {reason}.*failOnDataLoss"):
        strict.batch()
    assert [row["offset"] for row in lenient.batch() if row["topic"] == "events"] == left(every, kept)
    assert lenient.batch() == []


def test_records_that_vanish_after_the_plan_end_the_stream_or_are_a_row(tmp_path: Path) -> None:
    _of_segments(tmp_path / "events-0")
    strict = LogStream(KafkaLogSource, tmp_path)
    lenient = LogStream(KafkaLogSource, tmp_path, failOnDataLoss=False)
    (split,), (same,) = strict.plan(), lenient.plan()
    _first_segment_goes(tmp_path / "events-0")
    with pytest.raises(LogFileError, match="deleted after the read was planned"):
        list(strict.reader.read(split))
    rows = [row for batch in lenient.reader.read(same) for row in batch.to_pylist()]
    assert "deleted after the read was planned" in rows[0]["_error"]
    assert [row["offset"] for row in rows[1:]] == [row["offset"] for row in read(KafkaLogSource, tmp_path)]


def test_the_sources_of_internal_topics_are_streams_too() -> None:
    stream = LogStream(KafkaOffsetsSource, GROUP_LOGS, maxOffsetsPerTrigger=20, control=True)
    rows: list[dict[str, Any]] = []
    while batch := stream.batch():
        rows += batch
    table = read(KafkaOffsetsSource, GROUP_LOGS, control=True)
    assert len(table) > 50
    assert sorted(rows, key=str) == sorted(table, key=str)


def test_no_partition_with_something_to_read_stays_where_it_is() -> None:
    start, end = {("t", 0): 0, ("t", 1): 5}, {("t", 0): 1000, ("t", 1): 6, ("t", 2): 0}
    assert limit_offsets(start, end, 10) == {("t", 0): 9, ("t", 1): 6, ("t", 2): 0}
    assert limit_offsets(start, end, 5000) == end
