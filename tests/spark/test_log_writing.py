"""``write.format("kafka-log")``: the output equals the input, and brokers open it."""

from __future__ import annotations

import pickle
import random
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql.types import StructType

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Consumer, Producer
from kafka_msgs.errors import KafkaMsgsError, LogFileError, OptionError, RecordWriteError
from kafka_msgs.log import LogDirectory, check_offset_index, check_time_index, read_offset_checkpoint
from kafka_msgs.log.small_files import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, LeaderEpoch
from kafka_msgs.log.writers.directory_lock import DirectoryLock
from kafka_msgs.log.writers.small_files import format_offset_checkpoint, format_partition_metadata
from kafka_msgs.spark.sources.log import KafkaLogSource
from tests.recorders.broker import run_kafka_class
from tests.support.kafka_directory import KafkaNodes, claim_for_node
from tests.support.recordings import GROUP_LOGS, LOGS
from tests.support.spark_tables import table

KEPT = "topic,partition,offset,timestamp,timestampMs,timestampType,key,value,headers,leaderEpoch"
START_MS = 1_767_225_600_000
TOPIC = "orders"


def rows_of(path: Path, columns: str = KEPT, **options: str) -> pa.Table:
    """Return the rows of a directory in partition order."""
    return table(KafkaLogSource, {"path": str(path), "columns": columns, **options})


def write(
    path: object, *tasks: pa.Table, overwrite: bool = False, schema: StructType | None = None, **options: str
) -> None:
    """Write the rows of several tasks as Spark does: the writer and the task results are pickled in transit."""
    source: Any = KafkaLogSource({"path": str(path), **options})
    spark = schema or _schema(tasks[0].column_names)
    writer = source.writer(spark, overwrite)
    messages: list[Any] = [None]
    try:
        for rows in tasks:
            there = pickle.loads(pickle.dumps(writer))
            messages.append(pickle.loads(pickle.dumps(there.write(iter(rows.to_batches())))))
        pickle.loads(pickle.dumps(writer)).commit(messages)
    except KafkaMsgsError:
        writer.abort(messages)
        raise


class KilledError(Exception):
    """Ends a task here, in place of a signal."""


