"""The topic profile, compared with a plain walk over batches, and continued runs compared with runs from scratch."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from kafka_msgs.analysis import batch_table, hourly_stats
from kafka_msgs.analysis.batch_table import BATCHES
from kafka_msgs.analysis.hourly_stats import PROFILE
from kafka_msgs.analysis.profile_job import PROBLEMS, TOPIC_PROFILE
from kafka_msgs.analysis.topic_profile_report import topic_profile_report
from kafka_msgs.engines.job import run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.plan import NO_SPLIT
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.log.partition_discovery import partitions_in
from kafka_msgs.records import BatchBuilder
from kafka_msgs.report import Report
from kafka_msgs.tables.commit_log import CommitLog
from tests.support.offsets_topic import commit, write_segments
from tests.support.profile_walk import STATISTICS, profile_by_walk
from tests.support.random_topic import RandomTopic
from tests.support.recordings import GROUP_LOGS, LOGS
from tests.support.truncated_logs import copy_of_earlier

TABLES: Final = {"batches": BATCHES, "profile": PROFILE, "problems": PROBLEMS}

Tables = dict[str, list[dict[str, Any]]]


class Ran:
    """A run: its result for each partition, its messages, and its report."""

    def __init__(self, logs: Path, out: Path, split_bytes: int = NO_SPLIT) -> None:
        self.said: list[str] = []
        found = run_job(
            TOPIC_PROFILE, JobInputs.at([logs]), str(out), local_engine(), say=self.said.append,
            split_bytes=split_bytes,
        )  # fmt: skip
        self.found = found.partitions
        shown, cluster = found.first_problems.to_pylist(), found.cluster.metadata
        self.report: Report = topic_profile_report(found.report, shown, found.problems, cluster)


def tables(out: Path) -> Tables:
    return {
        name: sorted(plain(ds.dataset(out / "current" / name, partitioning="hive").to_table()), key=repr)
        for name in TABLES
    }


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows with timestamps as numbers, as Python cannot represent all of them."""
    is_time = pa.types.is_timestamp
    types = [pa.field(each.name, pa.int64() if is_time(each.type) else each.type) for each in table.schema]
    return list(table.cast(pa.schema(types)).to_pylist())


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fixed clock: reports never use a time later than now as the newest."""
    monkeypatch.setattr("kafka_msgs.log.timestamps.time", lambda: 2e9)


def with_small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce all data after each batch."""
    monkeypatch.setattr(batch_table, "_BUFFER", 1)
    monkeypatch.setattr(hourly_stats, "_BUFFER", 1)
    monkeypatch.setattr("kafka_msgs.engines.partition_reader._MAX_BYTES", 1)


def walked(logs: Path) -> dict[Any, dict[str, Any]]:
    """Return the statistics of a walk over batches in Python."""
    return profile_by_walk(partitions_in([logs]))


def profiled(out: Path) -> dict[Any, dict[str, Any]]:
    return {
        (row["topic"], row["partition"], row["hourMs"]): {name: row[name] for name in STATISTICS}
        for row in tables(out)["profile"]
    }


@pytest.mark.parametrize("seed", range(4))
def test_figures_are_those_of_a_walk_over_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    dice = Random(seed)
    if seed == 3:
        with_small_buffers(monkeypatch)
    for number in range(2):
        topic = RandomTopic(tmp_path / "logs", dice, number=number, damage=seed == 1)
        topic.grow(60)
        if seed == 2:
            topic.compact()
        topic.write()
    Ran(tmp_path / "logs", tmp_path / "out")
    assert profiled(tmp_path / "out") == walked(tmp_path / "logs")


@pytest.mark.parametrize("logs", [LOGS, GROUP_LOGS], ids=["topics", "groups"])
def test_figures_of_the_logs_of_a_broker_are_those_of_a_walk_over_batches(tmp_path: Path, logs: Path) -> None:
    Ran(logs, tmp_path)
    assert profiled(tmp_path) == walked(logs)


