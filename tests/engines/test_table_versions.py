"""Continued runs as Delta and Iceberg table versions: each has the rows of a run from scratch."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs.analysis.group_offsets_job import group_offsets_job
from kafka_msgs.engines.job import run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.messages.group_metadata_key import GroupMetadataKey
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue
from kafka_msgs.tables import get_format
from kafka_msgs.tables.commit_log import CommitLog, Snapshot
from kafka_msgs.tables.table_versions import publish_head, publish_tables
from tests.support.committed_tables import head_of
from tests.support.offsets_topic import TOPIC, commit, write_items
from tests.support.recordings import GROUP_LOGS

TABLES = ("offsets", "groups", "pending", "problems", "history")


def run(logs: Path, out: Path, form: str) -> dict[str, list[str]]:
    """Run the job into versions of a format; return the rows of its tables, without their days."""
    own = out / f".{form}-run"
    job = group_offsets_job(history=True)
    run_job(job, JobInputs.at([logs]), str(own), local_engine())
    publish_tables(get_format(form), job.tables, *head_of(str(own)), str(out))
    return {name: rows_of(form, out / name) for name in TABLES}


def rows_of(form: str, table: Path) -> list[str]:
    rows: list[dict[str, Any]] = get_format(form).read(str(table)).read_all().to_pylist()
    return sorted(str({name: value for name, value in row.items() if name != "day"}) for row in rows)


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_version_after_more_was_read_has_the_rows_of_a_run_from_nothing(tmp_path: Path, form: str) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(GROUP_LOGS, logs)
    late = sorted(logs.glob("__consumer_offsets-*"))[-1].rename(tmp_path / "late")
    before = run(logs, tmp_path / "out", form)
    late.rename(logs / "__consumer_offsets-2")
    after = run(logs, tmp_path / "out", form)
    assert after == run(logs, tmp_path / "anew", form)
    assert len(after["offsets"]) > len(before["offsets"]) > 0
    assert len(after["history"]) > len(before["history"]) > 0


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_group_with_commits_in_two_partitions_has_versions_like_others(tmp_path: Path, form: str) -> None:
    logs = tmp_path / "logs"
    for number, offset in ((0, 5), (1, 7)):
        described = TopicRecord(
            topic=TOPIC, key=GroupMetadataKey(group="tea"), value=GroupMetadataValue(generation=number), version=3
        )
        write_items(logs, number, [described, commit("a", offset)])
    before = run(logs, tmp_path / "out", form)
    write_items(logs, 1, [commit("a", 7), commit("a", 9)])
    after = run(logs, tmp_path / "out", form)
    assert len(before["offsets"]) == len(after["offsets"]) == 2
    assert len(before["groups"]) == len(after["groups"]) == 1
    assert before["offsets"] != after["offsets"]


def test_rows_of_a_run_that_commits_during_the_publication_are_published_last(tmp_path: Path) -> None:
    logs, own, out = tmp_path / "logs", tmp_path / "own", tmp_path / "out"
    form = get_format("delta")

    job = group_offsets_job()

    def run_again(offset: int) -> None:
        write_items(logs, 0, [commit("a", offset)])
        run_job(job, JobInputs.at([logs]), str(own), local_engine())

    run_again(1)
    storage, first = head_of(str(own))
    log = CommitLog(storage)

    class Overtaken(CommitLog):
        """A log to which another run commits after its head was read first."""

        def head(self) -> Snapshot | None:
            """Return the head."""
            if log.numbers() == [1]:
                run_again(2)
                return first
            return super().head()

    publish_head(form, job.tables, Overtaken(storage), str(out))
    assert form.read(str(out / "offsets"), ["committedOffset"]).read_all().to_pylist() == [{"committedOffset": 2}]
