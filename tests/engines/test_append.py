"""A continued run has the tables of a run from scratch, after any change to the log."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

import pyarrow.dataset as ds
import pytest

from kafka_msgs.analysis.group_offsets_job import GroupOffsetsSummary, group_offsets_job
from kafka_msgs.analysis.group_state_job import GROUP_STATE, StateSummary
from kafka_msgs.analysis.group_state_report import group_state_report
from kafka_msgs.engines.job import RunResult, run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.partition_task import finish_task
from kafka_msgs.engines.plan import NO_SPLIT
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.errors import JobPathError
from kafka_msgs.report import Report
from tests.support.committed_tables import head_of
from tests.support.offsets_topic import TOPIC, OffsetsTopic, commit, end, write_items, write_segments
from tests.support.recordings import GROUP_LOGS
from tests.support.truncated_logs import copy_of_earlier

TABLES: Final = ("offsets", "pending", "groups", "problems")
STATE_TABLES: Final = ("descriptions", "groups", "members", "assignments", "topology", "problems")

Tables = dict[str, list[dict[str, Any]]]


def run(logs: Path, out: Path, *, history: bool = False, split_bytes: int = NO_SPLIT) -> RunResult[GroupOffsetsSummary]:
    job, inputs = group_offsets_job(history=history), JobInputs.at([logs])
    return run_job(job, inputs, str(out), local_engine(), split_bytes=split_bytes)


def run_state(logs: Path, out: Path, split_bytes: int = NO_SPLIT) -> tuple[RunResult[StateSummary], list[str]]:
    said: list[str] = []
    inputs = JobInputs.at([logs])
    found = run_job(GROUP_STATE, inputs, str(out), local_engine(), say=said.append, split_bytes=split_bytes)
    return found, said


def state_report(found: RunResult[StateSummary]) -> Report:
    return group_state_report(found.report, found.first_problems.to_pylist(), found.problems)


def tables(out: Path, *names: str) -> Tables:
    found = {
        name: ds.dataset(out / "current" / name, partitioning="hive").to_table().to_pylist() for name in names or TABLES
    }
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def from_nothing(logs: Path, out: Path, *, history: bool = False) -> Tables:
    shutil.rmtree(out, ignore_errors=True)
    run(logs, out, history=history)
    return tables(out, *TABLES, *(["history"] if history else []))


def compact(topic: OffsetsTopic) -> None:
    topic.compact()


def nothing(topic: OffsetsTopic) -> None:
    pass


HAPPENINGS: Final[dict[str, Callable[[OffsetsTopic], None]]] = {
    "nothing": nothing,
    "compaction": compact,
    "deleted segment": OffsetsTopic.delete_first,
    "truncated tail": OffsetsTopic.truncate,
    "recreated topic": OffsetsTopic.recreate,
    "recreated topic without an id": OffsetsTopic.recreate,
}


@pytest.mark.parametrize("happening", HAPPENINGS)
@pytest.mark.parametrize("seed", range(5))
def test_any_cut_of_a_log_gives_what_one_run_gives(tmp_path: Path, happening: str, seed: int) -> None:
    dice = Random(f"{happening} {seed}")
    topic = OffsetsTopic(tmp_path / "logs", dice, problems=seed % 4 == 0)
    if happening.endswith("without an id"):
        topic.id = None
    for _ in range(3):
        topic.grow(dice.randrange(1, 80))
        if dice.random() < 0.7:
            HAPPENINGS[happening](topic)
            topic.grow(dice.randrange(3))
        # Ranges are cut at segments, which have a few records each.
        run(topic.write(), tmp_path / "out", split_bytes=dice.choice((1, 2000, NO_SPLIT)))
        assert tables(tmp_path / "out") == from_nothing(topic.home, tmp_path / "fresh")


@pytest.mark.parametrize("happening", HAPPENINGS)
@pytest.mark.parametrize("seed", range(5))
def test_any_cut_of_a_log_gives_the_groups_that_one_run_gives(tmp_path: Path, happening: str, seed: int) -> None:
    dice = Random(f"groups {happening} {seed}")
    topic = OffsetsTopic(tmp_path / "logs", dice, problems=seed % 2 == 0)
    for step in range(3):
        topic.grow(dice.randrange(1, 120))
        if dice.random() < 0.7:
            HAPPENINGS[happening](topic)
            topic.grow(dice.randrange(3))
        run_state(topic.write(), tmp_path / "out", dice.choice((1, 2000, NO_SPLIT)))
        run_state(topic.home, tmp_path / f"fresh {step}")
        assert tables(tmp_path / "out", *STATE_TABLES) == tables(tmp_path / f"fresh {step}", *STATE_TABLES)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_any_cut_of_the_log_of_a_broker_gives_the_same_report_on_groups(tmp_path: Path, share: float) -> None:
    logs = copy_of_earlier(GROUP_LOGS, tmp_path / "logs", share)
    run_state(logs, tmp_path / "out")
    found, said = run_state(copy_of_earlier(GROUP_LOGS, logs, 1), tmp_path / "out")
    # The broker had compacted the first segments, so records are missing after an early cut.
    assert share < 0.9 or not said
    fresh, _ = run_state(logs, tmp_path / "fresh")
    assert tables(tmp_path / "out", *STATE_TABLES) == tables(tmp_path / "fresh", *STATE_TABLES)
    assert state_report(found) == state_report(fresh)
    assert len(tables(tmp_path / "out", "members")["members"]) == 8


def test_what_is_read_again_is_said(tmp_path: Path) -> None:
    topic = OffsetsTopic(tmp_path / "logs", Random(7), problems=False)
    topic.grow(60)
    assert run_state(topic.write(), tmp_path / "out")[1] == []
    topic.truncate()
    topic.grow(20)
    again = f"{TOPIC}-0 was read from its start again:"
    assert run_state(topic.write(), tmp_path / "out")[1] == [
        f"{again} the last record that was read is not there any more"
    ]
    topic.recreate()
    topic.grow(60)
    assert run_state(topic.write(), tmp_path / "out")[1] == [f"{again} the topic was made anew"]


def test_a_record_that_a_later_leader_wrote_is_not_the_one_that_was_read(tmp_path: Path) -> None:
    last = commit("last", 3)
    write_segments(tmp_path / "logs", 0, [{0: commit("a", 1), 1: last}])
    run(tmp_path / "logs", tmp_path / "out")
    # Both records were lost. The producer sent the last one again.
    write_segments(tmp_path / "logs", 0, [{0: commit("b", 2), 1: last}], epoch=1)
    assert [each.from_start for each in run(tmp_path / "logs", tmp_path / "out").partitions] == [True]
    assert {row["topic"] for row in tables(tmp_path / "out")["offsets"]} == {"b", "last"}


@pytest.mark.parametrize("seed", range(4))
def test_only_what_is_new_is_read_of_a_log_that_grows(tmp_path: Path, seed: int) -> None:
    topic = OffsetsTopic(tmp_path / "logs", Random(seed))
    topic.grow(100)
    assert [each.from_start for each in run(topic.write(), tmp_path / "out").partitions] == [True]
    for _ in range(2):
        topic.grow(20)
        assert [each.from_start for each in run(topic.write(), tmp_path / "out").partitions] == [False]


@pytest.mark.parametrize("seed", range(4))
def test_the_history_is_added_to(tmp_path: Path, seed: int) -> None:
    dice = Random(seed)
    topic = OffsetsTopic(tmp_path / "logs", dice)
    for _ in range(3):
        topic.grow(dice.randrange(1, 80))
        run(topic.write(), tmp_path / "out", history=True, split_bytes=dice.choice((1, 2000, NO_SPLIT)))
    fresh = from_nothing(topic.home, tmp_path / "fresh", history=True)
    assert tables(tmp_path / "out", *TABLES, "history") == fresh
    assert {row["outcome"] for row in fresh["history"]} == {"none", "committed", "aborted", "open"}
    topic.recreate()
    topic.grow(50)
    run(topic.write(), tmp_path / "out", history=True)
    assert tables(tmp_path / "out", *TABLES, "history") == from_nothing(topic.home, tmp_path / "fresh", history=True)


def test_a_transaction_that_is_open_at_the_cut_ends_in_the_next_run(tmp_path: Path) -> None:
    first = [commit("a", 1, 7), commit("b", 2, 8), commit("c", 3, 7), commit("a", None)]
    write_items(tmp_path / "logs", 0, first)
    run(tmp_path / "logs", tmp_path / "out")
    waiting = {row["topic"] for row in tables(tmp_path / "out")["pending"]}
    assert waiting == {"b", "c"}
    shutil.rmtree(tmp_path / "logs")
    write_items(tmp_path / "logs", 0, [*first, end(7, committed=True), end(8, committed=False)])
    assert [each.from_start for each in run(tmp_path / "logs", tmp_path / "out").partitions] == [False]
    found = tables(tmp_path / "out")
    assert [(row["topic"], row["committedOffset"]) for row in found["offsets"]] == [("c", 3)]
    assert found["pending"] == []


@pytest.mark.parametrize("split_bytes", [NO_SPLIT, 250, 1])
@pytest.mark.parametrize("gone", range(3, 8))
def test_a_deletion_that_compaction_removed_meanwhile_is_not_missed(
    tmp_path: Path, gone: int, split_bytes: int
) -> None:
    kept, tip, new = (
        commit("kept", 1),
        commit("tip", 2),
        {at: commit(f"new-{at}", at) for at in range(3, 9) if at != gone},
    )
    logs = tmp_path / "logs"
    write_segments(logs, 0, [{0: commit("gone", 0), 1: kept}, {2: tip}])
    run(logs, tmp_path / "out", history=True)
    # Compaction removed this deletion and the commit that it had deleted.
    first, second = ({at: new[at] for at in new if (at < 6) is is_first} for is_first in (True, False))
    write_segments(logs, 0, [{1: kept}, {2: tip, **first}, second])
    again = run(logs, tmp_path / "out", history=True, split_bytes=split_bytes)
    assert [each.from_start for each in again.partitions] == [True]
    found = tables(tmp_path / "out", *TABLES, "history")
    assert found == from_nothing(logs, tmp_path / "fresh", history=True)
    assert {row["topic"] for row in found["offsets"]} == {"kept", "tip", *(f"new-{at}" for at in new)}


def test_a_problem_that_compaction_removed_from_a_segment_that_has_grown_is_gone(tmp_path: Path) -> None:
    logs, kept, bad = tmp_path / "logs", commit("kept", 1), (None, b"x")
    write_segments(logs, 0, [{0: bad, 1: kept}])
    run(logs, tmp_path / "out")
    write_segments(logs, 0, [{1: kept, **{at: commit("more", at) for at in range(2, 9)}}, {9: commit("last", 9)}])
    assert [each.from_start for each in run(logs, tmp_path / "out").partitions] == [True]
    assert tables(tmp_path / "out") == from_nothing(logs, tmp_path / "fresh")


def test_offsets_go_with_their_segment(tmp_path: Path) -> None:
    write_segments(tmp_path / "logs", 0, [{0: commit("a", 1)}, {1: commit("b", 2)}])
    run(tmp_path / "logs", tmp_path / "out")
    write_segments(tmp_path / "logs", 0, [{1: commit("b", 2), 2: commit("c", 3)}], first=1)
    assert [each.from_start for each in run(tmp_path / "logs", tmp_path / "out").partitions] == [False]
    assert {row["topic"] for row in tables(tmp_path / "out")["offsets"]} == {"b", "c"}


def test_a_batch_that_was_being_written_is_read_by_the_next_run(tmp_path: Path) -> None:
    topic = OffsetsTopic(tmp_path / "logs", Random(1), problems=False)
    topic.grow(30)
    log = max(topic.write().glob("*/*.log"))
    whole = log.read_bytes()
    log.write_bytes(whole[:-5])
    run(topic.home, tmp_path / "out")
    assert len(tables(tmp_path / "out")["problems"]) == 1
    log.write_bytes(whole)
    assert [each.from_start for each in run(topic.home, tmp_path / "out").partitions] == [False]
    assert tables(tmp_path / "out") == from_nothing(topic.home, tmp_path / "fresh")
    assert tables(tmp_path / "out")["problems"] == []


def test_processes_write_the_same_tables(tmp_path: Path) -> None:
    for number in range(3):
        topic = OffsetsTopic(tmp_path / "logs", Random(number), number=number)
        topic.grow(60)
        topic.write()
    job, inputs = group_offsets_job(), JobInputs.at([tmp_path / "logs"])
    run_job(job, inputs, str(tmp_path / "out"), local_engine(workers=2), split_bytes=2000)
    assert tables(tmp_path / "out") == from_nothing(tmp_path / "logs", tmp_path / "fresh")


def test_partitions_come_and_go(tmp_path: Path) -> None:
    topics = [OffsetsTopic(tmp_path / "logs", Random(number), number=number) for number in range(3)]
    for each in topics:
        each.grow(30)
    topics[0].write(), topics[1].write()
    run(tmp_path / "logs", tmp_path / "out")
    shutil.rmtree(tmp_path / "logs" / f"{TOPIC}-0")
    topics[2].write()
    run(tmp_path / "logs", tmp_path / "out")
    assert tables(tmp_path / "out") == from_nothing(tmp_path / "logs", tmp_path / "fresh")
    assert {row["logPartition"] for row in tables(tmp_path / "out")["offsets"]} == {1, 2}


def test_a_run_that_was_killed_leaves_tables_that_the_next_one_replaces(tmp_path: Path) -> None:
    topic = OffsetsTopic(tmp_path / "logs", Random(3))
    topic.grow(60)
    run(topic.write(), tmp_path / "out")
    before = tables(tmp_path / "out")
    topic.grow(60)
    topic.write()
    with pytest.raises(KeyboardInterrupt):
        run_job(group_offsets_job(), JobInputs.at([topic.home]), str(tmp_path / "out"), killed)
    assert tables(tmp_path / "out") == before
    run(topic.home, tmp_path / "out")
    assert tables(tmp_path / "out") == from_nothing(topic.home, tmp_path / "fresh")


def killed(function: Any, count: int) -> Any:
    """Run an engine that is killed after the work, before the output is published."""
    results = [function(number) for number in range(count)]
    if function.func is finish_task:
        raise KeyboardInterrupt
    return results


def test_a_state_of_another_form_or_damaged_is_not_used(tmp_path: Path) -> None:
    topic = OffsetsTopic(tmp_path / "logs", Random(4))
    topic.grow(60)
    run(topic.write(), tmp_path / "out")
    state = head_of(str(tmp_path / "out"))[1].tables["_state"]
    (rows,) = (file for name, file in state.items() if name.endswith("/rows.arrow"))
    (tmp_path / "out" / rows.path).write_bytes(b"not Arrow")
    assert [each.from_start for each in run(topic.home, tmp_path / "out").partitions] == [True]
    assert tables(tmp_path / "out") == from_nothing(topic.home, tmp_path / "fresh")


@pytest.mark.parametrize("content", [b"", b'[{"topic": "__cons', b"5", b"[5]", b"\xff"])
def test_a_damaged_index_of_states_is_not_used(tmp_path: Path, content: bytes) -> None:
    topic = OffsetsTopic(tmp_path / "logs", Random(4))
    topic.grow(60)
    run(topic.write(), tmp_path / "out", history=True)
    state = head_of(str(tmp_path / "out"))[1].tables["_state"]
    (index,) = (file for name, file in state.items() if name.endswith("/index.json"))
    (tmp_path / "out" / index.path).write_bytes(content)
    said: list[str] = []
    job = group_offsets_job(history=True)
    run_job(job, JobInputs.at([topic.home]), str(tmp_path / "out"), local_engine(), say=said.append)
    assert [line for line in said if index.path in line and "from their start again" in line]
    found = tables(tmp_path / "out", *TABLES, "history")
    assert found == from_nothing(topic.home, tmp_path / "fresh", history=True)


def test_what_else_is_there_is_not_written_over(tmp_path: Path) -> None:
    topic = OffsetsTopic(tmp_path / "logs", Random(5), id=UUID(int=9))
    topic.grow(5)
    logs = topic.write()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "kept").write_text("")
    with pytest.raises(JobPathError, match="it exists and is not an empty directory; nothing is overwritten"):
        run(logs, tmp_path / "other")
    with pytest.raises(JobPathError, match="it exists and is not an empty directory; nothing is overwritten"):
        run(logs, tmp_path / "other" / "kept")
    run(logs, tmp_path / "out")
    with pytest.raises(JobPathError, match="a run with other history"):
        run(logs, tmp_path / "out", history=True)
    with pytest.raises(JobPathError, match=f"a run with other inputs \\({logs}\\)"):
        run(logs / f"{TOPIC}-0", tmp_path / "out")
    (manifest,) = (tmp_path / "out" / "_commits").iterdir()
    manifest.write_text(manifest.read_text().replace('"job": "group-offsets"', '"job": "another"'))
    with pytest.raises(JobPathError, match="nothing is overwritten"):
        run(logs, tmp_path / "out")