def _then_killed(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from rows.to_batches()
    raise KilledError


def _schema(columns: Iterable[str]) -> StructType:
    known: Any = KafkaLogSource({"path": str(LOGS), "columns": "*,timestampMs"})
    types = {each.name: each for each in known.schema()}
    return StructType([types[name] for name in columns])


def schema_of(text: str) -> StructType:
    """Return the named columns, each with its type."""
    schema = StructType()
    for column in text.split(", "):
        name, type_ = column.split()
        schema.add(name, type_)
    return schema


def records(count: int, *, partition: int = 0, seed: int = 0, first: int = 0) -> pa.Table:
    """Return rows with gaps between offsets, and with headers and nulls."""
    dice = random.Random(seed)
    offsets = [first]
    while len(offsets) < count:
        offsets.append(offsets[-1] + dice.choice([1, 1, 1, 5]))
    rows = [
        {
            "topic": TOPIC,
            "partition": partition,
            "offset": offset,
            "timestampMs": START_MS + dice.randrange(10**6),
            "key": dice.choice([None, b"key-%d" % offset]),
            "value": dice.choice([None, b"", dice.randbytes(dice.randrange(300))]),
            "headers": [{"key": "h", "value": dice.choice([None, b"1"])} for _ in range(dice.randrange(3))],
        }
        for offset in offsets
    ]
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    types = [pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.binary(), pa.binary(), headers]
    return pa.Table.from_pylist(rows, schema=pa.schema(list(zip(rows[0], types, strict=True))))


def leftovers(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir() if each.name.startswith("."))


# Rows


@pytest.mark.parametrize(
    ("recorded", "compression"),
    [(LOGS, "none"), (LOGS, "gzip"), (LOGS, "snappy"), (LOGS, "lz4"), (GROUP_LOGS, "zstd")],
)
def test_what_is_written_is_what_was_read(recorded: Path, compression: str, tmp_path: Path) -> None:
    rows = rows_of(recorded).drop_columns(["_error"])
    halves = [rows.filter(pc.equal(pc.bit_wise_and(rows["partition"], 1), bit)) for bit in (0, 1)]
    write(tmp_path / "logs", *halves, compression=compression, batchBytes="300", segmentBytes="600")
    order = [(name, "ascending") for name in ("topic", "partition", "offset")]
    assert rows_of(tmp_path / "logs").drop_columns(["_error"]).sort_by(order).equals(rows.sort_by(order))
    codecs = set(rows_of(tmp_path / "logs", "codec")["codec"].to_pylist())
    assert codecs == {compression}
    segments = [segment for each in LogDirectory(tmp_path / "logs").partitions for segment in each.segments]
    assert len(segments) > len(LogDirectory(tmp_path / "logs").partitions)
    for segment in segments:
        for check, suffix in ((check_offset_index, ".index"), (check_time_index, ".timeindex")):
            assert not [each for each in check(segment.path.with_suffix(suffix)) if isinstance(each, LogFileError)]


def test_rows_without_offsets_get_the_next_ones_and_texts_become_bytes(tmp_path: Path) -> None:
    rows = pa.table({"partition": pa.array([3, 3, 5], pa.int64()), "value": ["a", None, "c"]})
    schema = schema_of("partition long, value string")
    write(tmp_path, rows, topic=TOPIC, schema=schema)
    found = rows_of(tmp_path, "topic,partition,offset,value,timestamp").to_pylist()
    assert [(row["topic"], row["partition"], row["offset"], row["value"]) for row in found] == [
        (TOPIC, 3, 0, b"a"),
        (TOPIC, 3, 1, None),
        (TOPIC, 5, 0, b"c"),
    ]
    assert {row["timestamp"] for row in found} == {None}


def test_a_log_begins_with_its_first_offset_and_has_its_leader_epochs(tmp_path: Path) -> None:
    rows = records(60, first=1000)
    epochs = pa.array([2] * 20 + [3] * 40, pa.int32())
    offsets = rows["offset"].to_pylist()
    write(tmp_path, rows.append_column("leaderEpoch", epochs))
    (partition,) = LogDirectory(tmp_path).partitions
    assert partition.segments[0].base_offset == 1000
    assert partition.leader_epochs() == (LeaderEpoch(2, 1000), LeaderEpoch(3, offsets[20]))
    end = {(TOPIC, 0): offsets[-1] + 1}
    assert (
        read_offset_checkpoint(tmp_path / RECOVERY_POINTS) == read_offset_checkpoint(tmp_path / HIGH_WATERMARKS) == end
    )
    assert read_offset_checkpoint(tmp_path / LOG_STARTS) == {}


# The directory


def test_partitions_are_added_and_replaced_and_others_stay(tmp_path: Path) -> None:
    write(tmp_path, records(30), records(20, partition=1))
    (tmp_path / f"{TOPIC}-0" / "partition.metadata").write_bytes(format_partition_metadata(UUID(int=7)))
    (tmp_path / LOG_STARTS).write_bytes(format_offset_checkpoint({(TOPIC, 0): 3, (TOPIC, 9): 4}))
    before = rows_of(tmp_path / f"{TOPIC}-1")
    with pytest.raises(OptionError, match=f"there is a partition {TOPIC}-0; the mode overwrite replaces it"):
        write(tmp_path, records(5, partition=2), records(10))
    assert not (tmp_path / f"{TOPIC}-2").exists()
    write(tmp_path, records(10, seed=1), records(5, partition=2), overwrite=True)
    assert rows_of(tmp_path / f"{TOPIC}-0").num_rows == 10
    assert rows_of(tmp_path / f"{TOPIC}-1").equals(before)
    first, *_ = LogDirectory(tmp_path).partitions
    assert first.metadata().topic_id == UUID(int=7)
    assert read_offset_checkpoint(tmp_path / LOG_STARTS) == {(TOPIC, 9): 4}
    assert sorted(read_offset_checkpoint(tmp_path / HIGH_WATERMARKS)) == [(TOPIC, 0), (TOPIC, 1), (TOPIC, 2)]
    assert leftovers(tmp_path) == [".lock"]


def test_two_tasks_cannot_write_one_partition(tmp_path: Path) -> None:
    rows = records(20)
    with pytest.raises(OptionError, match=rf"{TOPIC}-0 was written by more than one task.*repartition"):
        write(tmp_path, records(5, partition=1), rows.slice(0, 10), rows.slice(10))
    assert list(tmp_path.iterdir()) == []


def test_of_several_attempts_of_a_task_one_is_committed_and_nothing_is_left_of_the_others(tmp_path: Path) -> None:
    rows = records(20)
    source: Any = KafkaLogSource({"path": str(tmp_path / "logs")})
    writer = source.writer(_schema(rows.column_names), False)
    slow = writer.write(iter(rows.to_batches()))
    with pytest.raises(KilledError):
        writer.write(_then_killed(rows.slice(0, 7)))
    message = writer.write(iter(rows.to_batches()))
    assert slow.partitions[0][1] != message.partitions[0][1]
    writer.commit([message])
    write(tmp_path / "once", rows)
    assert rows_of(tmp_path / "logs").equals(rows_of(tmp_path / "once"))
    assert leftovers(tmp_path / "logs") == leftovers(tmp_path / "once")


def test_a_directory_that_a_broker_has_open_is_left_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, records(5))
    before = rows_of(tmp_path)
    lock = DirectoryLock(tmp_path)
    try:
        with pytest.raises(LogFileError, match="another broker has the directory open"):
            write(tmp_path, records(9, seed=2), overwrite=True)
    finally:
        lock.release()
    assert rows_of(tmp_path).equals(before)
    assert leftovers(tmp_path) == [".lock"]


