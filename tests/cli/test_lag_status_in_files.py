"""``kafka-msgs lag --log-dirs --status``: the status from the commits in ``__consumer_offsets`` and the log ends."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafka_msgs import OffsetCommitKey, OffsetCommitValue
from kafka_msgs.internal_topics.records import NO_PRODUCER, TopicRecord
from kafka_msgs.records import BatchBuilder, BatchHeader
from kafka_msgs.report.metric_definitions import LagStatus
from tests.support.command_line import Run
from tests.support.offsets_topic import START_MS, TOPIC, Item, end, write_items, write_segments

STEP = 30_000
ROUNDS = 6
"""A record is written to the topic every 30 seconds, just before the commits."""


def write_topic(home: Path) -> None:
    directory = home / "t-0"
    directory.mkdir(parents=True)
    batches = []
    for number in range(ROUNDS):
        builder = BatchBuilder(BatchHeader(base_offset=number))
        builder.append(None, b"x", timestamp=START_MS + number * STEP)
        batches.append(builder.build())
    (directory / f"{0:020}.log").write_bytes(b"".join(batches))


def commit(group: str, offset: int | None, seconds: int, producer: int = NO_PRODUCER) -> TopicRecord:
    key = OffsetCommitKey(group=group, topic="t", partition=0)
    value = None if offset is None else OffsetCommitValue(offset=offset, commit_timestamp=START_MS + 1000 * seconds)
    version = None if value is None else 3
    return TopicRecord(topic=TOPIC, key=key, value=value, version=version, producer_id=producer)


def every_round(*offsets: int) -> list[Item]:
    return [commit("g", offset, 30 * number + 1) for number, offset in enumerate(offsets)]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        pytest.param(every_round(1, 2, 3, 4, 5, 6), "OK", id="all read"),
        pytest.param(every_round(0, 1, 2, 3, 4, 5), "WARNING", id="one behind all the time"),
        pytest.param(every_round(0, 0, 1, 2, 4, 5), "OK", id="the lag shrinks"),
        pytest.param(every_round(1, 1, 2, 3, 4, 5), "OK", id="the lag was 0"),
        pytest.param(every_round(0, 0, 0, 0, 0, 0), "STALLED", id="no progress"),
        pytest.param(every_round(0, 1, 2), "STOPPED", id="no commits in the second half"),
        pytest.param(every_round(0, 1, 2, 3, 1, 2), "REWOUND", id="an earlier offset"),
        pytest.param([commit("g", 2, 145), commit("g", 3, 149)], "UNKNOWN", id="two commits"),
        pytest.param(
            [*every_round(0, 0, 0, 0, 0), commit("g", None, 149), commit("g", 3, 150)], "UNKNOWN", id="deleted before"
        ),
        pytest.param(
            [commit("g", 0, 30 * number + 1, 7) for number in range(6)] + [end(7, committed=True)],
            "STALLED",
            id="transaction",
        ),
        pytest.param(
            [*every_round(0, 1, 2), *(commit("g", 9, 100, 7) for _ in range(3)), end(7, committed=False)],
            "STOPPED",
            id="aborted",
        ),
    ],
)
def test_the_status_of_a_history(run: Run, tmp_path: Path, items: Sequence[Item], expected: str) -> None:
    write_topic(tmp_path)
    write_items(tmp_path, 0, items)
    result = run("lag", "--log-dirs", str(tmp_path), "--status", "--json")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)
    assert row["status"] == expected


def test_without_the_log_of_the_partition_the_status_is_unknown(run: Run, tmp_path: Path) -> None:
    write_items(tmp_path / "logs", 0, every_round(0, 0, 0))
    arguments = ("lag", "--log-dirs", str(tmp_path / "logs"), "--status", "--json")
    (row,) = json.loads(run(*arguments).stdout)
    assert (row["lag"], row["status"]) == (None, "UNKNOWN")
    ends = tmp_path / "ends"
    ends.write_text("t:0:9")
    (row,) = json.loads(run(*arguments, "--end-offsets", str(ends)).stdout)
    assert (row["lag"], row["status"]) == (9, "UNKNOWN")


def test_patterns_select_the_groups_and_topics_of_rows_and_reports(run: Run, tmp_path: Path) -> None:
    write_topic(tmp_path / "logs")
    write_items(tmp_path / "logs", 0, [commit(group, 1, 1) for group in ("a-one", "a-two", "b")])
    options = ("--groups", "a-.*", "--exclude-groups", ".*-two", "--report", str(tmp_path / "report"), "--json")
    result = run("lag", "--log-dirs", str(tmp_path / "logs"), *options)
    assert [row["group"] for row in json.loads(result.stdout)] == ["a-one"]
    report = (tmp_path / "report" / "report.prom").read_text(encoding="utf-8")
    assert set(re.findall('group="([^"]*)"', report)) == {"a-one"}
    result = run("lag", "--log-dirs", str(tmp_path / "logs"), "--exclude-topics", "t", *options)
    assert json.loads(result.stdout) == []
    assert "kafka_group_lag" not in (tmp_path / "report" / "report.prom").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["lag", "groups"])
def test_reports_have_the_statuses(run: Run, tmp_path: Path, command: str) -> None:
    write_topic(tmp_path / "logs")
    items = [*every_round(0, 1, 2, 3, 4, 5), commit("idle", 0, 1), commit("idle", 1, 31), commit("done", 6, 148)]
    write_items(tmp_path / "logs", 0, items)
    arguments = ("--log-dirs", str(tmp_path / "logs"))
    printed = {row["group"]: row["status"] for row in json.loads(run("lag", *arguments, "--status", "--json").stdout)}
    assert printed == {"g": "WARNING", "idle": "STOPPED", "done": "OK"}
    assert run(command, *arguments, "--report", str(tmp_path / "report")).exit_code == 0
    text = (tmp_path / "report" / "report.prom").read_text(encoding="utf-8")
    families = {family.name: family.samples for family in text_string_to_metric_families(text)}
    for name in ("kafka_group_status", "kafka_group_partition_status"):
        assert {each.labels["group"]: LagStatus(int(each.value)).name for each in families[name]} == printed
    data = json.loads((tmp_path / "report" / "report.json").read_bytes())
    for title in ("Lag and trend of each group", "Lag in time and trend, the longest first"):
        (section,) = (each for each in data["sections"] if each["title"] == title)
        rows = [dict(zip((each["name"] for each in section["columns"]), row, strict=True)) for row in section["rows"]]
        assert {row["group"]: row["status"] for row in rows} == printed


STATUSES = {"ahead": "OK", "behind": "WARNING", "stalled": "STALLED", "stopped": "STOPPED", "rewound": "REWOUND"}
OFFSETS = {
    "ahead": (1, 2, 3, 4, 5, 6), "behind": (0, 1, 2, 3, 4, 5), "stalled": (0, 0, 0, 0, 0, 0), "stopped": (0, 1, 2),
    "rewound": (0, 1, 2, 3, 1, 2),
}  # fmt: skip


def rounds_of_all(first: int, last: int) -> list[Item]:
    """Return the commits of all groups in some rounds. The group ``stalled`` commits in transactions."""
    items: list[Item] = []
    for number in range(first, last):
        for group, offsets in OFFSETS.items():
            if number < len(offsets):
                producer = 7 if group == "stalled" else NO_PRODUCER
                items.append(commit(group, offsets[number], 30 * number + 1, producer))
    return [*items, end(7, committed=True)]


def status_metrics(directory: Path) -> list[str]:
    lines = (directory / "report.prom").read_text(encoding="utf-8").splitlines()
    return sorted(line for line in lines if re.match("kafka_group_(partition_)?status", line))


def test_the_report_of_the_job_has_the_same_statuses(run: Run, tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    write_topic(logs)
    write_segments(logs, 0, [dict(enumerate(rounds_of_all(0, 3)))])
    arguments = ("pipeline", "group-offsets", str(logs), "--engine", "local", "--status")
    assert run(*arguments, "--out", str(out)).exit_code == 0
    first = status_metrics(out)
    later = rounds_of_all(3, ROUNDS)
    write_segments(logs, 0, [dict(enumerate(rounds_of_all(0, 3))), dict(enumerate(later, 16))])
    assert run("lag", "--log-dirs", str(logs), "--report", str(tmp_path / "report")).exit_code == 0
    expected = status_metrics(tmp_path / "report")
    assert {f'kafka_group_status{{group="{group}"}} {LagStatus[name]}' for group, name in STATUSES.items()} < set(
        expected
    )
    assert len(expected) == 2 * len(STATUSES)
    printed = run("lag", "--log-dirs", str(logs), "--status", "--prometheus").stdout.splitlines()
    assert {line for line in expected if "partition" not in line} < set(printed)
    assert run(*arguments, "--out", str(out)).exit_code == 0
    assert status_metrics(out) == expected != first
    assert run(*arguments, "--out", str(tmp_path / "fresh"), "--workers", "2").exit_code == 0
    assert status_metrics(tmp_path / "fresh") == expected


def test_the_worst_status_is_a_metric_of_the_group(run: Run, tmp_path: Path) -> None:
    write_topic(tmp_path)
    write_items(tmp_path, 0, every_round(0, 0, 0, 0, 0, 0))
    printed = run("lag", "--log-dirs", str(tmp_path), "--status", "--prometheus").stdout.splitlines()
    assert 'kafka_group_status{group="g"} 4' in printed
