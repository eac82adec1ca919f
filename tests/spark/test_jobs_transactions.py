"""Offsets committed in transactions: the effective ones are those that ``replay`` loads, as brokers do."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kafka_msgs import OffsetCommitKey, OffsetCommitValue
from kafka_msgs.internal_topics.records import NO_PRODUCER, TopicRecord, encode_record
from kafka_msgs.internal_topics.replay import TransactionEnd, replay
from kafka_msgs.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kafka_msgs.messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from kafka_msgs.spark.jobs.group_offsets import group_offsets
from kafka_msgs.spark.latest import latest_by_key

OFFSETS: Final = "__consumer_offsets"
COLUMNS: Final = (
    "topic string, partition int, offset long, timestamp long, key binary, value binary, producerId long, "
    "transactional boolean, control boolean, file string, _error string"
)

Item = TopicRecord | TransactionEnd


def commit(name: str, offset: int | None, producer: int = NO_PRODUCER) -> TopicRecord:
    """Return an offset commit for one partition, or its deletion."""
    value = None if offset is None else OffsetCommitValue(offset=offset)
    version = None if offset is None else 3
    key = OffsetCommitKey(group="tea", topic=name)
    return TopicRecord(topic=OFFSETS, key=key, value=value, version=version, producer_id=producer)


def end(producer: int, *, committed: bool) -> TransactionEnd:
    return TransactionEnd(producer_id=producer, committed=committed)


STORIES: Final[dict[str, list[Item]]] = {
    "a committed offset counts from its place in the log": [
        commit("a", 1, 7), commit("a", 2), end(7, committed=True),
    ],
    "an aborted offset never counts": [commit("a", 1), commit("a", 2, 7), end(7, committed=False)],
    "an open offset waits": [commit("a", 1), commit("a", 2, 7)],
    "a deletion takes away what waits": [commit("a", 1, 7), commit("a", None), end(7, committed=True)],
    "a deletion takes away what is open": [commit("a", 1, 7), commit("a", 2, 8), commit("a", None), commit("a", 3, 8)],
    "a producer has one transaction after another": [
        commit("a", 1, 7), end(7, committed=True), commit("a", 2, 7), end(7, committed=False), commit("b", 3, 7),
    ],
    "a deletion in a transaction acts at once": [commit("a", 1), commit("a", None, 7), end(7, committed=False)],
    "the oldest form is of the same offset": [
        commit("a", 1),
        TopicRecord(
            topic=OFFSETS,
            key=LegacyOffsetCommitKey(group="tea", topic="a"),
            value=LegacyOffsetCommitValue(offset=5, metadata="old", commit_timestamp=9),
            version=0,
        ),
    ],
}  # fmt: skip


def random_story(seed: int) -> list[Item]:
    rng = Random(seed)
    story: list[Item] = []
    for number in range(120):
        producer = rng.choice((NO_PRODUCER, 1, 2, 3))
        if producer != NO_PRODUCER and rng.random() < 0.3:
            story.append(end(producer, committed=rng.random() < 0.5))
        else:
            story.append(commit(rng.choice("abcdef"), None if rng.random() < 0.15 else number, producer))
    return story


def frame(spark: SparkSession, stories: Sequence[Sequence[Item]]) -> DataFrame:
    """Return stories as partitions of the topic, as rows of ``kafka-log``."""
    rows = [row(number, at, item) for number, story in enumerate(stories) for at, item in enumerate(story)]
    return spark.createDataFrame(rows, COLUMNS).withColumn("timestamp", F.timestamp_millis("timestamp"))


def row(partition: int, offset: int, item: Item) -> tuple[Any, ...]:
    place = (OFFSETS, partition, offset, 1000 + offset)
    if isinstance(item, TransactionEnd):
        return (*place, bytes((0, 0, 0, item.committed)), bytes(6), item.producer_id, True, True, "log", None)
    key, value = encode_record(item)
    return (*place, key, value, item.producer_id, item.producer_id != NO_PRODUCER, False, "log", None)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, Any]:
    stories = [*STORIES.values(), *map(random_story, range(4))]
    found = group_offsets(frame(spark, stories))
    return {"stories": stories} | {name: found[name].collect() for name in ("offsets", "pending")}


def test_offsets_are_those_that_a_coordinator_loads(tables: dict[str, Any]) -> None:
    for number, story in enumerate(tables["stories"]):
        loaded = replay(story).groups()
        expected = {place[0]: value.offset for place, value in loaded["tea"].offsets.items()} if loaded else {}
        found = {row["topic"]: row["committedOffset"] for row in tables["offsets"] if row["logPartition"] == number}
        assert found == expected, [*STORIES, "random"][min(number, len(STORIES))]


def test_what_waits_is_what_a_coordinator_holds_back(tables: dict[str, Any]) -> None:
    for number, story in enumerate(tables["stories"]):
        expected = {
            (producer, key.topic): record.value.offset  # type: ignore[attr-defined, union-attr]
            for producer, waiting in replay(story).pending.items()
            for key, record in waiting.items()
        }
        found = {
            (row["producerId"], row["topic"]): row["committedOffset"]
            for row in tables["pending"]
            if row["logPartition"] == number
        }
        assert found == expected, [*STORIES, "random"][min(number, len(STORIES))]


def test_latest_of_a_key_goes_by_offset_within_a_partition_and_deletions_take_part(spark: SparkSession) -> None:
    rows = [
        ("t", 0, 1, b"kept", b"old"),
        ("t", 0, 9, b"kept", b"new"),
        ("t", 1, 5, b"kept", b"of another partition"),
        ("t", 0, 2, b"deleted", b"revived if deletions were dropped first"),
        ("t", 0, 3, b"deleted", None),
    ]
    records = spark.createDataFrame(rows, "topic string, partition int, offset long, key binary, value binary")
    live = {(row["partition"], bytes(row["key"])): bytes(row["value"]) for row in latest_by_key(records).collect()}
    assert live == {(0, b"kept"): b"new", (1, b"kept"): b"of another partition"}
    kept = latest_by_key(records, keep_tombstones=True)
    assert kept.columns == records.columns
    assert {(row["offset"], row["value"]) for row in kept.collect()} >= {(3, None)}


def timed_commit(topic: str, time: int, expires: int) -> TopicRecord:
    value = OffsetCommitValue(offset=1, metadata="", commit_timestamp=time, expire_timestamp=expires)
    return TopicRecord(topic=OFFSETS, key=OffsetCommitKey(group="tea", topic=topic), value=value, version=1)


def test_a_time_is_a_timestamp_beside_its_number(spark: SparkSession) -> None:
    story = [timed_commit("plain", 1_767_225_600_123, 5), timed_commit("none", -1, -1), timed_commit("far", 2**62, 0)]
    tables = group_offsets(frame(spark, [story]))
    found = {row["topic"]: row for row in tables["offsets"].collect()}
    plain, none, far = (found[topic] for topic in ("plain", "none", "far"))
    assert (plain["commitTimestamp"].timestamp() * 1000, plain["commitTimestampMs"]) == (1_767_225_600_123,) * 2
    assert (plain["expireTimestamp"].timestamp() * 1000, plain["expireTimestampMs"]) == (5, 5)
    assert (none["commitTimestamp"], none["commitTimestampMs"]) == (None, -1)
    assert (none["expireTimestamp"], none["expireTimestampMs"]) == (None, -1)
    assert (far["commitTimestamp"], far["commitTimestampMs"]) == (None, 2**62)
    assert (far["logTimestamp"].timestamp() * 1000, far["logTimestampMs"]) == (1002, 1002)
    (group,) = tables["groups"].collect()
    assert (group["lastCommit"], group["lastCommitMs"]) == (None, 2**62)