def test_if_one_partition_cannot_be_moved_none_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, records(5), records(6, partition=1))
    before = rows_of(tmp_path)
    rename = Path.rename

    def fails(path: Path, target: Path) -> Path:
        if target == tmp_path / f"{TOPIC}-1" and path.parent.name != "old":
            raise LogFileError(file=str(path), position=0, skipped=0, reason="the disk is gone")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(LogFileError, match="the disk is gone"):
        write(tmp_path, records(9, seed=2), records(8, partition=1), overwrite=True)
    assert rows_of(tmp_path).equals(before)
    assert leftovers(tmp_path) == [".lock"]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"topic": "../up"}, "it is not the name of a topic"),
        ({"topic": ".."}, "it is not the name of a topic"),
        ({"topic": None}, "it is not the name of a topic"),
        ({"partition": None}, "it is not the number of a partition"),
        ({"partition": -1}, "it is not the number of a partition"),
        ({"offset": 3}, "it does not follow"),
        ({"offset": -5}, "it does not follow"),
        ({"timestampMs": -2}, "timestamp"),
        ({"headers": [{"key": None, "value": b""}]}, "header"),
        ({"_error": "damaged"}, "no record: damaged"),
    ],
)
def test_a_row_that_is_no_record_is_refused_and_nothing_is_left(
    changed: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    good = records(20).append_column("_error", pa.nulls(20, pa.string()))
    bad = pa.Table.from_pylist([good.slice(19).to_pylist()[0] | {"offset": 1000} | changed], schema=good.schema)
    with pytest.raises(RecordWriteError, match=reason):
        write(tmp_path, pa.concat_tables([good, bad]))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("schema", "options", "reason"),
    [
        ("partition integer, value binary", {}, "topic"),
        ("topic string, value binary", {}, "the column partition is needed"),
        ("topic string, partition integer, value integer", {}, "the column value .integer. cannot be written"),
        ("topic string, partition integer, codec string", {}, "the column codec .string. cannot be written"),
        ("topic string, partition integer", {"compression": "brotli"}, "none, gzip, snappy, lz4, zstd"),
        ("topic string, partition integer", {"segmentBytes": "2g"}, "below 2 GiB"),
        ("topic string, partition integer", {"segmentByte": "1g"}, "did you mean segmentBytes"),
        ("topic string, partition integer", {"path": "s3://bucket/logs"}, "not to another filesystem"),
    ],
)
def test_a_wrong_option_of_the_sink_is_named(schema: str, options: dict[str, str], reason: str, tmp_path: Path) -> None:
    source = KafkaLogSource({"path": str(tmp_path), **options})
    with pytest.raises(OptionError, match=reason):
        source.writer(schema_of(schema), False)
    assert list(tmp_path.iterdir()) == []


# Brokers


def consumed(servers: str, count: int) -> list[tuple[int, bytes | None]]:
    """Return offsets and values of a partition, as a consumer receives them."""
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([(TOPIC, 0)])
        found: list[tuple[int, bytes | None]] = []
        while len(found) < count:
            found += [(each.offset, None if each.value is None else bytes(each.value)) for each in consumer.poll(30)]
        return found


@pytest.fixture
def kafka_node() -> None:
    """Require the prerequisites of a Kafka node; without them the test is reported as not run."""


@pytest.mark.usefixtures("kafka_node")
def test_brokers_open_what_was_written_and_go_on_with_it(tmp_path: Path) -> None:
    rows = records(1500, first=50)
    wanted = list(zip(rows["offset"].to_pylist(), rows["value"].to_pylist(), strict=True))
    home = tmp_path / "home"
    claim_for_node(home)
    with EmbeddedBroker(directory=home) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(TOPIC, 1, 1)])
    write(home, rows, overwrite=True, compression="lz4", batchBytes="2k", segmentBytes="20k")
    indexes = ",".join(str(path) for path in (home / f"{TOPIC}-0").glob("*.index"))
    said = run_kafka_class("org.apache.kafka.tools.DumpLogSegments", ["--index-sanity-check", "--files", indexes])
    assert said.count("passed sanity check") == indexes.count(",") + 1 > 2
    shutil.copytree(home, tmp_path / "copy")
    with EmbeddedBroker(directory=home) as broker:
        assert consumed(broker.bootstrap_servers, 1500) == wanted
        with Producer(broker.bootstrap_servers) as producer:
            producer.send(TOPIC, b"more")
        assert consumed(broker.bootstrap_servers, 1501) == [*wanted, (wanted[-1][0] + 1, b"more")]
        assert broker.problems == []
    with KafkaNodes(tmp_path / "copy") as node:
        assert consumed(node.bootstrap_servers, 1500) == wanted
        with Producer(node.bootstrap_servers) as producer:
            producer.send(TOPIC, b"more")
        assert consumed(node.bootstrap_servers, 1501) == [*wanted, (wanted[-1][0] + 1, b"more")]
