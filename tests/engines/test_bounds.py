"""The state and the messages of jobs are bounded: hours of commits, buffered markers, and pickled slices."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_msgs.analysis import commit_history
from kafka_msgs.analysis.commit_history import MARKERS, HistoryWriter
from kafka_msgs.analysis.commit_hours import HOURS, SHOWN_HOURS, commit_hours, commits_by_hour
from kafka_msgs.analysis.job import LogRange
from kafka_msgs.analysis.live_records import ROWS
from kafka_msgs.analysis.offset_tables import HISTORY
from kafka_msgs.analysis.record_classification import PROBLEMS, ClassifiedRecords
from kafka_msgs.engines.partition_task import TaskResult
from kafka_msgs.engines.spark import dump_result
from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.tables.commit_log import CommitLog
from kafka_msgs.tables.task_output import TaskOutput

HOUR = 3_600_000


def rows(**columns: list[Any]) -> pa.Table:
    (count,) = {len(each) for each in columns.values()}
    usual: dict[str, list[Any]] = {
        "role": [0] * count, "offset": list(range(count)), "timestamp": [0] * count, "key": [b"k"] * count,
        "value": [b"v"] * count, "producer": [-1] * count, "transactional": [False] * count,
        "stands_for": [1] * count, "segment": [0] * count,
    }  # fmt: skip
    return pa.table({**usual, **columns}, schema=ROWS)


def classified(commits: pa.Table, markers: pa.Table | None = None) -> ClassifiedRecords:
    groups, none = pa.array(["g"] * commits.num_rows, pa.string()), ROWS.empty_table()
    values = pa.nulls(commits.num_rows, pa.struct([("offset", pa.int64()), ("commit_timestamp", pa.int64())]))
    markers = none if markers is None else markers
    return ClassifiedRecords(commits, groups, values, none, markers, PROBLEMS.empty_table())


def test_hours_before_the_latest_month_become_one_row_per_group() -> None:
    found = commit_hours()
    for hour in range(2 * SHOWN_HOURS):
        found.add(commits_by_hour(classified(rows(timestamp=[hour * HOUR, hour * HOUR + 5]))))
    hours = found.all()
    assert hours.num_rows == SHOWN_HOURS + 1
    assert sum(hours["commits"].to_pylist()) == 4 * SHOWN_HOURS
    (old,) = [row for row in hours.to_pylist() if row["hour"] is None]
    assert old == {"group": "g", "hour": None, "commits": 2 * SHOWN_HOURS}
    assert commit_hours(hours).all().sort_by("hour") == hours.sort_by("hour")
    assert hours.schema == HOURS


def test_markers_count_in_the_buffer_of_the_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_history, "_BUFFER", 1 << 16)
    log = CommitLog(Storage.at(str(tmp_path)))
    output, of = TaskOutput(log.storage, log.begin({}, None)), LogRange(topic="t", number=0)
    writer = HistoryWriter(output, of, HISTORY.empty_table(), MARKERS.empty_table())
    held = []
    for start in range(0, 100_000, 1_000):
        markers = rows(role=[3] * 1_000, offset=list(range(start, start + 1_000)), producer=[7] * 1_000)
        writer.add(classified(ROWS.empty_table(), markers), "file")
        held.append(sum(table.num_rows for table in writer._markers))
    assert max(held) < 10_000


def test_a_slice_is_sent_without_its_table() -> None:
    big = pa.table({"x": pa.array(range(1_000_000), pa.int64())})
    first = {("t", 0): big.slice(5, 10)}
    result: TaskResult[None] = TaskResult(ranges=(), files={}, report=None, problems=0, first_problems=first)
    sent = dump_result(result)
    assert len(sent) < 10_000
    assert pickle.loads(sent).first_problems == first
