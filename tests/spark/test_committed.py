"""``isolation=read_committed``: the committed rows, with any combination of the files that accompany segments.

Expected rows follow from the generated history, not from a reading of it. In the last test a real broker writes the
history.
"""

from __future__ import annotations

import json
import pickle
import random
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pytest

from kafka_msgs.admin import Admin, OffsetSpec
from kafka_msgs.client import Producer, TopicPartition
from kafka_msgs.client.consumer import Consumer
from kafka_msgs.log.writers.segment_writer import SegmentWriter
from kafka_msgs.log.writers.small_files import format_producer_snapshot
from kafka_msgs.messages.producer_snapshot import ProducerSnapshot
from kafka_msgs.records import BatchBuilder, BatchHeader
from kafka_msgs.spark.sources.log import KafkaLogSource
from kafka_msgs.spark.sources.options import Options
from kafka_msgs.spark.sources.read_committed import TransactionTrail
from kafka_msgs.spark.sources.read_plan import ReadPlan
from tests.support.cluster_topics import new_name, new_topic
from tests.support.counting_filesystem import as_bucket
from tests.support.eventually import until
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.spark_tables import read
from tests.support.transactional_log import START_MS, History

COMMITTED: Final = {"isolation": "read_committed"}


def history_in(home: Path, seed: int, *, segments: int = 5, steps: int = 14, size: int = 10) -> History:
    """Write a history of several segments in a new directory."""
    home.mkdir()
    history = History(home, random.Random(seed), size)
    history.write(segments, steps)
    return history


def offsets(path: object, **options: object) -> list[int]:
    """Return the offsets of the rows, which must be undamaged."""
    rows = read(KafkaLogSource, path, columns="offset,batchPosition", **COMMITTED, **options)
    assert not [row["_error"] for row in rows if row["_error"]]
    return [row["offset"] for row in rows]


# Files left by a broker


def _stopped(history: History) -> None:
    history.snapshot()


def _restarted(history: History) -> None:
    """Stop the broker and resume in the same segment."""
    history.snapshot()
    last = max(history.home.glob("*.log"))
    more = History(history.home, history.dice, history.size, history.next_offset, history.open, history.committed)
    with SegmentWriter(history.home, history.next_offset) as segment:
        for _ in range(9):
            more.step(segment)
    history.next_offset = more.next_offset
    with last.open("ab") as written:
        written.write(segment.path.read_bytes())
    for added in history.home.glob(f"{segment.path.stem}.*"):
        if added.suffix != ".snapshot":
            added.unlink()


def _running(history: History) -> None:
    """Keep the broker running: the last segment has no final snapshot, and its indexes have free space."""
    index = max(history.home.glob("*.index"))
    index.write_bytes(index.read_bytes() + bytes(4096))


def _bare(history: History) -> None:
    """Keep only the segments."""
    for path in history.home.iterdir():
        if path.suffix != ".log":
            path.unlink()


def _without_snapshots(history: History) -> None:
    for path in history.home.glob("*.snapshot"):
        path.unlink()


def _without_an_index(history: History) -> None:
    """Delete the index of a segment and its transaction index."""
    stem = history.dice.choice(sorted(history.home.glob("*.log"))).with_suffix("")
    stem.with_suffix(".index").unlink()
    stem.with_suffix(".txnindex").unlink(missing_ok=True)


def _damaged(pattern: str) -> Callable[[History], None]:
    def damage(history: History) -> None:
        history.snapshot()
        for path in islice(sorted(history.home.glob(pattern), reverse=True), 2):
            data = bytearray(path.read_bytes())
            data[:2] = b"\x07\x07"
            path.write_bytes(data[: len(data) - history.dice.randrange(2)])

    return damage


def _from_another_time(history: History) -> None:
    """Add snapshots of offsets beyond the log."""
    data = format_producer_snapshot(ProducerSnapshot())
    for offset in (history.next_offset + 5, history.next_offset + 10**6):
        (history.home / f"{offset:020}.snapshot").write_bytes(data)


LEFT: Final = {
    "stopped": _stopped,
    "restarted": _restarted,
    "running": _running,
    "bare": _bare,
    "without snapshots": _without_snapshots,
    "without an index": _without_an_index,
    "damaged indexes of transactions": _damaged("*.txnindex"),
    "damaged snapshots": _damaged("*.snapshot"),
    "snapshots of another time": _from_another_time,
}