def test_a_batch_of_more_records_than_a_table_has_rows_is_one_batch(tmp_path: Path) -> None:
    builder = BatchBuilder()
    for number in range(140_000):
        builder.append(None, b"", timestamp=140_000 - number)
    directory = tmp_path / "logs" / "large-0"
    directory.mkdir(parents=True)
    (directory / f"{0:020}.log").write_bytes(builder.build())
    Ran(tmp_path / "logs", tmp_path / "out")
    (batch,) = tables(tmp_path / "out")["batches"]
    assert (batch["records"], batch["outOfOrder"], batch["lastOffset"]) == (140_000, 139_999, 139_999)
    assert profiled(tmp_path / "out") == walked(tmp_path / "logs")


def nothing(topic: RandomTopic) -> None:
    pass


HAPPENINGS: Final[dict[str, Callable[[RandomTopic], None]]] = {
    "nothing": nothing,
    "deleted segment": RandomTopic.delete_first,
    "compaction": RandomTopic.compact,
    "truncated tail": RandomTopic.truncate,
    "recreated topic": RandomTopic.recreate,
    "recreated topic without an id": RandomTopic.recreate,
}


@pytest.mark.parametrize("happening", HAPPENINGS)
@pytest.mark.parametrize("seed", range(4))
def test_any_cut_of_a_log_gives_what_one_run_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, happening: str, seed: int
) -> None:
    dice = Random(f"{happening} {seed}")
    if seed == 3:
        with_small_buffers(monkeypatch)
    topic = RandomTopic(tmp_path / "logs", dice, damage=seed % 3 == 2)
    if happening.endswith("without an id"):
        topic.id = None
    for step in range(4):
        topic.grow(dice.randrange(1, 12 if seed == 3 else 50))
        if dice.random() < 0.7:
            HAPPENINGS[happening](topic)
            topic.grow(dice.randrange(3))
        found = Ran(topic.write(), tmp_path / "out", dice.choice((1, 300, 2000, NO_SPLIT)))
        fresh = Ran(topic.home, tmp_path / f"fresh {step}")
        assert tables(tmp_path / "out") == tables(tmp_path / f"fresh {step}")
        assert found.report == fresh.report


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("source", [LOGS, GROUP_LOGS], ids=["topics", "groups"])
def test_any_cut_of_the_logs_of_a_broker_gives_the_same_report(tmp_path: Path, share: float, source: Path) -> None:
    logs = copy_of_earlier(source, tmp_path / "logs", share)
    Ran(logs, tmp_path / "out")
    found = Ran(copy_of_earlier(source, logs, 1), tmp_path / "out")
    fresh = Ran(logs, tmp_path / "fresh")
    assert tables(tmp_path / "out") == tables(tmp_path / "fresh")
    assert found.report == fresh.report
    assert any(not each.from_start for each in found.found)


@pytest.mark.parametrize("seed", range(4))
def test_only_what_is_new_is_read_of_a_log_that_grows_and_loses_segments(tmp_path: Path, seed: int) -> None:
    topic = RandomTopic(tmp_path / "logs", Random(seed))
    topic.grow(80)
    Ran(topic.write(), tmp_path / "out")
    for _ in range(2):
        topic.delete_first()
        topic.grow(20)
        ran = Ran(topic.write(), tmp_path / "out")
        assert [each.from_start for each in ran.found] == [False]
        assert ran.said == []


def changed(tmp_path: Path, change: Callable[[RandomTopic], None]) -> list[str]:
    topic = RandomTopic(tmp_path / "logs", Random(3))
    topic.grow(80)
    Ran(topic.write(), tmp_path / "out")
    change(topic)
    topic.grow(20)
    return Ran(topic.write(), tmp_path / "out").said


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (RandomTopic.compact, "segments that were read were compacted, truncated or replaced"),
        (RandomTopic.truncate, "segments that were read were compacted, truncated or replaced"),
        (RandomTopic.recreate, "the topic was made anew"),
    ],
    ids=["compaction", "truncated tail", "recreated topic"],
)
def test_what_is_read_again_is_said(tmp_path: Path, change: Callable[[RandomTopic], None], reason: str) -> None:
    assert changed(tmp_path, change) == [f"events-0 was read from its start again: {reason}"]


