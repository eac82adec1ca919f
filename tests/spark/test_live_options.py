"""The options of ``kafka-live`` with the names of Spark's connector, on the embedded broker and without a session."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows
from pyspark.sql.types import StructType

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Producer, TopicPartition
from kafka_msgs.client.consumer import Consumer
from kafka_msgs.errors import BrokerError, OffsetPositionError, OptionError
from kafka_msgs.spark.live_metrics import offsets_behind_latest
from kafka_msgs.spark.sources.live import KafkaLiveSource, LiveStreamReader
from kafka_msgs.spark.sources.live_limits import LiveOffsetRange, TaskLimits

TOPIC = "events"
COLUMNS = "partition,offset,timestamp,key,value"
NONE = StructType()
READERS: list[LiveStreamReader] = []


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """A broker with 30 records in partition 0 and 3 in partition 1; the time of record n is n seconds."""
    with EmbeddedBroker() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(TOPIC, 2, 1, configs={"retention.ms": "-1"})]).all()
        send(broker, 0, range(30))
        send(broker, 1, range(3))
        yield broker


def send(broker: EmbeddedBroker, partition: int, numbers: range) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for number in numbers:
            producer.send(TOPIC, b"%d" % number, partition=partition, timestamp=number * 1000, headers=[("h", b"1")])


def source(broker: EmbeddedBroker, **options: str) -> KafkaLiveSource:
    return KafkaLiveSource({"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": TOPIC, **options})


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    """Stop the readers that a test has used."""
    yield
    while READERS:
        READERS.pop().stop()


def stream(broker: EmbeddedBroker, **options: str) -> LiveStreamReader:
    reader = source(broker, **options).streamReader(NONE)
    assert isinstance(reader, LiveStreamReader)
    READERS.append(reader)
    return reader


def ranges(broker: EmbeddedBroker, **options: str) -> list[LiveOffsetRange]:
    return [each.value for each in source(broker, **options).reader(NONE).partitions()]


def offsets(broker: EmbeddedBroker, **options: str) -> dict[int, list[int]]:
    """Return the offsets of a table by partition."""
    reader, found = source(broker, columns=COLUMNS, **options).reader(NONE), dict[int, list[int]]()
    for part in reader.partitions():
        for batch in reader.read(part):
            rows: Any = batch
            for row in rows.to_pylist():
                found.setdefault(row["partition"], []).append(row["offset"])
    return found


def position(first: int, second: int, topic: str = TOPIC) -> dict[str, Any]:
    return {topic: {"0": first, "1": second}}


def test_a_table_has_at_least_the_partitions_that_are_asked_for(broker: EmbeddedBroker) -> None:
    assert [(each.place.partition, each.size) for each in ranges(broker)] == [(0, 30), (1, 3)]
    assert len(ranges(broker, minPartitions="2")) == 2
    parts = ranges(broker, minPartitions="7")
    assert len(parts) >= 7
    assert sum(each.size for each in parts) == 33
    assert len(ranges(broker, minPartitions="500")) == 33


def test_a_task_has_at_most_the_records_that_are_allowed(broker: EmbeddedBroker) -> None:
    parts = ranges(broker, maxRecordsPerPartition="10")
    assert [(each.place.partition, each.start, each.end) for each in parts] == [
        (0, 0, 10), (0, 10, 20), (0, 20, 30), (1, 0, 3)
    ]  # fmt: skip
    assert max(each.size for each in ranges(broker, maxRecordsPerPartition="10", minPartitions="20")) < 10
    assert offsets(broker, maxRecordsPerPartition="4") == {0: [*range(30)], 1: [*range(3)]}


@given(st.lists(st.integers(1, 200), max_size=8), st.integers(0, 300), st.integers(0, 50))
def test_tasks_cover_every_offset_once_within_the_limits(sizes: list[int], least: int, most: int) -> None:
    whole = [LiveOffsetRange(TopicPartition("t", number), 5, 5 + size) for number, size in enumerate(sizes)]
    parts = TaskLimits(min_partitions=least or None, max_records=most or None).split(whole)
    covered = [(each.place.partition, at) for each in parts for at in range(each.start, each.end)]
    assert covered == [(number, 5 + at) for number, size in enumerate(sizes) for at in range(size)]
    assert all(each.size > 0 for each in parts)
    assert len(parts) >= min(least, sum(sizes))
    assert not most or all(each.size <= most for each in parts)


def test_times_by_partition_select_the_start_and_the_end(broker: EmbeddedBroker) -> None:
    start = json.dumps(position(25_000, 1_500))
    assert offsets(broker, startingOffsetsByTimestamp=start) == {0: [*range(25, 30)], 1: [2]}
    end = json.dumps(position(4_000, 10**12))
    assert offsets(broker, endingOffsetsByTimestamp=end) == {0: [*range(4)], 1: [0, 1, 2]}
    assert offsets(broker, startingOffsetsByTimestamp=json.dumps({TOPIC: {"0": 28_000}})) == {0: [28, 29], 1: [0, 1, 2]}
    assert stream(broker, startingOffsetsByTimestamp=start).initialOffset() == position(25, 2)


def test_a_partition_without_a_record_at_its_time_starts_at_its_end_or_is_an_error(broker: EmbeddedBroker) -> None:
    start = json.dumps(position(25_000, 5_000))
    assert offsets(broker, startingOffsetsByTimestamp=start) == {0: [*range(25, 30)]}
    with pytest.raises(OptionError, match="events-1 has no record at or after this time"):
        offsets(broker, startingOffsetsByTimestamp=start, startingOffsetsByTimestampStrategy="error")
    with pytest.raises(OptionError, match="startingTimestamp: events-1 has no record at or after this time"):
        offsets(broker, startingTimestamp="5000", startingOffsetsByTimestampStrategy="error")


def test_headers_are_a_column_unless_they_are_excluded(broker: EmbeddedBroker) -> None:
    assert "headers" in source(broker).schema().names
    assert "headers" in source(broker, includeHeaders="true").schema().names
    assert "headers" not in source(broker, includeHeaders="false").schema().names


def test_a_small_batch_waits_until_it_is_large_or_late(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("kafka_msgs.spark.sources.live.time.monotonic", lambda: clock[0])
    reader = stream(broker, startingOffsets="earliest", minOffsetsPerTrigger="5", maxTriggerDelay="30s")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMinRows(5)
    assert reader.latestOffset(position(28, 3), limit) == position(30, 3), "the first batch does not wait"
    assert reader.latestOffset(position(28, 3), limit) == position(28, 3)
    assert reader.latestOffset(position(20, 3), limit) == position(30, 3)
    clock[0] += 29
    assert reader.latestOffset(position(28, 3), limit) == position(28, 3)
    clock[0] += 1
    assert reader.latestOffset(position(28, 3), limit) == position(30, 3)
    assert reader.latestOffset(position(28, 3), ReadAllAvailable()) == position(30, 3)
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(position(28, 3), limit) == position(30, 3)


def test_both_limits_apply_to_a_batch(broker: EmbeddedBroker) -> None:
    reader = stream(broker, startingOffsets="earliest", minOffsetsPerTrigger="2", maxOffsetsPerTrigger="11")
    assert reader.getDefaultReadLimit() == ReadMaxRows(11)
    assert reader.latestOffset(position(0, 0), ReadMaxRows(11)) == position(10, 1)
    assert reader.latestOffset(position(29, 3), ReadMaxRows(11)) == position(29, 3)


@pytest.mark.parametrize("options", [{"kafka.group.id": "reports"}, {"groupIdPrefix": "reports"}])
def test_progress_is_committed_to_a_group_on_request(broker: EmbeddedBroker, options: dict[str, str]) -> None:
    reader = stream(broker, commitOffsets="true", **options)
    name = reader.group or ""
    assert name.startswith("reports-" if "groupIdPrefix" in options else "reports")
    assert name == stream(broker, commitOffsets="true", **options).group, "it is the same in every run"
    reader.commit(position(12, 2))
    reader.commit(position(13, 2) | position(1, 1, "deleted"))
    with Admin(broker.bootstrap_servers) as admin:
        found = admin.list_group_offsets(name)
        assert {place.partition: each.offset for place, each in found.items()} == {0: 13, 1: 2}


def test_without_a_request_no_group_is_used(broker: EmbeddedBroker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        before = {each.group_id for each in admin.list_groups()}
        reader = stream(broker)
        reader.commit(position(1, 1))
        assert {each.group_id for each in admin.list_groups()} == before


def test_a_failed_commit_ends_the_stream(broker: EmbeddedBroker) -> None:
    with Consumer(broker.bootstrap_servers, group_id="members") as consumer:
        consumer.subscribe([TOPIC])
        while not consumer.assignment:
            consumer.poll(0.1)
        reader = stream(broker, commitOffsets="true", **{"kafka.group.id": "members"})
        with pytest.raises(BrokerError, match="UNKNOWN_MEMBER_ID"):
            reader.commit(position(12, 2))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"minPartitions": "0"}, "minPartitions '0': a number from 1"),
        ({"maxRecordsPerPartition": "x"}, "maxRecordsPerPartition 'x': a number from 1"),
        ({"startingOffsetsByTimestamp": '{"events": {"0": -1}}'}, "milliseconds since the epoch are needed"),
        ({"startingOffsetsByTimestamp": "5"}, "milliseconds since the epoch are needed"),
        ({"startingOffsetsByTimestamp": '{"events": {"9": 1}}'}, "no partition events-9 in the subscription"),
        ({"startingOffsets": '{"other": {"0": 1}}'}, "no partition other-0 in the subscription"),
        (
            {"startingTimestamp": "1", "startingOffsets": "earliest"},
            "startingTimestamp '1': it excludes startingOffsets",
        ),
        ({"columns": "key", "includeHeaders": "true"}, "no effect with columns"),
        ({"minOffsetsPerTrigger": "5"}, "minOffsetsPerTrigger '5': it has no effect in a table"),
        ({"maxOffsetsPerTrigger": "5"}, "no effect in a table"),
        ({"commitOffsets": "true"}, "no effect in a table"),
        ({"splitOffsets": "5"}, "there is no such option"),
    ],
)
def test_an_option_without_effect_in_a_table_is_refused(
    broker: EmbeddedBroker, options: dict[str, str], words: str
) -> None:
    with pytest.raises(OptionError, match=words):
        ranges(broker, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"endingOffsets": "latest"}, "endingOffsets 'latest': it has no effect in a stream"),
        ({"endingOffsetsByTimestamp": "{}"}, "no effect in a stream"),
        ({"maxTriggerDelay": "5s"}, "no effect without minOffsetsPerTrigger"),
        ({"minOffsetsPerTrigger": "1", "maxTriggerDelay": "soon"}, "a duration such as 30s"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"}, "more than maxOffsetsPerTrigger, 5"),
        ({"groupIdPrefix": "x"}, "no effect without commitOffsets"),
        ({"groupIdPrefix": "x", "kafka.group.id": "g", "commitOffsets": "true"}, "no effect with kafka.group.id"),
        ({"kafka.group.id": "g"}, "no effect in this source"),
        ({"commitOffsets": "true"}, "it needs the name of a group"),
    ],
)
def test_an_option_without_effect_in_a_stream_is_refused(
    broker: EmbeddedBroker, options: dict[str, str], words: str
) -> None:
    with pytest.raises(OptionError, match=words):
        stream(broker, **options)


def test_the_reader_of_a_task_has_no_state_of_the_driver(broker: EmbeddedBroker) -> None:
    reader = stream(broker, startingOffsets="earliest")
    reader.latestOffset(position(0, 0), ReadAllAvailable())
    assert len(pickle.dumps(reader)) < 4000


def test_metrics_are_the_distance_of_each_partition_to_its_end() -> None:
    end, latest = json.dumps(position(10, 3)), json.dumps(position(30, 4))
    assert offsets_behind_latest({"endOffset": end, "latestOffset": latest}) == {
        "minOffsetsBehindLatest": "1",
        "maxOffsetsBehindLatest": "20",
        "avgOffsetsBehindLatest": "10.5",
    }
    assert offsets_behind_latest({"endOffset": end, "latestOffset": None}) == {}
    assert offsets_behind_latest({"endOffset": None, "latestOffset": latest}) == {}


def test_a_repeated_batch_of_a_transactional_stream_is_written_once(broker: EmbeddedBroker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("written", 1, 1)]).all()
    schema = StructType().add("key", "binary").add("value", "string")
    rows = pa.RecordBatch.from_pylist([{"key": b"1", "value": "a"}, {"key": None, "value": "b"}])
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "written", "transactionalId": "sink"}
    writer: Any = pickle.loads(pickle.dumps(KafkaLiveSource(options).streamWriter(schema, overwrite=False)))
    assert [writer.write_once([rows], 0, batch).records for batch in (0, 0, 1)] == [2, 0, 2]
    reader: Any = source(broker, subscribe="written", columns="key,value", isolation="read_committed").reader(NONE)
    found = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert [(row["key"], row["value"]) for row in found] == [(b"1", b"a"), (None, b"b")] * 2


def rows_of(reader: LiveStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, int]]:
    """Return the partitions and offsets of the rows between two positions."""
    found = []
    for part in reader.partitions(start, end):
        for batch in reader.read(part):
            rows: Any = batch
            found += [(row["partition"], row["offset"]) for row in rows.to_pylist()]
    return found


@pytest.fixture
def topic(broker: EmbeddedBroker) -> Iterator[str]:
    """A topic with five records in its partition, whose first two are deleted."""
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("lossy", 1, 1)]).all()
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(5):
                producer.send("lossy", b"%d" % number)
        admin.delete_records({TopicPartition("lossy", 0): 2}).all()
        yield "lossy"
        admin.delete_topics(["lossy"]).all()


def test_deleted_partitions_are_lost_data(broker: EmbeddedBroker, topic: str) -> None:
    reader = stream(broker, subscribe=f"{topic},{TOPIC}")
    start = {**position(0, 0), topic: {"0": 2, "1": 7}}
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end == {**position(30, 3), topic: {"0": 5}}
    with pytest.raises(OffsetPositionError, match=f"{topic}-1: it does not exist any more: records were lost"):
        reader.partitions(start, end)
    careless = stream(broker, subscribe=f"{topic},{TOPIC}", failOnDataLoss="false")
    expected = [*((0, number) for number in (*range(30), 2, 3, 4)), *((1, number) for number in range(3))]
    assert sorted(rows_of(careless, start, end)) == sorted(expected)


def test_an_added_partition_without_its_first_records_is_lost_data(broker: EmbeddedBroker, topic: str) -> None:
    reader = stream(broker, subscribe=topic)
    with pytest.raises(
        OffsetPositionError, match=f"{topic}-0: it was added, and begins at offset 2: records were lost"
    ):
        reader.partitions({}, {topic: {"0": 5}})
    careless = stream(broker, subscribe=topic, failOnDataLoss="false")
    assert rows_of(careless, {}, {topic: {"0": 5}}) == [(0, 2), (0, 3), (0, 4)]


@pytest.mark.parametrize(
    ("start", "end", "left"), [(0, 5, [2, 3, 4]), (0, 2, []), (3, 9, [3, 4]), (7, 9, []), (9, 7, [])]
)
def test_a_planned_range_of_which_records_were_lost_is_read_as_far_as_it_exists(
    broker: EmbeddedBroker, topic: str, start: int, end: int, left: list[int]
) -> None:
    careless = stream(broker, subscribe=topic, failOnDataLoss="false")
    assert rows_of(careless, {topic: {"0": start}}, {topic: {"0": end}}) == [(0, number) for number in left]


def test_a_pattern_does_not_match_internal_topics(broker: EmbeddedBroker) -> None:
    with Consumer(broker.bootstrap_servers, group_id="makes-the-internal-topic") as consumer:
        consumer.assign([TopicPartition(TOPIC, 0)])
        consumer.commit({TopicPartition(TOPIC, 0): 1})
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribePattern": ".*"}
    topics = {each.value.place.topic for each in KafkaLiveSource(options).reader(NONE).partitions()}
    assert TOPIC in topics
    assert "__consumer_offsets" not in topics


def test_offsets_are_not_numbers_that_brokers_use_for_other_positions(broker: EmbeddedBroker) -> None:
    with pytest.raises(OptionError, match=r"startingOffsets .* an offset is not negative"):
        ranges(broker, startingOffsets=json.dumps({TOPIC: {"0": -3}}))


@pytest.mark.parametrize("name", ["sasl.jaas.config", "spark.hadoop.fs.s3a.secret.key", "password", "token"])
def test_the_value_of_an_unknown_option_that_may_be_a_secret_is_not_shown(broker: EmbeddedBroker, name: str) -> None:
    with pytest.raises(OptionError, match=f"option {name}: there is no such option") as caught:
        source(broker, **{name: "hush"}).schema()
    assert "hush" not in repr(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("startingOffsets", '{"events": {"0": 1}, "events": {"1": 2}}'),
        ("startingOffsets", '{"events": {"0": 1, "00": 2}}'),
        ("startingOffsetsByTimestamp", '{"events": {"0": 1, "0": 2}}'),
    ],
)
def test_an_offset_that_another_one_would_replace_is_refused(broker: EmbeddedBroker, name: str, value: str) -> None:
    with pytest.raises(OptionError, match=name):
        source(broker, **{name: value}).reader(NONE)


@pytest.mark.parametrize("value", ["{}", '{"events": []}', '{"events": [1.5]}', '{"events": [-1]}', "[" * 100_000])
def test_an_assignment_names_partitions(broker: EmbeddedBroker, value: str) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "assign": value}
    with pytest.raises(OptionError, match="assign"):
        KafkaLiveSource(options).reader(NONE)


@pytest.mark.parametrize(
    ("value", "reason"),
    [('{"events": [0, 2]}', "events-2.*there is no such partition"), ('{"no": [0]}', "no-0.*there is no such topic")],
)
def test_an_assigned_partition_that_does_not_exist_is_named(broker: EmbeddedBroker, value: str, reason: str) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "assign": value}
    with pytest.raises(OptionError, match=f"assign.*{reason}"):
        KafkaLiveSource(options).reader(NONE).partitions()


@pytest.mark.parametrize("offset", [31, 2**63])
def test_a_start_after_the_end_of_a_table_is_lost_data(broker: EmbeddedBroker, offset: int) -> None:
    """For example a topic that was created again since the offset was stored."""
    starting = json.dumps({TOPIC: {"0": offset}})
    with pytest.raises(OffsetPositionError, match=f"it ends at offset 30, before offset {offset}"):
        source(broker, startingOffsets=starting).reader(NONE).partitions()
    kept = source(broker, startingOffsets=starting, failOnDataLoss="false").reader(NONE).partitions()
    assert [each.value.place.partition for each in kept] == [1]
    bounded = source(broker, startingOffsets=starting, endingTimestamp="5000").reader(NONE).partitions()
    assert [each.value.place.partition for each in bounded] == [1]
