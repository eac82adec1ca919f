"""Replicas of partitions: one is chosen, and a change of leader between runs loses and repeats no record."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Final
from uuid import UUID

import pyarrow as pa
import pytest

from kafka_msgs.analysis.group_offsets_job import GroupOffsetsSummary, group_offsets_job
from kafka_msgs.engines.job import RunResult, run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.replicas import REPLICAS, JobInputs, choose_replicas
from kafka_msgs.errors import JobPathError
from kafka_msgs.internal_topics.records import TopicRecord, encode_record
from kafka_msgs.log.metadata_log_state import METADATA_TOPIC
from kafka_msgs.log.small_files import LEADER_EPOCHS
from kafka_msgs.messages.partition_record import PartitionRecord
from kafka_msgs.messages.topic_record import TopicRecord as TopicMetadata
from kafka_msgs.records import BatchBuilder
from tests.engines.test_append import from_nothing, tables
from tests.support.offsets_topic import TOPIC, OffsetsTopic, commit, write_segments

HISTORY = ("offsets", "pending", "groups", "problems", "history")


def replica(broker: int, epoch: int, end: int, topic_id: str = "a", partition: int = 0) -> dict[str, object]:
    return {
        "root": 0, "directory": f"/{broker}/t-{partition}", "broker": broker, "topic": "t", "partition": partition,
        "topicId": topic_id, "leaderEpoch": epoch, "endOffset": end, "segments": [], "marks": [],
    }  # fmt: skip


def chosen(*replicas: Mapping[str, object], leader: int | None = None) -> int:
    """Return the broker of the chosen replica."""
    leaders = None if leader is None else {("t", 0): leader}
    found, _ = choose_replicas(pa.Table.from_pylist(list(replicas), REPLICAS), leaders)
    (broker,) = found["broker"].to_pylist()
    return int(broker)


@pytest.mark.parametrize("leader", [None, 2])
def test_the_leader_of_the_metadata_is_chosen_or_else_the_longest(leader: int | None) -> None:
    equal = [replica(broker, 3, 10) for broker in (1, 2, 3)]
    assert chosen(*equal, leader=leader) == (leader or 1)
    short = [replica(1, 3, 9), replica(2, 3, 8), replica(3, 3, 10)]
    assert chosen(*short, leader=leader) == (leader or 3)


def test_epochs_count_before_lengths() -> None:
    # Broker 1 was cut off: it has records that the later leader never had.
    assert chosen(replica(1, 3, 500), replica(2, 4, 20), replica(3, 4, 19)) == 2


def test_a_replica_with_another_topic_id_is_another_log() -> None:
    replicas = [replica(1, 90, 500, "old"), replica(2, 0, 5, "new"), replica(3, 0, 4, "new")]
    assert chosen(*replicas) == 2
    _, notes = choose_replicas(pa.Table.from_pylist(replicas, REPLICAS))
    assert notes == ["t-0: replicas with another topic id were left out: 1"]
    assert chosen(*replicas, leader=1) == 1


def test_one_replica_of_each_partition_is_chosen() -> None:
    rows = [replica(broker, 1, 10 - broker, partition=number) for number in (2, 0, 1) for broker in (3, 1, 2)]
    found, notes = choose_replicas(pa.Table.from_pylist(rows, REPLICAS))
    assert found.select(["partition", "broker"]).to_pylist() == [{"partition": n, "broker": 1} for n in range(3)]
    assert notes == []


def write_broker(home: Path, broker: int, topic: OffsetsTopic, epochs: Mapping[int, int]) -> Path:
    """Write a topic as the log directory of a broker, with the leader epochs by start offset."""
    directory = home / f"broker-{broker}"
    shutil.rmtree(directory, ignore_errors=True)
    topic.home = directory
    topic.write()
    (directory / "meta.properties").write_text(f"version=1\nnode.id={broker}\n")
    lines = [f"{epoch} {start}" for start, epoch in epochs.items()]
    (directory / f"{TOPIC}-{topic.number}" / LEADER_EPOCHS).write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    return directory


def run(home: Path, out: Path) -> tuple[RunResult[GroupOffsetsSummary], list[str]]:
    said: list[str] = []
    inputs = JobInputs.at([str(home / "broker-*")])
    job = group_offsets_job(history=True)
    return run_job(job, inputs, str(out), local_engine(), say=said.append), said


def broker_of(found: RunResult[GroupOffsetsSummary]) -> list[int]:
    replicas = found.cluster.replicas.to_pylist()
    return [row["broker"] for row in replicas if row["topic"] == TOPIC]


def test_a_run_goes_on_in_the_replica_of_another_leader(tmp_path: Path) -> None:
    topic = OffsetsTopic(tmp_path, Random(5))
    topic.grow(60)
    for broker in (1, 2, 3):
        write_broker(tmp_path, broker, topic, {0: 0})
    found, said = run(tmp_path, tmp_path / "out")
    assert (broker_of(found), said) == ([1], [])
    # Broker 1 stops. Broker 2 leads with epoch 1, and broker 3 follows with a delay.
    epochs = {0: 0, topic._next: 1}
    topic._epoch = 1
    topic.grow(20)
    write_broker(tmp_path, 3, topic, epochs)
    topic.grow(20)
    write_broker(tmp_path, 2, topic, epochs)
    found, said = run(tmp_path, tmp_path / "out")
    assert (broker_of(found), said) == ([2], [])
    assert [each.from_start for each in found.partitions] == [False]
    fresh = from_nothing(tmp_path / "broker-2", tmp_path / "fresh", history=True)
    assert without_files(tables(tmp_path / "out", *HISTORY)) == without_files(fresh)


def test_a_replica_without_the_last_record_is_read_from_its_start(tmp_path: Path) -> None:
    topic = OffsetsTopic(tmp_path, Random(6), problems=False)
    topic.grow(60)
    write_broker(tmp_path, 1, topic, {0: 0})
    run(tmp_path, tmp_path / "out")
    # Broker 2 had not copied the last records when broker 1 stopped, and other records took their offsets.
    topic.truncate()
    epochs = {0: 0, topic._next: 1}
    topic.grow(40)
    write_broker(tmp_path, 2, topic, epochs)
    found, said = run(tmp_path, tmp_path / "out")
    assert broker_of(found) == [2]
    assert [each.from_start for each in found.partitions] == [True]
    reason = "the leader epoch of the last record is not in the history of the replica"
    assert said == [f"{TOPIC}-0 was read from its start again: {reason}"]
    fresh = from_nothing(tmp_path / "broker-2", tmp_path / "fresh", history=True)
    assert without_files(tables(tmp_path / "out", *HISTORY)) == without_files(fresh)


def write_metadata(broker: Path, topic: OffsetsTopic, leader: int) -> None:
    """Write a metadata log that names the leader of the partition."""
    assert topic.id is not None
    builder = BatchBuilder()
    placed = PartitionRecord(partition_id=0, topic_id=topic.id, replicas=(1, 2, 3), isr=(1, 2, 3), leader=leader)
    for value in (TopicMetadata(name=TOPIC, topic_id=topic.id), placed):
        builder.append(*encode_record(TopicRecord(topic=METADATA_TOPIC, value=value, version=0)), timestamp=0)
    directory = broker / f"{METADATA_TOPIC}-0"
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(builder.build())


def equal(home: Path, topic: OffsetsTopic) -> int:
    for broker in (1, 2, 3):
        write_broker(home, broker, topic, {0: 0})
    return 1


def one_short(home: Path, topic: OffsetsTopic) -> int:
    write_broker(home, 1, topic, {0: 0})
    topic.grow(5)
    for broker in (3, 2):
        write_broker(home, broker, topic, {0: 0})
    return 2


def longer_with_an_older_epoch(home: Path, topic: OffsetsTopic) -> int:
    topic.grow(30)
    write_broker(home, 1, topic, {0: 0})
    for _ in range(4):
        topic.truncate()
    epochs = {0: 0, topic._next: topic._epoch}
    topic.grow(3)
    for broker in (3, 2):
        write_broker(home, broker, topic, epochs)
    return 2


def another_id(home: Path, topic: OffsetsTopic) -> int:
    topic.grow(30)
    write_broker(home, 1, topic, {0: 0})
    topic.recreate()
    topic.grow(20)
    for broker in (2, 3):
        write_broker(home, broker, topic, {0: 0})
    return 2


def a_leader_in_the_metadata(home: Path, topic: OffsetsTopic) -> int:
    equal(home, topic)
    topic.grow(5)
    write_broker(home, 2, topic, {0: 0})
    # The follower on broker 2 has more than the leader: a broker that was cut off.
    write_metadata(home / "broker-1", topic, 3)
    return 3


def no_small_files(home: Path, topic: OffsetsTopic) -> int:
    topic.id = None
    broker = one_short(home, topic)
    for name in ("meta.properties", LEADER_EPOCHS):
        for path in home.rglob(name):
            path.unlink()
    return broker


REPLICAS_OF: Final[dict[str, Callable[[Path, OffsetsTopic], int]]] = {
    "equal": equal,
    "one is short": one_short,
    "one is longer with an older epoch": longer_with_an_older_epoch,
    "one of another topic id": another_id,
    "the metadata names the leader": a_leader_in_the_metadata,
    "no small files": no_small_files,
}
"""Functions that write the directories of three brokers, and return the broker to read."""


@pytest.mark.parametrize("kind", REPLICAS_OF)
def test_one_of_three_replicas_is_read(tmp_path: Path, kind: str) -> None:
    topic = OffsetsTopic(tmp_path, Random(9))
    topic.grow(40)
    broker = REPLICAS_OF[kind](tmp_path, topic)
    run(tmp_path, tmp_path / "out")
    fresh = from_nothing(tmp_path / f"broker-{broker}", tmp_path / "fresh", history=True)
    assert without_files(tables(tmp_path / "out", *HISTORY)) == without_files(fresh)
    assert all(f"/broker-{broker}/" in row["file"] for row in tables(tmp_path / "out", "history")["history"])
    if kind != "equal":
        others = [each for each in (1, 2, 3) if each != broker]
        assert any(
            without_files(from_nothing(tmp_path / f"broker-{each}", tmp_path / "fresh", history=True))
            != without_files(fresh)
            for each in others
        )


def test_a_recreated_topic_on_one_broker_is_read_from_its_start(tmp_path: Path) -> None:
    topic = OffsetsTopic(tmp_path, Random(7), problems=False)
    topic.grow(60)
    write_broker(tmp_path, 1, topic, {0: 0})
    run(tmp_path, tmp_path / "out")
    topic.recreate()
    topic.grow(10)
    for broker in (2, 3):
        write_broker(tmp_path, broker, topic, {0: 0})
    found, said = run(tmp_path, tmp_path / "out")
    assert broker_of(found) == [2]
    assert said == [
        f"{TOPIC}-0: replicas with another topic id were left out: 1",
        f"{TOPIC}-0 was read from its start again: the topic was made anew",
    ]


def without_files(found: Mapping[str, list[dict[str, object]]]) -> dict[str, list[str]]:
    """Return rows without the files, which differ between brokers."""
    return {
        name: sorted(repr({column: value for column, value in row.items() if column != "file"}) for row in rows)
        for name, rows in found.items()
    }


def write_group(logs: Path, number: int, groups: Mapping[str, int]) -> None:
    items = {at: commit("a", offset, group=group) for at, (group, offset) in enumerate(groups.items())}
    write_segments(logs, number, [items])


# "tea" belongs to partition 0 of 2, the others to the partition in which they are.
PLACED: dict[int, Callable[[int], str]] = {0: lambda n: chr(ord("b") + 2 * n), 1: lambda n: chr(ord("a") + 2 * n)}


def test_commits_in_a_partition_of_another_coordinator_are_stale(tmp_path: Path) -> None:
    for number, name in PLACED.items():
        write_group(tmp_path / "logs", number, {**{name(n): 1 for n in range(4)}, "tea": 5 + number})
    job, inputs = group_offsets_job(), JobInputs.at([tmp_path / "logs"])
    run_job(job, inputs, str(tmp_path / "out"), local_engine(), ends={("a", 0): 10})
    rows = [row for row in tables(tmp_path / "out")["offsets"] if row["group"] == "tea"]
    found = {row["logPartition"]: (row["committedOffset"], row["stale"]) for row in rows}
    assert found == {0: (5, False), 1: (6, True)}
    (group,) = (row for row in tables(tmp_path / "out")["groups"] if row["group"] == "tea")
    assert (group["lag"], group["partitions"]) == (5, 1)
    others = [row for row in tables(tmp_path / "out")["offsets"] if row["group"] != "tea"]
    assert not any(row["stale"] for row in others)


def test_some_partitions_of_many_mark_nothing_as_stale(tmp_path: Path) -> None:
    write_group(tmp_path / "logs", 0, {name: 1 for name in "abcdefgh"})
    write_group(tmp_path / "logs", 1, {name: 1 for name in "ijklmnop"})
    run_job(group_offsets_job(), JobInputs.at([tmp_path / "logs"]), str(tmp_path / "out"), local_engine())
    assert not any(row["stale"] for row in tables(tmp_path / "out")["offsets"])


def test_a_directory_without_partitions_is_refused(tmp_path: Path) -> None:
    topic = OffsetsTopic(tmp_path, Random(7), id=UUID(int=3))
    topic.grow(5)
    write_broker(tmp_path, 1, topic, {0: 0})
    (tmp_path / "broker-2").mkdir()
    with pytest.raises(JobPathError, match="there is no partition in it"):
        run_job(
            group_offsets_job(), JobInputs.at([tmp_path / "broker-1", tmp_path / "broker-2"]), str(tmp_path / "out"),
            local_engine(),
        )  # fmt: skip
    assert not (tmp_path / "out").exists()
