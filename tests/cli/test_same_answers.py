"""Commands on log directories and jobs over them give the same rows, problems and exit status."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pyarrow.dataset as ds
import pytest

from kafka_msgs import GroupMetadataKey, OffsetCommitKey, OffsetCommitValue, encode_versioned
from kafka_msgs.analysis.groups import read_groups
from kafka_msgs.cli.render.output import id_text
from kafka_msgs.cli.render.timestamps import iso_of_ms
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.log.partition_discovery import partitions_in
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue
from kafka_msgs.records import BatchBuilder
from tests.support.command_line import Run
from tests.support.offsets_topic import TOPIC, commit, commit_oldest, write_items, write_segments
from tests.support.recordings import GROUP_LOGS, LOGS

HOUR: Final = 3_600_000
KEY: Final = encode_versioned(OffsetCommitKey(group="tea", topic="a"), 0)
BAD: Final = b"\0\3"
"""A value that ends within its first field."""
GROUP: Final = TopicRecord(
    topic=TOPIC,
    key=GroupMetadataKey(group="kept"),
    value=GroupMetadataValue(protocol_type="consumer", generation=4),
    version=3,
)
OLD: Final = (
    b"\0\0" + encode_versioned(OffsetCommitKey(group="old", topic="a"), 0)[2:],
    encode_versioned(OffsetCommitValue(offset=3, metadata="", commit_timestamp=7, expire_timestamp=9), 1),
)
"""A key of the oldest form with a value of version 1."""
ITEMS: Final[list[Any]] = [
    commit("a", 1),
    (None, b"x"),
    (b"\0", b"x"),
    (b"\0\x63\0\3own", b"?"),
    (KEY, BAD),
    commit("a", 2),
    (KEY, BAD),
    (b"\0\2\0\4gone", BAD),
    GROUP,
    (b"\0\2\0\4kept", BAD),
    (b"\0\2\0\4lost", BAD),
    (b"\0\2\0\4lost", None),
    OLD,
    commit_oldest("c", 5),
    commit("c", 9),
]
UNREADABLE: Final = {1, 2, 3, 4, 6, 7, 9, 10}
"""The offsets of records that cannot be read, also those that a later record replaces or deletes."""

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_logs(tmp_path_factory.mktemp("same") / "logs")


def write_logs(home: Path) -> Path:
    """Write records of every readable and unreadable form, and a partition with a damaged end."""
    write_items(home, 0, ITEMS)
    write_items(home, 1, [commit("a", 4, group="milk"), commit("b", 4, group="milk")])
    damaged = home / f"{TOPIC}-1" / f"{0:020}.log"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\xff")
    return home


def listing(run: Run, command: str, logs: Path, *arguments: str, status: int) -> tuple[Rows, str]:
    result = run(command, "--log-dirs", str(logs), *arguments, "--output", "json")
    assert result.exit_code == status, result.output
    found: Rows = json.loads(result.stdout)
    return found, result.stderr


def job(run: Run, name: str, logs: Path, out: Path, *, status: int, engine: str = "local") -> dict[str, Rows]:
    result = run("pipeline", name, str(logs), "--out", str(out), "--engine", engine)
    assert result.exit_code == status, result.output
    return {
        path.name: ds.dataset(path, partitioning="hive").to_table().to_pylist()
        for path in sorted((out / "current").iterdir())
    }


def offsets_of_command(rows: Rows) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    names = (
        "committedOffset", "leaderEpoch", "metadata", "commitTimestamp", "expireTimestamp", "topicId", "endOffset",
        "lag", "ahead", "stale",
    )  # fmt: skip
    return {(row["group"], row["topic"], row["partition"]): tuple(row[name] for name in names) for row in rows}


def offsets_of_job(rows: Rows) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    names = (
        "committedOffset", "leaderEpoch", "metadata", "commitTimestampMs", "expireTimestampMs", "topicId", "endOffset",
        "lag", "ahead", "stale",
    )  # fmt: skip
    rows = [{**row, "topicId": row["topicId"] and id_text(UUID(row["topicId"]))} for row in rows]
    return {(row["group"], row["topic"], row["topicPartition"]): tuple(row[name] for name in names) for row in rows}


def groups_of(rows: Rows, last_commit: str) -> dict[str, tuple[Any, ...]]:
    names = ("kind", "state", "epoch", "members", "partitions", "lag", "ahead", last_commit)
    return {row["group"]: tuple(row[name] for name in names) for row in rows}


def problems_of(rows: Rows) -> set[tuple[Any, ...]]:
    return {(row["logPartition"], row["logOffset"], row["file"], row["problem"]) for row in rows}


def test_offsets_and_groups_are_the_same_and_what_is_missing_is_null(run: Run, logs: Path, tmp_path: Path) -> None:
    lags, _ = listing(run, "lag", logs, status=1)
    groups, _ = listing(run, "groups", logs, status=1)
    tables = job(run, "group-offsets", logs, tmp_path / "out", status=1)
    offsets = offsets_of_command(lags)
    assert offsets == offsets_of_job(tables["offsets"])
    assert groups_of(groups, "lastCommitTimestamp") == groups_of(tables["groups"], "lastCommitMs")
    assert offsets["tea", "a", 0][1:6] == (None, "", 0, None, None)
    assert offsets["old", "a", 0][:5] == (3, None, "", 7, 9)
    assert {row["group"] for row in groups} == {"tea", "kept", "old", "milk"}
    assert next(row for row in groups if row["group"] == "kept")["epoch"] == 4


@pytest.mark.parametrize("name", ["group-offsets", "group-state"])
def test_problems_have_the_same_texts_and_files(run: Run, logs: Path, tmp_path: Path, name: str) -> None:
    problems = read_groups(partitions_in([logs])).problems
    found = {(each.partition, each.offset, each.file, each.reason) for each in problems}
    unread = {(number, offset) for number, offset, _, _ in found}
    assert unread == {*((0, offset) for offset in UNREADABLE), (1, None)}
    tables = job(run, name, logs, tmp_path / "out", status=1)
    assert problems_of(tables["problems"]) == found
    _, errors = listing(run, "groups", logs, status=1)
    said = set(re.findall(r"^__consumer_offsets-(\d+)(?: at offset (\d+))?: (.*)$", errors, re.MULTILINE))
    assert said == {(str(number), "" if offset is None else str(offset), text) for number, offset, _, text in found}


def test_first_commits_are_the_same_after_retention_as_in_one_pass(run: Run, tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    segments = [{0: commit_oldest("a", 5), 1: commit("a", 6)}, {2: commit("a", 10), 3: commit("a", 12)}]
    write_segments(logs, 0, segments)
    (group,) = read_groups(partitions_in([logs])).groups
    assert [each.first_commit_offset for each in group.offsets] == [5]
    job(run, "group-offsets", logs, out, status=0)
    write_segments(logs, 0, segments[1:], first=2)
    job(run, "group-offsets", logs, out, status=0)
    job(run, "group-offsets", logs, tmp_path / "fresh", status=0)
    (group,) = read_groups(partitions_in([logs])).groups
    assert [each.first_commit_offset for each in group.offsets] == [10]
    trend, fresh = ([each for each in sections(home) if "trend" in each["title"]] for home in (out, tmp_path / "fresh"))
    assert trend == fresh
    assert len(fresh) == 2


def sections(directory: Path) -> Any:
    return json.loads((directory / "report.json").read_text())["sections"]


def write_topic(home: Path) -> Path:
    """Write a batch whose last record is not the newest one, a damaged batch, and segments without a readable batch.

    Zeros are damage in a segment that is not the last one.
    """
    directory = home / "orders-0"
    directory.mkdir(parents=True)
    builder = BatchBuilder()
    for time in (10 * HOUR, 11 * HOUR, 10 * HOUR - 7):
        builder.append(b"k", b"v", timestamp=time)
    data = builder.build()
    (directory / f"{0:020}.log").write_bytes(data + data[:-1] + b"\xff")
    (directory / f"{6:020}.log").write_bytes(b"damage" * 10)
    (directory / f"{7:020}.log").write_bytes(b"\0" * 100)
    (directory / f"{9:020}.log").write_bytes(b"")
    return home


def test_segments_have_the_bytes_and_times_of_their_readable_batches(run: Run, tmp_path: Path) -> None:
    logs = write_topic(tmp_path / "logs")
    listing(run, "profile", logs, "--report", str(tmp_path / "command"), status=1)
    tables = job(run, "topic-profile", logs, tmp_path / "job", status=1)
    assert [Path(row["file"]).stem.lstrip("0") for row in tables["problems"]] == ["", "6", "7"]
    assert sections(tmp_path / "command") == sections(tmp_path / "job")
    (shown,) = (each for each in sections(tmp_path / "job") if each["title"] == "Size of segments")
    rows = [dict(zip([column["name"] for column in shown["columns"]], row, strict=True)) for row in shown["rows"]]
    (size,) = (row["bytes"] for row in tables["profile"])
    times = {row["segment"]: (row["bytes"], row["oldest"], row["newest"], row["active"]) for row in rows}
    assert times == {
        f"{0:020}.log": (size, 10 * HOUR - 7, 11 * HOUR, False),
        f"{6:020}.log": (0, None, None, False),
        f"{7:020}.log": (0, None, None, False),
        f"{9:020}.log": (0, None, None, True),
    }


@pytest.mark.parametrize("directory", [GROUP_LOGS, LOGS], ids=lambda path: path.name)
def test_profiles_are_the_same(run: Run, directory: Path, tmp_path: Path) -> None:
    report = tmp_path / "command"
    rows, _ = listing(run, "profile", directory, "--by", "hour", "--report", str(report), status=0)
    profile = job(run, "topic-profile", directory, tmp_path / "out", status=0)["profile"]
    names = tuple(name for name in rows[0] if name != "hour")
    found, expected = ({(*(row[name] for name in names[:2]), hour(row)): [row[name] for name in names] for row in each}
                       for each in (rows, profile))  # fmt: skip
    assert found == expected
    assert sections(report) == sections(tmp_path / "out")


def hour(row: dict[str, Any]) -> str | None:
    return row["hour"] if "hourMs" not in row else iso_of_ms(row["hourMs"])


def test_recorded_groups_and_lags_are_the_same(run: Run, tmp_path: Path) -> None:
    lags, _ = listing(run, "lag", GROUP_LOGS, status=0)
    groups, _ = listing(run, "groups", GROUP_LOGS, status=0)
    tables = job(run, "group-offsets", GROUP_LOGS, tmp_path / "out", status=0)
    offsets, expected = offsets_of_command(lags), offsets_of_job(tables["offsets"])
    # tests/engines compares the start offsets of the share group.
    found_in = [{place: row for place, row in each.items() if place[0] != "packing"} for each in (offsets, expected)]
    assert found_in[0] == found_in[1] != {}
    known, found = groups_of(groups, "lastCommitTimestamp"), groups_of(tables["groups"], "lastCommitMs")
    assert known.pop("packing")[4:6] == (2, 0)
    assert known.items() <= found.items()


def test_records_and_sql_leave_out_what_a_consumer_does_not_see(run: Run, tmp_path: Path) -> None:
    for level in ("read_uncommitted", "read_committed"):
        query = f"SELECT count(*) AS n FROM log('{LOGS}')"
        counted = run("sql", query, "--isolation-level", level, "--output", "json")
        assert counted.exit_code == 0, counted.output
        out = tmp_path / level
        written = run("pipeline", "records", str(LOGS), "--out", str(out), "--isolation-level", level)
        assert written.exit_code == 0, written.output
        records = ds.dataset(out / "current" / "records", partitioning="hive").count_rows()
        assert json.loads(counted.stdout) == [{"n": records}]