@pytest.mark.parametrize("left", LEFT)
def test_rows_are_those_of_committed_records(left: str, tmp_path: Path, place: str) -> None:
    for seed in range(4):
        history = history_in(tmp_path / f"events-{seed}", seed)
        LEFT[left](history)
        visible = history.visible()
        assert offsets(f"{place}events-{seed}", splitBytes="200") == visible
        start, end = sorted(history.dice.choices(range(history.next_offset + 2), k=2))
        options = {"startingOffsets": at(seed, start), "endingOffsets": at(seed, end), "splitBytes": "200"}
        assert offsets(f"{place}events-{seed}", **options) == [each for each in visible if start <= each < end]
        options = {"startingTimestamp": str(START_MS + start), "endingOffsets": at(seed, end)}
        assert offsets(f"{place}events-{seed}", **options) == [each for each in visible if start <= each < end]


def at(number: int, offset: int) -> str:
    """Return an option with an offset."""
    return json.dumps({"events": {str(number): offset}})


@pytest.mark.parametrize("left", ["stopped", "running"])
def test_a_log_that_starts_in_transactions_shows_what_a_broker_shows(left: str, tmp_path: Path, place: str) -> None:
    for seed in range(4):
        history = history_in(tmp_path / f"events-{seed}", seed)
        LEFT[left](history)
        first = sorted(history.home.glob("*.log"))[2].stem
        for path in history.home.iterdir():
            if path.stem < first:
                path.unlink()
        assert offsets(f"{place}events-{seed}") == [each for each in history.visible() if each >= int(first)]


def test_a_transaction_whose_records_were_deleted_is_still_open(tmp_path: Path, place: str) -> None:
    """The segments alone do not show the open transaction; the snapshot does."""
    home = tmp_path / "events-0"
    home.mkdir()
    history = History(home, random.Random(1), next_offset=7, open={40: [3]})
    history.snapshot()
    with SegmentWriter(home, 7) as segment:
        builder = BatchBuilder(BatchHeader(base_offset=7))
        builder.append(None, b"plain", timestamp=START_MS)
        segment.append(builder.build())
    assert offsets(f"{place}events-0") == []
    for path in home.glob("*.snapshot"):
        path.unlink()
    assert offsets(f"{place}events-0") == [7]


def test_a_batch_that_is_completed_after_the_plan_is_not_read_without_its_transaction(tmp_path: Path) -> None:
    home = tmp_path / "orders-0"
    home.mkdir()
    whole = b"".join(map(_one_record, range(3)))
    (home / f"{0:020}.log").write_bytes(whole[:-10])
    reader: Any = KafkaLogSource({"path": str(tmp_path), "columns": "offset", **COMMITTED})
    made = reader.reader(reader.schema())
    splits = made.partitions()
    (home / f"{0:020}.log").write_bytes(whole)
    rows = [offset for split in splits for rows in made.read(split) for offset in rows["offset"].to_pylist()]
    assert rows == [0, 1] == offsets(tmp_path)


def _one_record(offset: int) -> bytes:
    """Return a batch: the one with the offset 2 begins a transaction."""
    header = BatchHeader(
        base_offset=offset, producer_id=7, producer_epoch=0, base_sequence=offset, transactional=offset == 2
    )
    builder = BatchBuilder(header)
    builder.append(None, b"value", timestamp=START_MS)
    return builder.build()


def test_segments_that_are_deleted_after_the_plan_are_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = history_in(tmp_path / "events-0", 3)
    _bare(history)
    as_bucket(tmp_path, monkeypatch)
    source = KafkaLogSource({"path": "s3://bucket/events-0", "columns": "offset", **COMMITTED})
    reader: Any = source.reader(source.schema())
    (split,) = reader.partitions()
    gone = min(history.home.glob("*.log"))
    following = int(sorted(history.home.glob("*.log"))[1].stem)
    gone.unlink()
    rows = [row for batch in reader.read(split) for row in batch.to_pylist()]
    assert gone.name in rows[0]["_error"]
    assert {row["offset"] for row in rows[1:]} <= {each for each in history.visible() if each >= following}


# Bytes