def test_batches_that_compaction_removed_from_a_segment_that_has_grown_are_gone(tmp_path: Path) -> None:
    logs, kept = tmp_path / "logs", commit("kept", 1)
    write_segments(logs, 0, [{0: commit("gone", 0), 1: kept}])
    Ran(logs, tmp_path / "out")
    write_segments(logs, 0, [{1: kept, **{at: commit("more", at) for at in range(2, 9)}}, {9: commit("last", 9)}])
    assert [each.from_start for each in Ran(logs, tmp_path / "out").found] == [True]
    Ran(logs, tmp_path / "fresh")
    assert tables(tmp_path / "out") == tables(tmp_path / "fresh")


def test_partitions_come_and_go(tmp_path: Path) -> None:
    topics = [RandomTopic(tmp_path / "logs", Random(n), name=name) for n, name in enumerate(("a", "b", "_c"))]
    for each in topics:
        each.grow(30)
    topics[0].write(), topics[1].write()
    Ran(tmp_path / "logs", tmp_path / "out")
    shutil.rmtree(topics[0].directory)
    topics[2].write()
    Ran(tmp_path / "logs", tmp_path / "out")
    Ran(tmp_path / "logs", tmp_path / "fresh")
    assert tables(tmp_path / "out") == tables(tmp_path / "fresh")
    assert {row["topic"] for row in tables(tmp_path / "out")["batches"]} == {"b", "_c"}


def test_a_run_that_was_killed_leaves_the_tables_and_nothing_that_the_next_one_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = RandomTopic(tmp_path / "logs", Random(3))
    topic.grow(60)
    Ran(topic.write(), tmp_path / "out")
    before = tables(tmp_path / "out")
    topic.grow(20)
    topic.write()
    with monkeypatch.context() as patch:
        patch.setattr(CommitLog, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            Ran(topic.home, tmp_path / "out")
    assert tables(tmp_path / "out") == before
    topic.grow(20)
    Ran(topic.write(), tmp_path / "out")
    Ran(topic.home, tmp_path / "fresh")
    assert tables(tmp_path / "out") == tables(tmp_path / "fresh")


def killed(*_: Any) -> None:
    raise KeyboardInterrupt


def test_a_log_without_records_gives_empty_tables(tmp_path: Path) -> None:
    RandomTopic(tmp_path / "logs", Random(0)).write()
    ran = Ran(tmp_path / "logs", tmp_path / "out")
    assert tables(tmp_path / "out") == {"batches": [], "profile": [], "problems": []}
    for name, schema in TABLES.items():
        assert set(ds.dataset(tmp_path / "out" / "current" / name, partitioning="hive").schema.names) == set(
            schema.names
        )
    assert {section.title for section in ran.report.sections} >= {"Topics", "Codecs", "Problems"}


def test_topics_with_long_names_and_with_numbers_as_names(tmp_path: Path) -> None:
    names = {"7", "007", "x" * 249, "x" * 248 + "y"}
    logs, out = tmp_path / "logs", tmp_path / "out"
    for number, topic in enumerate(sorted(names)):
        home = logs / f"{topic}-0"
        shutil.copytree(GROUP_LOGS / f"orders-{number % 2}", home)
        (home / "partition.metadata").unlink()
    for _ in range(2):
        Ran(logs, out)
        # Without the type of the column, some readers take both 7 and 007 for the number 7.
        for name in ("batches", "profile"):
            place = out / "current" / name
            with_polars = pl.read_parquet(place, hive_schema={"topic": pl.String})
            files = f"read_parquet('{place}/**/*.parquet', hive_types={{'topic': VARCHAR}})"
            assert set(with_polars["topic"]) == names
            with_duckdb = duckdb.execute(f"SELECT DISTINCT topic FROM {files}").fetchall()
            assert set(with_duckdb) == {(topic,) for topic in names}
            assert {row["topic"] for row in tables(out)[name]} == names
