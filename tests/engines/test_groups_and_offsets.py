"""The effective records of ``__consumer_offsets``, compared with ``replay``, a real broker and another reader."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from attrs import evolve
from click.testing import CliRunner

from kafka_msgs import ListGroupsResponse, OffsetCommitValue, OffsetFetchResponse
from kafka_msgs.analysis import live_records
from kafka_msgs.analysis.group_offsets_job import GroupOffsetsSummary, group_offsets_job
from kafka_msgs.analysis.group_offsets_report import group_offsets_report
from kafka_msgs.analysis.offset_tables import GROUPS, OFFSETS, PENDING, PROBLEMS
from kafka_msgs.cli.command_group import command
from kafka_msgs.engines.job import RunResult, run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.errors import JobPathError, LogFileError
from kafka_msgs.internal_topics.records import NO_PRODUCER
from kafka_msgs.internal_topics.replay import replay
from kafka_msgs.report import Table
from tests.support.offsets_topic import TOPIC, Item, OffsetsTopic, commit, commit_oldest, end, write_items
from tests.support.recorded_answers import answers
from tests.support.recordings import GROUP_LOGS

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
    "the oldest form is of the same offset": [commit("a", 1), commit_oldest("a", 5)],
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


def run(logs: Path, out: Path) -> RunResult[GroupOffsetsSummary]:
    return run_job(group_offsets_job(), JobInputs.at([logs]), str(out), local_engine())


def table(out: Path, name: str) -> Any:
    return ds.dataset(out / "current" / name, partitioning="hive").to_table()


@pytest.fixture(scope="module", params=["one reduction", "a reduction for each batch"])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[list[Item]], Path]:
    """Stories, and the tables of a log with one partition per story; records are reduced rarely or continually."""
    stories = [*STORIES.values(), *map(random_story, range(8))]
    home = tmp_path_factory.mktemp("stories")
    for number, story in enumerate(stories):
        write_items(home / "logs", number, story)
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "one reduction":
            patch.setattr(live_records, "_BUFFER", 1)
            patch.setattr("kafka_msgs.engines.partition_reader._MAX_BYTES", 1)
        run(home / "logs", home / "out")
    return stories, home / "out"


def test_offsets_are_those_that_a_coordinator_loads(told: tuple[list[list[Item]], Path]) -> None:
    stories, out = told
    rows = table(out, "offsets").to_pylist()
    for number, story in enumerate(stories):
        loaded = replay(story).groups()
        expected = {place[0]: value.offset for place, value in loaded["tea"].offsets.items()} if loaded else {}
        found = {row["topic"]: row["committedOffset"] for row in rows if row["logPartition"] == number}
        assert found == expected, [*STORIES, "random"][min(number, len(STORIES))]


def test_what_waits_is_what_a_coordinator_holds_back(told: tuple[list[list[Item]], Path]) -> None:
    stories, out = told
    rows = table(out, "pending").to_pylist()
    for number, story in enumerate(stories):
        expected = {
            (producer, key.topic): record.value.offset  # type: ignore[attr-defined, union-attr]
            for producer, waiting in replay(story).pending.items()
            for key, record in waiting.items()
        }
        found = {
            (row["producerId"], row["topic"]): row["committedOffset"] for row in rows if row["logPartition"] == number
        }
        assert found == expected, [*STORIES, "random"][min(number, len(STORIES))]


def test_offsets_and_groups_are_those_that_a_broker_answers(tmp_path: Path) -> None:
    run(GROUP_LOGS, tmp_path)
    fetched = {
        (group.group_id, topic.name, each.partition_index): (each.committed_offset, each.metadata)
        for group in next(iter(answers(OffsetFetchResponse))).groups
        for topic in group.topics
        for each in topic.partitions
    }
    rows, groups = table(tmp_path, "offsets").to_pylist(), table(tmp_path, "groups").to_pylist()
    shares = {row["group"] for row in groups if row["kind"] == "share"}
    found = {
        (row["group"], row["topic"], row["topicPartition"]): (row["committedOffset"], row["metadata"])
        for row in rows
        if row["group"] not in shares
    }
    assert found == fetched
    listed = {
        each.group_id: (each.group_type, each.group_state) for each in next(iter(answers(ListGroupsResponse))).groups
    }
    assert {row["group"]: (row["kind"], row["state"]) for row in groups} == listed


def test_tables_have_their_columns_and_the_state_is_not_one_of_them(tmp_path: Path) -> None:
    run(GROUP_LOGS, tmp_path)
    for name, schema in {"offsets": OFFSETS, "pending": PENDING, "problems": PROBLEMS, "groups": GROUPS}.items():
        read = table(tmp_path, name)
        assert set(read.column_names) == set(schema.names)
        for field in read.schema.remove(read.schema.get_field_index("kind")) if name == "groups" else read.schema:
            assert field.type == schema.field(field.name).type
    assert {path.name for path in (tmp_path / "current").iterdir()} == {"offsets", "pending", "groups", "problems"}


def test_damage_and_records_that_cannot_be_read_are_problems_and_the_rest_counts(tmp_path: Path) -> None:
    topic = OffsetsTopic(tmp_path / "logs", Random(2))
    topic.grow(600)
    log = min(topic.write().glob("*/*.log"))
    data = bytearray(log.read_bytes())
    data[-1] ^= 0xFF
    log.write_bytes(data)
    found = run(topic.home, tmp_path / "out")
    rows = table(tmp_path / "out", "problems").to_pylist()
    (damage,) = (row for row in rows if row["logOffset"] is None)
    assert (damage["file"], "checksum" in damage["problem"]) == (str(log), True)
    reasons = {row["problem"].partition(":")[0] for row in rows if row["logOffset"] is not None}
    assert reasons == {
        "the key contains no record type", "OffsetCommitKey", "OffsetCommitValue", "GroupMetadataValue",
        "this release has no records of type 99",
    }  # fmt: skip
    (shown,) = (
        each
        for each in group_offsets_report(found.report, found.first_problems, found.problems, {}).sections
        if each.title == "Problems"
    )
    assert isinstance(shown, Table)
    assert len(shown.rows) == len(rows)


def test_a_log_without_groups_gives_empty_tables(tmp_path: Path) -> None:
    write_items(tmp_path / "logs", 0, [])
    run(tmp_path / "logs", tmp_path / "out")
    for name in ("offsets", "pending", "groups", "problems"):
        assert table(tmp_path / "out", name).num_rows == 0
    assert table(tmp_path / "out", "groups").schema.field("kind").type == pa.string()


def test_a_path_without_the_topic_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JobPathError, match="there is no partition of __consumer_offsets in it"):
        run(GROUP_LOGS / "orders-0", tmp_path)


def test_a_commit_beyond_the_end_is_ahead_and_reduces_no_lag(tmp_path: Path) -> None:
    write_items(tmp_path / "logs", 0, [commit("a", 10), commit("b", 5_000), commit("c", 7)])
    inputs = JobInputs.at([tmp_path / "logs"])
    ends = {("a", 0): 100, ("b", 0): 93}
    run_job(group_offsets_job(), inputs, str(tmp_path / "out"), local_engine(), ends=ends)
    rows = sorted(table(tmp_path / "out", "offsets").to_pylist(), key=lambda row: row["topic"])
    assert [(row["topic"], row["lag"], row["ahead"]) for row in rows] == [
        ("a", 90, 0),
        ("b", 0, 4_907),
        ("c", None, None),
    ]
    (group,) = table(tmp_path / "out", "groups").to_pylist()
    assert (group["lag"], group["ahead"], group["partitions"]) == (90, 4_907, 3)


def test_names_with_too_large_numbers_are_ignored(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    write_items(logs, 0, [commit("a", 10)])
    shutil.copytree(logs / f"{TOPIC}-0", logs / f"{TOPIC}-2147483648")
    shutil.copy(logs / f"{TOPIC}-0" / f"{0:020}.log", logs / f"{TOPIC}-0" / f"{2**63:020}.log")
    run(logs, tmp_path / "out")
    assert table(tmp_path / "out", "offsets").num_rows == 1


def test_an_input_may_be_given_twice(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    write_items(logs, 0, [commit("a", 10)])
    (tmp_path / "empty").mkdir()
    run_job(group_offsets_job(), JobInputs.at([logs, logs, tmp_path / "*"]), str(tmp_path / "out"), local_engine())
    assert table(tmp_path / "out", "offsets").num_rows == 1


def test_a_directory_with_the_name_of_a_segment_is_an_error(tmp_path: Path) -> None:
    write_items(tmp_path / "logs", 0, [commit("a", 10)])
    (tmp_path / "logs" / f"{TOPIC}-0" / f"{1:020}.log").mkdir()
    with pytest.raises(LogFileError, match="this is a directory"):
        run(tmp_path / "logs", tmp_path / "out")


def test_a_report_shows_commits_at_times_that_python_cannot_represent(tmp_path: Path) -> None:
    far = OffsetCommitValue(offset=10, commit_timestamp=253_402_300_800_000)
    write_items(tmp_path / "logs", 0, [evolve(commit("a", 10), value=far), evolve(commit("b", 5, 7), value=far)])
    done = CliRunner().invoke(
        command, ["pipeline", "group-offsets", str(tmp_path / "logs"), "--out", str(tmp_path / "out")]
    )
    assert done.exit_code == 0
    assert "Committed offsets, the largest lags first" in done.output