@pytest.mark.parametrize("left", ["stopped", "running", "bare"])
def test_the_driver_reads_less_than_a_hundredth_and_tasks_the_rest(
    left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = history_in(tmp_path / "events-0", 11, segments=6, steps=250, size=1000)
    LEFT[left](history)
    size = sum(path.stat().st_size for path in history.home.glob("*.log"))
    counted = as_bucket(tmp_path, monkeypatch)
    given = {"path": "s3://bucket/events-0", "splitBytes": "1m", **COMMITTED}
    splits = ReadPlan.of(Options("kafka-log", given)).splits()
    assert counted.total <= size // 100
    whole = [split for split in splits if isinstance(split[-1].transactions, TransactionTrail)]
    assert len(whole) == (0 if left == "stopped" else 1)
    assert len(splits) == 1 if left == "bare" else len(splits) >= 4
    # A task receives a copy of its parts, and reads the transaction data once.
    source = KafkaLogSource({**given, "columns": "offset"})
    reader: Any = source.reader(source.schema())
    found = []
    for split in pickle.loads(pickle.dumps(splits)):
        for part in split:
            found += [row["offset"] for batch in reader.rows(part) for row in batch.to_pylist()]
    assert found == history.visible()
    twice = sum(part.size for split in whole for part in split)
    assert counted.total <= size * 1.05 + twice


# A real broker


class _Transactions:
    """Transactional producers of one partition."""

    def __init__(self, cluster: ClusterAddresses, topic: str, names: str) -> None:
        self._topic = topic
        self._made = {name: Producer(cluster.bootstrap_servers, transactional_id=new_name(name)) for name in names}
        for producer in self._made.values():
            producer.init_transactions()

    def play(self, script: str) -> None:
        """Run a script. ``a(`` begins a transaction of ``a``, ``a7`` writes 28 records, ``a+`` commits, ``a-``
        aborts.
        """
        for step in script.split():
            producer, action = self._made[step[0]], step[1]
            if action == "(":
                producer.begin_transaction()
            elif action == "+":
                producer.commit_transaction()
            elif action == "-":
                producer.abort_transaction()
            else:
                for number in range(4 * int(action)):
                    producer.send(self._topic, random.Random(number).randbytes(15_000), partition=0)
                producer.flush()

    def close(self) -> None:
        """Close the producers, which aborts open transactions."""
        for producer in self._made.values():
            producer.close()


def _directory(cluster: ClusterAddresses, place: TopicPartition) -> Path:
    """Return the directory of a partition with one replica."""
    name = f"{place.topic}-{place.partition}"
    (found,) = (path for node in cluster.nodes if (path := cluster.log_dir(node) / name).exists())
    return found


def _open_transactions(admin: Admin, place: TopicPartition) -> int:
    """Return the number of open transactions in a partition."""
    return sum(each.current_txn_start_offset >= 0 for each in admin.describe_producers([place])[place])


def _consumed(cluster: ClusterAddresses, place: TopicPartition, count: int) -> list[int]:
    """Return the offsets of the first records that a read-committed consumer receives."""
    found: list[int] = []
    settings: Any = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    with Consumer(cluster.bootstrap_servers, **settings) as consumer:
        consumer.assign([place])

        def enough() -> bool:
            found.extend(each.offset for each in consumer.poll(1.0))
            return len(found) >= count

        until(enough)
    return found


def test_the_directory_of_a_running_broker_gives_what_its_consumers_get(
    kafka_cluster: ClusterAddresses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic(kafka_cluster, configs={"segment.bytes": str(2**20)})
    place = TopicPartition(topic, 0)
    history = _Transactions(kafka_cluster, topic, "abc")
    with Admin(kafka_cluster.bootstrap_servers) as admin:
        try:
            history.play("a( a5 b( b5 a+ b5 a( a5 b- a9 c( c5 a- c9 c+ b( b9 a( a9 b+ a9 a+ c( c2 c-")
            until(lambda: _open_transactions(admin, place) == 0)
            stable = admin.list_offsets({place: OffsetSpec.LATEST})[place].offset
            history.play("a( a3 b( b9 b- c( c5 c+")
            until(lambda: _open_transactions(admin, place) == 1)
            got = _consumed(kafka_cluster, place, 4 * (5 + 14 + 9 + 18))
            home = Path(shutil.copytree(_directory(kafka_cluster, place), tmp_path / f"{topic}-0"))
        finally:
            history.close()
    assert max(got) < stable
    counted = as_bucket(tmp_path, monkeypatch)
    remote = f"s3://bucket/{home.name}"
    ReadPlan.of(Options("kafka-log", {"path": remote, **COMMITTED})).splits()
    assert counted.total <= sum(path.stat().st_size for path in home.glob("*.log")) // 50
    assert len(list(home.glob("*.txnindex"))) > 1
    assert offsets(home) == offsets(remote) == got
    for path in [*home.glob("*.snapshot"), *home.glob("*.txnindex")]:
        path.unlink()
    assert offsets(home) == offsets(remote) == got
