"""Continued runs as Delta and Iceberg table versions: each has the rows of a run from scratch."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafka_msgs.analysis.group_offsets_job import group_offsets_job
from kafka_msgs.engines.job import job_tables, run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.messages.group_metadata_key import GroupMetadataKey
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue
from kafka_msgs.tables.job_tables import JobTables
from tests.support.offsets_topic import TOPIC, commit, write_items
from tests.support.recordings import GROUP_LOGS
from tests.support.table_readers import read_table

TABLES = ("offsets", "groups", "pending", "problems", "history")


def run(logs: Path, out: Path, form: str) -> dict[str, list[str]]:
    """Run the job into versions of a format; return the rows of its tables."""
    job = group_offsets_job(history=True)
    run_job(job, JobInputs.at([logs]), str(out), local_engine(), table_format=form)
    return {name: rows_of(form, out / name) for name in TABLES}


def rows_of(form: str, table: Path) -> list[str]:
    return sorted(str(sorted(row.items())) for row in read_table(form, str(table)).to_pylist())


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


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_run_first_applies_what_a_killed_one_has_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    write_items(logs, 0, [commit("a", 1)])
    before = run(logs, out, form)
    write_items(logs, 0, [commit("a", 2)])
    with monkeypatch.context() as patched:
        patched.setattr(JobTables, "_apply", lambda *_: None)
        assert run(logs, out, form) == before
    job = group_offsets_job(history=True)
    tables = job_tables(job, JobInputs.at([logs]), str(out), table_format=form)
    tables.begin(tables.find_base())
    after = {name: rows_of(form, out / name) for name in TABLES}
    assert after == run(logs, tmp_path / "anew", form) != before
    assert run(logs, out, form) == after
