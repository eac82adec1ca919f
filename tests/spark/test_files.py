"""Logs on remote filesystems take another code path, and return the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_msgs.spark.sources.log import KafkaLogSource
from kafka_msgs.spark.sources.options import Options
from kafka_msgs.spark.sources.read_plan import ReadPlan
from tests.support.counting_filesystem import as_bucket
from tests.support.recordings import GROUP_LOGS, LOGS
from tests.support.spark_tables import read


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the files in this directory also available in ``s3a://bucket/``."""
    as_bucket(tmp_path, monkeypatch)
    return tmp_path


def linked(place: Path, directory: Path) -> None:
    (place / directory.name).symlink_to(directory)


def without_file(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "file"} for row in rows]


@pytest.mark.parametrize("split", ["100", "32m"])
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_log_elsewhere_gives_the_rows_of_one_that_is_here(bucket: Path, split: str, isolation: str) -> None:
    linked(bucket, GROUP_LOGS)
    options = {"isolation": isolation, "splitBytes": split, "columns": "*"}
    rows = read(KafkaLogSource, f"s3a://bucket/{GROUP_LOGS.name}/*", **options)
    assert without_file(rows) == without_file(read(KafkaLogSource, GROUP_LOGS / "*", **options))
    assert rows[0]["file"].startswith("s3://log/")


def test_a_segment_elsewhere_is_split_at_its_index_entries(bucket: Path, tmp_path: Path) -> None:
    home = bucket / "events-0"
    home.mkdir()
    segment = LOGS / "codecs-0" / f"{0:020}.log"
    positions = [row["batchPosition"] for row in read(KafkaLogSource, segment, columns="*")]
    (home / segment.name).write_bytes(segment.read_bytes())
    entries = sorted({(row["offset"], row["batchPosition"]) for row in read(KafkaLogSource, segment, columns="*")})
    firsts = {position: offset for offset, position in reversed(entries)}
    index = [(offset, position) for position, offset in sorted(firsts.items()) if position][2::3]
    (home / f"{0:020}.index").write_bytes(b"".join(o.to_bytes(4, "big") + p.to_bytes(4, "big") for o, p in index))
    plan = ReadPlan.of(Options("kafka-log", {"path": "s3a://bucket/events-0", "splitBytes": "1"}))
    starts = [part.start for split in plan.splits() for part in split]
    assert starts == [0, *(position for _, position in index)]
    rows = read(KafkaLogSource, "s3a://bucket/events-0", splitBytes="1", columns="*")
    assert [row["batchPosition"] for row in rows] == positions


def test_a_damaged_segment_elsewhere_is_reported_with_its_own_name_and_bytes(bucket: Path) -> None:
    home = bucket / "events-0"
    home.mkdir()
    data = bytearray((LOGS / "codecs-0" / f"{0:020}.log").read_bytes())
    data[-1] ^= 1
    (home / f"{0:020}.log").write_bytes(data)
    (told,) = [row for row in read(KafkaLogSource, "s3a://bucket/events-0", columns="*") if row["_error"]]
    assert told["_error"].startswith(f"s3://events-0/{0:020}.log at byte {told['batchPosition']}: the checksum")
